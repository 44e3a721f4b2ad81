"""Hub graphical lasso: a precision matrix that is a sparse part plus a few dense rows.

Tan, London, Mohan, Lee, Fazel & Witten, "Learning Graphical Models With Hubs", JMLR 15 (2014). For a covariance S::

    minimise   -log det Theta + tr(S Theta)
               + l1 ||Z - diag Z||_1 + l2 ||V - diag V||_1 + l3 sum_j ||(V - diag V)_j||_2
    over       Theta = V + V' + Z,   Theta positive definite,   Z symmetric                                  (1)

A column j of V that is not zero makes j a hub. The diagonals of V and Z go unpenalised and only their sum enters
Theta, so V's is set to zero here: the optimum is the same, and there is one variable less to converge.

**ADMM** (their Algorithm 1). Split B = (Theta, V, Z), which carries the objective, from C = (Theta~, V~, Z~), which
carries the linear constraint, with scaled duals W = (W1, W2, W3) for B = C and step rho. With soft(x, a) the
soft-threshold::

    Theta = Q diag( (d_i + sqrt(d_i^2 + 4/rho)) / 2 ) Q',   Q diag(d) Q' = Theta~ - W1 - S/rho             (2)
    Z     = soft(Z~ - W3, l1/rho) off the diagonal, Z~ - W3 on it                                            (3)
    V_j   = max(1 - l3/(rho ||u_j||_2), 0) u_j,   u_j = soft((V~ - W2)_j, l2/rho), diagonal zero             (4)

The projection onto the constraint minimises ||Theta~ - A||^2 + ||V~ - D||^2 + ||Z~ - E||^2 subject to
Theta~ = V~ + V~' + Z~, where A = Theta + W1, D = V + W2, E = Z + W3. Let M be the (symmetric) multiplier. The
derivative of <M, V~ + V~'> by V~ is 2M, hence Theta~ = A - M, V~ = D + 2M, Z~ = E + M, and putting these into the
constraint gives A - M = D + D' + 4M + E + M, so::

    M = (A - D - D' - E) / 6,    Theta~ = A - M,    V~ = D + 2M,    Z~ = E + M                              (5)
    W = W + B - C                                                                                            (6)

In (5) and (6) B is over-relaxed, a B + (1 - a) C_old with a = 1.6 (section 3.4.3 of Boyd et al.).

Stop when the primal residual ||B - C|| and the dual residual rho ||C - C_old|| are below the tolerances of Boyd et al.
(2011, section 3.3.1); rho is doubled or halved while one residual exceeds ten times the other (section 3.4.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

OVER_RELAXATION = 1.6


@dataclass(frozen=True)
class HubGraphicalLasso:
    """Solution of (1).

    Attributes
    ----------
    Theta : (p, p) positive definite, equal to V + V' + Z up to the tolerance
    V : (p, p), its non-zero columns are the hubs; zero diagonal
    Z : (p, p) symmetric, sparse
    n_iter : ADMM steps taken
    converged : both residuals met their tolerance
    state : C and W, (2, 3, p, p), and rho, with which a neighbouring problem may start
    """

    Theta: FloatArray
    V: FloatArray
    Z: FloatArray
    n_iter: int
    converged: bool
    state: tuple[FloatArray, float]

    @property
    def network(self) -> FloatArray:
        """V + V' + Z: the estimate with its exact zeros."""
        return self.V + self.V.T + self.Z

    @property
    def hubs(self) -> NDArray[np.bool_]:
        """(p,) mask of the non-zero columns of V."""
        return np.asarray((self.V != 0).any(axis=0))

    def n_parameters(self, c: float = 0.2) -> float:
        """|Z| + nu + c (|V| - nu): the parameters their BIC (section 3.4) counts, nu being the number of hubs."""
        nu = int(self.hubs.sum())
        return np.count_nonzero(np.triu(self.Z, 1)) + nu + c * (np.count_nonzero(self.V) - nu)


