"""The joint minimax eigenspace of K symmetric matrices, with a certificate of optimality.

For matrices S_k (p, p), k = 1..K, and dimension s, JIC-HD seeks

    V* in argmin_{V in R^{p x s}, V'V = I}  max_k  tr(V' S_k V)                                                     (1)
    influence  w_i = sum_{j<=s} V*[i, j]^2,      0 <= w_i <= 1,  sum_i w_i = s                                      (2)

A hub's heavy row in the precision matrix Theta_k makes the top eigenvectors of Theta_k, which are the bottom
eigenvectors of Sigma_k = Theta_k^{-1}, load on it; (1) finds the directions that are at the bottom in every group.
Only the projector V V' is determined, never a single column.

Relax V V' to the Fantope F_s = {P : 0 <= P <= I, tr P = s}. F_s and the simplex D_K are convex and compact and the
objective is bilinear, so by Sion's theorem

    min_{P in F_s} max_{l in D_K} sum_k l_k tr(S_k P)  =  max_{l in D_K} g(l),
    g(l) = sum of the s smallest eigenvalues of S(l) = sum_k l_k S_k.                                               (3)

So (1) becomes a concave maximisation in K variables, one partial eigendecomposition a step: SLSQP from l = 1/K
(`upheld.hubs.dual`), then a level bundle if the optimum lies on a kink (`upheld.hubs.bundle`).

**When the relaxation is exact.**

(a) Let l* maximise g and lambda_1 <= ... <= lambda_p be the eigenvalues of S(l*). A minimiser P* of (3) forms a saddle
point with l*, so it minimises tr(S(l*) P) over F_s. If lambda_s < lambda_{s+1}, that minimiser is unique and equals
V V' with the bottom-s eigenvectors V; being a projector it is feasible for (1), hence a global optimum.

(b) Otherwise the minimisers of tr(S(l*) P) are P = V_< V_<' + U M U', with V_< the eigenvectors below lambda_s, U those
tied with it, 0 <= M <= I. The optimal set of (3) is convex and compact; take an extreme point P with q eigenvalues
strictly inside (0, 1), on a span within U. A symmetric D on that span (q(q+1)/2 dimensions) with tr D = 0 and
tr(S_k D) = 0 for every active k would keep P +- eps D optimal, so D = 0 by extremality: q(q+1)/2 is at most the number
of independent conditions. There are at most K + 1, and one is redundant, because sum_k l*_k S_k equals lambda_s I on
U, which turns tr D = 0 into a combination of the others. So q(q+1)/2 <= K; and q = 1 is impossible because the trace
s is an integer. Hence q = 0, a projector, whenever K <= 2: **(1) is solved exactly for one or two matrices**; for
K = 3, 4, 5 at most q = 2 eigenvalues are fractional.

(c) It can fail at K = 3. With S_k = I/2 - [[cos t, sin t], [sin t, -cos t]]/2, t = 0, 120, 240 degrees, and s = 1, the
relaxation has value 1/2 (P = I/2) and (1) has value 3/4. Such a result comes back with its gap and the status
"not certified".

**Common to at least m of K.** Replace the maximum over groups in (1) by the mean of the K - m + 1 largest values. In
(3) only the simplex changes: l_k <= 1/(K - m + 1). It bounds the (K - m + 1)-th largest value, so it is a convex
surrogate; m = K is (1), m = 1 averages the matrices.

Sources: objective (1), (2), `solver="stiefel"` and `criterion="vector"` from the authors' simulation code for "Identifying
Common Hubs in Multiple Gaussian Graphical Models" (ICML 2026); the dual (3), the certificate and (a)-(c) are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigvalsh

from upheld.hubs.bundle import level_bundle
from upheld.hubs.dual import DualFunction, ascend, relative_gap, worst_mean
from upheld.hubs.stiefel import stiefel_minimise
from upheld.hubs.threads import few_threads
from upheld.hubs.ties import extreme_point, refine

FloatArray = NDArray[np.float64]
Status = Literal["certified", "certified, not unique", "not certified"]

# At a tie the dual is solved to these fractions of the tolerance before the relaxation is declared not exact: with a small
# but positive eigengap the primal side closes only when the weights are known to more digits.
MODEL_TOLERANCES = np.array([1e-1, 1e-3])
TIE = 1e-8  # an eigengap below this fraction of the spectrum's width counts as a tie


@dataclass(frozen=True)
class JointEigenspace:
    """A solution of (1) and what is known about it.

    Attributes
    ----------
    components : (s, p) orthonormal rows, rotated to diagonalise V' S(l*) V (`criterion="vector"`: in the order found)
    weights : (K,) l*, which group binds; a weight of zero means that the group did not matter
    lower, upper : bounds of the optimum of (1); `upper` is the objective of `components`
    eigengap : lambda_{s+1} - lambda_s of S(l*)
    eigenvalues : (p,) ascending eigenvalues of S(l*)
    certified : the relative gap is at most the tolerance asked for
    n_evaluations : eigendecompositions spent
    """

    components: FloatArray
    weights: FloatArray
    lower: float
    upper: float
    eigengap: float
    eigenvalues: FloatArray
    tol: float
    n_evaluations: int

    @property
    def influence(self) -> FloatArray:
        """(p,) w of equation (2)."""
        return np.asarray(np.sum(self.components**2, axis=0), dtype=float)

    @property
    def projector(self) -> FloatArray:
        """(p, p) V V'."""
        return self.components.T @ self.components

    @property
    def relative_gap(self) -> float:
        return relative_gap(self.lower, self.upper)

    @property
    def certified(self) -> bool:
        return self.relative_gap <= self.tol

    @property
    def status(self) -> Status:
        if not self.certified:
            return "not certified"
        width = float(self.eigenvalues[-1] - self.eigenvalues[0])
        return "certified" if self.eigengap > TIE * width else "certified, not unique"


