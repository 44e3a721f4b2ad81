"""Set covering and multi-dimensional knapsacks: binary programs whose blocks are trivial or one knapsack.

Set covering, all rows dualised: the sign of c_j - sum_k pi_k a_kj decides x_j, so the bound equals the LP's.
Multi-dimensional knapsack, every row but the first dualised: the first stays, as an integer knapsack.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from upheld.lagrangian.highs import Sparse
from upheld.lagrangian.instance import CoupledMILP
from upheld.lagrangian.oracles import FREE, DualEval, Infeasible, Instance, all_free, numbered


class SetCovering(Instance):
    """min c x subject to A x >= 1, x binary, A of zeros and ones.

    Parameters
    ----------
    c : (n,) costs, not negative
    A : (s, n) of 0 and 1, dense or sparse; every row has a 1

    Examples
    --------
    >>> SetCovering([3, 2], [[1, 1], [1, 0]]).oracle(np.array([2.0, 1.0])).u
    3.0
    """

    def __init__(self, c: ArrayLike, A: Sparse) -> None:
        self.c = np.array(c, dtype=float)
        matrix: Sparse = sparse.csr_array(A, dtype=float)
        self.A = matrix
        if self.A.shape[1] != self.c.size:
            raise ValueError(f"A has {self.A.shape[1]} columns, but there are {self.c.size} costs")
        if not np.isfinite(self.c).all() or (self.c < 0).any():
            raise ValueError(f"cost {int(np.argmax(~(self.c >= 0)))} is not a finite number that is not negative")
        if (self.A.data != 1).any():
            raise ValueError("A must hold zeros and ones")
        empty = np.flatnonzero(np.diff(self.A.indptr) == 0)
        if empty.size:
            raise ValueError(f"row {empty[0]} of A is empty: no column covers it")
        self.b = np.ones(self.A.shape[0])
        self.equality = np.zeros(self.b.size, dtype=bool)
        self.row_names = list(numbered("cover", self.b.size))
        self.integer_costs = bool((self.c == np.round(self.c)).all())

    @property
    def B(self) -> float:
        """The longest row."""
        return float(np.diff(self.A.indptr).max())

    def oracle(self, pi: np.ndarray, *, fixed: np.ndarray | None = None, n_jobs: int = 1) -> DualEval:
        reduced = self.c - self.A.T @ pi
        x = (reduced < 0).astype(float)
        if fixed is not None:
            x = np.where(fixed == FREE, x, fixed)
        return DualEval(float(pi.sum() + reduced @ x), self.b - self.A @ x, x)

    def linear_model(self) -> CoupledMILP:
        n = self.c.size
        return CoupledMILP(
            self.c, self.A, self.b, sparse.csr_array((0, n)), [], True, 0, 1, row_names=self.row_names
        )  # fmt: skip

    @property
    def branchable(self) -> np.ndarray:
        return np.arange(self.c.size)


class MultiKnapsack(Instance):
    """max p x subject to W x <= capacity, x binary; every row but the first is dualised.

    Parameters
    ----------
    p : (n,) profits, not negative
    W : (s + 1, n) weights, not negative; the first row whole numbers
    capacity : (s + 1,)

    Examples
    --------
    >>> P = MultiKnapsack([4, 3], [[1, 1], [2, 1]], [1, 2])
    >>> P.user_value(P.oracle(np.zeros(1)).u)
    4.0
    """

    maximise = True

    def __init__(self, p: ArrayLike, W: ArrayLike, capacity: ArrayLike) -> None:
        self.p, self.W = np.array(p, dtype=float), np.array(W, dtype=float)
        self.capacity = np.array(capacity, dtype=float)
        if self.W.shape != (self.capacity.size, self.p.size) or self.capacity.size < 2:
            raise ValueError(f"W must be (capacities >= 2, profits), got {self.W.shape}")
        for name, values in (("profits", self.p), ("weights", self.W), ("capacities", self.capacity)):
            if not np.isfinite(values).all() or (values < 0).any():
                raise ValueError(f"{name} must be finite and not negative")
        if (self.W[0] != np.round(self.W[0])).any():
            raise ValueError("the first row of W stays a knapsack and must hold whole numbers; scale and round it")
        self.b = -self.capacity[1:]
        self.equality = np.zeros(self.b.size, dtype=bool)
        self.row_names = [f"capacity_{k + 2}" for k in range(self.b.size)]
        self.integer_costs = bool((self.p == np.round(self.p)).all())

    @property
    def B(self) -> float:
        """The greatest capacity or total weight of a dualised row."""
        return float(max(self.capacity[1:].max(), self.W[1:].sum(axis=1).max()))

    def oracle(self, pi: np.ndarray, *, fixed: np.ndarray | None = None, n_jobs: int = 1) -> DualEval:
        from upheld.lagrangian._kernels import knapsacks

        profit = (self.p - pi @ self.W[1:])[None]
        x = np.empty(profit.shape)
        free = all_free(x.shape) if fixed is None else fixed.reshape(x.shape)
        weight, room = self.W[:1].astype(np.int64), np.floor(self.capacity[:1]).astype(np.int64)
        if knapsacks(profit, weight, room, free, 0, 1, x) >= 0:
            raise Infeasible("the items prescribed exceed the first capacity")
        u = pi @ self.b - (profit * x).sum()
        return DualEval(float(u), self.b + self.W[1:] @ x[0], x[0])

    def linear_model(self) -> CoupledMILP:
        return CoupledMILP(
            self.p,
            -self.W[1:],
            self.b,
            -self.W[:1],
            -self.capacity[:1],
            True,
            0,
            1,
            sense="max",
            row_names=self.row_names,
        )

    @property
    def branchable(self) -> np.ndarray:
        return np.arange(self.p.size)
