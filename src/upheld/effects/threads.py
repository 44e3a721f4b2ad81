"""Small matrices on one thread: what BLAS threads cost one another is more than what they bring here.

Measured with batches of 500 rows, d = 10, D = 256, k = 256, on two cores that others use too: 9,000 rows a second on one thread, 500 on
as many as there are cores; setting the limit takes 50 microseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

MANY_FEATURES = 1000  # from here on matrices are large enough for threads

F = TypeVar("F", bound=Callable[..., Any])


@cache
def _controller() -> ThreadpoolController:
    """Of what is loaded when it is first asked for: NumPy's library and SciPy's, which a balancer calls."""
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()


def on_one_thread(method: F) -> F:
    """A balancer's method, with its linear algebra on one thread unless the balancer has 1,000 features or more."""

    @wraps(method)
    def limited(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.n_features >= MANY_FEATURES:
            return method(self, *args, **kwargs)
        with _controller().limit(limits=1, user_api="blas"):
            return method(self, *args, **kwargs)

    return cast(F, limited)
