"""Uncertain-UCB, step by step: anchors, invariances, state, bad input."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld.bandits import UncertainUCB, policies
from upheld.bandits.environments import BernoulliBandit, GaussianBandit

OURS = [name for name in policies.names() if name.startswith("uncertain")]
RULES = [name for name in policies.names() if not name.startswith("mabwiser")]


def play(policy, rewards, rounds):
    """Decisions and reward positions of `policy` on a table (label -> sequence of rewards)."""
    at = dict.fromkeys(rewards, 0)
    decisions = []
    for _ in range(rounds):
        arm = policy.select()
        policy.update(arm, rewards[arm][at[arm]])
        at[arm] += 1
        decisions.append(arm)
    return decisions


def random_table(seed, labels, rounds=150, scale=1.0, shift=0.0):
    rng = np.random.default_rng(seed)
    means = rng.uniform(0.2, 0.8, len(labels))
    return {a: scale * np.clip(rng.normal(m, 0.2, rounds), 0, 1) + shift for a, m in zip(labels, means, strict=True)}


def test_two_decisions_worked_by_hand():
    """K = 2, sigma = 1/2, S = 0.5, after rewards 0.9 and 0.2: u = 2.

    LCBs: 0.9 - 0.5 sqrt(2 ln 2) = 0.311 < S, so round 3 is uncertain, w = 3: L = ln(1 + 3 ln^2 3) = 1.5312;
    indices 0.9 + 0.875, 0.2 + 0.875: arm 0.
    """
    policy = UncertainUCB(2, 0.5, random_state=0)
    assert policy.select() == 0
    policy.update(0, 0.9)
    assert policy.select() == 1
    policy.update(1, 0.2)
    assert (policy.uncertain_rounds_, policy.certified_) == (2, [])
    assert policy.certificates()["lower"][0] == pytest.approx(0.9 - 0.5 * np.sqrt(2 * np.log(2)))
    assert policy.select() == 0


def test_deterministic_rewards_pull_each_bad_arm_once():
    policy = UncertainUCB(5, 0.5, sigma=1e-9, random_state=0)
    decisions = play(policy, {i: np.full(300, [0.1, 0.2, 0.9, 0.3, 0.4][i]) for i in range(5)}, 300)
    assert [decisions.count(i) for i in range(5)] == [1, 1, 296, 1, 1]


@pytest.mark.parametrize("name", OURS)
def test_threshold_minus_infinity_is_certified_at_once(name):
    policy = policies.make(name, 3, -np.inf, random_state=0)
    play(policy, {i: np.zeros(60) for i in range(3)}, 60)
    assert policy.uncertain_rounds_ == 3


@pytest.mark.parametrize(
    ("ours", "plain"),
    [
        ("uncertain-ucb", "ucb"),
        ("uncertain-ucb-safe", "ucb-safe"),
        ("uncertain-ucb-separate", "ucb"),
        ("uncertain-kl-ucb", "kl-ucb"),
        ("uncertain-ts", "ts"),
        ("uncertain-ts-beta", "ts-beta"),
    ],
)
@pytest.mark.parametrize("threshold", [np.inf, 1.5])
def test_unreachable_threshold_gives_the_decisions_of_the_plain_policy(ours, plain, threshold):
    table = {i: (np.random.default_rng(i).random(400) < 0.3 + 0.1 * i).astype(float) for i in range(4)}
    first = play(policies.make(ours, 4, threshold, random_state=5), table, 400)
    assert first == play(policies.make(plain, 4, threshold, random_state=5), table, 400)


def test_single_arm_is_always_played():
    policy = UncertainUCB(["only"], 0.5, random_state=0)
    assert set(play(policy, {"only": np.linspace(0, 1, 50)}, 50)) == {"only"}


@given(st.integers(0, 2**32), st.sampled_from(OURS))
@settings(max_examples=25, deadline=None)
def test_certified_rounds_leave_u_and_others_raise_it_by_one(seed, name):
    table = random_table(seed, [0, 1, 2])
    if name == "uncertain-ts-beta":
        table = {a: np.round(r) for a, r in table.items()}
    policy = policies.make(name, 3, 0.3, random_state=seed)
    at = dict.fromkeys(table, 0)
    for t in range(80):
        certified, before = policy.certified_, policy.uncertain_rounds_
        arm = policy.select()
        if certified and t >= 3:
            assert arm in certified
        policy.update(arm, table[arm][at[arm]])
        at[arm] += 1
        assert policy.uncertain_rounds_ == before + (0 if certified and t >= 3 else 1)


@given(st.integers(0, 2**32), st.permutations([0, 1, 2, 3]))
@settings(max_examples=25, deadline=None)
def test_permuting_arms_permutes_decisions(seed, order):
    means = np.random.default_rng(seed).uniform(0.2, 0.8, 4)
    table = {a: np.random.default_rng([seed, a]).normal(means[a], 0.2, 120) for a in range(4)}  # continuous: no ties
    first = play(UncertainUCB([0, 1, 2, 3], 0.55, random_state=0), table, 120)
    second = play(UncertainUCB(order, 0.55, random_state=0), table, 120)
    assert first[4:] == second[4:]


@given(
    st.integers(0, 2**32), st.floats(-50, 50), st.floats(0.01, 100), st.sampled_from(["asymptotic", "safe", "thompson"])
)
@settings(max_examples=25, deadline=None)
def test_unit_of_rewards_does_not_matter(seed, shift, scale, index):
    plain = play(UncertainUCB(3, 0.5, index=index, random_state=1), random_table(seed, range(3)), 120)
    moved = play(
        UncertainUCB(3, scale * 0.5 + shift, sigma=scale * 0.5, index=index, random_state=1),
        random_table(seed, range(3), scale=scale, shift=shift),
        120,
    )
    assert plain == moved


@pytest.mark.parametrize("name", RULES)
def test_state_survives_json_and_goes_on_alike(name):
    table = {i: (np.random.default_rng(i).random(300) < 0.3 + 0.2 * i).astype(float) for i in range(3)}
    whole = play(policies.make(name, 3, 0.5, random_state=2), table, 200)
    first = policies.make(name, 3, 0.5, random_state=2)
    head = play(first, table, 90)
    second = policies.make(name, 3, 0.5, random_state=99)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    rest = {i: table[i][head.count(i) :] for i in range(3)}
    assert head + play(second, rest, 110) == whole


def test_state_of_another_policy_is_refused():
    state = UncertainUCB(3, 0.5, random_state=0).state_dict()
    with pytest.raises(ValueError, match=r"saved with threshold '0.5', but this policy has '0.6'"):
        UncertainUCB(3, 0.6).load_state_dict(state)
    with pytest.raises(ValueError, match="saved with policy 'uncertain-ucb', but this policy has 'ucb'"):
        policies.UCB(3, 0.5).load_state_dict(state)
    with pytest.raises(ValueError, match="the state lacks clock"):
        UncertainUCB(3, 0.5).load_state_dict({k: v for k, v in state.items() if k != "clock"})


def test_fit_and_predict_are_update_and_select():
    rng = np.random.default_rng(0)
    decisions, rewards = rng.integers(3, size=200), rng.random(200)
    stepped = UncertainUCB(3, 0.4, random_state=3)
    for arm, reward in zip(decisions, rewards, strict=True):
        stepped.update(arm, reward)
    fitted = UncertainUCB(3, 0.4, random_state=3).fit([0, 1], [1.0, 1.0])
    fitted.fit(decisions, rewards)
    assert fitted.state_dict() == stepped.state_dict()
    assert fitted.predict() == stepped.select()
    half = UncertainUCB(3, 0.4, random_state=3).partial_fit(decisions[:90], rewards[:90])
    assert half.partial_fit(decisions[90:], rewards[90:]).state_dict() == stepped.state_dict()


def test_asking_twice_gives_the_same_arm():
    policy = policies.make("uncertain-ts", 4, 0.9, random_state=0)
    play(policy, random_table(0, range(4)), 20)
    assert len({policy.select() for _ in range(20)}) == 1


def test_ties_go_to_a_random_arm():
    first = set()
    for seed in range(40):
        policy = UncertainUCB(4, 0.9, random_state=seed).fit([0, 1, 2, 3], [0.5, 0.5, 0.5, 0.1])
        first.add(policy.select())
    assert first == {0, 1, 2}


def test_batches_try_new_arms_first_and_then_follow_the_stale_counts():
    policy = UncertainUCB(["a", "b", "c"], 0.5, random_state=0)
    assert policy.select_many(2) == ["a", "b"]
    assert policy.select_many(5) == ["a", "b", "c", "a", "b"]
    policy.fit(["a", "b", "c"], [0.9, 0.1, 0.1])
    assert policy.select_many(3) == ["a", "a", "a"]
    draws = policies.make("uncertain-ts", ["a", "b", "c"], 0.9, random_state=0).fit(["a", "b", "c"], [0.5, 0.5, 0.5])
    assert len(set(draws.select_many(30))) == 3


def test_cheapest_certified_arm_is_played():
    history = np.repeat([0, 1, 2], 200), np.repeat([0.9, 0.8, 0.2], 200)
    assert UncertainUCB(3, 0.5, random_state=0).fit(*history).select() == 0
    thrifty = UncertainUCB(3, 0.5, costs=[5.0, 1.0, 0.1], random_state=0).fit(*history)
    assert (thrifty.certified_, thrifty.select()) == ([0, 1], 1)


def test_certificates_export():
    table = UncertainUCB(["x", "y", "z"], 0.5, random_state=0).fit(["x"] * 100 + ["y"] * 100, [0.9] * 100 + [0.4] * 100)
    frame = table.certificates(alpha=0.1).set_index("arm")
    assert list(frame["certified"]) == [True, False, False]
    assert list(frame["pulls"]) == [100, 100, 0]
    # zeta n^2 exp(-n gap^2 / (2 sigma^2)) = 1.6449 * 10^4 * exp(-100 * 0.16 * 2)
    assert frame["p_value"]["x"] == pytest.approx(np.pi**2 / 6 * 1e4 * np.exp(-32))
    assert (frame["p_value"]["y"], frame["p_value"]["z"]) == (1, 1)
    assert frame["low"]["x"] < 0.9 < frame["high"]["x"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: UncertainUCB(0, 0.5), ValueError, "at least one arm"),
        (lambda: UncertainUCB(["a", "b", "a"], 0.5), ValueError, "labels must be distinct, but 'a' occurs twice"),
        (lambda: UncertainUCB("abc", 0.5), TypeError, "the string 'abc'; put it in a list"),
        (lambda: UncertainUCB(3, None), TypeError, "threshold must be a number"),
        (lambda: UncertainUCB(3, np.nan), ValueError, r"threshold is not a number \(NaN\)"),
        (lambda: UncertainUCB(3, 0.5, sigma=0), ValueError, "sigma must be a positive number, got 0"),
        (lambda: UncertainUCB(3, 0.5, sigma="learned"), ValueError, "positive number or 'empirical', got 'learned'"),
        (lambda: UncertainUCB(3, 0.5, sigma="empirical", index="safe"), ValueError, "leave index at 'asymptotic'"),
        (lambda: UncertainUCB(3, 0.5, index="best"), ValueError, "index must be one of asymptotic, safe, kl"),
        (lambda: UncertainUCB(3, 0.5, width=-1), ValueError, "width must be a positive number, got -1"),
        (lambda: UncertainUCB(3, 0.5, costs=[1, 2]), ValueError, "one finite number for each of the 3 arms"),
        (lambda: UncertainUCB(3, 0.5, random_state=-4), ValueError, "seed must lie in"),
        (lambda: UncertainUCB(3, 0.5).update(7, 1.0), ValueError, "arm 7 is not one of the 3 arms 0, 1, 2"),
        (lambda: UncertainUCB(3, 0.5).update(0, "good"), ValueError, "reward of arm 0 must be a number, got 'good'"),
        (lambda: UncertainUCB(3, 0.5).update(0, np.nan), ValueError, "reward of arm 0 is nan; drop the observation"),
        (
            lambda: UncertainUCB(3, 0.5, index="kl").update(0, 1.5),
            ValueError,
            r"needs rewards in \[0, 1\], but arm 0 gave 1.5",
        ),
        (lambda: UncertainUCB(3, 0.5).fit([0, 1], [1.0]), ValueError, "differ in length: 2 and 1"),
        (lambda: UncertainUCB(3, 0.5).select_many(0), ValueError, "m must be at least 1, got 0"),
        (lambda: policies.make("ucb2", 3, 0.5), ValueError, "no policy is called 'ucb2'; there are "),
        (lambda: policies.get("mabwiser-ucb1"), ValueError, "is an adapter and has no rule"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", [n for n in RULES if n not in ("uncertain-kl-ucb", "kl-ucb")])
def test_step_by_step_and_simulation_are_the_same_policy(name):
    """Run 0 of a simulation makes the decisions of the step protocol on the same reward table."""
    from upheld.bandits import simulate

    rule = policies.get(name)
    bandit = (BernoulliBandit if rule.unit_rewards else GaussianBandit)([0.45, 0.62, 0.3], 0.5)
    results = simulate([name], bandit, 300, 2, marks=[50, 150, 300], engine="numpy", seed=11, early_stop=False)
    table, policy = bandit.table_of_run(11, 0), policies.make(name, 3, 0.5, random_state=11)
    regret = []
    for t in range(1, 301):
        arm = policy.select()
        policy.update(arm, table.pull(arm))
        if t in (50, 150, 300):
            regret.append(float(table.pulls @ bandit.costs["regret_refined"]))
    assert results.regret_refined[0, 0, 0] == pytest.approx(regret)
    assert list(results.pulls[0, 0, 0]) == list(table.pulls)
    assert results.last_arm[0, 0, 0] == arm


@pytest.mark.parametrize("name", [n for n in RULES if n not in ("uncertain-kl-ucb", "kl-ucb")])
def test_one_run_of_numbers_and_many_of_arrays_hold_the_same_bits(name):
    """After each of 200 rewards, every statistic of a policy played step by step equals that of the same run among three."""
    from upheld.bandits.rule import State, decide, observe, uncertain_runs
    from upheld.bandits.streams import DECISIONS, child, run_keys

    stepped = policies.make(name, 4, 0.5, random_state=3)
    rule, prefer, sigma = stepped.rule_, np.zeros(4), stepped._sigma
    keys = run_keys(3, DECISIONS, np.arange(3))
    rng = np.random.default_rng(8)
    with np.errstate(all="ignore"):
        state = State.empty(rule, 3, 4, child(keys, np.uint64(0)))
        for t in range(1, 201):
            reward = np.round(rng.random(3)) if rule.unit_rewards else rng.normal(0.5, 0.3, 3)
            round_keys = child(keys, np.uint64(t))
            arms = decide(rule, state, round_keys, 0.5, sigma, prefer)
            assert stepped.select() == arms[0]
            observe(rule, state, arms, reward, uncertain_runs(rule, state, 0.5), round_keys, 0.5, sigma)
            stepped.update(arms[0], reward[0])
            for field in ("n", "mean", "m2", "index_n", "index_mean", "index_m2", "variance", "lower", "own", "clock"):
                np.testing.assert_array_equal(
                    getattr(stepped._state, field)[0], getattr(state, field)[0], err_msg=field
                )
            np.testing.assert_array_equal(stepped._state.registers[:, 0], state.registers[:, 0])
