"""What an experiment refuses, and the trials it makes."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.claims import Experiment, Scale, grid


def nothing(trial):
    return ()


def experiment(conditions, repeats=2, timeout_s=1.0):
    return Experiment("toy.race", nothing, {Scale.QUICK: conditions}, {Scale.QUICK: repeats}, {Scale.QUICK: timeout_s})


def test_grid_is_every_combination():
    assert grid(n=[30, 60], law=["a", "b"]) == [
        {"n": 30, "law": "a"}, {"n": 30, "law": "b"}, {"n": 60, "law": "a"}, {"n": 60, "law": "b"}
    ]  # fmt: skip
    assert grid() == [{}]


def test_a_stopped_run_is_balanced():
    trials = [(trial.seed, trial.condition["n"]) for trial in experiment(grid(n=[30, 60])).trials(Scale.QUICK)]
    assert trials == [(0, 30), (0, 60), (1, 30), (1, 60)]


def test_a_scale_that_is_left_out_has_no_trials():
    assert list(experiment(grid(n=[30])).trials(Scale.FULL)) == []


def test_a_condition_twice_would_be_measured_twice():
    with pytest.raises(ValueError, match=r'toy.race: condition {"a":1,"b":2} stands twice in scale quick'):
        experiment([{"a": 1, "b": 2}, {"b": 2, "a": 1}])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, [1], np.int64(3)])
def test_a_condition_that_cannot_be_a_key(value):
    with pytest.raises(ValueError, match=r"toy\.race: condition n is .*; text, numbers of Python that are finite"):
        experiment([{"n": value}])


@pytest.mark.parametrize("name", ["seed", "item", "method", "metric", "value"])
def test_a_condition_that_bears_the_name_of_a_column(name):
    with pytest.raises(ValueError, match=f"'{name}' cannot name a condition"):
        experiment([{name: 1}])


def test_a_scale_without_repeats_or_time():
    with pytest.raises(ValueError, match=r"toy\.race: scale quick has conditions, but no repeats or no timeout_s"):
        Experiment("toy.race", nothing, {Scale.QUICK: [{}]}, {}, {Scale.QUICK: 1})
    with pytest.raises(ValueError, match="repeats and timeout_s of scale quick must be above 0"):
        experiment([{}], repeats=0)
    with pytest.raises(ValueError, match="repeats and timeout_s of scale quick must be above 0"):
        experiment([{}], timeout_s=0)
