"""Most cells won, none lost: on planted truths, and with the error rate it promises."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from upheld.claims import Measurements, Outcome, Superior
from upheld.effects.claims.most_cells import SuperiorInMostCells

RULE = SuperiorInMostCells("error", "ours", ("a", "b"), ("cell",))


def measured(gaps, rng, seeds=12) -> Measurements:
    """Ours and two rivals; in each cell rival a is worse than ours by the gap, b by one more."""
    rows = [
        {"seed": seed, "item": "", "cell": cell, "method": method, "metric": "error", "value": value}
        for cell, gap in enumerate(gaps)
        for seed in range(seeds)
        for method, value in (
            ("ours", rng.normal(0, 0.5)), ("a", gap + rng.normal(0, 0.5)), ("b", gap + 1 + rng.normal(0, 0.5)),
        )
    ]  # fmt: skip
    return Measurements(pd.DataFrame(rows))


def outcome(gaps, seed=0):
    return RULE.judge(measured(gaps, np.random.default_rng(seed))).outcome


def test_eight_of_ten_suffice_and_seven_do_not():
    assert outcome([3] * 8 + [0, 0]) is Outcome.UPHELD
    assert outcome([3] * 7 + [0, 0, 0]) is Outcome.INCONCLUSIVE


def test_one_cell_lost_refutes_whatever_the_others():
    assert outcome([3] * 9 + [-3]) is Outcome.NOT_UPHELD


@pytest.mark.parametrize("gaps", [[3, 3, 3, 3], [3, 3, 3, 0.2], [3, 0.2, -3, 0], [3]])
def test_with_four_cells_it_is_superior_in_each(gaps):
    data = measured(gaps, np.random.default_rng(1))
    strict = Superior("error", "ours", ("a", "b"), lower_is_better=True, per=("cell",)).judge(data)
    found = RULE.judge(data)
    assert found.outcome is strict.outcome
    assert found.findings == strict.findings


def test_the_note_counts_cells():
    note = RULE.judge(measured([3] * 7 + [0, 0, 0], np.random.default_rng(0))).note
    assert "7 of 10 cells won" in note
    assert "8 are needed" in note


@pytest.mark.slow
def test_a_claim_that_does_not_hold_is_upheld_no_more_often_than_it_may():
    """Three cells of five are won for sure, the other two are level: one won by chance would do."""
    rng = np.random.default_rng(3)
    tries = 60
    wrong = sum(RULE.judge(measured([5] * 3 + [0] * 2, rng, seeds=10)).outcome is Outcome.UPHELD for _ in range(tries))
    assert wrong <= stats.binom.ppf(0.999, tries, 0.025)


def test_its_words_say_share_and_conditions():
    assert "at least 80% of the combinations of cell" in RULE.words()
