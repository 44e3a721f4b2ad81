"""(1) in the joint row space, for more variables than degrees of freedom: it needs no (p, p) matrix.

With S_k = Z_k' Z_k all matrices vanish on the joint null space N, of dimension p - r, r the rank of all rows together.
Those directions cost nothing in any group, so every optimal V of dimension s > p - r contains them, and the rest of V
solves (1) of dimension s - (p - r) for the (r, r) matrices B' S_k B, B an orthonormal basis of the row space.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from upheld.hubs.eigenspaces import JointEigenspace

FloatArray = NDArray[np.float64]


class RowSpace(NamedTuple):
    basis: FloatArray  # (p, r)
    null: FloatArray  # (p, p - r)
    S: FloatArray  # (K, r, r), the matrices in the basis


def row_space(factors: Sequence[FloatArray]) -> RowSpace:
    """Joint row space of the factors Z_k (n_k, p)."""
    columns, R, _ = qr(np.vstack(factors).T, pivoting=True)
    Q: FloatArray = np.asarray(columns, dtype=np.float64)
    diagonal = np.abs(np.diag(R))
    r = int(np.sum(diagonal > 1e-10 * diagonal[0]))
    coordinates = [Z @ Q[:, :r] for Z in factors]
    return RowSpace(Q[:, :r], Q[:, r:], np.array([A.T @ A for A in coordinates]))


def lift(reduced: JointEigenspace, space: RowSpace) -> JointEigenspace:
    """The solution for all p variables from the one in the row space."""
    n_null = space.null.shape[1]
    return JointEigenspace(
        components=np.vstack([space.null.T, reduced.components @ space.basis.T]),
        weights=reduced.weights,
        lower=reduced.lower,
        upper=reduced.upper,
        eigengap=reduced.eigengap,
        eigenvalues=np.r_[np.zeros(n_null), reduced.eigenvalues],
        tol=reduced.tol,
        n_evaluations=reduced.n_evaluations,
    )
