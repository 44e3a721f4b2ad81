"""Claims of methods still to come, stated with the bench: each must be short, and decide planted truths rightly.

These are the hard shapes: rates in two variables, cost curves, a ratio per prompt, exact identity, coverage over time, files as
the sampling unit, tasks x seeds, differences of exponents, and figures without a verdict.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from upheld.claims import (
    All,
    Any,
    AtLeast,
    AtMost,
    Difference,
    GeometricRatio,
    Mean,
    Measurements,
    NeverViolated,
    Outcome,
    Rate,
    Ratio,
    Reported,
    Share,
    Slope,
    Superior,
)

RNG = np.random.default_rng(20260701)


def frame(rows) -> pd.DataFrame:
    return pd.DataFrame(rows).assign(item=lambda f: f.get("item", ""))


def noise(spread=0.1) -> float:
    return float(np.exp(spread * RNG.standard_normal()))


# -- flows: a rate in the number of particles, a cost curve


def particles(exponent):
    return frame(
        {"problem": p, "K": k, "N": n, "seed": seed, "method": "flow", "metric": metric, "value": value * noise(0.3)}
        for p in range(5) for k in (16, 64, 256, 1024) for n in (16, 64) for seed in range(24)
        for metric, value in (("squared error", k**exponent), ("reference error", 1 / n))
    )  # fmt: skip


ASYMPTOTICALLY_EXACT = All((
    Rate("squared error", "flow", x="K", low=-1.3, high=-0.7),  # RMSE in K^(-1/2 +- 0.15)
    AtMost(Difference(Mean("reference error", "flow", {"N": 64}), Mean("reference error", "flow", {"N": 16})), 0.0),
))  # fmt: skip


def costs(exponent):
    return frame(
        {"K": k, "seed": seed, "method": "flow", "metric": metric, "value": value * noise(0.02)}
        for k in (4, 16, 64) for seed in range(6) for metric, value in (("seconds", k**exponent), ("bytes", 1e6))
    )  # fmt: skip


LINEAR_COST = All((Rate("seconds", "flow", x="K", low=0.8, high=1.1), Rate("bytes", "flow", x="K", high=0.1)))

# -- effects: coverage held over a whole stream, and files as what is sampled


def streams(covered):
    return frame(
        {"seed": seed, "method": "sequence", "metric": "covered throughout", "value": float(RNG.random() < covered)}
        for seed in range(400)
    )


TIME_UNIFORM = AtLeast(Share("covered throughout", "sequence"), 0.93)


def files(ratio):
    return frame(
        {"file": f"zymu_{f}", "seed": order, "method": m, "metric": "absolute error", "value": v * level * noise(0.05)}
        for f in range(10) for level in [noise(0.5)] for order in range(3) for m, v in (("coreset", ratio), ("reservoir", 1.0))
    )  # fmt: skip


REAL_WINS = Superior("absolute error", ours="coreset", rivals=("reservoir",), relative=True, lower_is_better=True)

# -- speculative: a ratio per prompt, and identity to the last token


def prompts(speedup):
    return frame(
        {"task": t, "seed": 0, "item": f"{t}-{i}", "method": m, "metric": "seconds", "value": s * length * noise(0.05)}
        for t in ("prose", "code") for i in range(12) for length in [noise(0.6)] for m, s in (("plain", speedup), ("dflash", 1.0))
    )  # fmt: skip


SIX_TIMES_SOMEWHERE = Any(
    tuple(AtLeast(GeometricRatio("seconds", "plain", "dflash", {"task": task}), 6.0) for task in ("prose", "code"))
)


def tokens(diverging):
    return frame(
        {"seed": seed, "method": "dflash", "metric": "diverging tokens", "value": float(diverging and seed == 17)}
        for seed in range(40)
    )


LOSSLESS = NeverViolated("diverging tokens", "dflash", at_most=0)

# -- worlds: success on tasks x training seeds, two crossed samples; a share of generated worlds


def successes(gain):
    skill = {s: 0.05 * RNG.standard_normal() for s in range(6)}
    hard = {t: 0.05 * RNG.standard_normal() for t in range(30)}
    return frame(
        {"seed": s, "item": f"task-{t}", "method": m, "metric": "success", "value": float(RNG.random() < 0.4 + skill[s] + hard[t] + g)}
        for s in skill for t in hard for m, g in (("trained", gain), ("untrained", 0.0))
    )  # fmt: skip


LEARNS = Superior("success", ours="trained", rivals=("untrained",))


def certified(share):
    return frame(
        {"seed": s, "item": str(w), "method": "generated", "metric": "certified", "value": float(RNG.random() < share)}
        for s in range(4) for w in range(250)
    )  # fmt: skip


FULLY_EXECUTABLE = AtLeast(Share("certified", "generated"), 0.9)

# -- lagrangian: exponents in two variables, a difference of exponents, a ratio to an exact constant


def grid_of_excess(s_exponent, n_exponent, warm_exponent=-1.0):
    return frame(
        {"s": s, "N": n, "seed": 0, "item": str(r), "method": m, "metric": metric, "value": v * noise(0.4)}
        for s in (16, 32, 64) for n in (256, 1024, 4096) for r in range(100)
        for m, metric, v in (
            ("sga", "excess", 0.04 * s**s_exponent * n**n_exponent),
            ("sga", "bayes risk", 0.02 * s**s_exponent * n**n_exponent),
            ("warm", "squared distance", s * n**warm_exponent),
        )
    )  # fmt: skip


ATTAINS_RATE = All((
    Rate("excess", "sga", x="s", low=0.9, high=1.1),
    Rate("excess", "sga", x="N", low=-0.6, high=-0.4),
))  # fmt: skip
WARM_START_IS_FASTER = AtMost(Difference(Slope("squared distance", "warm", x="N"), Slope("excess", "sga", x="N")), -0.4)
ABOVE_BAYES = AtLeast(Ratio(Mean("excess", "sga"), Mean("bayes risk", "sga")), 0.95)

CASES = [
    # rule, units, measurements where it holds, measurements where it does not
    (ASYMPTOTICALLY_EXACT, "seed", lambda: particles(-1.0), lambda: particles(-0.4)),
    (LINEAR_COST, "seed", lambda: costs(0.95), lambda: costs(2.0)),
    (TIME_UNIFORM, "seed", lambda: streams(0.985), lambda: streams(0.8)),
    (REAL_WINS, "file", lambda: files(0.6), lambda: files(1.6)),
    (SIX_TIMES_SOMEWHERE, "item", lambda: prompts(8.0), lambda: prompts(3.0)),
    (LOSSLESS, "seed", lambda: tokens(False), lambda: tokens(True)),
    (LEARNS, "seed*item", lambda: successes(0.4), lambda: successes(-0.4)),
    (FULLY_EXECUTABLE, "seed/item", lambda: certified(0.95), lambda: certified(0.8)),
    (ATTAINS_RATE, "seed/item", lambda: grid_of_excess(1.0, -0.5), lambda: grid_of_excess(1.5, -0.5)),
    (WARM_START_IS_FASTER, "seed/item", lambda: grid_of_excess(1.0, -0.5), lambda: grid_of_excess(1.0, -0.5, -0.5)),
    (ABOVE_BAYES, "seed/item", lambda: grid_of_excess(1.0, -0.5), None),
]


@pytest.mark.parametrize(("rule", "units", "holds", "fails"), CASES)
def test_planted_truths_are_told_apart(rule, units, holds, fails):
    assert rule.judge(Measurements(holds(), units)).outcome is Outcome.UPHELD
    if fails is not None:
        assert rule.judge(Measurements(fails(), units)).outcome is Outcome.NOT_UPHELD


@pytest.mark.parametrize("rule", [case[0] for case in CASES])
def test_a_rule_hashes_prints_and_speaks(rule):
    assert hash(rule) == hash(rule)
    assert repr(rule).startswith(type(rule).__name__)
    assert len(rule.words()) > 20


def test_figures_without_a_verdict():
    rule = Reported((GeometricRatio("seconds", "plain", "dflash"),), per=("task",))
    judgement = rule.judge(Measurements(prompts(3.0), "item"))
    assert judgement.outcome is Outcome.REPORTED
    assert [round(finding.estimate) for finding in judgement.findings] == [3, 3]


def test_the_sampling_unit_decides_how_much_is_known():
    """Ten files in three orders are ten units, not thirty; taking orders as units would hide the spread between files."""
    measured = files(0.9)
    by_file = REAL_WINS.judge(Measurements(measured, "file")).findings[0]
    by_order = REAL_WINS.judge(Measurements(measured, "seed")).findings[0]
    assert (by_file.units, by_order.units) == (10, 3)
    assert by_order.outcome is Outcome.INCONCLUSIVE
