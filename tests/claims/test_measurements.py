"""What rules read of the measurements does not depend on their order, nor on who read them before."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from upheld.claims import Difference, Mean, Measurements
from upheld.claims.measurements import Cell


def frame(values: dict[str, list[float]], seeds: list[int]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"n": 30, "seed": seed, "item": "", "method": method, "metric": "error", "value": value}
            for method, column in values.items()
            for seed, value in zip(seeds, column, strict=True)
        ]
    )


def test_units_are_matched_whatever_their_order_in_the_file():
    rows = frame({"ours": [1.0, 2.0, 3.0], "theirs": [10.0, 20.0, 30.0]}, [2, 0, 1])
    shuffled = rows.iloc[[5, 0, 3, 2, 1, 4]]
    cells = [Cell("error", "ours"), Cell("error", "theirs")]
    wanted = [[2.0, 20.0], [3.0, 30.0], [1.0, 10.0]]
    for one in (rows, shuffled):
        np.testing.assert_array_equal(Measurements(one).matrix(cells), wanted)


def test_units_that_lack_a_cell_are_left_out():
    rows = pd.concat([frame({"ours": [1.0, 2.0]}, [0, 1]), frame({"theirs": [5.0, 6.0]}, [1, 2])])
    np.testing.assert_array_equal(
        Measurements(rows).matrix([Cell("error", "ours"), Cell("error", "theirs")]), [[2.0, 5.0]]
    )


def test_several_values_of_a_unit_are_averaged():
    rows = pd.concat([frame({"ours": [1.0, 2.0]}, [0, 1]), frame({"ours": [3.0]}, [0])])
    np.testing.assert_array_equal(Measurements(rows).matrix([Cell("error", "ours")]), [[2.0], [2.0]])


def test_cells_that_differ_in_their_conditions_alone_are_kept_apart():
    rows = pd.concat([frame({"ours": [1.0, 2.0]}, [0, 1]), frame({"ours": [30.0, 50.0]}, [0, 1]).assign(n=60)])
    data = Measurements(rows)
    of = [Cell("error", "ours", {"n": n}) for n in (30, 60)] + [Cell("error", "ours", {"n": 60}, log=True)]
    for _ in range(2):  # the second time from what was read before
        np.testing.assert_allclose(data.matrix(of)[:, :2], [[1, 30], [2, 50]])
        np.testing.assert_allclose(data.matrix(of)[:, 2], np.log([30, 50]))


@pytest.mark.parametrize("units", ["seed", "item", "seed/item"])
def test_a_rule_finds_the_same_after_others(units):
    rng = np.random.default_rng(0)
    rows = pd.concat(
        [frame({"ours": list(rng.random(8)), "theirs": list(rng.random(8))}, list(range(8))).assign(item=item) for item in "abcdef"]
    )  # fmt: skip
    asked = Difference(Mean("error", "ours"), Mean("error", "theirs"))
    alone = asked.interval(Measurements(rows, units), 0.025, 0.025)
    data = Measurements(rows, units)
    Mean("error", "theirs").interval(data, 0.1, 0.1)
    asked.interval(data, 0.001, 0.001)
    again = asked.interval(data, 0.025, 0.025)
    assert (again.estimate, again.low, again.high) == (alone.estimate, alone.low, alone.high)
