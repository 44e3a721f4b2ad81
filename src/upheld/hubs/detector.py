"""JIC-HD as an estimator: which variables are hubs in every group's network.

The pipeline: one symmetric matrix S_k per group (`upheld.hubs.covariance`), screening if asked for, the degeneracy check,
the joint minimax eigenspace (1) with influences w_i (2) (`upheld.hubs.eigenspaces`), and the authors' screening rule

    select i  iff  w_i > mean(w) + 2 sd(w),     sd with divisor p - 1                                              (4)

By the one-sided Chebyshev inequality (4) can never return more than p/5 variables. It is a rule of thumb, not a test;
`upheld.hubs.uncertainty` has selection frequencies, bootstrap intervals and p-values to put beside it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from upheld.hubs.covariance import FACTORS, RANK_LIMITED, CovarianceFunction, covariance_function
from upheld.hubs.degeneracy import check_flat_directions, check_joint_null_space
from upheld.hubs.eigenspaces import JointEigenspace, checked_matrices, joint_eigenspace
from upheld.hubs.inverse_components import Fallback, identified_influence, n_components_by_ratio
from upheld.hubs.rowspace import lift, row_space
from upheld.hubs.samples import Samples, check_numeric, check_samples, split_by_group, stack_groups, stack_matrices
from upheld.hubs.screening import default_size, matrix_statistic, row_statistic, screen_variables
from upheld.hubs.threads import few_threads

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Selection = Literal["2sd"] | int

SCALE_RATIO = 10.0


class _Hubs(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Selection by influence, shared by the joint and the single-network detector."""

    influence_: FloatArray
    screened_out_: NDArray[np.bool_]

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self._selected

    def _select(self, selection: Selection) -> None:
        ranked = ~self.screened_out_
        self._selected = np.zeros(len(self.influence_), dtype=bool)
        self._selected[ranked] = select_by_influence(self.influence_[ranked], selection)
        hubs = np.flatnonzero(self._selected)
        self.hubs_ = hubs[np.argsort(-self.influence_[hubs], kind="stable")]

    def _keep_names(self, columns: Sequence[str] | pd.Index | None, p: int) -> None:
        self.n_features_in_ = p
        if columns is not None:
            self.feature_names_in_ = np.asarray(columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_


class JointHubs(_Hubs):
    """Common hubs of K Gaussian graphical models over the same p variables, without estimating any network (JIC-HD).

    Parameters
    ----------
    n_components : dimension s of the joint eigenspace; "sqrt" is floor(sqrt(p)), the authors' deliberate over-estimate
    criterion : "trace" is equation (1); "vector" takes one joint eigenvector at a time
    solver : "dual" (certified) or "stiefel" (the authors' descent, for comparison)
    covariance : "correlation", "covariance", "threshold", "ledoit-wolf", "spearman", or a callable (n, p) -> (p, p)
    screen : keep only this many variables with the strongest correlations in every group; "auto" is
        floor(0.8 sum(n_k - 1)) when p exceeds sum(n_k - 1). The others get influence 0 and are flagged
    screen_statistic : "max", "l1" or "l2" norm of a variable's off-diagonal row
    selection : "2sd" is rule (4); an integer selects that many variables with the largest influence
    at_least : m, look for hubs common to at least m groups instead of all
    tol, max_iter : relative primal-dual gap to reach, and eigendecompositions to spend on it
    n_starts : random starts of the "stiefel" solver
    n_jobs : processes for the resampling of `upheld.hubs.uncertainty`
    random_state : seed of the random starts

    Attributes
    ----------
    influence_ : (p,) w of equation (2), between 0 and 1, summing to s
    hubs_ : indices of the selected variables, largest influence first; ``get_support()`` is the mask
    components_ : (s, p) orthonormal rows; only their span is determined
    projector_ : (p, p) projector on the joint eigenspace
    group_influence_ : (K, p) influence of each variable in each group's own network; with fewer than p + 1 - s samples in a
        group, over the whole null space of its matrix, scaled to sum to s
    groups_ : labels of the groups; group_weights_ : (K,) which group binds
    objective_, lower_bound_, relative_gap_, certified_, status_ : the certificate
    eigengap_ : gap behind the s lowest eigenvalues of the weighted matrix; spectrum_ : all its eigenvalues
    screened_out_ : (p,) mask of the variables that screening left out
    n_samples_ : samples per group; n_iter_ : eigendecompositions spent; n_features_in_, feature_names_in_

    Notes
    -----
    Source: "Identifying Common Hubs in Multiple Gaussian Graphical Models" (JIC-HD, ICML 2026) and the authors'
    simulation code; the dual solver, the certificate, the degeneracy policy and `at_least` are ours.

    Examples
    --------
    >>> from upheld.hubs import JointHubs
    >>> from upheld.hubs.data import make_hub_networks
    >>> networks = make_hub_networks(60, 240, n_common=4, n_individual=4, random_state=0)
    >>> X, groups = networks.stacked()
    >>> hubs = JointHubs().fit(X, groups=groups)
    >>> set(hubs.hubs_) == set(networks.common), hubs.certified_
    (True, True)
    """

    def __init__(
        self,
        n_components: Literal["sqrt"] | int = "sqrt",
        *,
        criterion: Literal["trace", "vector"] = "trace",
        solver: Literal["dual", "stiefel"] = "dual",
        covariance: str | CovarianceFunction = "correlation",
        screen: int | Literal["auto"] | None = None,
        screen_statistic: Literal["max", "l1", "l2"] = "max",
        selection: Selection = "2sd",
        at_least: int | None = None,
        tol: float = 1e-4,
        max_iter: int = 200,
        n_starts: int = 10,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.criterion = criterion
        self.solver = solver
        self.covariance = covariance
        self.screen = screen
        self.screen_statistic = screen_statistic
        self.selection = selection
        self.at_least = at_least
        self.tol = tol
        self.max_iter = max_iter
        self.n_starts = n_starts
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(
        self, X: ArrayLike | pd.DataFrame, y: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> JointHubs:
        """Find the common hubs of the groups of rows of one table.

        Parameters
        ----------
        X : (n, p) samples by variables; a DataFrame names the variables
        y : (n,) group labels, taken when `groups` is not given, so that the detector works in a scikit-learn pipeline
        groups : (n,) group labels

        Raises
        ------
        ValueError
            Naming the group and the variable: a group with fewer than 3 samples, a single group, a constant column in
            a group, values that are not finite, columns that are not numeric or bear the same name.
        DegenerateJointNullSpaceError
            If there are too few samples for p variables (see `upheld.hubs.degeneracy`).
        """
        labels = y if groups is None else groups
        if labels is None:
            raise ValueError(
                "requires y to be passed, but the target y is None: pass the group label of every row as `groups` (or y)"
            )
        check_numeric(X)
        array = validate_data(
            self, X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=2, ensure_min_features=2
        )
        return self._fit(split_by_group(array, labels, getattr(self, "feature_names_in_", None)))

    def fit_many(self, Xs: Sequence[ArrayLike | pd.DataFrame] | Mapping[Any, ArrayLike | pd.DataFrame]) -> JointHubs:
        """As `fit`, from one matrix (n_k, p) per group: a list, or a mapping from group label to matrix."""
        samples = stack_groups(Xs)
        self._keep_names(samples.names, samples.Xs[0].shape[1])
        return self._fit(samples)

    def fit_covariances(
        self, S: Sequence[ArrayLike] | Mapping[Any, ArrayLike] | NDArray[Any], *, n_samples: int | Sequence[int] | None
    ) -> JointHubs:
        """As `fit`, from the groups' symmetric matrices (p, p); `covariance` is not used.

        Parameters
        ----------
        n_samples : samples behind each matrix, one number or one per group; None for population matrices

        Raises
        ------
        ValueError
            If the matrices are not square, finite, symmetric and of the same variables, or `n_samples` is of another length.
        DegenerateJointNullSpaceError
            As `fit`.
        """
        labels, matrices, names = stack_matrices(S)
        self._check_groups(len(matrices))
        array = checked_matrices(matrices)
        K, p, _ = array.shape
        counts = None if n_samples is None else np.asarray(n_samples, dtype=int)
        if counts is not None and counts.size not in (1, K):
            raise ValueError(f"n_samples holds {counts.size} numbers for {K} matrices; give one, or one for each")
        sizes = None if counts is None else np.broadcast_to(counts, (K,))
        joint_rank = None if sizes is None else int(np.sum(sizes - 1))
        self._keep_names(names, p)
        kept = self._screen(p, joint_rank, lambda norm: matrix_statistic(array, norm))
        reduced = array[np.ix_(np.arange(K), kept, kept)]
        s = dimension(self.n_components, len(kept))
        check_flat_directions(reduced, s, joint_rank)
        solution = self._solve(reduced, s)
        return self._finish(solution, kept, p, [identified_influence(S_k, s) for S_k in reduced], labels, sizes)

    @property
    def projector_(self) -> FloatArray:
        check_is_fitted(self)
        return self.components_.T @ self.components_

    def _fit(self, samples: Samples) -> JointHubs:
        self._check_groups(len(samples.Xs))
        check_samples(samples)
        p = samples.Xs[0].shape[1]
        with few_threads(p):
            solution, kept, S = self._solution(samples)
            single = [identified_influence(S_k, len(solution.components)) for S_k in S]
        return self._finish(solution, kept, p, single, samples.labels, np.array([len(X) for X in samples.Xs]))

    def influence_of(self, samples: Samples) -> tuple[FloatArray, NDArray[np.bool_]]:
        """(p,) influences and selection mask for other samples, leaving the fit as it is; for resampling."""
        check_samples(samples)
        p = samples.Xs[0].shape[1]
        with few_threads(p):
            solution, kept, _ = self._solution(samples)
        influence, selected = np.zeros(p), np.zeros(p, dtype=bool)
        influence[kept] = solution.influence
        selected[kept] = select_by_influence(solution.influence, self.selection)
        return influence, selected

    def n_screened(self, p: int, joint_rank: int | None) -> int:
        """Number of variables that enter the eigenproblem, out of p, with joint degrees of freedom `joint_rank`."""
        size = self.screen
        if size == "auto":
            size = default_size(joint_rank) if joint_rank is not None and p > joint_rank else None
        if size is None:
            return p
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 2:
            raise ValueError(f"screen must be None, 'auto' or a number of variables of at least 2, got {self.screen!r}")
        return min(int(size), p)

    def _solution(self, samples: Samples) -> tuple[JointEigenspace, IntArray, FloatArray]:
        """Joint eigenspace of the variables that screening keeps, their indices, and the matrices S_k."""
        joint_rank, p = samples.joint_rank, samples.Xs[0].shape[1]
        kept = self._screen(p, joint_rank, lambda norm: row_statistic(samples.Xs, self.covariance, norm))
        Xs = samples.Xs if len(kept) == p else [X[:, kept] for X in samples.Xs]
        m, s = len(kept), dimension(self.n_components, len(kept))
        covariance = covariance_function(self.covariance)
        if not callable(self.covariance) and self.covariance in RANK_LIMITED:
            # Before the matrices are formed: for the number of variables that is refused here, memory may not hold them.
            check_joint_null_space(m, s, m - joint_rank, joint_rank)
        S = np.array([covariance(X) for X in Xs])
        if S.shape[1:] != (m, m):
            raise ValueError(
                f"covariance returned matrices of shape {S.shape[1:]} for {m} variables; it must be ({m}, {m})"
            )
        if self.covariance == "covariance":
            _warn_about_scales(S, samples.labels)
        if callable(self.covariance):
            check_flat_directions(checked_matrices(S), s, joint_rank)
        elif m > joint_rank and self.covariance in FACTORS:
            space = row_space([FACTORS[self.covariance](X) for X in Xs])
            return lift(self._solve(space.S, s - space.null.shape[1]), space), kept, S
        return self._solve(S, s), kept, S

    def _check_groups(self, K: int) -> None:
        if K < 2:
            raise ValueError(
                "JointHubs compares at least 2 groups and was given 1; use InverseComponentsHubs for a single network"
            )

    def _screen(self, p: int, joint_rank: int | None, statistic: Any) -> IntArray:
        """Sorted indices of the variables that enter the eigenproblem."""
        size = self.n_screened(p, joint_rank)
        return np.arange(p) if size == p else screen_variables(statistic(self.screen_statistic), size)

    def _solve(self, S: FloatArray, s: int) -> JointEigenspace:
        return joint_eigenspace(
            S,
            s,
            criterion=self.criterion,
            solver=self.solver,
            at_least=self.at_least,
            tol=self.tol,
            max_iter=self.max_iter,
            n_starts=self.n_starts,
            random_state=np.random.default_rng(self.random_state),
        )

    def _finish(
        self,
        solution: JointEigenspace,
        kept: IntArray,
        p: int,
        single: Sequence[FloatArray],
        labels: Sequence[Any],
        n_samples: NDArray[np.int_] | None,
    ) -> JointHubs:
        self.components_ = np.zeros((len(solution.components), p))
        self.components_[:, kept] = solution.components
        self.influence_ = np.sum(self.components_**2, axis=0)
        self.group_influence_ = np.zeros((len(labels), p))
        self.group_influence_[:, kept] = single
        self.screened_out_ = np.ones(p, dtype=bool)
        self.screened_out_[kept] = False
        self.groups_, self.n_samples_ = list(labels), n_samples
        self.group_weights_ = solution.weights
        self.objective_, self.lower_bound_ = solution.upper, solution.lower
        self.relative_gap_, self.certified_, self.status_ = solution.relative_gap, solution.certified, solution.status
        self.eigengap_, self.spectrum_ = solution.eigengap, solution.eigenvalues
        self.n_iter_ = solution.n_evaluations
        self._select(self.selection)
        return self


class InverseComponentsHubs(_Hubs):
    """Hubs of one Gaussian graphical model from its bottom eigenvectors (IPC-HD).

    Parameters
    ----------
    n_components : "ratio" (the authors' rule, see `upheld.hubs.inverse_components`), "sqrt", "frac" (floor(p/5)), or s
    fallback : "sqrt" or "frac", what "ratio" falls back on when no eigenvalue ratio stands out
    covariance, selection : as in `JointHubs`

    Attributes
    ----------
    influence_ : (p,); hubs_ : selected indices, largest influence first; components_ : (s, p); spectrum_ : (p,)

    Notes
    -----
    Source: "Hub Detection in Gaussian Graphical Models" (arXiv 2505.23707, JASA 2025). It needs n > p (up to the number
    of components); otherwise it raises `DegenerateJointNullSpaceError`, as the lowest eigenvectors are then arbitrary.

    Examples
    --------
    >>> from upheld.hubs.data import make_hub_networks
    >>> networks = make_hub_networks(60, 300, n_groups=1, n_common=4, n_individual=0, random_state=1)
    >>> set(InverseComponentsHubs().fit(networks.Xs[0]).hubs_) == set(networks.common)
    True
    """

    def __init__(
        self,
        n_components: Literal["ratio", "sqrt", "frac"] | int = "ratio",
        *,
        fallback: Fallback = "sqrt",
        covariance: str | CovarianceFunction = "correlation",
        selection: Selection = "2sd",
    ) -> None:
        self.n_components = n_components
        self.fallback = fallback
        self.covariance = covariance
        self.selection = selection

    def fit(self, X: ArrayLike | pd.DataFrame, y: object = None) -> InverseComponentsHubs:
        """Find the hubs of one sample (n, p); `y` is ignored."""
        check_numeric(X)
        array = validate_data(
            self, X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=2, ensure_min_features=2
        )
        check_samples(Samples([array], [None], getattr(self, "feature_names_in_", None)))
        S = covariance_function(self.covariance)(array)
        rank = len(array) - 1 if isinstance(self.covariance, str) and self.covariance in RANK_LIMITED else len(S)
        return self._fit_matrix(S, rank)

    def fit_covariance(self, S: ArrayLike) -> InverseComponentsHubs:
        """Find the hubs from one symmetric matrix (p, p)."""
        array = checked_matrices(S)[0]
        self._keep_names(S.columns if isinstance(S, pd.DataFrame) else None, len(array))
        return self._fit_matrix(array, len(array))

    def _fit_matrix(self, S: FloatArray, rank: int) -> InverseComponentsHubs:
        p = len(S)
        if self.n_components == "ratio":
            s = n_components_by_ratio(np.linalg.eigvalsh(S), self.fallback)
        else:
            s = dimension(self.n_components, p)
        check_joint_null_space(p, s, p - rank, rank, can_screen=False)
        solution = joint_eigenspace(S, s)
        self.components_, self.influence_ = solution.components, solution.influence
        self.spectrum_, self.eigengap_ = solution.eigenvalues, solution.eigengap
        self.screened_out_ = np.zeros(p, dtype=bool)
        self._select(self.selection)
        return self


def dimension(n_components: str | int, p: int) -> int:
    """s from the parameter `n_components`."""
    if n_components == "sqrt":
        s = int(np.sqrt(p))
    elif n_components == "frac":
        s = p // 5
    elif isinstance(n_components, (int, np.integer)) and not isinstance(n_components, bool):
        s = int(n_components)
    else:
        raise ValueError(f"n_components must be a number or the name of a rule, got {n_components!r}")
    if not 1 <= s < p:
        raise ValueError(f"n_components={s} must lie between 1 and p - 1 = {p - 1} for {p} variables")
    return s


def two_sd_line(influence: FloatArray) -> float:
    """mean(w) + 2 sd(w) of rule (4)."""
    return float(influence.mean() + 2 * influence.std(ddof=1)) if len(influence) > 1 else np.inf


def select_by_influence(influence: FloatArray, selection: Selection) -> NDArray[np.bool_]:
    """Rule (4), or the given number of largest influences (the first in order among equal ones)."""
    if selection == "2sd":
        # Equal influences select nothing: without the tolerance, rounding noise would.
        return influence > two_sd_line(influence) + 1e-12
    if not isinstance(selection, (int, np.integer)) or isinstance(selection, bool) or selection < 1:
        raise ValueError(f"selection must be '2sd' or a number of variables of at least 1, got {selection!r}")
    mask = np.zeros(len(influence), dtype=bool)
    mask[np.argsort(-influence, kind="stable")[:selection]] = True
    return mask


def _warn_about_scales(S: FloatArray, labels: Sequence[Any]) -> None:
    traces = np.trace(S, axis1=1, axis2=2)
    small, large = int(np.argmin(traces)), int(np.argmax(traces))
    if traces[large] > SCALE_RATIO * traces[small]:
        warnings.warn(
            f"the total variance of group {labels[large]!r} is {traces[large] / traces[small]:.3g} times that of group "
            f"{labels[small]!r}, so it alone will bind; use covariance='correlation' or rescale the groups",
            UserWarning,
            stacklevel=4,
        )
