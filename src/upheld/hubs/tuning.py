"""How the penalised rivals choose their penalty: a lattice of penalties, two criteria, and a search that leaves no edge.

For K groups with correlation matrices S_k, sample sizes n_k and an estimate Theta_k:

- information criterion (Schwarz 1978; extended, Foygel & Drton 2010), d_k the number of edges of Theta_k or, for the
  hub graphical lasso, what Tan et al. count::

      sum_k n_k (tr(S_k Theta_k) - log det Theta_k) + d_k (log n_k + 4 gamma log p)                          (1)

- three-fold cross-validation: minus twice the Gaussian log-likelihood, up to a constant, of each third of every group
  under the estimate from the other two. The held-out samples are scaled with the mean and sd of the other two thirds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from upheld.hubs.covariance import correlation

FloatArray = NDArray[np.float64]
Index = tuple[int, ...]

N_FOLDS = 3
MAX_EXTENSIONS = 6
MAX_DENSITY = 0.5
SOLVER_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Networks:
    """Networks of K groups at one penalty.

    Attributes
    ----------
    sparse : (K, p, p) estimates with their exact zeros
    Thetas : (K, p, p) the same, positive definite, equal to `sparse` up to the solver's tolerance
    n_parameters : (K,) size of each model in (1)
    converged : the solver met its tolerance
    state : whatever the solver wants back to start a neighbouring problem
    """

    sparse: FloatArray
    Thetas: FloatArray
    n_parameters: FloatArray
    converged: bool
    state: Any = None

    @property
    def density(self) -> float:
        """Share of the pairs of nodes, over all groups, that are edges."""
        p = self.sparse.shape[-1]
        return float(np.count_nonzero(self.sparse * (1 - np.eye(p))) / (len(self.sparse) * p * (p - 1)))


class Sample(NamedTuple):
    """Correlation matrices (K, p, p) and sample sizes (K,)."""

    S: FloatArray
    n: NDArray[np.intp]


@dataclass(frozen=True)
class Group:
    """The samples of one group, (n, p), and the cross-validation fold of each, (n,)."""

    X: FloatArray
    fold: NDArray[np.intp]

    @classmethod
    def of(cls, X: FloatArray, rng: np.random.Generator) -> Group:
        """Random folds 0..N_FOLDS-1, as equal in size as they can be."""
        return cls(X, rng.permutation(np.arange(len(X)) % N_FOLDS))

    def correlation(self) -> tuple[FloatArray, int]:
        """Correlation matrix and sample size of the whole group."""
        return correlation(self.X), len(self.X)

    def split(self, fold: int) -> tuple[tuple[FloatArray, int], tuple[FloatArray, int]]:
        """Second moments and sizes of the other folds, and of this one, both in the scale of the other folds."""
        held_out = self.fold == fold
        mean, sd = self.X[~held_out].mean(axis=0), self.X[~held_out].std(axis=0)
        if not sd.all():
            raise ValueError(
                f"column {int(np.argmin(sd))} of a group is constant once a third of its {len(self.X)} samples is held "
                "out for cross-validation; drop the column, or use the 'ic' tuning"
            )
        Z = (self.X - mean) / sd
        train, test = Z[~held_out], Z[held_out]
        return (train.T @ train / len(train), len(train)), (test.T @ test / len(test), len(test))


class Solver(ABC):
    """A penalised estimator of the networks of K groups; K is 1 for those that know one network only."""

    gamma: float = 0.0
    """Of the extended criterion (1); 0 is BIC."""

    @abstractmethod
    def lattice(self, sample: Sample) -> PenaltyLattice:
        """The penalties to try."""

    @abstractmethod
    def solve(self, sample: Sample, penalty: tuple[float, ...], start: Networks | None) -> Networks:
        """Estimate at one penalty; `start` is the estimate of the same groups at a neighbouring one."""


@dataclass(frozen=True)
class PenaltyLattice:
    """Penalties on axes that grow by a constant factor; index 0 is the smallest first tried, and any integer is valid.

    Examples
    --------
    >>> lattice = PenaltyLattice(smallest=(0.1,), largest=(0.4,), size=(3,))
    >>> [round(lattice[i][0], 3) for i in lattice.indices()], round(lattice[(-1,)][0], 3)
    ([0.4, 0.2, 0.1], 0.05)
    """

    smallest: tuple[float, ...]
    largest: tuple[float, ...]
    size: tuple[int, ...]

    def __getitem__(self, index: Index) -> tuple[float, ...]:
        return tuple(
            low * (high / low) ** (i / (n - 1))
            for i, low, high, n in zip(index, self.smallest, self.largest, self.size, strict=True)
        )

    def neighbours(self, index: Index, step: int) -> list[Index]:
        """One step along each axis, in or beyond the lattice."""
        return [(*index[:axis], index[axis] + step, *index[axis + 1 :]) for axis in range(len(self.size))]

    def indices(self) -> list[Index]:
        """The penalties first tried, strongest first."""
        return list(product(*(range(n - 1, -1, -1) for n in self.size)))


@dataclass
class Path:
    """Estimates of the same groups at the penalties asked for so far, each started from its nearest neighbour."""

    solver: Solver
    sample: Sample
    lattice: PenaltyLattice
    estimates: dict[Index, Networks] = field(default_factory=dict)

    def __getitem__(self, index: Index) -> Networks:
        if index not in self.estimates:
            nearest = min(self.estimates, key=lambda seen: _distance(seen, index), default=None)
            start = None if nearest is None else self.estimates[nearest]
            self.estimates[index] = self.solver.solve(self.sample, self.lattice[index], start)
        return self.estimates[index]

    def estimates_tried_first(self) -> list[Networks]:
        """Those at the lattice's own penalties."""
        return [self[index] for index in self.lattice.indices()]

    def cold_fit(self) -> Networks:
        """The estimate in the middle of the lattice, from scratch: what one fit costs someone who does not tune."""
        middle = tuple((n - 1) // 2 for n in self.lattice.size)
        return self.solver.solve(self.sample, self.lattice[middle], None)


@dataclass(frozen=True)
class Choice:
    """The penalty that minimises a criterion.

    Attributes
    ----------
    index : place of the best penalty in the lattice
    extended : the best of the penalties first tried lay at an edge, so the lattice was extended
    at_edge : extending stopped at its limit, and the best is still at an edge
    """

    index: Index
    extended: bool
    at_edge: bool


def search(lattice: PenaltyLattice, criterion: Callable[[Index], float], density: Callable[[Index], float]) -> Choice:
    """Minimise over the lattice; while the best has neighbours not yet tried, try them.

    Two kinds of neighbour are left alone. Beyond a penalty that empties the network a stronger one leaves it empty. And
    where more than half of all pairs are edges already a weaker one gives no network any more: with fewer samples than
    variables an information criterion falls without bound there, towards interpolation.
    """

    def frontier(best: Index) -> list[Index]:
        filled = density(best)
        weaker = lattice.neighbours(best, -1) if filled <= MAX_DENSITY else []
        stronger = lattice.neighbours(best, +1) if filled > 0 else []
        return [index for index in weaker + stronger if index not in values]

    values = {index: criterion(index) for index in lattice.indices()}
    n_first = len(values)
    best = min(values, key=lambda index: values[index])
    for _ in range(MAX_EXTENSIONS):
        untried = frontier(best)
        if not untried:
            break
        values |= {index: criterion(index) for index in untried}
        challenger = min(untried, key=lambda index: values[index])
        # An axis may run into a plateau: a gain below the solvers' tolerance is none.
        if values[best] - values[challenger] <= SOLVER_TOLERANCE * abs(values[best]):
            break
        best = challenger
    dense = density(best) > MAX_DENSITY and any(index not in values for index in lattice.neighbours(best, -1))
    return Choice(best, extended=len(values) > n_first, at_edge=dense or bool(frontier(best)))


def information_criterion(sample: Sample, networks: Networks, gamma: float) -> float:
    """Equation (1)."""
    p = sample.S.shape[-1]
    price = np.log(sample.n) + 4 * gamma * np.log(p)
    return float(
        np.sum(sample.n * _minus_twice_log_likelihood(sample.S, networks.Thetas) + networks.n_parameters * price)
    )


@dataclass(frozen=True)
class CrossValidation:
    """Held-out likelihood of the groups in `Xs` over folds that keep every group's share.

    `folds` holds, for each fold, the held-out sample and the path over the rest.
    """

    folds: tuple[tuple[Sample, Path], ...]

    @classmethod
    def of(cls, groups: Sequence[Group], solver: Solver, lattice: PenaltyLattice) -> CrossValidation:
        """Hold out each label of the groups in turn."""
        folds = []
        for fold in range(N_FOLDS):
            train, held_out = zip(*(group.split(fold) for group in groups), strict=True)
            folds.append((_stack(held_out), Path(solver, _stack(train), lattice)))
        return cls(tuple(folds))

    def __call__(self, index: Index) -> float:
        return float(
            sum(
                np.sum(held_out.n * _minus_twice_log_likelihood(held_out.S, path[index].Thetas))
                for held_out, path in self.folds
            )
        )


class Problem:
    """Networks of some groups, estimated together, whose penalty is to be chosen together."""

    def __init__(self, groups: Sequence[Group], solver: Solver) -> None:
        sample = _stack([group.correlation() for group in groups])
        self.groups, self.solver = groups, solver
        self.path = Path(solver, sample, solver.lattice(sample))

    def choose(self, by: str) -> Choice:
        """Penalty with the best information criterion ("ic") or cross-validated likelihood ("cv")."""
        path = self.path
        criterion: Callable[[Index], float]
        if by == "ic":

            def criterion(index: Index) -> float:
                return information_criterion(path.sample, path[index], self.solver.gamma)
        elif by == "cv":
            criterion = CrossValidation.of(self.groups, self.solver, path.lattice)
        else:
            raise ValueError(f"tuning must be 'ic' or 'cv', got {by!r}")
        return search(path.lattice, criterion, lambda index: path[index].density)


def _stack(groups: Sequence[tuple[FloatArray, int]]) -> Sample:
    return Sample(np.stack([S for S, _ in groups]), np.array([n for _, n in groups]))


def _minus_twice_log_likelihood(S: FloatArray, Thetas: FloatArray) -> FloatArray:
    """tr(S_k Theta_k) - log det Theta_k of each group, per sample."""
    return np.asarray(np.einsum("kij,kij->k", S, Thetas) - np.linalg.slogdet(Thetas)[1])


def _distance(a: Index, b: Index) -> int:
    return sum(abs(i - j) for i, j in zip(a, b, strict=True))
