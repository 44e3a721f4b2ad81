from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from upheld.context.metrics import (
    METRICS,
    Metric,
    accuracy,
    macro_f1,
    metric_named,
    micro_f1,
    register_metric,
    weighted_mean,
)

LABELS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30)


def test_weighted_train_metric_of_the_specification():
    assert weighted_mean([0.5, 0.6, 0.9], [50, 50, 20]) == pytest.approx(0.6083, abs=5e-5)


@given(LABELS)
def test_macro_f1_is_scikit_learns_over_the_targets_labels(pairs):
    answers, targets = zip(*pairs, strict=True)
    expected = f1_score(targets, answers, average="macro", labels=sorted(set(targets)), zero_division=0)
    assert macro_f1(answers, targets) == pytest.approx(expected)


@given(LABELS)
def test_micro_f1_of_single_labels_is_accuracy(pairs):
    answers, targets = zip(*pairs, strict=True)
    assert micro_f1(answers, targets) == pytest.approx(accuracy(answers, targets))


def test_micro_f1_by_hand():
    # shared 1 + 1, given 2 + 1, wanted 1 + 2
    assert micro_f1(["a; b", "c"], ["a", "c; a"]) == pytest.approx(2 * 2 / 6)


def test_a_taken_name_and_an_unknown_one():
    with pytest.raises(ValueError, match="there is a metric 'accuracy' already"):
        register_metric(Metric("accuracy", accuracy))
    with pytest.raises(ValueError, match="there is no metric 'bleu'; choose accuracy"):
        metric_named("bleu")


def test_no_targets():
    with pytest.raises(ValueError, match="0 answers cannot be judged by 0 targets"):
        METRICS["accuracy"]([], [])
