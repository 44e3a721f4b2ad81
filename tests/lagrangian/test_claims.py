"""The experiments: smoke trials measure what every rule reads, and the hard family agrees with what is known of it exactly."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from upheld.claims import Experiment, NotRun, Scale, Trial
from upheld.claims.measurements import Measurements
from upheld.lagrangian import bounds
from upheld.lagrangian.claims import CLAIMS, HARD, LEARNING, PARALLEL, draws, mean_dual, measure_hard, optimum
from upheld.lagrangian.families import HardFamily
from upheld.lagrangian.hard_family import MU, SIGMA, excess
from upheld.lagrangian.rivals import largest_multiplier

EXPERIMENTS = {claim.experiment.name: claim.experiment for claim in CLAIMS}
SLOW = ("lagrangian.race", "lagrangian.bounds")


@cache
def smoke(experiment: Experiment) -> Measurements:
    """Every smoke trial, as the ledger would hand it to the rules."""
    rows = [
        {**trial.condition, "seed": trial.seed, "item": one.item, "method": one.method, "metric": one.metric,
         "value": one.value}
        for trial in experiment.trials(Scale.SMOKE)
        for one in experiment.measure(trial)
    ]  # fmt: skip
    return Measurements(pd.DataFrame(rows), experiment.units)


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(claim, marks=pytest.mark.slow if claim.experiment.name in SLOW else [], id=claim.id)
        for claim in CLAIMS
    ],
)
def test_a_smoke_run_measures_what_the_rule_reads(claim):
    try:
        measured = smoke(claim.experiment)
    except NotRun as reason:
        pytest.skip(str(reason))
    judgement = claim.rule.judge(measured)
    assert judgement.findings
    assert all(np.isfinite(finding.estimate) for finding in judgement.findings)


def test_every_experiment_has_every_scale():
    for experiment in EXPERIMENTS.values():
        for scale in Scale:
            assert experiment.conditions[scale], (experiment.name, scale)
        sizes = [len(list(experiment.trials(scale))) for scale in (Scale.SMOKE, Scale.QUICK, Scale.STANDARD)]
        assert sizes == sorted(sizes), experiment.name


def test_the_paper_and_the_specification_are_covered():
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS) == 17
    assert sum(claim.reported is not None for claim in CLAIMS) >= 8
    assert [name for name, one in EXPERIMENTS.items() if one.alone] == ["lagrangian.workers"]


# what is known exactly of the hard family


def hard_trial(s: int, n: int, seed: int = 0) -> dict[tuple[str, str], float]:
    """Means of a trial's metrics."""
    found: dict[tuple[str, str], list[float]] = {}
    for one in measure_hard(Trial("lagrangian.learning", {"family": HARD, "s": s, "n": n}, seed, Scale.QUICK)):
        found.setdefault((one.method, one.metric), []).append(one.value)
    return {key: float(np.mean(values)) for key, values in found.items()}


def test_erm_attains_the_least_risk_and_nobody_is_better():
    means = [hard_trial(64, 256, seed) for seed in range(6)]
    ratio = {m: np.mean([one[m, "excess over Bayes risk"] for one in means]) for m in ("ERM", "SGA", "constant")}
    assert ratio["ERM"] == pytest.approx(1.0, abs=0.05)  # 19,200 bits: one standard error is .013
    assert 1.6 < ratio["SGA"] < 2.0
    # In the middle, half of the gap whatever the bits: 1 / (2 P_err).
    assert ratio["constant"] == pytest.approx(1 / (2 * bounds.majority_error(256, 0.75 / 16)))


def test_the_mean_of_optima_has_its_known_variance():
    means = [hard_trial(64, 256, seed)["warm start", "squared distance over bound"] for seed in range(6)]
    assert np.mean(means) == pytest.approx(SIGMA**2 * (1 - 0.75**2 / 256), rel=0.02)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_mean_dual_is_that_of_the_instances(share):
    pi = np.array([0.0, 0.2, 0.25, 0.5, 0.75, 0.9])
    low, high = HardFamily(np.full(6, MU)), HardFamily(np.full(6, MU + SIGMA))
    expected = share * high.oracle(pi).u + (1 - share) * low.oracle(pi).u
    assert mean_dual(pi, np.full(6, share)) == pytest.approx(expected)


def test_excess_is_a_difference_of_mean_duals():
    rng = np.random.default_rng(0)
    v, pi, eps = rng.integers(0, 2, (5, 8)), rng.uniform(0, 1, (5, 8)), 0.2
    p = (1 + eps * (2 * v - 1)) / 2
    assert excess(pi, v, eps) == pytest.approx(mean_dual(MU + SIGMA * v, p) - mean_dual(pi, p))


def test_the_generalisation_gap_is_positive_and_the_excess_is_never_negative():
    found = hard_trial(32, 256)
    assert found["ERM", "generalisation gap"] > 0
    assert min(value for (_, metric), value in found.items() if metric == "excess") > 0


# the instances


def of(family: str, size: str, n: int = 2) -> Trial:
    return Trial("lagrangian.learning", {"family": family, "size": size, "n": n}, 0, Scale.SMOKE)


@pytest.mark.parametrize(
    ("family", "size", "rows"),
    [("GAP-C", "3x7", 7), ("GAP-E", "3x7", 7), ("CFLP", "4x6", 6), ("set covering", "9x20", 9), ("UC", "20", 48),
     ("CVRP", "5x2", 5), ("hard", "8", 8)],
)  # fmt: skip
def test_families_have_their_sizes_and_one_structure(family, size, rows):
    first, second = draws(of(family, size), 2)
    assert first.n_rows == second.n_rows == rows
    assert first.row_names == second.row_names
    again = draws(of(family, size), 2)[0]
    pi = np.full(rows, 500.0)  # dear enough to move something in every family
    assert first.oracle(pi).u == again.oracle(pi).u
    assert first.oracle(pi).u != second.oracle(pi).u


def test_more_days_meet_the_same_held_out_instances():
    few = draws(of("GAP-D", "3x7", 2), 5, ignoring=("n",))
    many = draws(of("GAP-D", "3x7", 4), 9, ignoring=("n",))
    assert all((a.cost == b.cost).all() for a, b in zip(few, many[:5], strict=True))
    assert (draws(of("GAP-D", "3x7", 4), 1)[0].cost != few[0].cost).any()


def test_the_optimum_is_between_lp_and_opt_and_blocks_with_integrality_gain_nothing():
    for family, size in (("GAP-D", "3x7"), ("CFLP", "4x6"), ("hard", "8")):
        P = draws(of(family, size), 1)[0]
        lp, best = P.milp().lp_relaxation()[0], optimum(P, largest_multiplier([P])).u
        assert lp - 1e-6 * (1 + abs(lp)) <= best <= P.milp().optimum().value + 1e-6
        if family != "GAP-D":
            assert best == pytest.approx(lp, rel=1e-6)


def test_thread_counts_do_not_change_an_answer():
    P = PARALLEL["10 units"]()
    pi = np.random.default_rng(0).uniform(0, 30, P.n_rows)
    one, two = P.oracle(pi, n_jobs=1), P.oracle(pi, n_jobs=2)
    assert (one.u, one.g.tolist()) == (two.u, two.g.tolist())


def test_the_smallest_past_has_the_contextual_gap():
    gaps = smoke(LEARNING)
    assert gaps.matrix([next(iter(CLAIMS[-2].rule.of)).cell()]).min() >= 0
