"""Monte Carlo of a thermal dense associative memory on the sphere: does a state that starts near its pattern stay there?

Markov chains under exp(-H/T) on |x|^2 = N. The Gibbs measure weighs all M patterns alike, so "retrieval" is confinement to the
basin of the target, from a start inside it.

Schemes
    ``full``    all M = e^(alpha N) patterns
    ``cone``    LSE: the patterns near the target one by one, the others as a constant (`upheld.memory.cone`)
    ``bulk``    no patterns: target and mean noise, in the alignment alone (`upheld.memory.bulk`)
Moves
    ``pair``        ours: rotate a random pair of coordinates by U(-delta, delta), norm exact, overlaps updated in O(M); one sweep is N/2
                    pairs; delta is tuned to 40 % acceptance during the burn-in, then frozen
    ``metropolis``  the paper's: x' = sqrt(N) (x + sigma g)/|x + sigma g|, sigma = 2.4 T / sqrt(N); one sweep is one step
Protocols
    ``heat``        temperatures one after the other, the state carried on: finds where the basin ends
    ``restart``     each temperature from a new start near the target: hides a metastable boundary

Petrova, Polyachenko, State, ICML 2026 (arXiv 2604.07401), section on Monte Carlo. On a GPU (``device="cuda"``) Metropolis steps of
all trials are one matrix product, see `upheld.memory.batched`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from upheld.memory import bulk
from upheld.memory.cone import PHI_KEEP, draw_cone, expected_in_cone, log_bulk
from upheld.memory.data import draw_patterns, near, on_sphere
from upheld.memory.geometry import FloatArray
from upheld.memory.theory import KERNELS, B, phi_c, phi_eq

SCHEMES, MOVES, PROTOCOLS = ("full", "cone", "bulk"), ("pair", "metropolis"), ("heat", "restart")
START = (0.75, 1.0)
FIRST_DELTA = 1.0
BUDGET = 2**30
RETRIEVED_WITHIN = 0.05


@dataclass(frozen=True)
class Trace:
    """What a run recorded. Axes: temperature, trial, sweep.

    Parameters
    ----------
    T : (temperatures,)
    target : alignment to the target; NaN after a run that was stopped when the target was left
    other : best alignment to another pattern; -1 where there is none
    energy : H
    q12 : overlap of two replicas on the same patterns; NaN with one replica
    acceptance : (temperatures, trials), after the burn-in
    left_support : (temperatures, trials) first sweep, burn-in counted, at which the target was left (LSR: its support, LSE: the cone,
        alignment 0 otherwise); -1 for never
    M : (trials,) patterns held one by one
    """

    kernel: str
    scheme: str
    alpha: float
    N: int
    b: float
    beta_net: float
    T: FloatArray
    target: NDArray[np.float32] = field(repr=False)
    other: NDArray[np.float32] = field(repr=False)
    energy: FloatArray = field(repr=False)
    q12: NDArray[np.float32] = field(repr=False)
    acceptance: FloatArray = field(repr=False)
    left_support: NDArray[np.int64] = field(repr=False)
    M: NDArray[np.int64] = field(repr=False)
    seed: int = 0

    @property
    def phi(self) -> FloatArray:
        """Mean alignment to the target over the second half, (temperatures, trials)."""
        half = self.target[..., self.target.shape[-1] // 2 :]
        return np.asarray(half.mean(-1, dtype=float))

    @property
    def retrieved(self) -> NDArray[np.bool_]:
        """Whether `phi` reaches the finite-N equilibrium within 0.05; (temperatures, trials)."""
        expected = phi_eq(self.T, self.kernel, self.b, N=self.N)
        return np.asarray(self.phi >= expected[:, None] - RETRIEVED_WITHIN)

    @property
    def iat(self) -> FloatArray:
        """Integrated autocorrelation time of the alignment, in sweeps; (temperatures, trials)."""
        return np.asarray(np.apply_along_axis(autocorrelation_time, -1, self.target))

    def table(self) -> pd.DataFrame:
        """A row a temperature and trial: the schema of ``phase.csv``."""
        iat, phi = self.iat, self.phi
        rows = [
            {
                "kernel": self.kernel, "scheme": self.scheme, "alpha": self.alpha, "N": self.N, "M": int(self.M[trial]),
                "T": float(self.T[t]), "trial": trial, "phi_target": float(phi[t, trial]),
                "phi_other_max": float(np.nanmax(self.other[t, trial])), "q12": float(np.mean(self.q12[t, trial])),
                "left_support": int(self.left_support[t, trial]), "acceptance": float(self.acceptance[t, trial]),
                "iat": float(iat[t, trial]), "sweeps": self.target.shape[-1], "seed": self.seed,
            }
            for t in range(len(self.T))
            for trial in range(len(self.M))
        ]  # fmt: skip
        return pd.DataFrame(rows)


def autocorrelation_time(series: NDArray[Any], window: float = 5.0) -> float:
    """1 + 2 sum of autocorrelations, up to Sokal's window of `window` times itself; NaN for a series with gaps, 1 for a constant."""
    x = np.asarray(series, dtype=float)
    if np.isnan(x).any():
        return float("nan")
    x = x - x.mean()
    if not np.any(x):
        return 1.0
    spectrum = np.fft.rfft(x, 2 * len(x))
    correlation = np.fft.irfft(spectrum * spectrum.conj())[: len(x)]
    tau = 2 * np.cumsum(correlation / correlation[0]) - 1
    stop = np.flatnonzero(np.arange(len(x)) >= window * tau)
    return float(max(tau[stop[0] if stop.size else -1], 1.0))


