import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score

from upheld.hubs.metrics import hub_recovery, ranking_auc

masks = st.integers(2, 30).flatmap(
    lambda p: st.tuples(
        st.lists(st.booleans(), min_size=p, max_size=p), st.lists(st.booleans(), min_size=p, max_size=p)
    )
)


def test_nothing_selected_although_hubs_exist_is_f_zero():
    nothing = hub_recovery(np.zeros(5, dtype=bool), np.array([True, True, False, False, False]))
    assert nothing.f_score == 0
    assert nothing.tpr == 0
    assert nothing.fpr == 0
    assert math.isnan(nothing.precision)


def test_no_hub_and_nothing_selected_has_no_f():
    nothing = hub_recovery(np.zeros(3, dtype=bool), np.zeros(3, dtype=bool))
    assert math.isnan(nothing.f_score)
    assert nothing.fpr == 0


def test_selecting_where_no_hub_exists_is_f_zero():
    assert hub_recovery(np.array([True, False]), np.zeros(2, dtype=bool)).f_score == 0


@settings(deadline=None)
@given(masks)
def test_agrees_with_scikit_learn(pair):
    selected, hubs = (np.array(mask) for mask in pair)
    found = hub_recovery(selected, hubs)
    if hubs.any():
        assert found.tpr == pytest.approx(recall_score(hubs, selected))
        assert found.f_score == pytest.approx(f1_score(hubs, selected, zero_division=0))
    if selected.any():
        assert found.precision == pytest.approx(precision_score(hubs, selected))
    if not hubs.all():
        assert found.fpr == pytest.approx(1 - recall_score(~hubs, ~selected))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=40))
def test_auc_agrees_with_scikit_learn_ties_included(pairs):
    score, hubs = np.array([s for s, _ in pairs], dtype=float), np.array([h for _, h in pairs])
    if hubs.all() or not hubs.any():
        with pytest.raises(ValueError, match="needs both hubs and other variables"):
            ranking_auc(score, hubs)
    else:
        assert ranking_auc(score, hubs) == pytest.approx(roc_auc_score(hubs, score))


def test_positions_are_refused_as_masks():
    with pytest.raises(TypeError, match="selected must be a boolean mask"):
        hub_recovery([0, 3], [True, False])


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="selected covers 2 variables and the mask of hubs 3"):
        hub_recovery([True, False], [True, False, False])


def test_nan_score_is_counted():
    with pytest.raises(ValueError, match="score holds 1 values that are not finite"):
        ranking_auc([0.1, np.nan], [True, False])
