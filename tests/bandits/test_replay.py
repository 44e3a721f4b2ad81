"""Replay of logs: unbiased, refuses what it cannot answer."""

import numpy as np
import pandas as pd
import pytest

from upheld.bandits import data, policies, replay, simulate
from upheld.bandits.environments import BernoulliBandit
from upheld.bandits.streams import DECISIONS, run_keys

MEANS = np.array([0.3, 0.5, 0.8])


def log_of(rng, rows, probabilities=None):
    arm = rng.choice(3, size=rows, p=probabilities)
    reward = (rng.random(rows) < MEANS[arm]).astype(float)
    log = pd.DataFrame({"arm": np.array(["a", "b", "c"])[arm], "reward": reward})
    if probabilities is not None:
        log["propensity"] = np.asarray(probabilities)[arm]
    return log


@pytest.mark.slow
@pytest.mark.parametrize("probabilities", [None, [0.6, 0.3, 0.1]], ids=["uniform", "propensities"])
def test_replay_is_unbiased(probabilities):
    """Mean regret of the first 60 accepted rows over 150 logs equals that of live play, within four standard errors."""
    rows = 500 if probabilities is None else 1400
    live = simulate(["ucb"], BernoulliBandit(MEANS, 0.6), 60, 400, engine="numpy").regret[0, 0, :, -1]
    replayed = []
    rng = np.random.default_rng(1)
    for seed in range(150):
        arms = accepted_arms(log_of(rng, rows, probabilities), seed)
        assert len(arms) >= 60
        replayed.append((MEANS.max() - MEANS[arms[:60]]).sum())
    error = np.sqrt(np.var(replayed) / len(replayed) + live.var() / live.size)
    assert abs(np.mean(replayed) - live.mean()) < 4 * error


def accepted_arms(log, seed):
    """The choices that a replayed policy makes, step by step."""
    rows = replay.Log.of(log)
    policy = policies.UCB(rows.labels, 0.6, random_state=seed)
    return np.array([arm for arm, _ in replay.walk(policy, rows, rows.open_rows(seed))])


@pytest.mark.parametrize("name", [name for name in policies.names() if not name.startswith("mabwiser")])
@pytest.mark.parametrize("probabilities", [None, [0.5, 0.3, 0.2]], ids=["uniform", "propensities"])
def test_all_runs_together_are_what_each_is_step_by_step(name, probabilities):
    log = log_of(np.random.default_rng(9), 700, probabilities)
    rows = replay.Log.of(log)
    result = replay.replay(log, [name], 0.6, runs=3, seed=4)
    gaps = (result.means.max() - result.means).to_numpy()
    for run, key in enumerate(run_keys(4, DECISIONS, np.arange(3))):
        policy = policies.make(name, rows.labels, 0.6, random_state=int(key))
        arms, gained = zip(*replay.walk(policy, rows, rows.open_rows(int(key))), strict=True)
        row = result.runs.iloc[run]
        assert row["horizon"] == len(arms)
        assert row["mean_reward"] == pytest.approx(np.mean(gained))
        assert row["regret"] == pytest.approx(gaps[list(arms)].sum())
        assert (row["certified_arm"] is not None) == bool(getattr(policy, "certified_", []))


def test_marks_lead_to_the_regret_at_the_common_horizon():
    result = replay.replay(log_of(np.random.default_rng(10), 2000), ["uncertain-ucb", "ucb"], 0.6, runs=4)
    assert result.marked["mark"].max() == result.common_horizon
    assert result.marked["mark"].min() == 1
    last = result.marked[result.marked["mark"] == result.common_horizon].set_index(["policy", "run"])
    ends = result.runs.set_index(["policy", "run"])
    for name in ("regret", "regret_threshold", "regret_refined"):
        assert (result.marked.groupby(["policy", "run"])[name].diff().dropna() >= 0).all()
        np.testing.assert_allclose(last[name], ends.loc[last.index, f"{name}_common"])
    ucb = result.marked[result.marked["policy"] == "ucb"]
    assert (ucb["uncertain_rounds"] == ucb["mark"]).all()
    assert (ucb["certified_arm"] == -1).all()


