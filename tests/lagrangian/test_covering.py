"""Set covering and multi-dimensional knapsacks."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.lagrangian import data, maximise_dual
from upheld.lagrangian.families import MultiKnapsack, SetCovering


@pytest.mark.parametrize("seed", range(4))
def test_the_sign_rule_gives_the_lps_bound(seed):
    P = data.set_covering(12, 40, np.random.default_rng(seed))
    assert maximise_dual(P).u == pytest.approx(P.milp().lp_relaxation()[0], rel=2e-6)


def test_a_knapsack_that_stays_whole_gives_more_than_the_lp():
    rng = np.random.default_rng(3)
    W = rng.integers(5, 40, (3, 15))
    P = MultiKnapsack(rng.integers(10, 100, 15), W, np.floor(W.sum(axis=1) / 4))
    lp, optimum = P.milp().lp_relaxation()[0], P.milp().optimum().value
    u = maximise_dual(P).u
    assert lp < u - 1e-3  # the minimisation's bounds: higher is tighter
    assert u <= optimum + 1e-6
    assert P.user_value(u) >= P.user_value(optimum) - 1e-6  # as the user states it, an upper bound


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([1.0, np.nan], [[1, 1]]), "cost 1 is not a finite number"),
        (([1.0, 1.0], [[0, 0]]), "row 0 of A is empty"),
        (([1.0, 1.0], [[1, 2]]), "A must hold zeros and ones"),
        (([1.0], [[1, 1]]), "A has 2 columns, but there are 1 costs"),
    ],
)
def test_bad_coverings(parts, message):
    with pytest.raises(ValueError, match=message):
        SetCovering(*parts)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([1.0], [[1], [1]], [1]), r"W must be \(capacities >= 2, profits\)"),
        (([-1.0], [[1], [1]], [1, 1]), "profits must be finite and not negative"),
        (([1.0], [[1.5], [1]], [1, 1]), "the first row of W stays a knapsack and must hold whole numbers"),
    ],
)
def test_bad_knapsacks(parts, message):
    with pytest.raises(ValueError, match=message):
        MultiKnapsack(*parts)
