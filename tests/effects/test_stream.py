from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from upheld.effects import BadRowError, ExactMomentBalancer, StreamingBalancer
from upheld.effects.data import DriftStream

SMALL = {"n_features": 32, "coreset_size": 64, "random_state": 0}


def one_by_one(balancer, stream, start=0, stop=None, **options):
    names = [f"x{j + 1}" for j in range(stream.X.shape[1])]
    for i in range(start, stream.n if stop is None else stop):
        balancer.learn_one(dict(zip(names, stream.X[i], strict=True)), int(stream.w[i]), stream.y[i], **options)
    return balancer


def test_one_by_one_is_the_same_as_batches_of_64(stream, feed):
    single = one_by_one(StreamingBalancer(**SMALL), stream, 0, 3000)
    batched = feed(StreamingBalancer(**SMALL), stream, 0, 3000, batch=64)
    assert single.estimate() == batched.estimate()
    assert single.n_seen_ == 3000


def test_many_is_a_batch(stream):
    table = pd.DataFrame(stream.X[:1500])
    many = StreamingBalancer(**SMALL)
    many.learn_many(table, pd.Series(stream.w[:1500]), pd.Series(stream.y[:1500]))
    assert (
        many.estimate() == StreamingBalancer(**SMALL).fit(table, stream.y[:1500], treatment=stream.w[:1500]).estimate()
    )


def test_what_arms_are_called_changes_nothing(stream):
    """Each process orders a set of words differently; with nine pairs, one is likely to be turned round."""
    small = {"n_features": 8, "coreset_size": 16, "block_size": None, "random_state": 0}
    rows = slice(0, 900)

    def effect(treatment):
        return StreamingBalancer(**small).fit(stream.X[rows], stream.y[rows], treatment=treatment).estimate().ate

    expected = effect(stream.w[rows])
    names = ["control", "placebo", "no offer", "before", "a", "A", "old", "c", "none"]
    for base in names:
        assert effect(np.where(stream.w[rows] == 1, "treated", base)) == expected
    assert effect(np.where(stream.w[rows] == 1, 8, 1)) == expected


@given(st.lists(st.integers(1, 2999), max_size=6, unique=True))
@settings(max_examples=8, deadline=None)
def test_counts_and_the_target_mean_are_exact_whatever_the_batches(cuts):
    stream = DriftStream(3000, 4, "none", seed=0)
    balancer = StreamingBalancer(block_size=None, **SMALL)
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), 3000], strict=True):
        balancer.partial_fit(stream.X[start:stop], stream.y[start:stop], treatment=stream.w[start:stop])
    block = balancer._block
    coordinates = (stream.X - balancer.encoding_.location) / balancer.encoding_.scale
    phi = balancer.feature_map_(coordinates, np.zeros(3000))
    np.testing.assert_allclose(block.phi / block.n, phi.mean(axis=0), atol=1e-12)
    for arm in (0, 1):
        np.testing.assert_allclose(
            block.arms[arm].sums.phi / block.arms[arm].sums.n, phi[stream.w == arm].mean(axis=0), atol=1e-12
        )
    assert balancer.n_arm_ == {0: int((stream.w == 0).sum()), 1: int(stream.w.sum())}
    items = balancer.coreset()
    assert items.groupby("arm")["multiplicity"].sum().tolist() == list(balancer.n_arm_.values())
    assert items.groupby("arm")["weight"].sum().to_numpy() == pytest.approx(1)


def test_the_warm_up_is_the_first_rows_whatever_the_batches(stream, feed):
    fitted = [feed(StreamingBalancer(**SMALL), stream, 0, 1000, batch=batch) for batch in (1000, 300, 7)]
    assert len({one.fingerprint() for one in fitted}) == 1


