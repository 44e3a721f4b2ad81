"""How sure is it? Stability selection, bootstrap intervals, and two null references for the influences.

(i)   Stability: B half-samples, stratified by group; the share of them in which a variable is selected.
(ii)  Bootstrap: B resamples with replacement within each group; percentile interval of w_i.
(iii) Null references: B surrogate data sets; the p-value of variable i compares w_i with the distribution of max_j w_j, so
      it controls the family-wise error,  p_i = (1 + #{b : max_j w_j^(b) >= w_i}) / (B + 1).

      "permutation" permutes each column independently within each group: the null of mutual independence, not of "correlated
          without hubs".
      "rotation" maps the standardised samples Z_k -> Z_k Q with one Haar-random rotation Q for all groups: the spectra and
          the geometry between the groups stay, the directions are spread over all variables. The harder null.

**Resampling lowers the rank.** Half-samples have joint rank sum floor(n_k / 2) - K, a bootstrap about 0.63 sum n_k - K. When
a resample would be degenerate (see `upheld.hubs.degeneracy`) these functions refuse and say how many variables are
admissible; degenerate fits are never averaged. Everything here is ours; none of it replaces rule (4) of the detector.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
import pandas as pd
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from numpy.typing import ArrayLike, NDArray

from upheld.hubs.covariance import RANK_LIMITED
from upheld.hubs.degeneracy import DegenerateJointNullSpaceError, JointNullSpaceWarning
from upheld.hubs.detector import JointHubs, dimension
from upheld.hubs.samples import MIN_SAMPLES, Samples, check_numeric, check_samples, split_by_group, stack_groups

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Data = ArrayLike | pd.DataFrame | Sequence[ArrayLike] | Mapping[Any, ArrayLike]
NullKind = Literal["permutation", "rotation"]
Tick = Callable[[], object]


@dataclass(frozen=True)
class Stability:
    """(p,) share of the half-samples in which each variable was selected."""

    frequency: FloatArray
    n_resamples: int


@dataclass(frozen=True)
class BootstrapInterval:
    """(p,) ends of the percentile interval of each influence."""

    low: FloatArray
    high: FloatArray
    level: float
    n_resamples: int


@dataclass(frozen=True)
class NullReference:
    """(p,) family-wise p-values, and the (B,) largest influences of the surrogate data sets."""

    kind: NullKind
    p_values: FloatArray
    maxima: FloatArray

    def line(self, level: float = 0.05) -> float:
        """The influence above which a variable is significant at family-wise `level`."""
        return float(np.quantile(self.maxima, 1 - level, method="higher"))


def stability_selection(
    estimator: JointHubs,
    X: Data,
    *,
    groups: ArrayLike | None = None,
    n_resamples: int = 100,
    random_state: int | None = 0,
    tick: Tick | None = None,
) -> Stability:
    """Selection frequency of every variable over half-samples of each group.

    Parameters
    ----------
    estimator : its parameters are used (``n_jobs`` too), not its fit
    X, groups : (n, p) and (n,), or one (n_k, p) matrix per group as a list or mapping
    random_state : seed; the result does not depend on ``n_jobs``
    tick : called after every resample, for a display of the progress

    Raises
    ------
    DegenerateJointNullSpaceError
        If half-samples are too small for p variables; the message gives the largest admissible p.
    """
    samples = _samples(X, groups)
    sizes = [len(X_k) // 2 for X_k in samples.Xs]
    smallest = int(np.argmin(sizes))
    if sizes[smallest] < MIN_SAMPLES:
        raise ValueError(
            f"half of group {samples.labels[smallest]!r} is {sizes[smallest]} samples, at least {MIN_SAMPLES} are needed; "
            "merge small groups or drop them"
        )
    rows = [
        [np.sort(rng.permutation(len(X_k))[:size]) for X_k, size in zip(samples.Xs, sizes, strict=True)]
        for rng in _streams(random_state, n_resamples)
    ]
    _, selected = _refit(estimator, samples, rows, "half-samples", tick)
    return Stability(selected.mean(axis=0), n_resamples)


def bootstrap_interval(
    estimator: JointHubs,
    X: Data,
    *,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    n_resamples: int = 200,
    random_state: int | None = 0,
    tick: Tick | None = None,
) -> BootstrapInterval:
    """Percentile interval of every influence; parameters and errors as in `stability_selection`.

    Repeated samples lower the rank, which shifts influences; read the interval as spread, not as exact coverage.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level}")
    samples = _samples(X, groups)
    rows = [
        [rng.integers(len(X_k), size=len(X_k)) for X_k in samples.Xs] for rng in _streams(random_state, n_resamples)
    ]
    influences, _ = _refit(estimator, samples, rows, "bootstrap resamples", tick)
    low, high = np.quantile(influences, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return BootstrapInterval(low, high, level, n_resamples)


def null_reference(
    estimator: JointHubs,
    X: Data,
    *,
    groups: ArrayLike | None = None,
    kind: NullKind = "permutation",
    n_resamples: int = 200,
    random_state: int | None = 0,
    tick: Tick | None = None,
) -> NullReference:
    """Family-wise p-values against one of the two nulls; parameters and errors as in `stability_selection`."""
    if kind not in SURROGATES:
        raise ValueError(f"kind must be 'permutation' or 'rotation', got {kind!r}")
    samples = _samples(X, groups)
    _check_rank(estimator, samples, samples.joint_rank, "the samples")
    with _quiet():
        observed, _ = estimator.influence_of(samples)
    calls = (delayed(_surrogate_maximum)(estimator, samples, kind, rng) for rng in _streams(random_state, n_resamples))
    maxima = np.array(list(_results(calls, estimator.n_jobs, tick)))
    p_values = (1 + np.sum(maxima[:, None] >= observed[None, :], axis=0)) / (n_resamples + 1)
    return NullReference(kind, p_values, maxima)


def permuted(Xs: Sequence[FloatArray], rng: np.random.Generator) -> list[FloatArray]:
    """Each column permuted on its own within each group."""
    return [rng.permuted(X, axis=0) for X in Xs]


def rotated(Xs: Sequence[FloatArray], rng: np.random.Generator) -> list[FloatArray]:
    """Standardised samples of all groups, turned by one Haar-random rotation of the variables."""
    Q, R = np.linalg.qr(rng.standard_normal((Xs[0].shape[1],) * 2))
    Q = Q * np.sign(np.diag(R))
    return [((X - X.mean(axis=0)) / X.std(axis=0, ddof=1)) @ Q for X in Xs]


SURROGATES: dict[str, Callable[[Sequence[FloatArray], np.random.Generator], list[FloatArray]]] = {
    "permutation": permuted,
    "rotation": rotated,
}


def _surrogate_maximum(estimator: JointHubs, samples: Samples, kind: NullKind, rng: np.random.Generator) -> float:
    surrogate = Samples(SURROGATES[kind](samples.Xs, rng), samples.labels, samples.names)
    with _quiet():
        return float(estimator.influence_of(surrogate)[0].max())


def _refit(
    estimator: JointHubs, samples: Samples, rows: Sequence[Sequence[IntArray]], what: str, tick: Tick | None
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Influences (B, p) and selections (B, p) of all resamples."""
    _check_rank(estimator, samples, min(_chosen(samples, resample).joint_rank for resample in rows), what)
    calls = (delayed(_resample)(estimator, samples, resample, what) for resample in rows)
    results = list(_results(calls, estimator.n_jobs, tick))
    return np.array([influence for influence, _ in results]), np.array([selected for _, selected in results])


def _results(calls: Iterable[Any], n_jobs: int | None, tick: Tick | None) -> Iterator[Any]:
    """Of delayed calls, in their order, however many run at a time."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be a number of processes, None for one, -1 for one a core, got {n_jobs!r}")
    for result in Parallel(n_jobs=n_jobs, return_as="generator")(calls):
        if tick is not None:
            tick()
        yield result


def _resample(
    estimator: JointHubs, samples: Samples, rows: Sequence[IntArray], what: str
) -> tuple[FloatArray, NDArray[np.bool_]]:
    resample = _chosen(samples, rows)
    try:
        check_samples(resample)
    except ValueError as error:
        raise ValueError(f"not all {what} can be fitted: in one of them {error}") from error
    with _quiet():
        return estimator.influence_of(resample)


def _chosen(samples: Samples, rows: Sequence[IntArray]) -> Samples:
    return Samples([X[chosen] for X, chosen in zip(samples.Xs, rows, strict=True)], samples.labels, samples.names)


def _check_rank(estimator: JointHubs, samples: Samples, rank: int, what: str) -> None:
    """Refuse before the first fit if the smallest resample is degenerate; warn once if it is partly so."""
    if not (isinstance(estimator.covariance, str) and estimator.covariance in RANK_LIMITED):
        return
    p = estimator.n_screened(samples.Xs[0].shape[1], rank)
    s = dimension(estimator.n_components, p)
    if p - rank >= s:
        remedy = f"Keep at most {rank} variables (screen={rank}, or choose them beforehand)"
        raise DegenerateJointNullSpaceError(
            f"{what} have joint rank {rank}, too few for p={p} variables and n_components={s}: their fits would be "
            f"arbitrary and are not averaged. {remedy if rank > 1 else 'Collect more samples, or merge small groups'}"
        )
    if p > rank:
        warnings.warn(
            f"{what} have joint rank {rank} for p={p} variables: {p - rank} of the {s} components reflect the sample "
            f"size, not the networks; at most {rank} variables avoid this",
            JointNullSpaceWarning,
            stacklevel=4,
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """One warning for all resamples has been given; the same one from every fit would drown it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JointNullSpaceWarning)
        yield


def _streams(random_state: int | None, n: int) -> list[np.random.Generator]:
    if not isinstance(n, Integral):
        raise TypeError(f"n_resamples must be a whole number, got {n!r}")
    if n < 1:
        raise ValueError(f"n_resamples must be at least 1, got {n}")
    return [np.random.default_rng(seed) for seed in np.random.SeedSequence(random_state).spawn(n)]


def _samples(X: Data, groups: ArrayLike | None) -> Samples:
    if groups is None:
        if isinstance(X, (pd.DataFrame, np.ndarray)) and np.ndim(X) == 2:
            raise ValueError("one table was given without group labels; pass groups, or one matrix per group")
        samples = stack_groups(X)  # type: ignore[arg-type]
    else:
        check_numeric(X)
        names = [str(name) for name in X.columns] if isinstance(X, pd.DataFrame) else None
        samples = split_by_group(np.asarray(X, dtype=float), groups, names)
    check_samples(samples)
    return samples
