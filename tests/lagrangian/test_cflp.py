"""Facility location: the integrality property, and bad data. (Values against HiGHS stand in test_oracles.)"""

from __future__ import annotations

import numpy as np
import pytest

from upheld.lagrangian import data, maximise_dual
from upheld.lagrangian.families import CFLP


@pytest.mark.parametrize("seed", range(4))
def test_with_x_at_most_y_in_the_blocks_the_bound_is_the_lps(seed):
    P = data.cflp(5, 9, np.random.default_rng(seed))
    assert maximise_dual(P).u == pytest.approx(P.milp().lp_relaxation()[0], rel=2e-6)


def test_one_site_by_hand():
    """Prizes 4 - 2 and 4 - 3 fill the capacity of 2; less the cost of 1 that leaves 2 of the 8 promised."""
    answer = CFLP([[2, 3]], [1], [1, 1], [2]).oracle(np.array([4.0, 4.0]))
    assert answer.u == 6.0
    assert answer.x.tolist() == [1.0, 1.0, 1.0]


def test_a_capacity_that_is_short_serves_a_share():
    answer = CFLP([[0, 0]], [0], [2, 2], [3]).oracle(np.array([4.0, 2.0]))
    assert answer.x.tolist() == [1.0, 0.5, 1.0]
    assert answer.u == 6.0 - 5.0


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([[1.0, np.nan]], [1], [1, 1], [1]), "transport cost 0, 1 is nan"),
        (([[1.0, 1.0]], [-1], [1, 1], [1]), "fixed cost 0 is -1"),
        (([[1.0, 1.0]], [1], [1, 0], [1]), "demand 1 is 0"),
        (([[1.0, 1.0]], [1], [1, 1], [0]), "capacity 0 is 0"),
        (([[1.0, 1.0]], [1, 1], [1, 1], [1]), "fixed_cost and capacity must have 1"),
    ],
)
def test_bad_data(parts, message):
    with pytest.raises(ValueError, match=message):
        CFLP(*parts)
