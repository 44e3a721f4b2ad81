"""Simulated networks with common and individual hubs, the embedded tumour table, and loaders for the user's own files.

The generator follows the authors' simulation code for JIC-HD ("Identifying Common Hubs in Multiple Gaussian Graphical
Models", ICML 2026): K precision matrices that share one matrix of edge weights, one sparse background and the rows of
the common hubs, while each individual hub lives in a single group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from upheld.hubs.files import load_files, load_table

__all__ = ["HubNetworks", "load_files", "load_khan", "load_table", "make_hub_networks", "write_khan"]

KHAN = "khan.csv.xz"

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Probability = float | tuple[float, float]


@dataclass(frozen=True)
class HubNetworks:
    """K Gaussian graphical models over the same p variables, samples from them, and the truth about their hubs.

    Attributes
    ----------
    Xs : K arrays (n_k, p), Gaussian samples with mean zero and precision ``Thetas[k]``
    Thetas : K arrays (p, p), positive definite; (i, j) is an edge of group k iff ``Thetas[k][i, j] != 0``
    common : sorted indices of the hubs of every group
    individual : for each group, sorted indices of the hubs of that group alone
    near_common : sorted indices of the hubs of all groups but the last
    """

    Xs: list[FloatArray]
    Thetas: list[FloatArray]
    common: IntArray
    individual: list[IntArray]
    near_common: IntArray

    @property
    def n_variables(self) -> int:
        return len(self.Thetas[0])

    @property
    def is_common(self) -> NDArray[np.bool_]:
        """(p,) mask of the common hubs."""
        mask = np.zeros(self.n_variables, dtype=bool)
        mask[self.common] = True
        return mask

    def stacked(self) -> tuple[FloatArray, IntArray]:
        """All samples below each other, (sum n_k, p), and their group labels 0..K-1."""
        return np.vstack(self.Xs), np.repeat(np.arange(len(self.Xs)), [len(X) for X in self.Xs])

    def sample(self, n_samples: int | Sequence[int], random_state: int | np.random.Generator) -> list[FloatArray]:
        """Fresh samples from the same networks, K arrays (n_k, p)."""
        rng = np.random.default_rng(random_state)
        sizes = _sizes(n_samples, len(self.Thetas))
        return [_gaussian_sample(Theta, n, rng) for Theta, n in zip(self.Thetas, sizes, strict=True)]

    def covariances(self) -> list[FloatArray]:
        """Population covariances, the inverses of ``Thetas``."""
        return [np.asarray(np.linalg.inv(Theta), dtype=float) for Theta in self.Thetas]

    def correlations(self) -> list[FloatArray]:
        """Population correlations."""
        scaled = []
        for Sigma in self.covariances():
            sd = np.sqrt(np.diag(Sigma))
            scaled.append(Sigma / np.outer(sd, sd))
        return scaled


def make_hub_networks(
    n_variables: int = 100,
    n_samples: int | Sequence[int] = 100,
    *,
    n_groups: int = 3,
    n_common: int = 5,
    n_individual: int = 5,
    n_near_common: int = 0,
    p_common: Probability = (0.4, 0.7),
    p_individual: Probability = (0.5, 0.8),
    p_background: float = 0.05,
    weights: Literal["uniform", "gaussian"] = "uniform",
    min_eigenvalue: float = 2.0,
    n_active: int | None = None,
    shuffle: bool = True,
    random_state: int | np.random.Generator | None = None,
) -> HubNetworks:
    """Draw K networks with common and individual hubs, and Gaussian samples from each.

    One symmetric matrix of weights is shared by all groups. Background edges (probability `p_background`) and the rows
    of the common hubs (`p_common`) are shared too. An individual hub has a row of edges (`p_individual`) in its own
    group only, and takes no part in the shared background; an edge between two hubs is drawn once, and the row of a
    common hub takes precedence. All groups get the same diagonal shift, so that the smallest eigenvalue over all
    groups equals `min_eigenvalue`.

    Parameters
    ----------
    n_variables : p
    n_samples : samples per group, or one number for each group; 0 when only the networks are wanted
    n_groups : K
    n_common, n_individual : number of hubs of all groups, and of hubs of each single group
    n_near_common : number of variables that are hubs (`p_individual`, one draw) in groups 1..K-1 and keep only their
        background edges in the last one
    p_common, p_individual : probability of an edge in a hub's row; a pair (low, high) draws one probability per hub
    p_background : probability of an edge between two variables that are no hubs
    weights : law of the edge weights: magnitude uniform on (4, 5) with a random sign, or standard normal
    min_eigenvalue : smallest eigenvalue over all precision matrices
    n_active : only this many variables, hubs included, may have edges; the rest are independent noise
    shuffle : put the hubs at random positions; otherwise common hubs come first, then near-common, then individual
    random_state : seed or generator

    Raises
    ------
    ValueError
        If the hubs do not fit into the active variables, or a probability lies outside [0, 1].

    Notes
    -----
    Source: the authors' public simulation code (facts only). Grid used there: p in {100, 200, 400},
    n/p in {0.5, 0.75, 1, 1.25}, 5, 10 or 15 common and 5 individual hubs. The near-common design is ours.

    Examples
    --------
    >>> networks = make_hub_networks(60, 30, n_common=4, n_individual=4, random_state=0)
    >>> [X.shape for X in networks.Xs], len(networks.common)
    ([(30, 60), (30, 60), (30, 60)], 4)
    >>> float(min(np.linalg.eigvalsh(Theta)[0] for Theta in networks.Thetas).round(6))
    2.0
    """
    rng = np.random.default_rng(random_state)
    p, active = n_variables, n_variables if n_active is None else n_active
    n_hubs = n_common + n_near_common + n_groups * n_individual
    if min(n_common, n_individual, n_near_common) < 0 or not n_hubs <= active <= p:
        raise ValueError(
            f"{n_common} common, {n_near_common} near-common and {n_groups} x {n_individual} individual hubs need "
            f"at least {n_hubs} active variables and at most n_variables={p}, got {active}"
        )
    for name, value in (("p_common", p_common), ("p_individual", p_individual), ("p_background", p_background)):
        low, high = value if isinstance(value, tuple) else (value, value)
        if not 0 <= low <= high <= 1:
            raise ValueError(f"{name} must be a probability or a pair (low, high) inside [0, 1], got {value}")

    common = np.arange(n_common)
    near_common = np.arange(n_common, n_common + n_near_common)
    individual = np.arange(n_common + n_near_common, n_hubs).reshape(n_groups, n_individual)

    edge_weights = _edge_weights(active, weights, rng)
    background = _random_rows(np.full(active, p_background), rng)
    background[individual.ravel(), :] = background[:, individual.ravel()] = False
    common_rows = _random_rows(_hub_probabilities(p_common, n_common, rng), rng, active)
    near_rows = _random_rows(_hub_probabilities(p_individual, n_near_common, rng), rng, active)

    adjacency = []
    for k in range(n_groups):
        edges = background.copy()
        if k < n_groups - 1:
            _write_rows(edges, near_common, near_rows)
        own_rows = _random_rows(_hub_probabilities(p_individual, n_individual, rng), rng, active)
        _write_rows(edges, individual[k], own_rows)
        _write_rows(edges, common, common_rows)
        A = np.zeros((p, p))
        A[:active, :active] = edge_weights * edges
        adjacency.append(A)

    shift = min_eigenvalue - min(np.linalg.eigvalsh(A)[0] for A in adjacency)
    order = rng.permutation(p) if shuffle else np.arange(p)
    position = np.argsort(order)
    Thetas = [(A + shift * np.eye(p))[np.ix_(order, order)] for A in adjacency]
    Xs = [_gaussian_sample(Theta, n, rng) for Theta, n in zip(Thetas, _sizes(n_samples, n_groups), strict=True)]
    return HubNetworks(
        Xs,
        Thetas,
        common=np.sort(position[common]),
        individual=[np.sort(position[hubs]) for hubs in individual],
        near_common=np.sort(position[near_common]),
    )


def _edge_weights(p: int, law: str, rng: np.random.Generator) -> FloatArray:
    if law == "uniform":
        W = rng.uniform(4, 5, (p, p)) * rng.choice([-1.0, 1.0], (p, p))
    elif law == "gaussian":
        W = rng.standard_normal((p, p))
    else:
        raise ValueError(f"weights must be 'uniform' or 'gaussian', got {law!r}")
    upper = np.triu(W, 1)
    symmetric: FloatArray = upper + upper.T
    return symmetric


def _hub_probabilities(p: Probability, n_hubs: int, rng: np.random.Generator) -> FloatArray:
    low, high = p if isinstance(p, tuple) else (p, p)
    return rng.uniform(low, high, n_hubs)


def _random_rows(probability: FloatArray, rng: np.random.Generator, n_columns: int | None = None) -> NDArray[np.bool_]:
    """Rows of Bernoulli edges, one probability a row; square and symmetric when `n_columns` is left out."""
    columns = len(probability) if n_columns is None else n_columns
    rows = rng.random((len(probability), columns)) < probability[:, None]
    if n_columns is None:
        upper = np.triu(rows, 1)
        return upper | upper.T
    return rows


def _write_rows(edges: NDArray[np.bool_], hubs: IntArray, rows: NDArray[np.bool_]) -> None:
    """Replace the rows and columns of `hubs`; an edge between two of them is the draw of the earlier one."""
    for hub, row in zip(hubs[::-1], rows[::-1], strict=True):
        edges[hub, :] = row
        edges[:, hub] = row
        edges[hub, hub] = False


def _sizes(n_samples: int | Sequence[int], n_groups: int) -> list[int]:
    if isinstance(n_samples, (int, np.integer)):
        return [int(n_samples)] * n_groups
    sizes = [int(n) for n in n_samples]
    if len(sizes) != n_groups:
        raise ValueError(f"n_samples holds {len(sizes)} numbers for {n_groups} groups; give one, or one for each group")
    return sizes


def _gaussian_sample(Theta: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """n draws from N(0, Theta^{-1}): with Theta = L L', solve L' x = z."""
    z = rng.standard_normal((n, Theta.shape[0]))
    if n == 0:
        return z
    x: FloatArray = solve_triangular(np.linalg.cholesky(Theta), z.T, lower=True, trans="T").T
    return np.ascontiguousarray(x)


def load_khan(top: int | None = None) -> tuple[pd.DataFrame, pd.Series[str]]:
    """Gene expression of 83 small round blue cell tumours of childhood, and their subtypes.

    Parameters
    ----------
    top : keep the genes with the largest pooled within-class variance (divisor n - 4), in the table's order. 60 suits one
        fit (the degeneracy limit is 79), 30 wherever the data are split or bootstrapped (limit 36)

    Returns
    -------
    X : (83, 2308 or `top`) log expression, genes named G0001.. by column; the source has no gene symbols
    subtype : (83,) BL (11), EWS (29), NB (18), RMS (25)

    Notes
    -----
    Khan et al., Nature Medicine 7 (2001) 673-679, from the package ISLP 0.6.0; licence and changes in ``khan.md`` beside
    this file.

    Examples
    --------
    >>> X, subtype = load_khan(top=60)
    >>> X.shape, subtype.value_counts().to_dict()
    ((83, 60), {'EWS': 29, 'RMS': 25, 'NB': 18, 'BL': 11})
    """
    with as_file(files("upheld.hubs") / KHAN) as path:
        table = pd.read_csv(path, index_col="sample")
    subtype = table.pop("subtype")
    if top is None:
        return table, subtype
    if not 2 <= top <= table.shape[1]:
        raise ValueError(f"top must lie between 2 and the number of genes {table.shape[1]}, got {top}")
    within = table - table.groupby(subtype).transform("mean")
    variance = (within**2).sum() / (len(table) - subtype.nunique())
    genes = np.sort(np.argsort(-variance.to_numpy(), kind="stable")[:top])
    return table.iloc[:, genes], subtype


def write_khan(path: str | Path, top: int | None = 60) -> None:
    """The Khan table as a user would bring it: a csv file with the columns ``sample``, ``subtype`` and the genes."""
    X, subtype = load_khan(top)
    pd.concat([subtype, X], axis=1).to_csv(path, index_label="sample")
