from __future__ import annotations

import math
import time

import pytest
import torch

from upheld.speculative.stats import SpecStats, clock_of, expected_tau


@pytest.mark.parametrize(
    ("acceptance", "tau"),
    [  # (1 - a^(g+1)) / (1 - a), and a falling sequence multiplied out by hand
        ([0.8] * 7, 4.16113920),
        ([0.6] * 15, 2.49929472),
        ([0.5] * 3, 1.875),
        ([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3], 3.656224),
        ([], 1.0),
    ],
)
def test_expected_tau(acceptance, tau):
    assert expected_tau(acceptance) == pytest.approx(tau, abs=5e-9)


def test_tau_counts_the_bonus_and_positions_condition_on_those_before():
    stats = SpecStats(acceptance_lengths=[1, 2, 4, 4], drafted=[3, 3, 3, 3])
    assert stats.tau == 11 / 4
    assert stats.position_acceptance == [3 / 4, 2 / 3, 1.0]
    assert expected_tau(stats.position_acceptance) == pytest.approx(stats.tau)


def test_shorter_blocks_do_not_count_against_later_positions():
    stats = SpecStats(acceptance_lengths=[2, 4], drafted=[1, 3])
    assert stats.position_acceptance == [1.0, 1.0, 1.0]


def test_nothing_measured_is_not_a_number():
    assert math.isnan(SpecStats().tau)
    assert SpecStats().position_acceptance == []


def test_several_together_are_added_up_and_what_was_not_counted_adds_nothing():
    one, other = SpecStats(acceptance_lengths=[1, 4], drafted=[3, 3]), SpecStats(acceptance_lengths=[2], drafted=[3])
    assert SpecStats.together([one, None, other]) == one.add(other)
    assert SpecStats.together([one, None, other]).tau == 7 / 3
    assert SpecStats.together([]) == SpecStats()


@pytest.mark.parametrize(("threads", "clock"), [(1, time.process_time), (2, time.perf_counter)])
def test_seconds_of_several_threads_are_not_added_up(threads, clock):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert clock_of(torch.device("cpu")) is clock
    finally:
        torch.set_num_threads(before)