def joint_eigenspace(
    S: ArrayLike | Sequence[ArrayLike],
    n_components: int,
    *,
    criterion: Literal["trace", "vector"] = "trace",
    solver: Literal["dual", "stiefel"] = "dual",
    at_least: int | None = None,
    tol: float = 1e-4,
    max_iter: int = 200,
    n_starts: int = 10,
    random_state: int | np.random.Generator | None = 0,
) -> JointEigenspace:
    """Solve (1) for K symmetric matrices.

    Parameters
    ----------
    S : (K, p, p), or K arrays (p, p), symmetric; they may be indefinite
    n_components : s, 1 <= s < p
    criterion : "trace" is (1); "vector" finds the directions one after the other, each the solution of (1) with s = 1
        in the orthogonal complement of those before it
    solver : "dual", or the authors' "stiefel" descent; its bounds come from the dual all the same
    at_least : m, look for directions common to at least m of the K groups; all of them by default
    tol : relative primal-dual gap at which the dual solver stops
    max_iter : eigendecompositions at most (for each direction, with "vector")
    n_starts : random starts of the "stiefel" solver
    random_state : seed of the starts, and of the refinement when the relaxation is not exact

    Raises
    ------
    ValueError
        If the matrices are not square, finite and symmetric of one size, or a parameter is out of range.

    Examples
    --------
    Two groups that disagree: the best common direction lies half way, and the value proves it optimal.

    >>> solution = joint_eigenspace([np.diag([0.0, 1.0]), np.diag([1.0, 0.0])], 1)
    >>> solution.influence.round(6), round(solution.upper, 6), solution.status
    (array([0.5, 0.5]), 0.5, 'certified, not unique')
    """
    S = checked_matrices(S)
    K, p, _ = S.shape
    if not isinstance(n_components, (int, np.integer)) or not 1 <= n_components < p:
        raise ValueError(f"n_components must be a whole number between 1 and p - 1 = {p - 1}, got {n_components}")
    for name, value, least in (("tol", tol, 0), ("max_iter", max_iter, 1), ("n_starts", n_starts, 1)):
        if not value >= least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    m = K if at_least is None else at_least
    if not 1 <= m <= K:
        raise ValueError(f"at_least must lie between 1 and the number of groups {K}, got {at_least}")
    n_worst = K - m + 1
    rng = np.random.default_rng(random_state)
    if criterion not in ("trace", "vector"):
        raise ValueError(f"criterion must be 'trace' or 'vector', got {criterion!r}")
    if solver not in ("dual", "stiefel"):
        raise ValueError(f"solver must be 'dual' or 'stiefel', got {solver!r}")
    solve = minimax_eigenspace if criterion == "trace" else joint_vectors
    with few_threads(p):
        return solve(S, n_components, n_worst, solver, tol, max_iter, n_starts, rng)


def minimax_eigenspace(
    S: FloatArray, s: int, n_worst: int, solver: str, tol: float, max_iter: int, n_starts: int, rng: np.random.Generator
) -> JointEigenspace:
    """(1) by way of (3); see `joint_eigenspace`."""
    dual = DualFunction(S, s, n_worst)
    _maximise(dual, tol, max_iter, rng)
    V, upper = dual.basis, dual.upper
    if solver == "stiefel":
        V = stiefel_minimise(S, s, n_starts=n_starts, n_worst=n_worst, rng=rng)
        upper = worst_mean(dual.group_values(V), n_worst)
    assert V is not None
    S_l = dual.at(dual.weights)
    return JointEigenspace(
        components=_display_rotation(V, S_l),
        weights=dual.weights,
        lower=min(dual.lower, upper),
        upper=upper,
        eigengap=dual.eigengap,
        eigenvalues=_spectrum(S_l),
        tol=tol,
        n_evaluations=dual.n_evaluations,
    )


