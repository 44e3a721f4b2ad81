from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from upheld.hubs.samples import check_numeric, check_samples, split_by_group, stack_groups


def test_rows_go_to_their_group_in_sorted_order():
    samples = split_by_group(np.arange(10.0).reshape(5, 2), ["b", "a", "b", "a", "b"], None)
    assert samples.labels == ["a", "b"]
    np.testing.assert_array_equal(samples.Xs[0], [[2, 3], [6, 7]])
    np.testing.assert_array_equal(samples.Xs[1], [[0, 1], [4, 5], [8, 9]])


def test_equal_samples_add_nothing_to_the_joint_rank():
    X = np.arange(12.0).reshape(4, 3) ** 2
    assert stack_groups([X, X[[0, 1, 0, 1, 2]]]).joint_rank == 3 + 2


def test_given_order_of_groups_is_kept():
    assert stack_groups({"z": np.ones((2, 2)), "a": np.ones((2, 2))}).labels == ["z", "a"]


def test_numbers_stored_as_objects_pass_and_words_do_not():
    check_numeric(pd.DataFrame({"a": pd.Series([1, 2.5], dtype=object)}))
    with pytest.raises(ValueError, match="column 'b' is not numeric"):
        check_numeric(pd.DataFrame({"a": [1.0], "b": ["high"]}))


def test_no_groups_and_bad_table_are_named():
    with pytest.raises(ValueError, match="no groups were given"):
        stack_groups([])
    with pytest.raises(ValueError, match="group 'right': column 'b' is not numeric"):
        stack_groups({"left": pd.DataFrame({"b": [1.0]}), "right": pd.DataFrame({"b": ["x"]})})


@pytest.mark.parametrize("unit", [1e308, 1e200, 1e-200])
def test_values_whose_squares_leave_double_precision_are_named(unit):
    X = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    X[:, 1] *= unit
    samples = stack_groups({"left": pd.DataFrame(X, columns=["a", "b", "c"])})
    with pytest.raises(ValueError, match=r"column 'b' in group 'left' has values up to .*; measure it in another unit"):
        check_samples(samples)
