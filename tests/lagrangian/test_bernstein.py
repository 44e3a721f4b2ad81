"""The empirical Bernstein bound: its coverage under peeking, its limit, and what it is worth beside the worst case."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from upheld.lagrangian import SGAMultipliers, sample_size
from upheld.lagrangian.bernstein import SecondMoment
from upheld.lagrangian.families import HardFamily


def of(values) -> SecondMoment:
    seen = SecondMoment()
    for value in values:
        seen.add(float(value))
    return seen


def test_squares_that_never_vary_by_hand():
    """X = 1/4 throughout: V is that of the first alone, 1/16, and the best of all lam is above the best power of two."""
    N, delta = 200, 0.05
    found = of(np.full(N, 0.25)).root(1.0, delta) ** 2

    def above(lam: float) -> float:
        return (np.log(1 / delta) + (-np.log1p(-lam) - lam) / 16) / (lam * N)

    best = minimize_scalar(above, bounds=(1e-3, 0.999), method="bounded").fun
    assert 0.25 + best < found < 0.25 + 2 * best + 0.01
    # lam = 1/2, weight 1/2: ln(2 / .05) = 3.6889, psi = ln 2 - 1/2 = .19315
    assert found == pytest.approx(0.25 + (3.688879 + 0.193147 / 16) / (0.5 * N), abs=1e-6)


def test_it_tends_to_the_mean_and_never_exceeds_the_worst_case():
    rng = np.random.default_rng(0)
    far = of(rng.uniform(0, 0.2, 50_000)).root(1.0) ** 2
    assert 0.1 < far < 0.102
    assert of([0.9]).root(1.0) == 1.0
    lengths = rng.uniform(0, 0.2, 500)
    assert of(4 * lengths).root(2.0) == pytest.approx(2 * of(lengths).root(1.0))  # units do not matter


def test_it_holds_at_all_times_at_once():
    """A martingale whose conditional means wander: 400 runs of 300 steps, each looked at after every step."""
    rng, delta, wrong = np.random.default_rng(1), 0.1, 0
    for _ in range(400):
        seen, means, level = SecondMoment(), 0.0, 0.05
        for t in range(1, 301):
            level = float(np.clip(level + 0.02 * rng.standard_normal(), 0.01, 0.3))  # known before the draw
            means += level
            seen.add(float(rng.uniform() < level))
            if seen.root(1.0, delta) ** 2 < means / t - 1e-12:
                wrong += 1
                break
    assert wrong <= 400 * delta  # it is conservative: far fewer


def test_the_learner_s_bound_covers_its_loss():
    """Costs are high or low with equal odds: the best multiplier loses nothing to none between them, u is flat there."""
    rng = np.random.default_rng(2)
    past = [HardFamily(rng.choice([0.25, 0.75], 16)) for _ in range(4000)]
    sga = SGAMultipliers(pi_max=1.0, init="zero", step="theory", average="uniform").fit(past)
    assert 0 < sga.observed_length() < 2 * np.sqrt(16)
    assert (
        sga.observed_bound() < 0.6 * sga.bound_
    )  # lengths are a quarter of the longest: g is -1/2 or 1/2, and might be 2
    loss = np.mean([P.oracle(np.full(16, 0.5)).u for P in past]) - sga.score(past)
    assert loss <= sga.observed_bound()
    fewer = sample_size(16, 0.5, sga.B_, 1.0, "sga", length=sga.observed_length())
    assert fewer < 0.1 * sample_size(16, 0.5, sga.B_, 1.0, "sga")


def test_its_constant_is_no_theorem_s_elsewhere():
    past = [HardFamily([c]) for c in (0.75, 0.25)]
    assert np.isnan(SGAMultipliers(pi_max=1.0).fit(past).observed_bound())
    assert SGAMultipliers(pi_max=1.0).fit(past).observed_length() == pytest.approx(2.0)  # two say nothing yet


@pytest.mark.parametrize(
    ("values", "delta", "message"),
    [
        ([], 0.05, "no supergradient was seen yet"),
        ([0.5], 0.0, "delta must lie strictly between 0 and 1, got 0"),
        ([5.0], 0.05, "supergradients are 2.23607 long, but 1 at most by B; B is too small"),
    ],
)
def test_bad_input(values, delta, message):
    with pytest.raises(ValueError, match=message):
        of(values).root(1.0, delta)
