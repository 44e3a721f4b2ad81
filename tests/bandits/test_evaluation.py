"""Policies on a user's arms: what is known of the arms, and what the summary says of runs whose outcome is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from upheld.bandits import evaluation
from upheld.bandits.policies import make


def log_of(rows: int = 2400, probabilities: tuple[float, ...] | None = None) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    arm = rng.choice(3, rows, p=probabilities)
    reward = (rng.random(rows) < np.array([0.2, 0.5, 0.9])[arm]).astype(float)
    log = pd.DataFrame({"arm": np.array(["a", "b", "c"])[arm], "reward": reward})
    return log if probabilities is None else log.assign(propensity=np.asarray(probabilities)[arm])


def test_arms_of_a_zero_one_log_have_their_beta_posterior():
    log = pd.DataFrame({"arm": ["a"] * 4 + ["b"] * 3, "reward": [1.0, 1, 1, 0, 0, 0, 0]})
    arms = evaluation.arms_of(log, 0.5).set_index("arm")
    # Beta(4, 2) above 1/2: 26/32; Beta(1, 4): 1/16
    assert arms["satisficing"].to_dict() == pytest.approx({"a": 26 / 32, "b": 1 / 16})
    assert arms["mean"].to_dict() == {"a": 0.75, "b": 0.0}
    assert arms["rows"].to_dict() == {"a": 4, "b": 3}


def test_arms_of_other_rewards_have_student_s_interval():
    rng = np.random.default_rng(1)
    log = pd.DataFrame({"arm": ["a"] * 12 + ["b"] * 9, "reward": rng.normal(3.0, 1.0, 21)})
    arms = evaluation.arms_of(log, 3.0).set_index("arm")
    for arm, rewards in log.groupby("arm")["reward"]:
        assert arms.loc[arm, "se"] == pytest.approx(stats.sem(rewards))
        assert arms.loc[arm, "satisficing"] == pytest.approx(stats.ttest_1samp(rewards, 3.0, alternative="less").pvalue)


def test_arms_with_a_constant_or_a_single_reward():
    log = pd.DataFrame({"arm": ["a", "a", "b", "b", "c"], "reward": [2.0, 2.0, 1.0, 1.0, 5.0]})
    assert list(evaluation.arms_of(log, 1.5)["satisficing"]) == [1.0, 0.0, 0.5]


def test_probability_is_calibrated():
    """Means drawn from the flat prior: where the probability is p, a share p of them reaches the threshold."""
    rng = np.random.default_rng(2)
    truth = rng.random(400)
    said = []
    for mean in truth:
        rewards = (rng.random(20) < mean).astype(float)
        log = pd.DataFrame({"arm": ["x"] * 20 + ["y"], "reward": [*rewards, 0.0]})
        said.append(evaluation.arms_of(log, 0.6)["satisficing"].iloc[0])
    said, good = np.array(said), truth >= 0.6
    for part in (said < 0.5, said >= 0.5):
        error = np.sqrt(np.sum(said[part] * (1 - said[part]))) / part.sum()
        assert abs(said[part].mean() - good[part].mean()) < 4 * error


@pytest.mark.parametrize("kind", ["replay", "bootstrap", "simulation"])
def test_the_three_kinds_give_the_same_table(kind):
    policies = ["uncertain-ucb", "ucb"]
    if kind == "replay":
        found = evaluation.replayed(log_of(), policies, 0.6, name="x", runs=10)
    elif kind == "bootstrap":
        found = evaluation.bootstrapped(log_of(), policies, 0.6, name="x", runs=10, horizon=700)
    else:
        means = pd.Series([0.2, 0.5, 0.9], index=["a", "b", "c"])
        found = evaluation.simulated(means, policies, 0.6, name="x", runs=10, horizon=700)
    assert found.kind == kind
    assert kind in found.instance
    assert list(found.frame.columns) == [
        "instance", "policy", "run", "mark", "regret", "regret_threshold", "regret_refined", "uncertain_rounds",
        "certified_arm", "seed",
    ]  # fmt: skip
    summary = found.summary().set_index("policy")
    assert next(iter(summary.index)) == "uncertain-ucb"
    assert summary.loc["uncertain-ucb", "certified_arm"] == "c"
    assert summary.loc["uncertain-ucb", "satisficing"] == pytest.approx(1.0)
    assert 1 < summary.loc["uncertain-ucb", "certified_by"] < found.horizon
    assert summary.loc["ucb", "certified"] == 0
    assert np.isnan(summary.loc["ucb", "certified_by"])
    assert (summary["regret_refined_q99"] >= summary["regret_refined"]).all()
    # the bonus-free mean of b misses the threshold by 0.1: its share of refined regret is 0.4 a pull, of threshold regret 0.1
    assert (summary["regret_threshold"] < summary["regret_refined"]).all()


def test_the_same_seed_gives_the_same_runs_whatever_else_is_played():
    alone, together = (
        evaluation.replayed(log_of(), policies, 0.6, name="x", runs=4, horizon=300).frame
        for policies in (["ucb"], ["ts", "ucb"])
    )
    together = together[together["policy"] == "ucb"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, together)


def test_timeline_agrees_with_the_runs_it_is_one_of():
    for found in (
        evaluation.replayed(log_of(), ["uncertain-ucb"], 0.6, name="x", runs=2),
        evaluation.bootstrapped(log_of(), ["uncertain-ucb"], 0.6, name="x", runs=2, horizon=600),
    ):
        timeline = found.timeline("uncertain-ucb")
        last = timeline[timeline["mark"] == timeline["mark"].max()].set_index("arm")
        assert last["pulls"].sum() == found.horizon
        run = found.frame[(found.frame["run"] == 0) & (found.frame["mark"] == found.horizon)].iloc[0]
        assert last["lower"].idxmax() == run["certified_arm"]
        gaps = found.arms.set_index("arm")["mean"].max() - found.arms.set_index("arm")["mean"]
        if found.kind == "replay":  # a simulated run stops early, and the rest of its pulls is given to its arm
            assert (last["pulls"] * gaps).sum() == pytest.approx(run["regret"])
        with pytest.raises(ValueError, match="ucb certifies nothing; name a policy that starts with uncertain"):
            found.timeline("ucb")


def test_timeline_of_a_simulation_is_its_run_0_draw_by_draw():
    """Thompson draws at random in every round, so other random numbers would be found out."""
    means = pd.Series([0.30, 0.35, 0.40], index=["a", "b", "c"])
    found = evaluation.simulated(means, ["uncertain-ts"], 0.9, name="x", runs=2, horizon=300, seed=7)
    timeline = found.timeline("uncertain-ts")
    last = timeline[timeline["mark"] == 300].set_index("arm")
    run = found.frame[(found.frame["run"] == 0) & (found.frame["mark"] == 300)].iloc[0]
    assert (last["pulls"] * (0.40 - means)).sum() == pytest.approx(run["regret"])


def test_short_logs_are_not_ranked():
    with pytest.raises(
        ValueError, match=r"below 30 for each of the 3 arms \(90\); policies are not ranked on so little"
    ):
        evaluation.replayed(log_of(150), ["ucb"], 0.6, name="x", runs=3)


def test_whole_numbers_stay_whole():
    log = log_of()
    log["arm"] = log["arm"].map({"a": 5, "b": 10, "c": 20})
    for found in (
        evaluation.replayed(log, ["uncertain-ucb", "ucb"], 0.6, name="x", runs=3),
        evaluation.bootstrapped(log, ["uncertain-ucb", "ucb"], 0.6, name="x", runs=3, horizon=400),
    ):
        assert [str(arm) for arm in found.summary()["certified_arm"]] == ["20", "None"]
        assert found.frame["certified_arm"].isna().any()


def test_policies_play_on_the_labels_of_the_arms():
    means = pd.Series([0.1, 0.95], index=["left", "right"])
    found = evaluation.simulated(means, ["uncertain-ucb"], 0.5, name="x", runs=3, horizon=300)
    assert set(found.frame["certified_arm"].dropna()) == {"right"}
    assert make("uncertain-ucb", found.source.labels, 0.5).arms == ("left", "right")
