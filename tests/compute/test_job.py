from __future__ import annotations

import math
import pickle

import pytest

from upheld.compute.job import Job, Outcome, one_line, seal, unseal


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, math.nan])
def test_time_limit_must_be_positive(timeout_s: float) -> None:
    with pytest.raises(ValueError, match="timeout_s of job 'a' must be above 0"):
        Job("a", math.factorial, (3,), timeout_s)


def test_sealed_call_is_the_call() -> None:
    sealed = seal(Job("a", math.factorial, (3,), 1.0))
    assert isinstance(sealed, bytes)
    call, args = pickle.loads(sealed)
    assert call(*args) == 6


def test_arguments_that_cannot_be_pickled() -> None:
    refused = seal(Job("a", math.factorial, (lambda: 3,), 1.0))
    assert isinstance(refused, Outcome)
    assert (refused.key, refused.status) == ("a", "failed")
    assert refused.reason.startswith("the call of factorial cannot be sent to a worker: ")


def test_unseal_leaves_failures_alone() -> None:
    failure = Outcome("a", "failed", None, "why")
    assert unseal(failure) is failure


def test_unseal_opens_values() -> None:
    assert unseal(Outcome("a", "done", pickle.dumps([1, 2]))) == Outcome("a", "done", [1, 2])


def test_one_line_is_one_line_and_bounded() -> None:
    assert one_line(ValueError("a\n  b\tc")) == "ValueError: a b c"
    assert one_line(ValueError()) == "ValueError"
    assert len(one_line(ValueError("x" * 10_000))) == 500
