"""Whom a user would otherwise ask for common hubs.

To add a rival, put one object into `RIVALS`: a `PenalisedNetworks` around a `Solver` if it estimates networks at a
penalty that must be chosen, a `NodeMeasure` if it goes straight to a number per node, or anything else with a ``name``,
a ``title`` and a ``detect`` as :class:`upheld.hubs.contest.Detector` describes it.

The networks come from `gglasso` (Schaipp, Vlasovets & Mueller 2021) at its own tolerances. All penalties are
relative to m = max |S_ij|, i != j, the largest correlation, at which the graphical lasso has no edge left.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache, partial
from io import StringIO
from types import ModuleType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import zscore

from upheld.hubs.contest import Detector, HubCall, NodeMeasure, PenalisedNetworks, Tuning, contest
from upheld.hubs.covariance import correlation
from upheld.hubs.detector import dimension
from upheld.hubs.hub_graphical_lasso import hub_graphical_lasso
from upheld.hubs.inverse_components import Fallback, identified_influence, n_components_by_ratio
from upheld.hubs.tuning import Networks, PenaltyLattice, Sample, Solver
from upheld.hubs.weighted_graphical_lasso import graphical_lasso, hub_weights

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class GraphicalLassoSolver(Solver):
    """Graphical lasso of one network (Friedman, Hastie & Tibshirani 2008), plain or with the hub weights.

    Penalties: ten, log-spaced, from 0.05 to 1 times the smallest one that leaves no edge.
    """

    weighted: bool = False

    def lattice(self, sample: Sample) -> PenaltyLattice:
        size, weights = _off_diagonal(sample.S[0]), self._weights(sample)
        empty = np.max(size if weights is None else size / (weights + np.eye(len(size))))
        return PenaltyLattice(smallest=(0.05 * float(empty),), largest=(float(empty),), size=(10,))

    def solve(self, sample: Sample, penalty: tuple[float, ...], start: Networks | None) -> Networks:
        solution = graphical_lasso(
            sample.S[0],
            penalty[0],
            weights=self._weights(sample),
            start=None if start is None else start.Thetas[0],
        )
        network = solution.network[None]
        return Networks(network, solution.Theta[None], _n_edges(network), solution.converged)

    def _weights(self, sample: Sample) -> FloatArray | None:
        return hub_weights(sample.S[0], int(sample.n[0])) if self.weighted else None


@dataclass(frozen=True)
class JointGraphicalLassoSolver(Solver):
    """Joint graphical lasso (Danaher, Wang & Witten 2014).

    Penalises l1 |Theta_k[i,j]| summed over groups, plus l2 times the Euclidean norm over groups of each entry ("group"),
    or the absolute differences between groups that are neighbours in the order given ("fused"; the paper's is over all pairs,
    `gglasso` has the one over neighbours). Groups weigh alike, the default of the authors'
    R package too. Penalties: l1 four, log-spaced from 0.08 m to 0.5 m; l2/l1 0.3 and 1.
    """

    penalty: Literal["group", "fused"] = "group"
    gamma: float = 0.1

    def lattice(self, sample: Sample) -> PenaltyLattice:
        m = _largest_correlation(sample.S)
        return PenaltyLattice(smallest=(0.08 * m, 0.3), largest=(0.5 * m, 1.0), size=(4, 2))

    def solve(self, sample: Sample, penalty: tuple[float, ...], start: Networks | None) -> Networks:
        from gglasso.solver.admm_solver import ADMM_MGL

        S, (l1, ratio) = sample.S, penalty
        Theta_0 = np.stack([np.eye(S.shape[-1])] * len(S)) if start is None else start.Thetas
        # As for one network: at the solution the dual variable is Theta^{-1} - S.
        dual = np.linalg.inv(Theta_0) - S
        diagonal = np.arange(S.shape[-1])
        dual[:, diagonal, diagonal] = 0.0
        reg = {"group": "GGL", "fused": "FGL"}[self.penalty]
        with redirect_stdout(StringIO()):
            solution, info = ADMM_MGL(S, l1, ratio * l1, reg, Theta_0, X_0=dual)
        network = solution["Theta"]
        return Networks(network, solution["Omega"], _n_edges(network), info["status"] == "optimal")


@dataclass(frozen=True)
class HubGraphicalLassoSolver(Solver):
    """Hub graphical lasso (Tan et al. 2014) of one network, with their BIC.

    Penalties: l1 0.2 m and 0.4 m, l2 = l1/2, l3/l1 1, 3.2 and 10.
    """

    def lattice(self, sample: Sample) -> PenaltyLattice:
        m = _largest_correlation(sample.S)
        return PenaltyLattice(smallest=(0.2 * m, 1.0), largest=(0.4 * m, 10.0), size=(2, 3))

    def solve(self, sample: Sample, penalty: tuple[float, ...], start: Networks | None) -> Networks:
        l1, ratio = penalty
        fit = hub_graphical_lasso(sample.S[0], l1, l1 / 2, ratio * l1, start=None if start is None else start.state)
        return Networks(fit.network[None], fit.Theta[None], np.array([fit.n_parameters()]), fit.converged, state=fit)


def average_matrix_influence(Xs: Sequence[FloatArray], rng: np.random.Generator) -> FloatArray:
    """Influence in the bottom eigenspace of the plain average of the correlation matrices, dimension floor(sqrt(p)).

    One line of code, and equal to the joint minimax eigenspace whenever all groups bind alike: the honest rival.
    """
    mean = np.mean([correlation(X) for X in Xs], axis=0)
    return identified_influence(mean, int(np.sqrt(len(mean))))[None]


def single_network_influence(Xs: Sequence[FloatArray], rng: np.random.Generator, fallback: Fallback) -> FloatArray:
    """IPC-HD in each group by itself.

    With n <= p a group's correlation matrix is singular. Its published rule for the number of components then sees an
    infinite ratio next to the null space, and its eigenvectors inside the null space are arbitrary. Here, to give it the
    best chance, the rule falls back on its default size and a null space larger than that enters whole.
    """
    influences = []
    for X in Xs:
        S = correlation(X)
        singular = len(X) <= len(S)
        s = dimension(fallback, len(S)) if singular else n_components_by_ratio(np.linalg.eigvalsh(S), fallback)
        influences.append(identified_influence(S, s))
    return np.stack(influences)


def pooled_influence(Xs: Sequence[FloatArray], rng: np.random.Generator) -> FloatArray:
    """IPC-HD on all samples together, after every variable was standardised within its group."""
    return single_network_influence([np.vstack([zscore(X) for X in Xs])], rng, "sqrt")


def nodewise_lasso_strength(Xs: Sequence[FloatArray], rng: np.random.Generator) -> FloatArray:
    """Sum of absolute coefficients into and out of each node, each node regressed on all others by `LassoCV`.

    Meinshausen & Buhlmann (2006), on standardised variables, five folds.
    """
    from sklearn.linear_model import LassoCV

    strength = np.zeros((len(Xs), Xs[0].shape[1]))
    for k, X in enumerate(Xs):
        Z = zscore(X)
        for j in range(Z.shape[1]):
            others = np.delete(np.arange(Z.shape[1]), j)
            size = np.abs(LassoCV(cv=5).fit(Z[:, others], Z[:, j]).coef_)
            strength[k, j] += size.sum()
            strength[k, others] += size
    return strength


def marginal_strength(Xs: Sequence[FloatArray], rng: np.random.Generator) -> FloatArray:
    """Norm of each row of the correlation matrix, off the diagonal: no conditioning at all."""
    return np.stack([np.linalg.norm(_off_diagonal(correlation(X)), axis=1) for X in Xs])


def random_order(Xs: Sequence[FloatArray], rng: np.random.Generator) -> FloatArray:
    """Uniform noise."""
    return rng.random((1, Xs[0].shape[1]))


RIVALS: tuple[Detector, ...] = (
    NodeMeasure("average-ipc", "Inverse components of the average matrix", average_matrix_influence),
    NodeMeasure("ipc-sqrt", "Inverse components per group", partial(single_network_influence, fallback="sqrt")),
    NodeMeasure(
        "ipc-frac", "Inverse components per group, s = p/5", partial(single_network_influence, fallback="frac")
    ),
    NodeMeasure("pooled-ipc", "Inverse components of the pooled samples", pooled_influence),
    PenalisedNetworks("graphical-lasso", "Graphical lasso", GraphicalLassoSolver()),
    PenalisedNetworks("group-lasso", "Joint graphical lasso, group", JointGraphicalLassoSolver("group"), joint=True),
    PenalisedNetworks("fused-lasso", "Joint graphical lasso, fused", JointGraphicalLassoSolver("fused"), joint=True),
    PenalisedNetworks("hub-weighted-lasso", "Hub-weighted graphical lasso", GraphicalLassoSolver(weighted=True)),
    PenalisedNetworks("hub-lasso", "Hub graphical lasso", HubGraphicalLassoSolver()),
    NodeMeasure("nodewise-lasso", "Nodewise lasso", nodewise_lasso_strength),
    NodeMeasure("marginal", "Marginal correlations", marginal_strength),
    NodeMeasure("random", "Random order", random_order),
)


def rival(name: str) -> Detector:
    """The member of `RIVALS` of that name."""
    for each in RIVALS:
        if each.name == name:
            return each
    raise ValueError(f"there is no rival {name!r}; there are {', '.join(each.name for each in RIVALS)}")


def race(
    Xs: Sequence[ArrayLike],
    *,
    rivals: Sequence[str] | None = None,
    tunings: Sequence[Tuning] = ("ic", "cv"),
    hubs: ArrayLike | None = None,
    rng: np.random.Generator,
) -> list[HubCall]:
    """Ask the rivals, by name, or all of them, for the common hubs of K groups; `contest` says what goes in and comes out.

    `warm_up` is called first, so that no one's seconds hold compilation.

    Examples
    --------
    >>> from upheld.hubs.data import make_hub_networks
    >>> networks = make_hub_networks(30, 40, n_common=2, n_individual=0, random_state=1)
    >>> calls = race(networks.Xs, rivals=["average-ipc"], rng=np.random.default_rng(0))
    >>> [(call.detector, call.tuning, call.score.shape) for call in calls]
    [('average-ipc', 'none', (30,))]
    """
    entrants = list(RIVALS) if rivals is None else [rival(name) for name in rivals]
    if any(isinstance(entrant, PenalisedNetworks) for entrant in entrants):
        warm_up()
    return contest(entrants, Xs, tunings=tunings, hubs=hubs, rng=rng)


@cache
def warm_up() -> None:
    """Compile the solvers, once a process: seconds where the compiled code was kept from an earlier one, else about 20."""
    from gglasso.helper import basic_linalg
    from gglasso.solver import fgl_helper, ggl_helper

    for module in (basic_linalg, fgl_helper, ggl_helper):
        _keep_compiled(module)
    Xs = [np.random.default_rng(k).standard_normal((12, 6)) for k in range(3)]
    contest([each for each in RIVALS if isinstance(each, PenalisedNetworks)], Xs, rng=np.random.default_rng(0))


def _keep_compiled(module: ModuleType) -> None:
    """Let numba keep the machine code of a module's functions on disk, which `gglasso` does not ask for."""
    from numba.core.dispatcher import Dispatcher

    for function in vars(module).values():
        if isinstance(function, Dispatcher):
            # Raised where no folder can be written; then every process compiles anew, as without us.
            with suppress(RuntimeError):
                function.enable_caching()


def _largest_correlation(S: FloatArray) -> float:
    return float(max(_off_diagonal(matrix).max() for matrix in S))


def _off_diagonal(S: FloatArray) -> FloatArray:
    return np.abs(S) * (1 - np.eye(len(S)))


def _n_edges(networks: FloatArray) -> FloatArray:
    return np.array([np.count_nonzero(np.triu(network, 1)) for network in networks], dtype=float)
