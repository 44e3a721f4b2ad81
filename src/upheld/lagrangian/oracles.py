"""What every instance answers: the value and a supergradient of its Lagrangian dual at given multipliers.

A problem whose blocks are tied by s coupling rows (Le, Nguyen & Nguyen 2026, section 2)::

    OPT(P) = min c x    subject to  A x >= b  (s coupling rows),   x in X  (block rows, bounds, integrality)           (1)

    u(pi, P) = min_{x in X} c x + pi (b - A x)  <=  OPT(P)      for every pi in Pi                                    (2)

    b - A x*(pi)  is a supergradient of the concave function u(., P) at pi                                            (3)

Pi holds pi >= 0 on inequality rows and any sign on equality rows. An oracle returns (2), (3) and the minimiser. When a
block is stopped early its *dual* bound stands in (2), so that u stays below OPT; the answer is then marked not exact.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from upheld.lagrangian.instance import CoupledMILP

FREE = -1  # in an array of fixings: neither 0 nor 1 is prescribed


@dataclass(frozen=True)
class DualEval:
    """One evaluation of the dual function.

    Attributes
    ----------
    u : value of (2), of the problem as a minimisation; a lower bound on its optimum
    g : (s,) supergradient b - A x
    x : the minimiser, in the instance's own layout (see its class)
    exact : every block was solved to optimality. If not, u is the blocks' dual bound and still below the optimum
    """

    u: float
    g: np.ndarray
    x: np.ndarray
    exact: bool = True


class Instance(ABC):
    """A problem (1) with an oracle for (2).

    Attributes
    ----------
    b : (s,) right-hand sides of the coupling rows, all in the form >= or =
    equality : (s,) bool, which of them are equations; their multipliers may have any sign
    row_names : names of the coupling rows
    maximise : the user's problem is a maximisation; inside, it is the minimisation of the negated objective
    integer_costs : every feasible objective value is a whole number, so that bounds may be rounded up
    """

    b: np.ndarray
    equality: np.ndarray
    row_names: list[str]
    maximise: bool = False
    integer_costs: bool = False

    @property
    def n_rows(self) -> int:
        """s, the number of coupling rows."""
        return int(self.b.size)

    @property
    @abstractmethod
    def B(self) -> float:
        """The least number known to bound every |b_k| and |(A x)_k| over all x in X."""

    @abstractmethod
    def oracle(self, pi: np.ndarray, *, fixed: np.ndarray | None = None, n_jobs: int = 1) -> DualEval:
        """(2) and (3) at `pi`, which is taken as it is; `fixed` prescribes entries of x (see `branchable`).

        Raises
        ------
        Infeasible
            If a block admits no x under `fixed`.
        """

    @abstractmethod
    def linear_model(self) -> CoupledMILP:
        """The monolith whose LP relaxation gives this instance's LP multipliers."""

    def milp(self) -> CoupledMILP:
        """The monolith, with the same coupling rows in the same order."""
        return self.linear_model()

    def columns(self, x: np.ndarray) -> np.ndarray:
        """The monolith's columns for an `x` in the oracle's layout."""
        return x

    @property
    def branchable(self) -> np.ndarray:
        """Positions of x that are binary and may be fixed in `oracle`; none where branching is not offered."""
        return np.empty(0, dtype=int)

    def monolith_positions(self) -> np.ndarray:
        """Where the `branchable` entries of x stand among the monolith's columns."""
        return self.branchable

    def user_value(self, u: float) -> float:
        """A value of the minimisation in the sense the user stated the problem in."""
        return -u if self.maximise else u


class Infeasible(ValueError):
    """A block has no feasible point."""