def joint_vectors(
    S: FloatArray, s: int, n_worst: int, solver: str, tol: float, max_iter: int, n_starts: int, rng: np.random.Generator
) -> JointEigenspace:
    """v_1 = argmin_{|v|=1} max_k v' S_k v, then the same on the orthogonal complement (`criterion="vector"`).

    Bounds are sums over the steps, weights their mean; the lower bound belongs to the sequence of steps, each given the
    directions before it. The maximum over groups of a smallest eigenvalue coalesces easily, so ties are common here and
    a step may stay uncertified by a few per cent.
    """
    found = np.zeros((0, S.shape[1]))
    steps: list[JointEigenspace] = []
    # Lifts the directions already found above every eigenvalue that is left (Gershgorin).
    ceiling = 2 * float(np.abs(S).sum(axis=2).max())
    deflated = S
    for _ in range(s):
        step = minimax_eigenspace(deflated, 1, n_worst, solver, tol, max_iter, n_starts, rng)
        steps.append(step)
        v = step.components[0] - found.T @ (found @ step.components[0])
        found = np.vstack([found, v / np.linalg.norm(v)])
        outside = np.eye(S.shape[1]) - found.T @ found
        deflated = outside @ S @ outside + ceiling * (found.T @ found)
    weights = np.mean([step.weights for step in steps], axis=0)
    return JointEigenspace(
        components=fix_signs(found),
        weights=weights,
        lower=sum(step.lower for step in steps),
        upper=sum(step.upper for step in steps),
        eigengap=min(step.eigengap for step in steps),
        eigenvalues=_spectrum(np.tensordot(weights, S, axes=1)),
        tol=tol,
        n_evaluations=sum(step.n_evaluations for step in steps),
    )


def _maximise(dual: DualFunction, tol: float, max_iter: int, rng: np.random.Generator) -> None:
    K = len(dual.S)
    # SLSQP needs 6 to 20 evaluations where g is smooth; beyond that it is stuck at a kink.
    ascend(dual, tol, min(max_iter, 12 + 4 * K))
    if K == 1 or dual.relative_gap <= tol:
        return
    for model_tol in tol * MODEL_TOLERANCES:
        alpha = level_bundle(dual, tol, model_tol, max_iter)
        if dual.relative_gap <= tol:
            return
        dual.offer(extreme_point(dual, alpha))
        if dual.relative_gap <= tol:
            return
    refine(dual, tol, rng)


def _display_rotation(V: FloatArray, S_l: FloatArray) -> FloatArray:
    """Rows of V rotated so that V' S(l*) V is diagonal, the largest entry of each positive."""
    components = (V @ np.linalg.eigh(V.T @ S_l @ V)[1]).T
    return fix_signs(components)


def _spectrum(A: FloatArray) -> FloatArray:
    return np.asarray(eigvalsh(A, check_finite=False), dtype=np.float64)


def fix_signs(components: FloatArray) -> FloatArray:
    largest = np.abs(components).argmax(axis=1)
    signs: FloatArray = np.sign(components[np.arange(len(components)), largest])
    return components * signs[:, None]


def checked_matrices(S: ArrayLike | Sequence[ArrayLike]) -> FloatArray:
    """The matrices as one array (K, p, p); refuses what is not square, finite, symmetric and of one size."""
    try:
        array = np.asarray(S, dtype=float)
    except ValueError as error:
        shapes = ", ".join(str(np.shape(matrix)) for matrix in S)  # type: ignore[union-attr]
        raise ValueError(f"the matrices must all have one shape (p, p), got {shapes}") from error
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or array.shape[1] != array.shape[2] or array.shape[0] == 0:
        raise ValueError(f"expected K square matrices, shape (K, p, p), got {array.shape}")
    for k, matrix in enumerate(array):
        if not np.isfinite(matrix).all():
            raise ValueError(f"matrix {k} holds values that are not finite; impute or drop them first")
        if np.abs(matrix - matrix.T).max() > 1e-8 * max(np.abs(matrix).max(), 1e-300):
            raise ValueError(f"matrix {k} is not symmetric; pass (S + S.T) / 2 if that is what you mean")
    return np.ascontiguousarray(array)
