from __future__ import annotations

import math
import sys
from pathlib import Path

import pandas as pd
import pytest

from upheld.speculative.plots import acceptance_by_position, acceptance_histogram, cost_curves, speed_up_forest

sys.path.insert(0, str(Path(__file__).parents[1]))
from pictures import check_picture


def texts(picture):
    return [text.get_text() for axes in picture.axes for text in axes.texts]


def test_histogram_shows_shares_and_their_mean():
    picture = acceptance_histogram([1, 1, 2, 4], 4)
    check_picture(picture)
    axes = picture.axes[0]
    assert [bar.get_height() for bar in axes.patches] == [50, 25, 0, 25]
    assert texts(picture) == ["τ = 2.00"]


@pytest.mark.parametrize("lengths", [[], [5], [0, 1]])
def test_histogram_refuses_what_no_cycle_emits(lengths):
    with pytest.raises(ValueError, match="each of 1 to 4 tokens"):
        acceptance_histogram(lengths, 4)


def test_positions_never_reached_are_left_out():
    picture = acceptance_by_position({"dflash": [0.5, math.nan, math.nan], "eagle": [0.9, 0.8]})
    check_picture(picture)
    assert [next(iter(line.get_ydata())) for line in picture.axes[0].lines] == [50, 90]


def test_no_draft_no_picture():
    with pytest.raises(ValueError, match="no draft was proposed"):
        acceptance_by_position({"plain": []})


def test_cost_of_one_token_is_the_unit():
    picture = cost_curves({2: 1.5, 8: 2.0}, {2: 0.1, 8: 0.2}, 0.05)
    check_picture(picture)
    verify = picture.axes[0].lines[1]
    assert (list(verify.get_xdata()), list(verify.get_ydata())) == ([1, 2, 8], [1, 1.5, 2])
    assert "50 ms" in picture.axes[0].get_ylabel()


def test_forest_draws_intervals_and_the_bound():
    table = pd.DataFrame(
        {"method": ["dflash", "lookup"], "estimate": [1.4, 0.9], "low": [1.2, math.nan], "high": [1.6, math.nan]}
    )
    picture = speed_up_forest(table, bound=4.0)
    check_picture(picture)
    assert texts(picture) == ["0.90", "1.40", "all drafts right"]
    assert [label.get_text() for label in picture.axes[0].get_yticklabels()] == ["lookup", "dflash"]


def test_forest_names_what_its_table_lacks():
    with pytest.raises(ValueError, match="lacks high, low"):
        speed_up_forest(pd.DataFrame({"method": ["a"], "estimate": [1.0]}))
