"""The simulator: engines agree bit for bit, regrets are ordered, the early stop changes nothing."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld.bandits import data, policies, simulate, theory
from upheld.bandits.environments import REGRETS, BernoulliBandit, GaussianBandit, with_law

ARRAYS = (*REGRETS, "uncertain_rounds", "certified_arm", "pulls", "stopped_at", "last_bad_pull", "last_arm")
RULES = [name for name in policies.names() if not name.startswith("mabwiser")]
needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")


def assert_same(a, b):
    for field in ARRAYS:
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field), err_msg=field)


@needs_numba
@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_engines_give_the_same_bits(name):
    """Each policy, where it soon certifies (and runs stop early), and where no arm is good enough."""
    law = "bernoulli" if policies.get(name).unit_rewards else "gaussian"
    easy = with_law(law, [0.95, 0.6, 0.2, 0.3], 0.5, name="easy")
    args = ([name], [easy, data.unrealisable(0.1, law=law)], 60 if "kl" in name else 200, 8)
    compiled, vectorised = (simulate(*args, engine=e, seed=5) for e in ("numba", "numpy"))
    assert_same(compiled, vectorised)
    if name in ("uncertain-ucb", "uncertain-ts"):
        assert (compiled.stopped_at > 0).any()


@needs_numba
@pytest.mark.slow
@pytest.mark.parametrize("law", ["bernoulli", "beta", "rare"])
def test_engines_agree_on_every_law_and_on_costs_and_widths(law):
    instances = [
        with_law(law, [0.9, 0.85, 0.3], 0.5, name="easy"),
        with_law(law, [0.9, 0.85, 0.3], -np.inf, name="anything goes"),
    ]
    rules = {
        "plain": policies.get("uncertain-ucb"),
        "costs": policies.get("uncertain-ucb", costs=[3.0, 2.0, 1.0]),
        "narrow": policies.get("uncertain-ucb", width=0.5),
    }
    results = [simulate(rules, instances, 400, 10, engine=e, seed=1, early_stop=False) for e in ("numba", "numpy")]
    assert_same(*results)
    assert (results[0].pulls[1, 1] == [1, 1, 398]).all()  # all arms are certified at once: the cheapest is played


def test_engine_numpy_needs_no_numba():
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "from upheld.bandits import simulate, data\n"
        "r = simulate(['uncertain-ucb'], data.small_excess(.2), 100, 3, engine='numpy')\n"
        "print(r.regret_refined.shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "(1, 1, 3," in done.stdout, done.stderr


def test_importing_the_package_loads_no_optional_dependency():
    code = "import sys, upheld.bandits; print([m for m in ('numba', 'gymnasium', 'mabwiser', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6),
    st.floats(-0.2, 1.2),
    st.sampled_from(["uncertain-ucb", "ucb", "sat-ucb", "simple-sat", "select", "uncertain-ts"]),
    st.integers(0, 2**32),
)
@settings(max_examples=25, deadline=None)
def test_regrets_are_ordered_and_do_not_fall(means, threshold, name, seed):
    instance = GaussianBandit(means, threshold)
    r = simulate([name], instance, 80, 4, engine="numpy", seed=seed)
    slack = 1e-9
    assert (r.regret_threshold <= r.regret_refined + slack).all()
    assert (r.regret_refined <= r.regret + slack).all()
    assert (np.diff(r.regret_refined, axis=-1) >= 0).all()
    assert (r.pulls.sum(axis=-1) == 80).all()
    if max(means) < threshold:
        np.testing.assert_array_equal(r.regret_refined, r.regret)


def test_infinite_thresholds():
    below = simulate(["uncertain-ucb"], GaussianBandit([0.1, 0.2, 0.3], -np.inf), 300, 5, engine="numpy")
    assert (below.regret_refined == 0).all()
    assert (below.uncertain_rounds[..., -1] == 3).all()
    above = BernoulliBandit([0.1, 0.5, 0.3], np.inf)
    pairs = [("uncertain-ucb", "ucb"), ("uncertain-ucb-safe", "ucb-safe"), ("uncertain-ts", "ts")]
    for ours, plain in pairs:
        r = simulate([ours, plain], above, 400, 5, engine="numpy")
        np.testing.assert_array_equal(r.regret[0], r.regret[1])
        assert (r.certified_arm == -1).all()


def test_single_arm_and_horizon_shorter_than_the_arms():
    assert (simulate(["uncertain-ucb"], GaussianBandit([0.2], 0.5), 50, 3, engine="numpy").regret == 0).all()
    short = simulate(["uncertain-ucb", "ucb"], data.small_excess(0.1), 4, 3, engine="numpy")
    assert (short.pulls[0, 0] == [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]).all()


@needs_numba
@pytest.mark.slow
@pytest.mark.parametrize("name", ["uncertain-ucb", "uncertain-ucb-safe", "uncertain-ts"])
def test_early_stop_changes_no_regret(name):
    """Runs that were cut short have the regret that they have when played to the end.

    With an excess of 0.05, first certificates are often taken back, so a rule that stops at them would be found out.
    """
    args = ([name], [data.small_excess(0.2), data.small_excess(0.05), data.several(3)], 20_000, 100)
    stopped = simulate(*args, seed=2)
    played = simulate(*args, seed=2, early_stop=False)
    assert (stopped.stopped_at > 0).mean() > 0.9
    assert (played.stopped_at == 0).all()
    assert (played.uncertain_rounds[0, 1, :, -1] > played.uncertain_rounds[0, 1, :, -10]).any()  # certificates do fall
    np.testing.assert_array_equal(stopped.regret_refined, played.regret_refined)
    np.testing.assert_array_equal(stopped.uncertain_rounds, played.uncertain_rounds)


def test_early_stop_is_refused_where_its_proof_does_not_hold():
    instance = data.small_excess(0.2, law="bernoulli")
    for name in ("uncertain-kl-ucb", "uncertain-ucb-empirical", "sat-ucb"):
        assert (simulate([name], instance, 300, 3, engine="numpy").stopped_at == 0).all()


def test_chunks_and_threads_do_not_change_the_numbers():
    args = (["uncertain-ucb", "sat-ucb"], data.small_excess(0.2), 200, 9)
    assert_same(simulate(*args, engine="numpy"), simulate(*args, engine="numpy", n_jobs=3))
    first = simulate(*args[:3], 4, engine="numpy")
    np.testing.assert_array_equal(simulate(*args, engine="numpy").regret[:, :, :4], first.regret)


def test_policies_meet_the_same_rewards():
    """In a run, two policies that have pulled an arm equally often have seen the same rewards: equal rules, equal runs."""
    pair = {"one": policies.get("ucb"), "other": policies.get("uncertain-ucb")}
    r = simulate(pair, data.unrealisable(0.02), 600, 20, engine="numpy")
    never = (r.uncertain_rounds[1, 0, :, -1] == 600) & (r.certified_arm[1, 0] == -1).all(axis=-1)
    assert never.mean() > 0.9
    np.testing.assert_array_equal(r.regret[0, 0, never], r.regret[1, 0, never])


@pytest.mark.slow
def test_safe_index_stays_below_its_proved_bound():
    for instance in (data.small_excess(0.2), data.small_excess(0.1), data.mix(0.1)):
        r = simulate(["uncertain-ucb-safe"], instance, 20_000, 60, seed=3)
        bound = theory.regret_bound(instance.means, instance.threshold)
        values = r.regret_refined[0, 0, :, -1]
        assert values.mean() + 4 * values.std() / np.sqrt(values.size) < bound


@needs_numba
@pytest.mark.slow
def test_regret_agrees_with_independent_simulations():
    """Means over 100 runs found with a separate program: 104 (Delta_* = .1), 71 (three good arms), UCB 232 at 10^4.

    Tolerance: four standard errors of the difference of two such means.
    """
    r = simulate(["uncertain-ucb"], [data.small_excess(0.1), data.several(3)], 50_000, 100, seed=8)
    for i, expected in enumerate((104, 71)):
        x = r.regret_refined[0, i, :, -1]
        assert abs(x.mean() - expected) < 4 * np.sqrt(2) * x.std() / 10
    r = simulate(["ucb", "simple-sat"], data.unrealisable(0.1), 100_000, 100, [10_000], seed=8)
    x = r.regret[0, 0, :, 0]
    assert abs(x.mean() - 232) < 4 * np.sqrt(2) * x.std() / 10
    assert r.regret[1, 0, :, -1].mean() == pytest.approx(18_000, rel=0.005)


def test_frame_and_summary():
    r = simulate(["uncertain-ucb", "ucb"], [data.small_excess(0.2), data.decoy(0.1)], 200, 3, engine="numpy", seed=6)
    frame = r.to_frame()
    assert list(frame.columns) == [
        "instance",
        "policy",
        "run",
        "mark",
        *REGRETS,
        "uncertain_rounds",
        "certified_arm",
        "seed",
    ]
    assert len(frame) == 2 * 2 * 3 * r.marks.size
    row = frame[(frame.policy == "ucb") & (frame.instance == "decoy 0.1") & (frame.run == 2) & (frame["mark"] == 200)]
    assert row.regret.item() == r.regret[1, 1, 2, -1]
    assert row.seed.item() == 6
    summary = r.summary().set_index(["instance", "policy"])
    x = r.regret_refined[0, 1, :, -1]
    assert summary.loc[("decoy 0.1", "uncertain-ucb"), "mean"] == pytest.approx(x.mean())
    assert summary.loc[("decoy 0.1", "uncertain-ucb"), "cvar95"] == x.max()  # 5 % of 3 runs: the worst one


def test_hardly_any_excess_never_stops_a_run_early():
    """The pulls that the early stop would need lie beyond any horizon."""
    results = simulate(["uncertain-ucb"], GaussianBandit([0.5 + 1e-12, 0.1], 0.5), 200, 3, engine="numpy")
    assert (results.stopped_at == 0).all()


def test_marks():
    r = simulate(["ucb"], data.small_excess(0.2), 1000, 1, engine="numpy")
    assert {1000, 100, 10} <= set(r.marks)
    assert r.marks[-1] == 1000
    given = simulate(["ucb"], data.small_excess(0.2), 90, 1, [30, 60], engine="numpy")
    assert list(given.marks) == [30, 60, 90]


def test_a_rival_is_added_by_a_class_alone():
    from upheld.bandits.elementwise import choose, elementwise
    from upheld.bandits.policy import REGISTRY, RulePolicy
    from upheld.bandits.rule import Rule

    @elementwise
    def rank_greedy(mean, n, variance, lower, own, level, draw, prefer, threshold, sigma):
        return 0.0, choose(n > 0, mean, 0.0)

    class Greedy(RulePolicy):
        variants = {"greedy": {}}  # noqa: RUF012

        @staticmethod
        def rule(*, sigma=None, width=1.0):
            return Rule(name="greedy", rank=rank_greedy, sigma=sigma, width=width)

    try:
        engines = ["numpy"] + (["numba"] if importlib.util.find_spec("numba") else [])
        results = [simulate(["greedy"], data.small_excess(0.2), 200, 4, engine=e) for e in engines]
        assert_same(results[0], results[-1])
        assert Greedy(2).fit([0, 1], [0.1, 0.7]).select() == 1
    finally:
        del REGISTRY["greedy"]


EASY = GaussianBandit([0.2, 0.8], 0.5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: simulate(["ucb9"], EASY, 10, 1), ValueError, "'ucb9' is not a policy; take a Rule or one of"),
        (lambda: simulate([], EASY, 10, 1), ValueError, "there is no policy to play"),
        (lambda: simulate(["ucb", "ucb"], EASY, 10, 1), ValueError, "two policies are called 'ucb'; pass a mapping"),
        (lambda: simulate(["ucb"], [], 10, 1), ValueError, "there is no instance to play"),
        (lambda: simulate(["ucb"], [EASY, EASY], 10, 1), ValueError, "two instances are called 'gaussian'"),
        (lambda: simulate(["ucb"], EASY, 0, 1), ValueError, "horizon must be at least 1 round, got 0"),
        (lambda: simulate(["ucb"], EASY, 1.5, 1), TypeError, "horizon must be a whole number, got 1.5"),
        (lambda: simulate(["ucb"], EASY, 10, 1, n_jobs=0), ValueError, "n_jobs must be at least 1 thread, got 0"),
        (lambda: simulate(["ucb"], EASY, 10, 0), ValueError, "runs must be at least 1, got 0"),
        (lambda: simulate(["ucb"], EASY, 10, 1, "linear"), ValueError, "marks must be 'log' or a list of rounds"),
        (lambda: simulate(["ucb"], EASY, 10, 1, [5, 20]), ValueError, "between 1 and the horizon 10, got"),
        (lambda: simulate(["ucb"], EASY, 10, 1, engine="torch"), ValueError, "'auto', 'numba' or 'numpy', got 'torch'"),
        (
            lambda: simulate(["kl-ucb"], EASY, 10, 1),
            ValueError,
            r"kl-ucb needs rewards in \[0, 1\], but those of gaussian",
        ),
        (lambda: simulate(["mabwiser-ucb1"], EASY, 20_000, 1), ValueError, "at most 10000 rounds, got 20000"),
        (lambda: simulate(["ucb"], EASY, 10, 1, seed=-1), ValueError, "seed must lie in"),
        (
            lambda: simulate([policies.get("uncertain-ucb", costs=[1.0])], EASY, 10, 1),
            ValueError,
            "one finite number for each of the 2 arms",
        ),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
