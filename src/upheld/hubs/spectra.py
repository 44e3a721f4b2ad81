"""The lowest eigenpairs of one symmetric matrix, by LAPACK's partial decomposition at every size.

The lower end of a sample spectrum is crowded, which is where iterative solvers are at their worst. Measured on one core, s = 10:
at p = 2000 LAPACK takes 0.5 to 2 s; Lanczos 1 to 119 s depending on the spectrum; LOBPCG, even with the previous step's vectors
as start, 1 to 2 s on an easy spectrum and no convergence within 200 sweeps on a hard one. At p = 4000 they are level on the easy
one. So there is no switch to an iterative solver, and the cost of a fit grows like p^3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

FloatArray = NDArray[np.float64]


def bottom_eigenpairs(A: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """The `n` smallest eigenvalues (n,) of the symmetric (p, p) matrix `A`, ascending, and their eigenvectors (p, n)."""
    values, vectors = eigh(A, subset_by_index=[0, n - 1], check_finite=False)
    return values, vectors