def test_an_estimate_leaves_no_trace(stream, feed):
    quiet, asked = StreamingBalancer(**SMALL), StreamingBalancer(**SMALL)
    feed(quiet, stream, 0, 4000, batch=500)
    for at in range(0, 4000, 500):
        feed(asked, stream, at, at + 500)
        asked.estimate()
        asked.balance_table()
    assert asked.estimate() == quiet.estimate()


def test_during_the_warm_up_there_is_a_provisional_estimate(stream, feed):
    balancer = feed(StreamingBalancer(random_state=0), stream, 0, 400)
    early = balancer.estimate()
    assert abs(early.ate - stream.tau[:400].mean()) < 4 * early.se
    assert balancer.feature_map_ is None
    assert feed(StreamingBalancer(), stream, 0, 10).estimate().reason == "overlap"


def test_fit_forgets(stream):
    part = slice(3000, 6000)
    balancer = StreamingBalancer(**SMALL).fit(stream.X[:3000], stream.y[:3000], treatment=stream.w[:3000])
    balancer.fit(stream.X[part], stream.y[part], treatment=stream.w[part])
    fresh = clone(balancer).fit(stream.X[part], stream.y[part], treatment=stream.w[part])
    assert balancer.estimate() == fresh.estimate()


def test_copies_by_weight(stream):
    weights = np.random.default_rng(0).integers(0, 3, 1200)
    rows = np.repeat(np.arange(1200), weights)
    weighted = StreamingBalancer(**SMALL).fit(
        stream.X[:1200], stream.y[:1200], treatment=stream.w[:1200], sample_weight=weights
    )
    repeated = StreamingBalancer(**SMALL).fit(stream.X[rows], stream.y[rows], treatment=stream.w[rows])
    assert weighted.estimate() == repeated.estimate()


def test_discounted_sums_are_the_recursion():
    """S <- gamma S + phi, row by row, gamma = 2^(-1/h)."""
    stream = DriftStream(1500, 4, "none", seed=0)
    balancer = StreamingBalancer(block_size=None, half_life=300, **SMALL)
    for part in np.array_split(np.arange(1500), 11):
        balancer.partial_fit(stream.X[part], stream.y[part], treatment=stream.w[part])
    phi = balancer.feature_map_((stream.X - balancer.encoding_.location) / balancer.encoding_.scale, np.zeros(1500))
    S, n = np.zeros(phi.shape[1]), 0.0
    for row in phi:
        S, n = 2 ** (-1 / 300) * S + row, 2 ** (-1 / 300) * n + 1
    np.testing.assert_allclose(balancer._block.recent, S, atol=1e-10)
    assert balancer._block.recent_rows == pytest.approx(n)


def test_a_half_life_follows_the_effect():
    stream = DriftStream(8000, 4, "outcome", "linear", "linear", seed=0)
    balancer = StreamingBalancer(block_size=None, half_life=1000, time="kernel", time_scale=2500, random_state=0)
    balancer.fit(stream.X, stream.y, treatment=stream.w)
    truth = np.average(stream.tau, weights=0.5 ** (np.arange(8000)[::-1] / 1000))
    recent = balancer.estimate("recent")
    assert abs(recent.ate - truth) < 3 * recent.se
    assert abs(truth - stream.effect) > 0.3


def test_outcomes_that_come_late(stream):
    """Half of the outcomes come after all rows."""
    balancer, names = StreamingBalancer(pending_limit=3000, **SMALL), [f"x{j + 1}" for j in range(5)]
    for i in range(3000):
        x = dict(zip(names, stream.X[i], strict=True))
        balancer.learn_one(x, int(stream.w[i]), None if i % 2 else stream.y[i], id=i)
    assert balancer.n_seen_ + len(balancer._buffer) == 1500
    assert balancer.pending_ == {"waiting": 1500, "expired": 0, "crowded_out": 0}
    for i in range(1, 3000, 2):
        balancer.outcome(i, stream.y[i])
    estimate = balancer.estimate()
    assert estimate.n == 3000
    assert abs(estimate.ate - stream.tau[:3000].mean()) < 4 * estimate.se
    with pytest.raises(KeyError, match="no row with id 1 is waiting"):
        balancer.outcome(1, 0.0)


