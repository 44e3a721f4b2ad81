"""The alarm: quiet on the past's own kind, loud when the world has moved."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from upheld.lagrangian import data
from upheld.lagrangian.drift import DriftAlarm
from upheld.lagrangian.families import GAP
from upheld.lagrangian.graph import graph_of


def alarm_and_more(past: int, more: int, seed: int = 0) -> tuple[DriftAlarm, list[GAP]]:
    instances = list(itertools.islice(data.gap_stream("D", 3, 7, np.random.default_rng(seed)), past + more))
    return DriftAlarm().fit([graph_of(P) for P in instances[:past]]), instances[past:]


def test_false_alarms_are_as_rare_as_promised():
    alarm, fresh = alarm_and_more(60, 120)
    rate = np.mean([alarm.rings(P, level=0.1) for P in fresh])
    assert rate <= 0.2  # .1, four standard errors, and the sixty that were learned from


def test_p_values_spread_over_the_unit_interval():
    alarm, fresh = alarm_and_more(60, 120, seed=1)
    p = np.array([alarm.p_value(P) for P in fresh])
    assert 0.35 < p.mean() < 0.65
    assert p.min() >= 1 / 61


def test_dearer_or_heavier_instances_ring():
    alarm, fresh = alarm_and_more(40, 1)
    P = fresh[0]
    assert not alarm.rings(P)
    assert alarm.rings(GAP(3 * P.cost, P.weight, P.capacity))
    assert alarm.p_value(GAP(P.cost, np.maximum(P.weight // 2, 1), P.capacity)) == 1 / 41


def test_it_is_saved_as_arrays():
    alarm, fresh = alarm_and_more(10, 3)
    again = DriftAlarm.of(alarm.arrays())
    assert [again.p_value(P) for P in fresh] == [alarm.p_value(P) for P in fresh]


def test_two_instances_show_no_spread():
    with pytest.raises(ValueError, match="2 instances do not show a spread; give at least 3"):
        alarm_and_more(2, 0)
