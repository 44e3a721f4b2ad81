"""The chains sample the Gibbs measure: histograms, equilibrium alignments, drift; and they refuse what they cannot run."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.memory import _kernels
from upheld.memory.cone import draw_cone, expected_in_cone, log_bulk
from upheld.memory.data import draw_patterns, near, on_sphere
from upheld.memory.geometry import log_tail
from upheld.memory.montecarlo import SphereSampler, autocorrelation_time
from upheld.memory.theory import log_noise_sum, phi_eq

QUICK = {"burn_in": 400, "sweeps": 2000}


def run_chain(kernel, strength, T, patterns, by_pairs, step, sweeps, seed=0):
    rng = np.random.default_rng(seed)
    N = patterns.shape[1]
    x = near(patterns[:1], np.array([0.9]), rng=rng)
    rows = [np.empty((1, sweeps)) for _ in range(3)]
    found = _kernels.chain(
        kernel, strength, -np.inf if kernel == _kernels.LSE else 0.0, T, x, np.ascontiguousarray(patterns.T.astype(np.float32)),
        by_pairs, step, 200, sweeps, rng, -1.0, False, *rows, np.empty(sweeps),
    )  # fmt: skip
    return x[0], rows, found, N


@pytest.mark.parametrize("kernel", [_kernels.LSE, _kernels.LSR])
@pytest.mark.parametrize("by_pairs", [True, False])
def test_detailed_balance_on_the_circle(kernel, by_pairs):
    """N = 2: the histogram of the alignment against the Gibbs density integrated numerically over the angle."""
    patterns = on_sphere(np.array([[1.0, 0.0], [0.3, 1.0], [-0.5, 0.9]]))
    strength, T = (1.5, 0.8) if kernel == _kernels.LSE else (0.6, 0.8)
    _, rows, _, _ = run_chain(kernel, strength, T, patterns, by_pairs, 1.0, 40_000)
    theta = (np.arange(40_000) + 0.5) / 40_000 * 2 * np.pi
    phi = np.sqrt(2) * np.stack([np.cos(theta), np.sin(theta)], 1) @ patterns.T / 2
    if kernel == _kernels.LSE:
        weight = np.exp(2 * strength * (phi - 1)).sum(1) ** (1 / (strength * T))
    else:
        weight = np.maximum(1 - strength * (1 - phi), 0).sum(1) ** (2 / (strength * T))
    edges = np.linspace(-1, 1, 9)
    wanted = np.histogram(phi[:, 0], edges, weights=weight)[0] / weight.sum()
    target = rows[0][0]
    found = np.histogram(target, edges)[0] / target.size
    error = np.sqrt(wanted / (target.size / max(autocorrelation_time(target), 1)))
    assert np.all(np.abs(found - wanted) < 5 * error + 2e-3)


def test_overlaps_do_not_drift_and_norms_are_exact():
    patterns = draw_patterns(30, 40, rng=np.random.default_rng(1))
    x, rows, _, N = run_chain(_kernels.LSE, 1.0, 0.4, patterns, True, 1.0, 3001)
    exact = patterns.astype(float) @ x / N
    assert rows[0][0, -1] == pytest.approx(exact[0], abs=1e-10)
    assert rows[1][0, -1] == pytest.approx(exact[1:].max(), abs=1e-10)
    assert x @ x == pytest.approx(N, abs=1e-9)
    lse = np.log(np.exp(N * (exact - 1)).sum())
    assert rows[2][0, -1] == pytest.approx(-lse, abs=1e-9)


@pytest.mark.parametrize(("kernel", "T"), [("lse", 0.1), ("lse", 0.5), ("lsr", 0.1), ("lsr", 1.0)])
@pytest.mark.parametrize("move", ["pair", "metropolis"])
def test_equilibrium_alignment(kernel, T, move):
    sweeps = {"pair": 2000, "metropolis": 20_000}[move]
    found = SphereSampler(kernel, 0.1, 50, T, trials=6, move=move, burn_in=500, sweeps=sweeps, random_state=3).run()
    error = np.sqrt((found.target.var(-1) * found.iat / sweeps).mean() / 6)
    assert found.target.mean() == pytest.approx(float(phi_eq(T, kernel, N=50)), abs=4 * error + 0.002)
    assert found.retrieved.all()


def test_pairs_are_tuned_in_the_burn_in():
    found = SphereSampler("lsr", 0.1, 50, 0.2, trials=2, **QUICK).run()
    assert np.all(np.abs(found.acceptance - 0.4) < 0.06)


def test_replica_overlap_is_the_square_of_the_alignment():
    found = SphereSampler("lsr", 0.1, 50, 0.3, trials=4, replicas=2, **QUICK).run()
    assert found.q12.mean() == pytest.approx(float(phi_eq(0.3, "lsr", N=50)) ** 2, abs=0.01)


def test_heating_loses_what_cold_keeps():
    found = SphereSampler("lse", 0.2, 25, [0.05, 0.1, 2.0], trials=6, protocol="heat", burn_in=200, sweeps=800).run()
    assert found.retrieved[0].all()
    assert not found.retrieved[2].any()


def test_lsr_leaves_its_support_and_the_run_may_stop_there():
    arguments = {"trials": 6, "burn_in": 0, "sweeps": 3000, "random_state": 2}
    found = SphereSampler("lsr", 0.24, 20, 10.0, stop_when_left=True, **arguments).run()
    assert np.all(found.left_support >= 0)
    assert np.isnan(found.target[..., -1]).all()
    assert SphereSampler("lsr", 0.05, 60, 0.1, **arguments).run().left_support.max() == -1


@pytest.mark.parametrize(("kernel", "N"), [("lse", 100), ("lse", 10_000), ("lsr", 1000)])
def test_bulk_has_the_finite_alignment_and_the_promised_acceptance(kernel, N):
    found = SphereSampler(kernel, 0.05, N, [0.1, 0.4], scheme="bulk", trials=4, burn_in=500, sweeps=8000).run()
    assert np.all(np.abs(found.acceptance - 0.40) < 0.03)
    assert np.allclose(found.target.mean((1, 2)), phi_eq([0.1, 0.4], kernel, N=N), atol=0.008)


def test_bulk_agrees_with_all_patterns():
    both = [
        SphereSampler("lse", 0.1, 50, 0.3, scheme=scheme, trials=6, burn_in=500, sweeps=3000).run()
        for scheme in ("full", "bulk")
    ]
    assert both[0].target.mean() == pytest.approx(both[1].target.mean(), abs=0.005)


def test_the_cone_and_its_rest_are_all_patterns():
    alpha, N = 0.3, 24
    rng = np.random.default_rng(0)
    counts = [len(draw_cone(alpha, N, rng=rng)) - 1 for _ in range(60)]
    share = np.exp(float(log_tail(0.4, N)))
    assert share == pytest.approx(0.024, abs=0.002)  # 2.4 % of the patterns at N=24
    assert np.mean(counts) == pytest.approx(expected_in_cone(alpha, N), abs=4 * np.std(counts) / np.sqrt(60))
    sums = []
    for _ in range(300):
        xi = draw_cone(alpha, N, rng=rng).astype(float)
        assert np.allclose((xi**2).sum(1), N, rtol=1e-5)
        sums.append(np.exp(N * (xi[1:] @ xi[0] / N - 1)).sum() + np.exp(log_bulk(alpha, N, 1.0)))
    error = np.std(sums) / np.sqrt(len(sums))
    assert np.mean(sums) == pytest.approx(np.exp(float(log_noise_sum(N, alpha))), abs=5 * error)


def test_the_cone_samples_what_all_patterns_do():
    both = [
        SphereSampler("lse", 0.25, 24, 0.05, scheme=scheme, trials=6, burn_in=300, sweeps=1000).run()
        for scheme in ("full", "cone")
    ]
    assert both[0].target.mean() == pytest.approx(both[1].target.mean(), abs=0.01)
    assert both[1].M.max() < both[0].M.min() / 20


def test_the_batched_chain_agrees_with_the_compiled_one():
    found = SphereSampler(
        "lsr", 0.1, 50, [0.3, 0.5], move="metropolis", device="cpu:0", trials=24, burn_in=60, sweeps=120
    ).run()
    assert np.allclose(found.phi.mean(1), phi_eq([0.3, 0.5], "lsr", N=50), atol=0.02)
    assert found.energy.shape == found.target.shape == (2, 24, 120)


def test_a_run_repeats_itself_and_its_table_has_the_columns_of_phase_csv():
    first, second = (
        SphereSampler("lse", 0.1, 30, [0.1, 0.2], trials=2, burn_in=50, sweeps=100).run() for _ in range(2)
    )
    assert np.array_equal(first.target, second.target)
    table = first.table()
    assert list(table) == [
        "kernel", "scheme", "alpha", "N", "M", "T", "trial", "phi_target", "phi_other_max", "q12", "left_support", "acceptance",
        "iat", "sweeps", "seed",
    ]  # fmt: skip
    assert len(table) == 4


def test_gaussian_and_correlated_patterns_run():
    found = SphereSampler("lse", 0.05, 40, 0.2, law="gaussian", trials=2, burn_in=50, sweeps=100).run()
    assert found.target.max() > 0.8
    rng = np.random.default_rng(0)
    xi = draw_patterns(200, 60, rng=rng, rho=0.5).astype(float)
    assert (xi[0] @ xi[1:].T / 60).mean() == pytest.approx(0.5, abs=0.15)


def test_autocorrelation_time_of_an_autoregression():
    rng = np.random.default_rng(0)
    x = np.zeros(200_000)
    for t in range(1, x.size):
        x[t] = 0.8 * x[t - 1] + rng.standard_normal()
    assert autocorrelation_time(x) == pytest.approx((1 + 0.8) / (1 - 0.8), rel=0.1)
    assert np.isnan(autocorrelation_time(np.array([1.0, np.nan])))
    assert autocorrelation_time(np.ones(9)) == 1


@pytest.mark.parametrize(("arguments", "message"), [
    ({"kernel": "relu"}, "kernel must be 'lse' or 'lsr', got 'relu'"),
    ({"scheme": "all"}, "scheme must be 'full' or 'cone' or 'bulk'"),
    ({"T": 0.0}, "T must be one temperature above 0"),
    ({"T": [0.3, 0.2], "protocol": "heat"}, "needs rising temperatures"),
    ({"alpha": -0.1}, "alpha must be at least 0"),
    ({"N": 2}, "N must be at least 3, got 2"),
    ({"b": 0}, "b and beta_net must be above 0"),
    ({"kernel": "lsr", "scheme": "cone"}, "scheme='cone' is for LSE"),
    ({"kernel": "lse", "alpha": 0.5, "N": 60}, "patterns need 2.56e\\+15 bytes, the budget is 1.07e\\+09; take scheme='cone'"),
    ({"scheme": "bulk", "law": "gaussian"}, "draws independent spherical patterns"),
    ({"device": "cuda"}, "runs move='metropolis'"),
])  # fmt: skip
def test_bad_input_is_called_by_its_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        SphereSampler(**arguments)