def test_lost_outcomes_are_reported(stream, feed):
    balancer = feed(StreamingBalancer(pending_limit=10, **SMALL), stream, 0, 1000)
    for i in range(25):
        balancer.learn_one({f"x{j + 1}": 0.0 for j in range(5)}, 0, None, id=i)
    assert balancer.pending_["crowded_out"] == 15
    assert "15 rows were lost waiting for their outcomes" in balancer.estimate().warnings


@pytest.mark.parametrize("n", [200, 900])
def test_a_deleted_row_has_never_been_there(stream, n):
    """In the warm-up and after it, before the first compaction; the first 500 rows fix the features either way."""
    rows = np.arange(n)
    balancer = StreamingBalancer(random_state=0).fit(stream.X[rows], stream.y[rows], treatment=stream.w[rows], ids=rows)
    balancer.delete(n - 10)
    kept = np.delete(rows, n - 10)
    without = StreamingBalancer(random_state=0).fit(stream.X[kept], stream.y[kept], treatment=stream.w[kept])
    assert balancer.estimate().ate == pytest.approx(without.estimate().ate, abs=1e-8)
    assert balancer.n_seen_ == n - 1
    with pytest.raises(KeyError, match="is not stored by itself"):
        balancer.delete(n - 10)


def test_a_merged_row_cannot_be_deleted(stream, feed):
    balancer = feed(StreamingBalancer(**SMALL), stream, 0, 2000, ids=np.arange(6000))
    with pytest.raises(KeyError, match="the row with id 3 is not stored by itself"):
        balancer.delete(3)
    with pytest.raises(KeyError, match="is not stored by itself"):
        ExactMomentBalancer(random_state=0).fit(stream.X, stream.y, treatment=stream.w).delete(3)


def test_categories_and_unknown_levels():
    stream = DriftStream(3000, 4, "none", seed=0)
    table = pd.DataFrame(stream.X, columns=list("abcd")).assign(
        sign=np.where(stream.X[:, 0] > 0, "plus", "minus"),
        same=1.0,
        later=np.where(np.arange(3000) < 2000, "old", "new"),
    )
    balancer = StreamingBalancer(random_state=0)
    with pytest.warns(UserWarning, match="constant in the first 500 rows and dropped: same, later"):
        balancer.partial_fit(table, stream.y, treatment=stream.w)
    moved = "column 'later' was constant in the warm-up and left out, but differs in 1000 later rows"
    assert moved in balancer.estimate().warnings
    balancer.learn_one({**table.iloc[0].to_dict(), "sign": "none"}, 1, 0.5)
    assert "column 'sign': 1 rows had a level unknown in the warm-up, counted as other" in balancer.estimate().warnings
    assert set(balancer.coreset().columns) == {*"abcd", "sign", "arm", "outcome", "multiplicity", "weight"}


def test_effects_of_covariates():
    stream = DriftStream(8000, 4, "none", "linear", "linear", seed=0)
    balancer = StreamingBalancer(n_features=0, random_state=0).fit(stream.X, stream.y, treatment=stream.w)
    assert np.corrcoef(balancer.effect(stream.X), stream.tau)[0, 1] > 0.95
    with pytest.raises(ValueError, match=r"the first 500 rows are not complete \(0 so far\)"):
        StreamingBalancer().effect(stream.X)


