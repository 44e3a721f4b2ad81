from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld.effects import StreamingBalancer
from upheld.effects.blocks import MOST_BLOCKS, ClosedBlock, pooled, thinned
from upheld.effects.data import DriftStream


def closed(start, n, tau, variance, reason=""):
    nothing = np.nan if reason else 1.0
    return ClosedBlock(
        start, start + n, n, {0: n // 2, 1: n - n // 2}, {1: nothing * tau}, {1: nothing * variance}, {1: float(n)}, {1: 0.1},
        {0: 1.0, 1: 1.0 + tau}, {0: 50.0, 1: 60.0}, {0: 0.01, 1: 0.02}, {1: reason},
    )  # fmt: skip


def test_blocks_are_weighted_by_their_rows():
    found = pooled([closed(0, 1000, 1.0, 0.04), closed(1000, 3000, 2.0, 0.01)], 1, lambda block: 1.0)
    assert found.tau == pytest.approx(1.75)
    assert found.variance == pytest.approx(0.04 / 16 + 0.01 * 9 / 16)


def test_blocks_without_an_effect_are_left_out_and_counted():
    found = pooled([closed(0, 1000, 1.0, 0.04), closed(1000, 1000, 0, 0, "overlap")], 1, lambda block: 1.0)
    assert (found.tau, found.covered, found.n) == (1.0, 0.5, 1000)


@given(
    st.lists(
        st.tuples(st.integers(100, 5000), st.floats(-5, 5), st.floats(0.001, 1), st.booleans()), min_size=2, max_size=9
    )
)
@settings(max_examples=50)
def test_joined_blocks_say_the_same(parts):
    blocks = [closed(i, n, tau, v, "overlap" if gone else "") for i, (n, tau, v, gone) in enumerate(parts)]
    whole = blocks[0]
    for block in blocks[1:]:
        whole = whole.joined(block)
    found = pooled(blocks, 1, lambda block: 1.0)
    assert whole.n == sum(block.n for block in blocks)
    np.testing.assert_allclose([whole.tau[1], whole.variance[1]], [found.tau, found.variance], equal_nan=True)
    assert (whole.reason[1] == "") == (found.covered > 0)


def test_there_are_never_more_than_4096():
    blocks = []
    for i in range(3 * MOST_BLOCKS + 5):
        blocks = thinned([*blocks, closed(i, 100, 1.0 + i % 2, 0.1)])
        assert len(blocks) <= MOST_BLOCKS + 1
    assert sum(block.n for block in blocks) == 100 * (3 * MOST_BLOCKS + 5)
    assert pooled(blocks, 1, lambda block: 1.0).tau == pytest.approx(1.5, abs=1e-3)


@given(st.lists(st.integers(1, 4999), max_size=8, unique=True))
@settings(max_examples=6, deadline=None)
def test_blocks_close_at_the_same_row_whatever_the_batches(cuts):
    stream = DriftStream(5000, 4, "assignment", seed=0)
    balancer = StreamingBalancer(n_features=16, coreset_size=64, random_state=0)
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), 5000], strict=True):
        balancer.partial_fit(stream.X[start:stop], stream.y[start:stop], treatment=stream.w[start:stop])
    assert balancer.blocks_["n"].tolist() == block_lengths(stream.w)


def block_lengths(w, size=2048, least=512):
    """Row by row, as the rule reads."""
    lengths, n, arms = [], 0, {0: 0, 1: 0}
    for one in w:
        n, arms[one] = n + 1, arms[one] + 1
        if n >= size and min(arms.values()) >= least:
            lengths.append(n)
            n, arms = 0, {0: 0, 1: 0}
    return lengths


def test_a_rare_arm_gets_longer_blocks():
    rng = np.random.default_rng(0)
    w = (rng.random(9000) < 0.1).astype(int)
    balancer = StreamingBalancer(n_features=16, coreset_size=64, random_state=0).fit(
        rng.standard_normal((9000, 3)), rng.standard_normal(9000), treatment=w
    )
    assert balancer.blocks_["n"].tolist() == block_lengths(w)
    assert 4500 < balancer.blocks_["n"][0] < 6000


