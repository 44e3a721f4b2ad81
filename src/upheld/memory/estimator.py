"""A store of vectors that recalls the right one from a damaged cue, or refuses; in the conventions of scikit-learn."""

from __future__ import annotations

import math
import warnings
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from upheld.memory.data import effective_dimension, on_sphere
from upheld.memory.geometry import FloatArray
from upheld.memory.recall import MAX_STEPS, ON_EMPTY, TOLERANCE
from upheld.memory.support import Fixed, fixed_points, nearest, squared_distances
from upheld.memory.theory import KERNELS, alpha_c, alpha_th

CANDIDATES, FOLDS, MOST_TUNED = 30, 5, 1500
SEPARATION = 0.95


class AssociativeMemory(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Dense associative memory over any vectors.

    Parameters
    ----------
    kernel : "lsr" (compact support: refuses by itself) or "lse" (softmax)
    beta : inverse variance; LSR's support has the radius sqrt(2/beta). "auto": the best of 30 values by five-fold recall minus wrong
        recall, where each fold's rows are cues that are not in store; "separation" (LSR): radius 0.95 times the smallest distance of two
        distinct patterns, so that each is its own fixed point (near-duplicates make it tiny)
    normalize : put rows on the sphere of radius sqrt(N); False keeps Euclidean geometry. `beta` is meant in the space used.
    on_empty : of cues outside every support: "abstain" (index -1, the cue comes back), "nearest", "error"
    backend : "torch", or "faiss" (LSR; touches the support only)
    cue_noise : noise of the cues that ``beta="auto"`` tunes for, in units of the rows' root mean square
    max_steps, tol : of recall, see `upheld.memory.recall`
    random_state : of the tuning

    Attributes
    ----------
    patterns_ : (M, N) in the space used
    beta_, radius_ : what was chosen
    effective_dimension_ : participation ratio of the spectrum, see `upheld.memory.data`
    load_ : alpha = ln M / effective dimension
    margin_ : the boundary's load less `load_`, exact density, T = 0; see `margin`

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 64))
    >>> memory = AssociativeMemory(random_state=0).fit(X)
    >>> cues = X[:3] + 0.2 * rng.normal(size=(3, 64))
    >>> memory.predict(np.vstack([cues, rng.normal(size=(1, 64))])).tolist()
    [0, 1, 2, -1]
    """

    def __init__(
        self,
        kernel: str = "lsr",
        beta: float | str = "auto",
        normalize: bool = True,
        on_empty: str = "abstain",
        backend: str = "torch",
        cue_noise: float = 0.2,
        max_steps: int = MAX_STEPS,
        tol: float = TOLERANCE,
        random_state: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.beta = beta
        self.normalize = normalize
        self.on_empty = on_empty
        self.backend = backend
        self.cue_noise = cue_noise
        self.max_steps = max_steps
        self.tol = tol
        self.random_state = random_state

    # -- what is stored

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Store the rows of X (M, N).

        Raises
        ------
        ValueError
            On NaN, on zero rows (with ``normalize=True``), or a parameter outside its range.
        """
        self._check_parameters()
        self._store(self._used(validate_data(self, X, dtype=np.float64, ensure_min_samples=2)))
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Store further rows; beta stays as it is."""
        if not hasattr(self, "patterns_"):
            return self.fit(X)
        new = self._used(validate_data(self, X, dtype=np.float64, reset=False))
        self._store(np.vstack([self.patterns_, new]), beta=self.beta_)
        return self

    def delete(self, indices: ArrayLike) -> Self:
        """Forget patterns by index; those behind them move up."""
        check_is_fitted(self)
        kept = np.delete(self.patterns_, np.asarray(indices, dtype=int), axis=0)
        if len(kept) < 2:
            raise ValueError(f"{len(kept)} patterns would be left; a memory needs two")
        self._store(kept, beta=self.beta_)
        return self

    def _store(self, patterns: FloatArray, beta: float | None = None) -> None:
        self.patterns_ = patterns
        distinct = np.unique(patterns, axis=0)
        if len(distinct) < len(patterns):
            warnings.warn(
                f"{len(patterns) - len(distinct)} of {len(patterns)} patterns are duplicates; they recall one of their kind",
                stacklevel=3,
            )
        self.effective_dimension_ = effective_dimension(patterns) if len(distinct) > 1 else 1.0
        self.beta_ = beta if beta is not None else self._chosen_beta(distinct)
        self.load_ = math.log(len(patterns)) / self.effective_dimension_

    def _chosen_beta(self, distinct: FloatArray) -> float:
        if self.beta == "separation":
            if len(distinct) < 2:
                raise ValueError("all patterns are equal: there is no separation; give beta a number")
            return 2 / (SEPARATION * float(_neighbour_distances(distinct).min())) ** 2
        return self._tuned(distinct) if self.beta == "auto" else float(self.beta)

    def _tuned(self, distinct: FloatArray) -> float:
        """The candidate of the highest five-fold recall minus wrong recall."""
        rng = np.random.default_rng(self.random_state)
        rows = distinct[rng.permutation(len(distinct))[:MOST_TUNED]]
        if len(rows) < 2 * FOLDS:
            return 2 / (SEPARATION * float(_neighbour_distances(distinct).min())) ** 2
        candidates = beta_candidates(rows, self.kernel)
        scores = np.zeros(len(candidates))
        for fold in np.array_split(np.arange(len(rows)), FOLDS):
            stored, foreign = np.delete(rows, fold, axis=0), rows[fold]
            known = rng.choice(len(stored), len(foreign), replace=False)
            cues = np.vstack([stored[known], foreign])
            cues = cues + self.cue_noise * math.sqrt((rows**2).mean()) * rng.standard_normal(cues.shape)
            truth = np.concatenate([known, np.full(len(foreign), -1)])
            cues = on_sphere(cues) if self.normalize else cues
            distances = squared_distances(cues, stored) if self.backend == "torch" else None
            for place, beta in enumerate(candidates):
                found = _indices(self._fixed(cues, stored, beta, "abstain", distances), stored)
                scores[place] += recall_less_wrong(found, truth)
        return float(candidates[int(scores.argmax())])

    # -- what is recalled

    def transform(self, X: ArrayLike) -> FloatArray:
        """What the cues X (B, N) recall, in the space used; cues that were refused come back as they are there."""
        return self._recalled(X).x

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Index (B,) of the pattern that each cue recalls, -1 where it was refused."""
        found = self._recalled(X)
        return _indices(found, self.patterns_, answered=self.on_empty == "nearest")

    def recall(self, X: ArrayLike) -> Fixed:
        """Fixed points with iterations and the cues outside every support."""
        return self._recalled(X)

    def complete(self, X: ArrayLike, mask: ArrayLike) -> FloatArray:
        """Rows X with their unknown components filled in from the pattern that the known ones recall.

        Parameters
        ----------
        mask : (B, N) or (N,), True where a component of X is known; the others of X are ignored

        A first look takes the nearest pattern by the known components alone, scaled to the full number; recall goes on from there.
        """
        check_is_fitted(self)
        X = np.asarray(X, dtype=float)
        known = np.broadcast_to(np.asarray(mask, dtype=bool), X.shape)
        if X.ndim != 2 or X.shape[1] != self.n_features_in_:
            raise ValueError(f"X has shape {X.shape}, the patterns are {self.n_features_in_} wide")
        if not np.isfinite(X[known]).all() or not known.any(1).all():
            raise ValueError("each row needs a known component, and known components must be finite")
        start = np.where(known, X, 0.0)
        if self.normalize:
            start = start / np.linalg.norm(start, axis=1, keepdims=True) * np.sqrt(known.sum(1, keepdims=True))
        cross = start @ self.patterns_.T
        distances = (start**2).sum(1)[:, None] - 2 * cross + known.astype(float) @ (self.patterns_**2).T
        filled = np.where(known, start, self.patterns_[distances.argmin(1)])
        return self._fixed(filled, self.patterns_, self.beta_, self.on_empty).x

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """ln of the kernel sum at each row, -inf outside every support: -beta times the energy."""
        check_is_fitted(self)
        import torch

        from upheld.memory.energies import LSEEnergy, LSREnergy

        energy = LSEEnergy(self.beta_) if self.kernel == "lse" else LSREnergy(beta=self.beta_)
        cues = torch.from_numpy(self._cues(X))
        return np.asarray(-self.beta_ * energy(cues, torch.from_numpy(self.patterns_)).numpy())

    def calibrate(self, cues: ArrayLike, indices: ArrayLike, coverage: float = 0.95) -> Self:
        """Set LSR's radius so that a further cue of a stored row lies within it of its own pattern with probability `coverage`.

        Split conformal: the ceil((n+1) coverage)-th smallest of the distances of held-out cues (B, N) to the patterns `indices` (B,) they
        were made from. Fewer than 1/(1-coverage) cues cannot promise it.
        """
        check_is_fitted(self)
        if self.kernel != "lsr":
            raise ValueError("calibrate sets the radius of LSR's support; the LSE kernel has none")
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must lie in (0, 1), got {coverage}")
        distances = np.sort(np.linalg.norm(self._cues(cues) - self.patterns_[np.asarray(indices, dtype=int)], axis=1))
        rank = math.ceil((len(distances) + 1) * coverage)
        if rank > len(distances):
            raise ValueError(
                f"{len(distances)} cues cannot promise {coverage:.0%}; give {math.ceil(coverage / (1 - coverage))} or lower coverage"
            )
        self.beta_ = 2 / (float(distances[rank - 1]) * (1 + 1e-12)) ** 2
        return self

    # -- how far from failure

    @property
    def radius_(self) -> float:
        """sqrt(2/beta): of LSR's support."""
        check_is_fitted(self)
        return math.sqrt(2 / self.beta_)

    @property
    def margin_(self) -> float:
        """`margin` at cue noise 0."""
        return self.margin()

    def margin(self, noise: float = 0.0) -> float:
        """Load of the boundary less the store's, above 0 where retrieval is expected; exact density of alignments.

        LSR: alpha_th of the support, for cues (noise in units of the rows' root mean square) that lie in it, else minus the load; LSE:
        equal depth, at the temperature whose equilibrium alignment is the cue's, 1/sqrt(1 + noise^2). Written for independent patterns
        in `effective_dimension_` dimensions on the sphere.
        """
        return self._boundary(noise) - self.load_

    def sufficient_dimension(self, noise: float = 0.0) -> float:
        """Effective dimension in which so many patterns would lie at the boundary; inf where none would do."""
        boundary = self._boundary(noise)
        return math.log(len(self.patterns_)) / boundary if boundary > 0 else math.inf

    def _boundary(self, noise: float) -> float:
        check_is_fitted(self)
        if noise < 0:
            raise ValueError(f"noise must be at least 0, got {noise}")
        phi = 1 / math.sqrt(1 + noise**2)
        mean_square = float((self.patterns_**2).sum(1).mean())
        if self.kernel == "lse":
            return float(alpha_c((1 - phi**2) / phi, "lse", self.beta_ * mean_square / self.effective_dimension_))
        b = self.beta_ * mean_square
        if phi <= 1 - 1 / b:
            return 0.0
        return float(alpha_th(b)) if b > 1 else 0.0

    def emergent_minima(self) -> pd.DataFrame:
        """Fixed points that patterns fall to and that are no pattern: how many fall there, and how many the support holds (LSR)."""
        found = self._fixed(self.patterns_, self.patterns_, self.beta_, "abstain")
        moved = np.linalg.norm(found.x - self.patterns_, axis=1) > 1e-6 * math.sqrt(self.patterns_.shape[1])
        states, counts = np.unique(found.x[moved].round(6), axis=0, return_counts=True)
        support = [int(found.support[moved][(found.x[moved].round(6) == state).all(1)][0]) for state in states]
        return pd.DataFrame({"patterns": counts, "support": support, "state": list(states)})

    # -- parts

    def _used(self, X: FloatArray) -> FloatArray:
        return on_sphere(X) if self.normalize else np.asarray(X, dtype=float)

    def _cues(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return self._used(validate_data(self, X, dtype=np.float64, reset=False))

    def _recalled(self, X: ArrayLike) -> Fixed:
        return self._fixed(self._cues(X), self.patterns_, self.beta_, self.on_empty)

    def _fixed(
        self, cues: FloatArray, patterns: FloatArray, beta: float, on_empty: str, distances: FloatArray | None = None
    ) -> Fixed:
        return fixed_points(
            cues, patterns, self.kernel, beta, sphere=self.normalize, on_empty=on_empty, backend=self.backend,
            max_steps=self.max_steps, tol=self.tol, distances=distances,
        )  # fmt: skip

    def _check_parameters(self) -> None:
        for name, value, among in (
            ("kernel", self.kernel, KERNELS), ("on_empty", self.on_empty, ON_EMPTY), ("backend", self.backend, ("torch", "faiss")),
        ):  # fmt: skip
            if value not in among:
                raise ValueError(f"{name} must be {' or '.join(map(repr, among))}, got {value!r}")
        if isinstance(self.beta, str):
            if self.beta not in ("auto", "separation"):
                raise ValueError(f"beta must be a number above 0, 'auto' or 'separation', got {self.beta!r}")
            if self.beta == "separation" and self.kernel == "lse":
                raise ValueError(
                    "beta='separation' sets the radius of LSR's support; take beta='auto' with the LSE kernel"
                )
        elif not self.beta > 0:
            raise ValueError(f"beta must be above 0, got {self.beta}")
        if self.backend == "faiss" and self.kernel == "lse":
            raise ValueError(
                "backend='faiss' searches LSR's support; the LSE kernel weighs all patterns: take backend='torch'"
            )


def recall_less_wrong(found: NDArray[Any], truth: NDArray[Any]) -> float:
    """Share of known cues (truth >= 0) that recall their own, less the share of all cues that recall a wrong one."""
    known = truth >= 0
    right = float((found[known] == truth[known]).mean())
    return right - float(((found >= 0) & (found != truth)).mean())


def beta_candidates(rows: FloatArray, kernel: str, count: int = CANDIDATES) -> FloatArray:
    """Values of beta round the scale of the distances between neighbours: radii of LSR, sharpness of LSE."""
    typical = float(np.median(_neighbour_distances(rows)))
    if kernel == "lsr":
        return np.asarray(2 / np.geomspace(0.2 * typical, 2.0 * typical, count) ** 2)
    return np.asarray(np.geomspace(0.5, 500.0, count) / typical**2)


def _neighbour_distances(rows: FloatArray) -> FloatArray:
    from sklearn.neighbors import NearestNeighbors

    return np.asarray(NearestNeighbors(n_neighbors=2).fit(rows).kneighbors(rows)[0][:, 1])


def _indices(found: Fixed, patterns: FloatArray, *, answered: bool = False) -> NDArray[np.int64]:
    index = nearest(found.x, patterns)
    return index if answered else np.where(found.empty, -1, index)