def test_a_given_horizon_ends_every_run():
    log = log_of(np.random.default_rng(11), 2000)
    result = replay.replay(log, ["uncertain-ucb", "mabwiser-ucb1"], 0.6, runs=2, horizon=50)
    assert (result.runs["horizon"] == 50).all()
    assert result.common_horizon == 50


def test_rewards_outside_the_unit_interval_are_refused_where_a_policy_needs_it():
    log = log_of(np.random.default_rng(12), 300)
    log["reward"] *= 2
    with pytest.raises(ValueError, match=r"uncertain-kl-ucb needs rewards in \[0, 1\]"):
        replay.replay(log, ["uncertain-kl-ucb"], 0.6)


def test_effective_horizon_is_about_a_kth_of_the_log():
    result = replay.replay(log_of(np.random.default_rng(2), 3000), ["ucb", "uncertain-ucb"], 0.6, runs=3)
    assert (abs(result.runs["horizon"] - 1000) < 250).all()
    assert result.common_horizon == result.runs["horizon"].min()
    assert set(result.means.index) == {"a", "b", "c"}
    ranking = result.ranking()
    assert list(ranking["regret_refined_common"]) == sorted(ranking["regret_refined_common"])
    ordered = result.runs
    assert (ordered["regret_threshold"] <= ordered["regret_refined"] + 1e-9).all()
    assert (ordered["regret_refined"] <= ordered["regret"] + 1e-9).all()


def test_short_log_is_replayed_but_not_ranked():
    result = replay.replay(log_of(np.random.default_rng(3), 120), ["ucb"], 0.6, runs=2)
    with pytest.raises(
        ValueError, match=r"effective horizon is \d+ accepted rows, below 30 for each of the 3 arms \(90\)"
    ):
        result.ranking()


def test_certified_arm_and_when():
    result = replay.replay(log_of(np.random.default_rng(4), 6000), ["uncertain-ucb", "ucb"], 0.6, runs=2)
    ours = result.runs[result.runs.policy == "uncertain-ucb"]
    assert (ours["certified_arm"] == "c").all()
    assert ours["certified_at"].between(1, ours["horizon"]).all()
    assert (result.runs[result.runs.policy == "ucb"]["certified_at"] == 0).all()


def test_log_that_was_not_uniform_is_refused_with_counts_and_ways_out():
    log = log_of(np.random.default_rng(5), 3000, [0.6, 0.3, 0.1]).drop(columns="propensity")
    counts = log["arm"].value_counts()
    with pytest.raises(ValueError, match="not chosen uniformly") as error:
        replay.replay(log, ["ucb"], 0.6)
    message = str(error.value)
    assert f"a: {counts['a']}" in message
    assert "--propensity" in message
    assert "--bootstrap" in message
    bandit = replay.bootstrap_bandit(log, 0.6)
    assert bandit.name == "bootstrap of the log"
    assert bandit.means == pytest.approx(log.groupby("arm")["reward"].mean().to_numpy())


def test_propensities_estimate_the_means_without_bias():
    log = log_of(np.random.default_rng(6), 40_000, [0.6, 0.3, 0.1])
    result = replay.replay(log, ["uncertain-ucb"], 0.6, runs=1)
    assert result.means.to_numpy() == pytest.approx(MEANS, abs=0.03)


def test_runs_shuffle_and_seeds_repeat():
    log = log_of(np.random.default_rng(7), 600)
    first, again = (replay.replay(log, ["ucb"], 0.6, runs=3, seed=1).runs for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    assert first["horizon"].nunique() > 1 or first["mean_reward"].nunique() > 1


def test_digits_log_certifies_a_good_classifier(tmp_path):
    path = tmp_path / "log.csv"
    data.write_digits_log(path)
    result = replay.replay(data.read_log(path), ["uncertain-kl-ucb"], 0.9, runs=2)
    router = data.digits_router(0.9)
    good = {label for label, bad in zip(router.labels, router.bad, strict=True) if not bad}
    assert set(result.runs["certified_arm"]) <= good


def test_unknown_policy_and_no_runs():
    log = log_of(np.random.default_rng(8), 100)
    with pytest.raises(ValueError, match="no policy is called 'nope'"):
        replay.replay(log, ["nope"], 0.6)
    with pytest.raises(ValueError, match="runs must be at least 1, got 0"):
        replay.replay(log, ["ucb"], 0.6, runs=0)
