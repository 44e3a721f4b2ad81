from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.llm.retries import Retries


def test_waits_double_up_to_the_longest_and_come_to_an_end():
    policy = Retries(tries=6, first_s=1, longest_s=5)
    for failed, most in enumerate([1, 2, 4, 5, 5], start=1):
        waits = [policy.wait(failed) for _ in range(200)]
        assert most / 2 <= min(waits) < 0.6 * most
        assert 0.9 * most < max(waits) <= most
    assert policy.wait(6) is None


@given(st.integers(1, 40), st.floats(0, 60))
def test_nobody_comes_back_earlier_than_asked_or_much_later(failed, asked):
    wait = Retries(tries=50, first_s=0.5, longest_s=60).wait(failed, asked)
    assert asked <= wait <= max(60, 1.1 * asked)


def test_who_asks_for_longer_than_the_longest_is_not_waited_for():
    assert Retries(longest_s=60).wait(1, 61) is None


def test_a_caller_s_random_numbers_are_left_alone():
    random.seed(3)
    expected = random.Random(3).random()
    Retries().wait(1)
    assert random.random() == expected


@pytest.mark.parametrize("options", [{"tries": 0}, {"first_s": -1}, {"first_s": 9, "longest_s": 3}])
def test_policies_that_cannot_be(options):
    with pytest.raises(ValueError, match="must"):
        Retries(**options)