def test_an_arm_that_is_gone_closes_the_block_at_100_000_rows_with_a_warning():
    rng = np.random.default_rng(0)
    n = 103_000
    w = (rng.random(n) < 0.5).astype(int)
    w[2100:] = 0
    balancer = StreamingBalancer(n_features=0, coreset_size=64, pairing="projection", random_state=0, outcomes="subset")
    X = rng.standard_normal((n, 2))
    balancer.partial_fit(X, X[:, 0] + w, treatment=w)
    assert balancer.blocks_["n"].tolist()[-1] == 100_000
    estimate = balancer.estimate()
    assert any("that arm has become rare" in note for note in estimate.warnings)


def test_days_as_blocks():
    stream = DriftStream(5000, 4, "none", seed=0)
    times = pd.Timestamp("2026-03-01") + pd.to_timedelta(np.linspace(0, 3.999, 5000), unit="D")
    balancer = StreamingBalancer(n_features=16, block_size="1d", random_state=0).fit(
        stream.X, stream.y, treatment=stream.w, timestamps=times
    )
    assert balancer.blocks_["n"].tolist() == [1251, 1250, 1250]
    assert balancer.estimate().n == 5000
    assert balancer.estimate(since="2026-03-03").n == 2499
    starts = pd.to_datetime(balancer.blocks_["start"], unit="s")
    assert starts.dt.day.tolist() == [1, 2, 3]


def test_short_periods_wait_for_enough_rows_of_each_arm():
    stream = DriftStream(3000, 4, "none", seed=0)
    balancer = StreamingBalancer(n_features=16, block_size="10min", random_state=0).fit(
        stream.X, stream.y, treatment=stream.w, timestamps=np.arange(3000) * 60.0
    )
    lengths = balancer.blocks_["n"].to_numpy()
    assert (lengths >= 1024).all()
    assert (np.cumsum(lengths) % 10 == 0).all()


def test_double_drift_needs_blocks_or_the_time_kernel():
    """With assignment and outcomes both moving, balancing x alone is off by half an effect; both remedies are not."""
    stream = DriftStream(8000, 6, "both", seed=21)
    errors = {}
    for name, parameters in {
        "x only": {"block_size": None}, "blocks": {}, "kernel": {"block_size": None, "time": "kernel", "time_scale": 8000},
    }.items():  # fmt: skip
        balancer = StreamingBalancer(random_state=1, **parameters).fit(stream.X, stream.y, treatment=stream.w)
        errors[name] = balancer.estimate().ate - stream.effect
    assert errors["x only"] > 0.3
    assert abs(errors["blocks"]) < 0.15
    assert abs(errors["kernel"]) < 0.2


def test_alarms_in_words():
    stream = DriftStream(6000, 5, "assignment", pace="abrupt", seed=1)
    balancer = StreamingBalancer(random_state=0).fit(stream.X, stream.y, treatment=stream.w)
    assert any("assignment moved between the last two blocks" in note for note in balancer.estimate().warnings)
    assert balancer.blocks_["p_covariates"][1] > 0.001 > balancer.blocks_["p_assignment"][1]


def test_recent_is_the_last_four_blocks():
    stream = DriftStream(14_400, 4, "outcome", "linear", "linear", seed=0)
    balancer = StreamingBalancer(n_features=0, random_state=0).fit(stream.X, stream.y, treatment=stream.w)
    recent = balancer.estimate("recent")
    assert recent.n == 3 * 2048 + 14_400 - 7 * 2048
    assert abs(recent.ate - stream.tau[-recent.n :].mean()) < 4 * recent.se
    assert abs(recent.ate - balancer.estimate().ate) > 0.1


def test_a_half_life_over_blocks_fades_them():
    stream = DriftStream(12_288, 4, "outcome", "linear", "linear", seed=0)
    balancer = StreamingBalancer(n_features=0, half_life=4096, random_state=0).fit(
        stream.X, stream.y, treatment=stream.w
    )
    age = 12_288 - np.arange(12_288)
    truth = np.average(stream.tau, weights=0.5 ** (age / 4096))
    assert balancer.estimate("recent").ate == pytest.approx(truth, abs=0.15)