def hub_graphical_lasso(
    S: ArrayLike,
    l1: float,
    l2: float,
    l3: float,
    *,
    start: HubGraphicalLasso | None = None,
    atol: float = 1e-6,
    rtol: float = 1e-4,
    max_iter: int = 1000,
) -> HubGraphicalLasso:
    """Solve (1).

    Parameters
    ----------
    S : (p, p) symmetric positive semidefinite
    l1, l2, l3 : penalties on the entries of Z, the entries of V, and the columns of V, in the unit of S; V stays zero
        once l3 or l2 is large, and then the problem is the graphical lasso
    start : solution of a neighbouring problem of the same size
    atol, rtol : per entry, and relative to the size of the iterates

    Raises
    ------
    ValueError
        If a penalty is not positive, or `S` is not a finite symmetric matrix.

    Examples
    --------
    >>> S = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> hub_graphical_lasso(S, 0.7, 0.7, 0.7).network.round(3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    S = np.asarray(S, dtype=float)
    _check(S, l1, l2, l3)
    p = S.shape[0]
    if start is None:
        C, W, rho = np.stack([np.eye(p), np.zeros((p, p)), np.eye(p)]), np.zeros((3, p, p)), 1.0
    else:
        (C, W), rho = start.state[0].copy(), start.state[1]

    B = np.empty_like(C)
    n_iter, converged = 0, False
    while not converged and n_iter < max_iter:
        n_iter += 1
        T = C - W
        B[0] = _prox_log_det(T[0] - S / rho, rho)
        B[1] = _prox_columns(T[1], l2 / rho, l3 / rho)
        B[2] = _soft_off_diagonal(T[2], l1 / rho)

        C_old = C
        relaxed = OVER_RELAXATION * B + (1 - OVER_RELAXATION) * C_old
        C = _onto_constraint(relaxed + W)
        W += relaxed - C

        primal, dual = np.linalg.norm(B - C), rho * np.linalg.norm(C - C_old)
        floor = atol * np.sqrt(B.size)
        converged = bool(
            primal <= floor + rtol * max(np.linalg.norm(B), np.linalg.norm(C))
            and dual <= floor + rtol * rho * np.linalg.norm(W)
        )
        factor = 2.0 if primal > 10 * dual else 0.5 if dual > 10 * primal else 1.0
        rho *= factor
        W /= factor

    return HubGraphicalLasso(B[0].copy(), B[1].copy(), B[2].copy(), n_iter, converged, (np.stack([C, W]), rho))


def _prox_log_det(T: FloatArray, rho: float) -> FloatArray:
    """Equation (2)."""
    d, Q = np.linalg.eigh(T)
    return np.asarray((Q * ((d + np.sqrt(d**2 + 4 / rho)) / 2)) @ Q.T)


def _soft_off_diagonal(T: FloatArray, a: float) -> FloatArray:
    """Equation (3)."""
    Z = T - np.clip(T, -a, a)
    np.fill_diagonal(Z, np.diag(T))
    return Z


def _prox_columns(T: FloatArray, a: float, b: float) -> FloatArray:
    """Equation (4)."""
    U = T - np.clip(T, -a, a)
    np.fill_diagonal(U, 0.0)
    size = np.sqrt(np.einsum("ij,ij->j", U, U))
    return U * np.where(size > b, 1 - b / np.maximum(size, b), 0.0)


def _onto_constraint(X: FloatArray) -> FloatArray:
    """Equation (5), from A, D, E stacked to Theta~, V~, Z~ stacked."""
    A, D, E = X
    M = (A - D - D.T - E) / 6
    return np.stack([A - M, D + 2 * M, E + M])


def _check(S: FloatArray, l1: float, l2: float, l3: float) -> None:
    for name, value in (("l1", l1), ("l2", l2), ("l3", l3)):
        if not value > 0:
            raise ValueError(f"the penalty {name} must be positive, got {value}")
    if S.ndim != 2 or S.shape[0] != S.shape[1] or not np.isfinite(S).all():
        raise ValueError(f"S must be a square matrix of finite numbers, got shape {S.shape}")
    if not np.allclose(S, S.T, atol=1e-8):
        i, j = np.unravel_index(np.argmax(np.abs(S - S.T)), S.shape)
        raise ValueError(f"S must be symmetric, but S[{i},{j}] = {S[i, j]:.6g} and S[{j},{i}] = {S[j, i]:.6g}")
