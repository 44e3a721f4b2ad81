"""Pictures: every claim's is drawn from its experiment; missing measurements are named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from upheld.claims import Scale
from upheld.memory import plots
from upheld.memory.claims import CLAIMS, KRAMERS, LADDER, LSE_LINES, LSE_LOADS, LSR_LINES, SUPPORT_LADDER
from upheld.memory.command.phase import Request, lines
from upheld.memory.rivals import WAYS
from upheld.report.content import drawn

KERNELS = ("lse", "lsr", "lse and lsr", "pairwise Hopfield")
MEASURED = {
    "memory.entropy": [(kernel, "largest difference", "") for kernel in KERNELS],
    "memory.order-parameter": [("monte carlo", "difference from phi(T)", "")],
    "memory.capacity": [("law", "limit of the load at S = 1", ""), *(("law", "load at S = 1", f"N={N}") for N in LADDER)],
    "memory.lse-map": [
        *(("lse", f"critical temperature at alpha={alpha:g}", "") for alpha in LSE_LOADS),
        *((name, "misplaced", "") for name in (*LSE_LINES, KRAMERS)),
    ],
    "memory.support-redrawn": [
        ("exact", metric, f"N={N}") for metric in ("load with one expected", "load with probability 1/2") for N in SUPPORT_LADDER
    ],
    "memory.survival": [("lsr", "survived", ""), ("lsr", "sweeps lived", "")],
    "memory.lsr-map": [(name, "misplaced", "") for name in (*LSR_LINES, "channels")],
    "memory.noise": [(law, "relative error", "") for law in ("gaussian", "spherical")],
    "memory.recall": [(name, metric, "") for name in WAYS for metric in ("recall", "wrong recall")],
    "memory.exponential": [(kernel, "retrieved", "") for kernel in KERNELS],
}  # fmt: skip


def measurements(claim, scale: Scale) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame([
        {**condition, "seed": seed, "item": item, "method": condition.get("law", method) if method == "law" else method,
         "metric": metric, "value": float(rng.random())}
        for condition in claim.experiment.conditions[scale]
        for method, metric, item in MEASURED[claim.experiment.name]
        for seed in range(3)
    ])  # fmt: skip


def asked(**different) -> Request:
    """A phase diagram as the command line asks for it."""
    usual = {
        "kernel": "lsr", "alpha": "0.1:0.5:3", "temp": "0.1:0.5:2", "scheme": "full", "move": "pair", "protocol": "heat", "count": None,
        "dimension": None, "b": None, "beta_net": 1.0, "trials": 2, "sweeps": 1000, "seed": 0,
    }  # fmt: skip
    return Request(**(usual | different))


WITH_PICTURE = [claim for claim in CLAIMS if claim.id in plots.PICTURES]


def test_every_picture_belongs_to_a_claim():
    assert {claim.id for claim in WITH_PICTURE} == set(plots.PICTURES)


@pytest.mark.parametrize("scale", [Scale.SMOKE, Scale.QUICK])
@pytest.mark.parametrize("claim", WITH_PICTURE, ids=lambda claim: claim.id)
def test_every_claim_s_picture_is_drawn_from_its_experiment(claim, scale):
    picture = plots.PICTURES[claim.id](measurements(claim, scale))
    assert isinstance(picture, Figure)
    assert picture.get_size_inches()[0] <= 5.2
    assert any(axes.has_data() for axes in picture.axes)


def test_missing_measurements_are_named():
    with pytest.raises(ValueError, match="relative error of any method was not measured"):
        plots.noise_energy(pd.DataFrame(columns=["metric", "method", "value", "beta"]))


@pytest.mark.parametrize("kernel", ["lse", "lsr"])
def test_a_phase_map_has_every_theory_s_line_and_comes_out_the_same_twice(kernel):
    cells = pd.DataFrame([
        {"alpha": alpha, "T": T, "phi": 0.5, "phi_N": 0.9} for alpha in (0.1, 0.3, 0.5) for T in (0.1, 0.5)
    ])  # fmt: skip
    theories = lines(asked(kernel=kernel))
    pictures = [plots.phase_map(cells, theories) for _ in range(2)]
    assert {line.get_label() for line in pictures[0].axes[0].lines} == set(theories)
    assert drawn(pictures[0], "svg") == drawn(pictures[1], "svg")
