"""The rivals: against MABWiser's own decisions, and against their published rules."""

import numpy as np
import pytest
from scipy import stats

from upheld.bandits import data, policies, simulate
from upheld.bandits.environments import BernoulliBandit


def test_ucb_decides_as_mabwiser_does():
    """UCB1 on an identical reward table, 1500 rounds, without a single difference (rewards are continuous: no ties)."""
    pytest.importorskip("mabwiser")
    table = np.random.default_rng(0).normal([0.2, 0.5, 0.45, 0.4], 0.5, (1500, 4))
    for alpha in (0.5, 1.25):
        ours = policies.UCB(4, sigma=alpha, index="ucb1", random_state=0)
        theirs = policies.MABWiser(4, policy="ucb1", sigma=alpha, random_state=0)
        pulls = np.zeros(4, dtype=int)
        for _ in range(1500):
            arm = ours.select()
            assert theirs.select() == arm
            for policy in (ours, theirs):
                policy.update(arm, table[pulls[arm], arm])
            pulls[arm] += 1
        assert pulls.min() > 5


@pytest.mark.slow
def test_thompson_pulls_as_often_as_mabwiser_does():
    """Draws cannot match one by one; the share of pulls of each arm over 200 runs does, within four standard errors."""
    pytest.importorskip("mabwiser")
    bandit = BernoulliBandit([0.3, 0.5, 0.7], 0.6)
    results = simulate({"ours": "ts-beta", "theirs": "mabwiser-thompson"}, bandit, 60, 200, seed=4, engine="numpy")
    ours, theirs = results.pulls[0, 0], results.pulls[1, 0]
    error = np.sqrt(ours.var(axis=0) / 200 + theirs.var(axis=0) / 200)
    assert (np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 4 * error).all()


def test_simple_sat_regret_is_linear_without_a_good_arm():
    """R(T)/T tends to the average gap: (9 * 0.2) / 10 = 0.18 for delta = 0.1."""
    results = simulate(["simple-sat"], data.unrealisable(0.1), 3000, 50, engine="numpy")
    assert results.regret[0, 0, :, -1].mean() / 3000 == pytest.approx(0.18, abs=0.002)


def test_sat_ucb_rules_by_hand():
    """K = 3, two rewards each, t = 7: radius = 0.5 sqrt(2 ln(1 + 7 ln^2 7) / 2) = 0.91."""
    arms = [0, 1, 2, 0, 1, 2]
    some_mean_enough = policies.SatUCB(3, 0.5, random_state=0).fit(arms, [0.6, 0.55, 0.4, 0.6, 0.55, 0.4])
    assert some_mean_enough.select() == 0  # highest ratio 1 + (mean - S)/radius
    picks = set()
    for seed in range(30):  # no mean reaches S, arms 0 and 1 may: any of them
        policy = policies.SatUCB(3, 0.5, random_state=seed).fit(arms, [-0.3, 0.1, -0.6, -0.3, 0.1, -0.6])
        picks.add(policy.select())
    assert picks == {0, 1}
    hopeless = policies.SatUCB(3, 5.0, random_state=0).fit(arms, [0.1, 0.3, 0.2, 0.1, 0.3, 0.2])
    assert hopeless.select() == 1  # no UCB reaches S: UCB
    plus = policies.SatUCBPlus(3, 0.5, random_state=0).fit(arms, [-0.3, 0.1, -0.6, -0.3, 0.1, -0.6])
    assert plus.select() == 1  # the ratio, not a random arm


def test_sat_ucb_breaks_ties_of_fully_good_arms_at_random():
    picks = set()
    for seed in range(40):
        policy = policies.SatUCB(3, -5.0, random_state=seed).fit([0, 1, 2], [0.9, 0.1, 0.2])
        picks.add(policy.select())
    assert picks == {0, 1, 2}


def test_select_has_rounds_of_a_fresh_oracle_and_a_hold():
    """Rewards never reach S: round r is 4^r oracle steps (the first K new), then 4^r pulls of one arm among them."""
    policy = policies.Select(3, 2.0, sigma=0.5, random_state=0)
    decisions = []
    for _ in range(2 * (4 + 16 + 64)):
        decisions.append(policy.select())
        policy.update(decisions[-1], 0.1 * decisions[-1])
    at = 0
    for length in (4, 16, 64):
        oracle, hold = decisions[at : at + length], decisions[at + length : at + 2 * length]
        assert oracle[:3] == [0, 1, 2]
        assert len(set(hold)) == 1
        assert hold[0] in oracle
        at += 2 * length


def test_select_holds_a_good_arm_for_ever():
    policy = policies.Select(2, 0.5, sigma=0.01, random_state=1)
    decisions = []
    for _ in range(600):
        decisions.append(policy.select())
        policy.update(decisions[-1], [0.2, 0.9][decisions[-1]])
    assert set(decisions[-400:]) == {1}


def test_select_draws_uniformly_from_its_trajectory():
    """With 4 arms the first oracle plays each once, so each is held in a quarter of 800 seeds."""
    held = []
    for seed in range(800):
        policy = policies.Select(4, 2.0, random_state=seed).fit([0, 1, 2, 3], [0.1, 0.2, 0.3, 0.4])
        held.append(policy.select())
    assert stats.chisquare(np.bincount(held, minlength=4)).pvalue > 1e-3


def test_moss_and_ucl_indices_by_hand():
    # t = 5, K = 2, n = (1, 3): MOSS bonus sigma sqrt(4 ln+(t/(K n))/n) = 0.5 sqrt(4 ln 2.5) = 0.957 and 0
    history = [0, 1, 1, 1], [0.1, 0.9, 0.9, 0.9]
    assert policies.MOSS(2, random_state=0).fit(*history).select() == 0
    assert policies.MOSS(2, random_state=0).fit([0, 1, 1, 1], [-0.1, 0.9, 0.9, 0.9]).select() == 1
    # UCL: bonus sigma z / sqrt(n), z = quantile at 1 - 1/(kappa t) = 1.559: 0.78 and 0.45, so a gap of 0.33 decides
    assert policies.UCL(2, random_state=0).fit([0, 1, 1, 1], [0.6, 0.9, 0.9, 0.9]).select() == 0
    assert policies.UCL(2, random_state=0).fit([0, 1, 1, 1], [0.5, 0.9, 0.9, 0.9]).select() == 1


@pytest.mark.parametrize("name", ["mabwiser-ucb1", "mabwiser-thompson", "mabwiser-egreedy"])
def test_mabwiser_adapter_plays_each_arm_once_and_then_learns(name):
    pytest.importorskip("mabwiser")
    policy = policies.make(name, ["a", "b"], 0.5, random_state=0)
    decisions = []
    for _ in range(150):
        decisions.append(policy.select())
        policy.update(decisions[-1], {"a": 0.0, "b": 1.0}[decisions[-1]])
    assert decisions[:2] == ["a", "b"]
    assert decisions.count("b") > 110


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: policies.UCB(3, index="best"), "index must be one of asymptotic, safe, ucb1, got 'best'"),
        (lambda: policies.Thompson(3, posterior="gamma"), "posterior must be 'normal' or 'beta', got 'gamma'"),
        (lambda: policies.Thompson(3, posterior="beta", width=2.0), "no width to multiply"),
        (lambda: policies.MABWiser(3, policy="linucb"), "policy must be 'ucb1', 'thompson' or 'epsilon-greedy'"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_two_policies_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two policies are called 'ucb'; rename one of them"):

        class Another(policies.Policy):
            variants = {"ucb": {}}  # noqa: RUF012