class SphereSampler:
    """Chains of several trials, each with patterns of its own.

    Parameters
    ----------
    kernel : "lse" or "lsr"
    alpha : load; M = round(e^(alpha N)) patterns
    N : dimension, at least 3
    T : one temperature above 0, or several (rising, under ``protocol="heat"``)
    scheme, move, protocol : see the module
    trials : number of independent draws of patterns
    device : "cpu" (compiled chains) or a device of torch, as "cuda" (Metropolis moves of ``scheme="full"``)
    random_state : seed of everything
    b, beta_net : kernels; LSR reads `b`, LSE `beta_net`
    burn_in, sweeps : before and while recording, at each temperature
    law, rho : of the patterns, see `upheld.memory.data.draw_patterns`
    replicas : 2 records their overlap q12
    start : the first alignments to the target are uniform in this interval, above phi_c for LSR
    step : Metropolis sigma, or the pairs' first delta; None for the defaults
    stop_when_left : end a trial when its target is left (survival needs no more)
    budget : bytes of patterns that may be held

    Raises
    ------
    ValueError
        On a parameter outside its range; if e^(alpha N) patterns exceed `budget`, with the bytes needed and the scheme that avoids them.

    Examples
    --------
    >>> cold = SphereSampler("lse", 0.1, 50, 0.1, trials=4, burn_in=200, sweeps=400).run()
    >>> bool(abs(cold.phi.mean() - 0.95215) < 0.01), bool(cold.retrieved.all())
    (True, True)
    """

    def __init__(
        self,
        kernel: str = "lsr",
        alpha: float = 0.1,
        N: int = 50,
        T: float | Sequence[float] = 0.1,
        scheme: str = "full",
        move: str = "pair",
        trials: int = 50,
        device: str = "cpu",
        random_state: int = 0,
        *,
        b: float = B,
        beta_net: float = 1.0,
        burn_in: int = 1024,
        sweeps: int = 4096,
        protocol: str = "restart",
        law: str = "spherical",
        rho: float = 0.0,
        replicas: int = 1,
        start: tuple[float, float] = START,
        step: float | None = None,
        stop_when_left: bool = False,
        budget: int = BUDGET,
    ) -> None:
        self.kernel, self.alpha, self.N, self.T = kernel, alpha, N, T
        self.scheme, self.move, self.trials, self.device, self.random_state = scheme, move, trials, device, random_state
        self.b, self.beta_net, self.burn_in, self.sweeps = b, beta_net, burn_in, sweeps
        self.protocol, self.law, self.rho, self.replicas, self.start = protocol, law, rho, replicas, start
        self.step, self.stop_when_left, self.budget = step, stop_when_left, budget
        self._temperatures = np.atleast_1d(np.asarray(T, dtype=float))
        self._check()

    @property
    def M(self) -> int:
        """Number of patterns, the target among them."""
        return max(round(math.exp(self.alpha * self.N)), 1)

    @property
    def wall(self) -> float:
        """Alignment at which the target counts as left."""
        if self.kernel == "lsr":
            return phi_c(self.b)
        return PHI_KEEP if self.scheme == "cone" else 0.0

    def _check(self) -> None:
        for name, value, among in (
            ("kernel", self.kernel, KERNELS), ("scheme", self.scheme, SCHEMES), ("move", self.move, MOVES),
            ("protocol", self.protocol, PROTOCOLS),
        ):  # fmt: skip
            if value not in among:
                raise ValueError(f"{name} must be {' or '.join(map(repr, among))}, got {value!r}")
        for name, number, least in (
            ("N", self.N, 3), ("trials", self.trials, 1), ("sweeps", self.sweeps, 2), ("burn_in", self.burn_in, 0),
            ("replicas", self.replicas, 1),
        ):  # fmt: skip
            if number < least:
                raise ValueError(f"{name} must be at least {least}, got {number}")
        T = self._temperatures
        if T.ndim != 1 or not T.size or not np.all(T > 0) or not np.isfinite(T).all():
            raise ValueError(f"T must be one temperature above 0 or a list of them, got {self.T!r}")
        if self.protocol == "heat" and np.any(np.diff(T) <= 0):
            raise ValueError("protocol='heat' needs rising temperatures; sort them, or take protocol='restart'")
        if not self.alpha >= 0 or not math.isfinite(self.alpha):
            raise ValueError(f"alpha must be at least 0, got {self.alpha}")
        if not self.b > 0 or not self.beta_net > 0:
            raise ValueError(f"b and beta_net must be above 0, got {self.b:g} and {self.beta_net:g}")
        if self.scheme == "cone" and self.kernel == "lsr":
            raise ValueError("scheme='cone' is for LSE: LSR has no far patterns to sum; take scheme='full' or 'bulk'")
        if self.scheme != "full" and (self.law != "spherical" or self.rho):
            raise ValueError(
                f"scheme={self.scheme!r} draws independent spherical patterns; take scheme='full' for others"
            )
        if self.device != "cpu" and (self.move != "metropolis" or self.scheme != "full" or self.replicas > 1):
            raise ValueError(
                f"device={self.device!r} runs move='metropolis' of scheme='full' with one replica; take device='cpu'"
            )
        self._check_memory()

    def _check_memory(self) -> None:
        if self.scheme == "bulk":
            return
        held = math.exp(min(self.alpha * self.N, 700.0))
        if self.scheme == "cone":
            held = expected_in_cone(self.alpha, self.N)
        together = 1 if self.device == "cpu" else self.trials
        needed = 4.0 * held * self.N * together
        if needed > self.budget:
            instead = (
                "take scheme='cone'"
                if self.kernel == "lse" and self.scheme == "full"
                else "take scheme='bulk' or a smaller load"
            )
            raise ValueError(
                f"e^(alpha N) = {held:.3g} patterns need {needed:.3g} bytes, the budget is {self.budget:.3g}; {instead}"
            )

    def run(self) -> Trace:
        """All trials at all temperatures."""
        if self.device != "cpu":
            from upheld.memory.batched import run_batched

            return run_batched(self)
        shape = (len(self._temperatures), self.trials)
        record = {name: np.empty((*shape, self.sweeps), dtype=np.float32) for name in ("target", "other", "q12")}
        energy = np.empty((*shape, self.sweeps))
        acceptance, left, M = np.empty(shape), np.empty(shape, dtype=np.int64), np.empty(self.trials, dtype=np.int64)
        for trial, seeds in enumerate(np.random.SeedSequence(self.random_state).spawn(self.trials)):
            rng = np.random.default_rng(seeds)
            one = self._bulk_trial if self.scheme == "bulk" else self._trial
            M[trial] = one(rng, record, energy, acceptance, left, trial)
        return self.trace(**record, energy=energy, acceptance=acceptance, left_support=left, M=M)

    def trace(self, **recorded: Any) -> Trace:
        """A trace of this sampler."""
        return Trace(
            self.kernel, self.scheme, self.alpha, self.N, self.b, self.beta_net, self._temperatures, seed=self.random_state,
            **recorded,
        )  # fmt: skip

    def first_alignment(self, rng: np.random.Generator, size: int) -> FloatArray:
        low, high = self.start
        if self.kernel == "lsr":
            low = max(low, self.wall + 0.02 * (1 - self.wall))
        return rng.uniform(low, high, size)

    def sigma(self, T: float) -> float:
        """The paper's Metropolis step."""
        return self.step or 2.4 * T / math.sqrt(self.N)

    def _trial(
        self, rng: np.random.Generator, record: dict[str, Any], energy: Any, acceptance: Any, left: Any, trial: int
    ) -> int:
        from upheld.memory import _kernels

        lse = self.kernel == "lse"
        if self.scheme == "cone":
            patterns = draw_cone(self.alpha, self.N, rng=rng)
            rest = log_bulk(self.alpha, self.N, self.beta_net)
        else:
            patterns = draw_patterns(self.M, self.N, rng=rng, law=self.law, rho=self.rho)
            rest = -math.inf if lse else 0.0
        transposed = np.ascontiguousarray(patterns.T)
        by_pairs = self.move == "pair"
        step, x = self.step or FIRST_DELTA, None
        for t, T in enumerate(self._temperatures):
            if x is None or self.protocol == "restart":
                first = np.broadcast_to(on_sphere(patterns[0]), (self.replicas, self.N))
                x = near(first, self.first_alignment(rng, self.replicas), rng=rng)
            target, other, heights = (np.empty((self.replicas, self.sweeps)) for _ in range(3))
            q12 = np.empty(self.sweeps)
            step, acceptance[t, trial], left[t, trial] = _kernels.chain(
                _kernels.LSE if lse else _kernels.LSR, self.beta_net if lse else self.b, rest, T, x, transposed, by_pairs,
                step if by_pairs else self.sigma(float(T)), self.burn_in, self.sweeps, rng, self.wall, self.stop_when_left,
                target, other, heights, q12,
            )  # fmt: skip
            record["target"][t, trial], record["other"][t, trial] = target[0], other[0]
            record["q12"][t, trial], energy[t, trial] = q12, heights[0]
        return len(patterns)

    def _bulk_trial(
        self, rng: np.random.Generator, record: dict[str, Any], energy: Any, acceptance: Any, left: Any, trial: int
    ) -> int:
        from upheld.memory import _kernels

        lse, phi = self.kernel == "lse", None
        rest = bulk.rest(self.alpha, self.N, self.kernel, self.beta_net, self.b)
        for t, T in enumerate(self._temperatures):
            if phi is None or self.protocol == "restart":
                phi = float(phi_eq(T, self.kernel, self.b))
            s = bulk.step(float(T), self.N, self.kernel, self.b) / math.sqrt(self.N)
            target, heights = np.empty(self.sweeps), np.empty(self.sweeps)
            phi, acceptance[t, trial], left[t, trial] = _kernels.alignment_chain(
                _kernels.LSE if lse else _kernels.LSR, self.beta_net if lse else self.b, self.N, rest, T, phi, s,
                self.burn_in, self.sweeps, rng, self.wall, target, heights,
            )  # fmt: skip
            record["target"][t, trial], energy[t, trial] = target, heights
            record["other"][t, trial], record["q12"][t, trial] = -1.0, np.nan
        return 1