def test_balance_table_shows_what_balancing_did(stream, feed):
    table = feed(StreamingBalancer(random_state=0), stream).balance_table().set_index("covariate")
    before = abs(stream.X[stream.w == 1].mean(axis=0) - stream.X[stream.w == 0].mean(axis=0))[0]
    assert table.loc["x1", "smd_before"] == pytest.approx(before / stream.X[:, 0].std(), rel=0.15)
    assert table["smd_after"].max() < 0.05
    assert StreamingBalancer().balance_table().empty


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "hinge"}, "loss='hinge' is unknown; take one of 'entropy', 'quadratic'"),
        ({"outcomes": "mean"}, "outcomes='mean' is unknown; take one of pooled, subset, subset-xy"),
        ({"coreset_size": 8}, "coreset_size must be at least 16, got 8"),
        ({"alpha": 1.5}, "alpha must lie strictly between 0 and 1"),
        ({"lam": 0}, "lam must be positive or 'gcv', got 0"),
        ({"time": "kernel"}, "time='kernel' needs time_scale"),
        ({"half_life": -1}, "half_life must be positive"),
        ({"warmup": 3}, "warmup must be at least 20 rows"),
        ({"block_size": 10}, "block_size must be at least 40 rows"),
        ({"block_size": "soon"}, "block_size='soon' is neither a number of rows nor a time"),
        ({"block_size": "-1d"}, "block_size='-1d' is no length of time"),
        ({"kernel": "cosine", "warmup": 20}, "unknown kernel 'cosine'"),
    ],
)
def test_parameters_that_cannot_be(parameters, message):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=message):
        StreamingBalancer(**parameters).fit(rng.standard_normal((60, 2)), np.zeros(60), treatment=np.arange(60) % 2)


def test_bad_rows_leave_the_stream_as_it_was(stream, feed):
    balancer = feed(StreamingBalancer(**SMALL), stream, 0, 1500)
    before = balancer.estimate()
    X = stream.X[:3].copy()
    X[1, 2] = np.nan
    with pytest.raises(BadRowError, match="column 'x3' is missing or not finite in row 1"):
        balancer.partial_fit(X, [1, 2, 3], treatment=[0, 1, 0])
    with pytest.raises(ValueError, match="the treatment holds words and numbers"):
        balancer.partial_fit(stream.X[:2], [1, 2], treatment=["a", "b"])
    with pytest.raises(ValueError, match="the treatment has 22 levels"):
        balancer.partial_fit(stream.X[:20], np.zeros(20), treatment=np.arange(2, 22))
    with pytest.raises(ValueError, match="earlier rows had no timestamps and these have"):
        balancer.partial_fit(stream.X[:2], [1, 2], treatment=[0, 1], timestamps=[5, 6])
    with pytest.raises(ValueError, match="column 'x5' is missing"):
        balancer.learn_one({"x1": 1.0, "x2": 1.0, "x3": 1.0, "x4": 1.0}, 1, 0.0)
    with pytest.raises(BadRowError, match="column 'x1' is missing or not finite"):
        balancer.learn_one({f"x{j}": np.inf for j in range(1, 6)}, 1, 0.0)
    with pytest.raises(ValueError, match="column 'x1' was numeric in earlier rows and is now 'high'"):
        balancer.learn_one({f"x{j}": "high" for j in range(1, 6)}, 1, 0.0)
    with pytest.raises(ValueError, match="a row without an outcome needs an id"):
        balancer.learn_one({f"x{j}": 0.0 for j in range(1, 6)}, 1, None)
    assert balancer.estimate() == before


def test_questions_that_cannot_be_answered(stream, feed):
    blocks = feed(StreamingBalancer(**SMALL), stream)
    whole = feed(StreamingBalancer(block_size=None, **SMALL), stream)
    with pytest.raises(ValueError, match="unknown estimand 'late'"):
        blocks.estimate("late")
    with pytest.raises(ValueError, match="closed blocks hold the ATE alone; construct with estimand='att'"):
        blocks.estimate("att")
    with pytest.raises(ValueError, match="since= needs blocks"):
        whole.estimate(since=3)
    with pytest.raises(ValueError, match="without blocks needs half_life"):
        whole.estimate("recent")
    assert np.isfinite(whole.estimate("att").ate)