def dual_value(pi: ArrayLike, P: Instance, n_jobs: int = 1) -> DualEval:
    """u(pi, P) of (2) with its supergradient (3) and the minimiser: a certified bound, whatever `pi` is.

    Parameters
    ----------
    pi : (s,) multipliers, in objective units per unit of the row. Negative ones of inequality rows lie outside Pi; they
        are set to 0, with a warning
    P : any instance: `CoupledMILP` or one of `upheld.lagrangian.families`
    n_jobs : threads that share the blocks; the result does not depend on it

    Raises
    ------
    ValueError
        If `pi` has the wrong length or a value that is not finite, if a block is infeasible, or if a block is unbounded at
        `pi` (the message names the block and the variable that lacks a bound).

    Examples
    --------
    >>> from upheld.lagrangian.families import HardFamily
    >>> P = HardFamily([0.25, 0.75])
    >>> answer = dual_value([0.5, 0.5], P)
    >>> float(answer.u), answer.g.tolist()
    (0.25, [-0.5, 0.5])
    """
    return P.oracle(inside(pi, P), n_jobs=n_jobs)


def inside(pi: ArrayLike, P: Instance) -> np.ndarray:
    """`pi` as an array in Pi: checked, and negative multipliers of inequality rows clipped to 0 with a warning."""
    pi = np.asarray(pi, dtype=float)
    if pi.shape != (P.n_rows,):
        raise ValueError(f"pi has shape {pi.shape}, but there are {P.n_rows} coupling rows; give one multiplier a row")
    wrong = np.flatnonzero(~np.isfinite(pi))
    if wrong.size:
        raise ValueError(f"the multiplier of row {P.row_names[wrong[0]]} is {pi[wrong[0]]}; multipliers must be finite")
    outside = np.flatnonzero(~P.equality & (pi < 0))
    if outside.size:
        warnings.warn(
            f"{outside.size} multipliers of inequality rows are negative ({P.row_names[outside[0]]}: "
            f"{pi[outside[0]]:g}) and lie outside Pi; they are set to 0",
            stacklevel=3,
        )
        pi = np.where(P.equality, pi, np.maximum(pi, 0.0))
    return pi


@cache
def numbered(stem: str, n: int) -> tuple[str, ...]:
    """stem_1 .. stem_n: the same strings for every instance, so that comparing rows takes no time.

    >>> numbered("assign", 2)
    ('assign_1', 'assign_2')
    """
    return tuple(f"{stem}_{k + 1}" for k in range(n))


@cache
def all_free(shape: tuple[int, ...]) -> np.ndarray:
    """Nothing prescribed, for arrays of `shape`; not to be written to."""
    return np.full(shape, FREE, dtype=np.int8)


def shared(work: Callable[[int, int], None], n_blocks: int, n_jobs: int) -> None:
    """`work(lo, hi)` over ranges that cover all blocks, on `n_jobs` threads; each block writes its own output."""
    if n_jobs == 1 or n_blocks < 2:
        work(0, n_blocks)
        return
    edges = np.linspace(0, n_blocks, min(n_jobs, n_blocks) + 1).astype(int)
    with ThreadPoolExecutor(len(edges) - 1) as threads:
        for done in [threads.submit(work, int(lo), int(hi)) for lo, hi in pairwise(edges)]:
            done.result()


def check_alike(instances: Sequence[Instance]) -> None:
    """All instances have the same coupling rows, in the same order and of the same kind.

    Raises
    ------
    ValueError
        If there is no instance, or if one differs from the first; it is numbered and the rows are named.
    """
    if not instances:
        raise ValueError("there is no instance to learn from; give at least one")
    first = instances[0]
    for number, other in enumerate(instances[1:], 2):
        if other.row_names != first.row_names:
            lacking = [name for name in first.row_names if name not in set(other.row_names)]
            extra = [name for name in other.row_names if name not in set(first.row_names)]
            differ = (lacking and f"it lacks {_some(lacking)}") or (extra and f"it has also {_some(extra)}")
            raise ValueError(
                f"the coupling rows of instance {number} differ from those of the first: "
                f"{differ or 'they stand in another order'}; multipliers carry over only between the same rows"
            )
        if np.count_nonzero(other.equality != first.equality):
            row = first.row_names[int(np.argmax(other.equality != first.equality))]
            raise ValueError(f"row {row} is an equation in one instance and an inequality in instance {number}")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
