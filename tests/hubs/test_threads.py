from __future__ import annotations

from threadpoolctl import threadpool_info

from upheld.hubs.threads import SINGLE_THREAD_LIMIT, few_threads


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_small_problems_run_on_one_thread_and_the_setting_comes_back():
    before = blas_threads()
    with few_threads(50):
        assert set(blas_threads()) == {1}
    assert blas_threads() == before
    with few_threads(SINGLE_THREAD_LIMIT + 1):
        assert blas_threads() == before
