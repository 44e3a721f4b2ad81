from __future__ import annotations

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from upheld.effects import StreamingBalancer
from upheld.effects.threads import _controller, on_one_thread


@pytest.fixture(autouse=True)
def _every_library_that_is_loaded() -> None:
    """Other tests of this process may have loaded libraries that no balancer calls; `blas_threads` asks those too."""
    _controller.cache_clear()


class Probe:
    def __init__(self, n_features: int) -> None:
        self.n_features = n_features

    @on_one_thread
    def threads(self) -> int:
        return blas_threads()


def blas_threads() -> int:
    return max(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")


def test_small_matrices_are_on_one_thread_and_the_limit_ends_with_the_call():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert Probe(256).threads() == 1
        assert Probe(2000).threads() == before == blas_threads()


def test_rows_and_estimates_pass_through_it(stream, feed, monkeypatch):
    seen = []
    balancer = StreamingBalancer(random_state=0)
    original = StreamingBalancer._open_estimate
    monkeypatch.setattr(
        StreamingBalancer, "_open_estimate", lambda self, *rest: (seen.append(blas_threads()), original(self, *rest))[1]
    )
    with threadpool_limits(2, user_api="blas"):
        feed(balancer, stream)
        balancer.estimate()
    assert seen
    assert set(seen) == {1}
