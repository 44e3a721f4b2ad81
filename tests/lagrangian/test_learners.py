"""Learners: the published algorithm by hand, streams equal lists, threads change nothing, bounds and refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from upheld.lagrangian import ERMMultipliers, SGAMultipliers, WarmStartMultipliers, data
from upheld.lagrangian.bounds import sga_bound
from upheld.lagrangian.families import HardFamily
from upheld.lagrangian.hard_family import draw as draw_hard
from upheld.lagrangian.hard_family import excess
from upheld.lagrangian.learners import TailAverage

PAPER = {"pi_max": 1.0, "init": "zero", "step": "theory", "average": "uniform"}


def gaps(count: int, seed: int = 0):
    return list(itertools.islice(data.gap_stream("D", 3, 7, np.random.default_rng(seed)), count))


LEARNERS = {
    "paper": SGAMultipliers(init="zero", step="theory", average="uniform", pi_max=300.0, B=3.0, horizon=6),
    "default": SGAMultipliers(),
    "dog": SGAMultipliers(step="dog"),
    "erm": ERMMultipliers(),
    "warm": WarmStartMultipliers(),
    "warm-lp": WarmStartMultipliers(target="lp-dual"),
}
every_learner = pytest.mark.parametrize("name", LEARNERS)


def test_hand_trace():
    """s = 1, c = (.75, .25, .75, .25), eta = .25: g = 1/2 while pi < c, iterates 0, .125, .25, .375."""
    past = [HardFamily([c]) for c in (0.75, 0.25, 0.75, 0.25)]
    learner = SGAMultipliers(**PAPER).fit(past)
    assert learner.multipliers_.tolist() == [0.1875]
    assert learner.B_ == 1.0
    assert learner.bound_ == sga_bound(1, 4, 1.0, 1.0) == 1.0


def test_clipping_at_both_ends():
    """A cost of 1.5 pushes up all the time: 0, 1/2, 1, 1 (clipped) with eta = 1/2 / 1/2."""
    past = [HardFamily([1.5])] * 4
    learner = SGAMultipliers(**{**PAPER, "scale": 4.0}).fit(past)
    assert learner.multipliers_.tolist() == [np.mean([0, 0.5, 1.0, 1.0])]
    assert np.isnan(learner.bound_)  # no longer the theorem's step


def test_the_theorem_holds_on_the_family_of_the_lower_bound():
    rng = np.random.default_rng(0)
    s, N, eps = 8, 64, 0.3
    losses = []
    for _ in range(60):
        v = rng.integers(0, 2, s)
        learner = SGAMultipliers(**PAPER).fit(draw_hard(v, N, eps, rng))
        losses.append(excess(learner.predict(HardFamily(np.zeros(s))), v, eps))
    assert np.mean(losses) <= learner.bound_
    assert np.mean(losses) > 0


@every_learner
def test_a_stream_is_the_list(name):
    past = gaps(6)
    listed, streamed = clone(LEARNERS[name]).fit(past), clone(LEARNERS[name])
    for instance in past:
        assert streamed.partial_fit(instance) is streamed
    assert (listed.multipliers_ == streamed.multipliers_).all()
    assert listed.pi_max_ == streamed.pi_max_
    assert listed.n_seen_ == streamed.n_seen_ == 6
    assert listed.row_names_ == past[0].row_names


@every_learner
def test_threads_change_no_bit_and_fitting_twice_neither(name):
    past = gaps(6)
    one, two = clone(LEARNERS[name]).set_params(n_jobs=1), clone(LEARNERS[name]).set_params(n_jobs=2)
    first = one.fit(past).multipliers_
    assert (two.fit(past).multipliers_ == first).all()
    assert (one.fit(past).multipliers_ == first).all()


@every_learner
def test_whatever_is_learned_bounds_a_new_instance(name):
    learner = clone(LEARNERS[name]).fit(gaps(6))
    fresh = gaps(3, seed=0)[-1:] + gaps(2, seed=5)
    for P in fresh:
        pi = learner.predict(P)
        assert ((pi >= 0) & (pi <= learner.pi_max_)).all()
        assert P.oracle(pi).u <= P.milp().optimum().value + 1e-6
    assert learner.score(fresh) == pytest.approx(np.mean([P.oracle(learner.predict(P)).u for P in fresh]))


def test_erm_has_the_largest_mean_on_the_past():
    past = gaps(8)
    learner = ERMMultipliers(pi_max=300.0).fit(past)
    rng = np.random.default_rng(0)
    mean = np.mean([P.oracle(learner.multipliers_).u for P in past])
    assert mean == pytest.approx(learner.value_)
    assert learner.value_ <= learner.upper_ <= learner.value_ + 2e-6 * (1 + abs(learner.value_))
    others = [np.clip(learner.multipliers_ + rng.normal(0, 5, 7), 0, 300) for _ in range(50)]
    others += [
        SGAMultipliers(pi_max=300.0).fit(past).multipliers_,
        WarmStartMultipliers(pi_max=300.0).fit(past).multipliers_,
    ]
    for pi in others:
        assert np.mean([P.oracle(pi).u for P in past]) <= learner.upper_ + 1e-6


def test_erm_of_few_days_of_unit_commitment_converges():
    past = data.unit_commitment_days(3, np.random.default_rng(0))
    learner = ERMMultipliers().fit(past)
    assert learner.upper_ - learner.value_ <= 2e-6 * (1 + abs(learner.upper_))
    mean_dual = WarmStartMultipliers(target="lp-dual").fit(past)
    assert learner.upper_ >= learner.value_ >= mean_dual.score(past)


def test_erm_on_the_hard_family_is_the_majority():
    past = [HardFamily([c, d]) for c, d in ((0.75, 0.25), (0.75, 0.25), (0.25, 0.75))]
    np.testing.assert_allclose(ERMMultipliers(pi_max=1.0).fit(past).multipliers_, [0.75, 0.25], atol=1e-4)


def test_the_warm_start_is_numpys_mean_of_the_optima():
    past = [HardFamily(c) for c in ([0.25, 0.75], [0.75, 0.75], [0.25, 0.25])]
    learner = WarmStartMultipliers(pi_max=1.0).fit(past)
    np.testing.assert_allclose(learner.targets_, [P.c for P in past], atol=1e-5)
    np.testing.assert_allclose(learner.multipliers_, np.mean(learner.targets_, axis=0), rtol=0, atol=0)
    assert learner.bound_ == pytest.approx(2 / 12)


def test_the_end_of_pi_is_twice_the_largest_lp_multiplier():
    past = gaps(3)
    largest = max(P.milp().lp_relaxation()[1].max() for P in past)
    for learner in (SGAMultipliers(), ERMMultipliers(), SGAMultipliers(step="theory")):
        assert learner.fit(past).pi_max_ == pytest.approx(2 * largest)


def test_starts():
    past = gaps(1)
    at = np.linspace(10, 70, 7)
    assert (SGAMultipliers(init=at, pi_max=300.0, average="uniform").fit(past).multipliers_ == at).all()
    dual = past[0].milp().lp_relaxation()[1]
    np.testing.assert_allclose(SGAMultipliers(average="uniform").fit(past).multipliers_, dual)
    assert not SGAMultipliers(init="zero", average="uniform").fit(past).multipliers_.any()


def test_more_epochs_are_more_passes_and_leave_the_theorem():
    past = [HardFamily([c]) for c in (0.75, 0.25)]
    once, twice = SGAMultipliers(**PAPER).fit(past * 2), SGAMultipliers(**PAPER, epochs=2).fit(past)
    assert (once.multipliers_ == twice.multipliers_).all()
    assert np.isnan(twice.bound_)
    assert not np.isnan(once.bound_)


@given(st.integers(1, 300))
def test_the_tail_is_between_a_half_and_three_quarters(t):
    tail = TailAverage(1)
    for k in range(1, t + 1):
        tail.add(np.array([float(k)]))
    first = round(2 * tail.mean()[0] - t)  # the mean of first .. t
    assert tail.mean()[0] == pytest.approx((first + t) / 2)
    assert t < 4 or 0.5 <= (t - first + 1) / t <= 0.75


# bad input


def test_rows_that_differ_are_named():
    with pytest.raises(
        ValueError, match="the coupling rows of instance 2 differ from those of the first: it has also assign_8"
    ):
        SGAMultipliers().fit([gaps(1)[0], data.gap("D", 3, 8, np.random.default_rng(0))])
    learner = SGAMultipliers().fit(gaps(2))
    with pytest.raises(ValueError, match="it lacks assign_7"):
        learner.predict(data.gap("D", 3, 6, np.random.default_rng(0)))
    with pytest.raises(ValueError, match="it lacks assign_7"):
        learner.partial_fit(data.gap("D", 3, 6, np.random.default_rng(0)))


def test_a_stream_must_know_what_the_theory_needs():
    with pytest.raises(ValueError, match='step="theory" must know horizon and B and pi_max before the first instance'):
        SGAMultipliers(step="theory").partial_fit(gaps(1)[0])


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (SGAMultipliers(step="newton"), 'step must be "theory", "adagrad" or "dog"'),
        (SGAMultipliers(average="median"), 'average must be "uniform" or "tail"'),
        (SGAMultipliers(init="ones"), 'init must be "zero", "lp-dual" or an array'),
        (SGAMultipliers(epochs=0), "epochs must be at least 1"),
        (SGAMultipliers(pi_max=-1.0, init="zero"), "pi_max must be positive"),
        (SGAMultipliers(init=np.ones(3)), r"pi has shape \(3,\), but there are 7 coupling rows"),
        (WarmStartMultipliers(target="mean"), 'target must be "min-norm", "dantzig-wolfe", "benders" or "lp-dual"'),
    ],
)
def test_bad_parameters(learner, message):
    with pytest.raises(ValueError, match=message):
        learner.fit(gaps(1))


@every_learner
def test_nothing_seen(name):
    with pytest.raises(NotFittedError, match="has seen no instance"):
        clone(LEARNERS[name]).predict(gaps(1)[0])
    with pytest.raises(ValueError, match="there is no instance to learn from"):
        clone(LEARNERS[name]).fit([])
    with pytest.raises(ValueError, match="there is no instance to score on"):
        clone(LEARNERS[name]).fit(gaps(1)).score([])
