from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from upheld.effects.rows import (
    BadRowError,
    checked_covariates,
    checked_outcome,
    checked_repeats,
    checked_time,
    checked_treatment,
    hashed,
)  # fmt: skip

TABLE = pd.DataFrame({"age": [30.0, 40.0, 50.0], "town": ["a", "b", "a"], "ill": [True, False, True]})


def test_columns_by_kind():
    rows = checked_covariates(TABLE)
    assert rows.names == ("age", "town", "ill")
    assert rows.numeric_names == ["age", "ill"]
    assert rows.word_names == ["town"]
    assert rows.numbers.tolist() == [[30, 1], [40, 0], [50, 1]]


def test_columns_are_matched_by_name():
    like = ("age", "town", "ill"), (False, True, False)
    rows = checked_covariates(TABLE[["ill", "age", "town"]], like)
    assert rows.names == like[0]
    assert rows.numbers[:, 0].tolist() == [30, 40, 50]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (TABLE.drop(columns="age"), "column 'age' is missing"),
        (TABLE.assign(height=1.0), "column 'height' was not there in earlier rows"),
        (TABLE.assign(age=["old", "x", "y"]), "column 'age' was numeric in earlier rows and now holds 'old'"),
        (np.zeros((3, 2)), "X has 2 columns, but earlier rows had 3"),
        (np.zeros(3), "must be a table"),
    ],
)
def test_other_columns_than_before(table, message):
    with pytest.raises(ValueError, match=message):
        checked_covariates(table, (("age", "town", "ill"), (False, True, False)))


def test_the_same_name_twice():
    with pytest.raises(ValueError, match="column 'a' occurs more than once"):
        checked_covariates(pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_names_column_and_row(value):
    bad = TABLE.copy()
    bad.loc[1, "age"] = value
    with pytest.raises(BadRowError, match="column 'age' is missing or not finite in row 1 \\(1 such rows\\)") as caught:
        checked_covariates(bad)
    assert caught.value.row == 1
    with pytest.raises(BadRowError, match="column 'town' is missing or not finite in row 2"):
        checked_covariates(TABLE.assign(town=["a", "b", None]))
    with pytest.raises(BadRowError, match="the outcome is missing or not finite in row 0"):
        checked_outcome([value, 1.0], 2)


def test_outcomes():
    with pytest.raises(ValueError, match="X has 3 rows but there are 2 outcomes"):
        checked_outcome([1, 2], 3)
    with pytest.raises(ValueError, match="the outcome is not numeric"):
        checked_outcome(["a"], 1)


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        ([1.0, 0.0], [1, 0]), ([True, False], [1, 0]), (pd.Series(["b", "a"]), ["b", "a"]),
        (pd.Categorical(["x", "y"]), ["x", "y"]), (np.array([2, 7], dtype=np.int8), [2, 7]),
    ],
)  # fmt: skip
def test_labels_of_arms(given, labels):
    found = checked_treatment(given, 2)
    assert found.tolist() == labels
    assert all(type(one) in (int, str) for one in found)


def test_what_is_no_treatment():
    with pytest.raises(
        ValueError, match=r"the treatment is 0\.5 in row 1, but a continuous treatment is not supported"
    ):
        checked_treatment([0, 0.5], 2)
    with pytest.raises(ValueError, match="the treatment has 21 levels, more than 20"):
        checked_treatment(np.arange(21), 21)
    with pytest.raises(BadRowError, match="the treatment is missing or not finite in row 1"):
        checked_treatment([0, np.nan], 2)


def test_times():
    assert checked_time(["1970-01-02", "1970-01-03T00:00:01Z"], 2).tolist() == [86_400, 172_801]
    assert checked_time(pd.date_range("1970-01-01", periods=2, tz="Europe/Berlin"), 2).tolist() == [-3600, 82_800]
    assert checked_time([3, 4.5], 2).tolist() == [3, 4.5]
    with pytest.raises(ValueError, match="neither numbers nor dates"):
        checked_time(["soon"], 1)
    with pytest.raises(BadRowError, match="the timestamp is missing or not finite in row 1"):
        checked_time([1.0, np.nan], 2)


def test_weights_are_copies():
    assert checked_repeats([0, 2.0], 2).tolist() == [0, 2]
    for bad in (0.5, -1, np.nan):
        with pytest.raises(ValueError, match=r"the sample weight of row 1 is .* only whole numbers are supported"):
            checked_repeats([1, bad], 2)


def test_ids_hash_to_63_bits_and_tell_numbers_from_words():
    assert 0 <= hashed("a" * 1000) < 2**63
    assert hashed(1) != hashed("1")


def test_numbers_whose_squares_would_not_be_finite():
    with pytest.raises(BadRowError, match="column 'age' is 4e\\+120 in row 1, beyond 1e\\+100; take another unit"):
        checked_covariates(TABLE.assign(age=[1.0, 4e120, 2.0]))
    with pytest.raises(BadRowError, match="the outcome is -2e\\+200 in row 0, beyond 1e\\+100"):
        checked_outcome([-2e200, 1.0], 2)


def test_arms_that_are_one_number_as_floats():
    with pytest.raises(ValueError, match="the treatment is 1e\\+18, too large for the number of an arm"):
        checked_treatment(np.array([10**18, 10**18 + 1]), 2)
