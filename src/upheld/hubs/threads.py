"""Small matrices on one thread: BLAS threads cost more than they bring there, and a hundredfold more on a busy machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

# Measured on two busy cores: at p = 1000 two threads took fifteen times as long as one, and on idle ones they gain little.
SINGLE_THREAD_LIMIT = 1000


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def few_threads(p: int) -> Iterator[None]:
    """Within this context, linear algebra on (p, p) matrices of moderate size runs on one thread."""
    if p > SINGLE_THREAD_LIMIT:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield
