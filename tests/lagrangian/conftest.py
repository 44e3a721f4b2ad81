"""Small instances of every family, whose monoliths HiGHS solves in a moment."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from upheld.lagrangian import data
from upheld.lagrangian.families import CFLP, CVRP, GAP, HardFamily, MultiKnapsack, SetCovering, UnitCommitment, Units
from upheld.lagrangian.oracles import Instance


def small_units() -> Units:
    """Three of the ten units: slow, middling and quick."""
    units = data.ten_units()
    return Units(*(getattr(units, name)[[0, 2, 9]] for name in Units.__dataclass_fields__))


def unit_commitment(rng: np.random.Generator, cost: str = "piecewise") -> UnitCommitment:
    return UnitCommitment(small_units(), rng.uniform(200, 450, 8), 0.1, cost)


def gap(rng: np.random.Generator) -> GAP:
    return data.gap("D", 3, 7, rng)


def knapsacks(rng: np.random.Generator) -> MultiKnapsack:
    W = rng.integers(1, 40, (4, 14))
    return MultiKnapsack(rng.integers(1, 100, 14), W, np.floor(W.sum(axis=1) / 3))


def covering(rng: np.random.Generator) -> SetCovering:
    return data.set_covering(8, 20, rng, density=0.2)


def location(rng: np.random.Generator) -> CFLP:
    return data.cflp(4, 7, rng)


def routing(rng: np.random.Generator) -> CVRP:
    return data.cvrp(5, rng, vehicles=2, route="elementary")


def hard(rng: np.random.Generator) -> HardFamily:
    return HardFamily(rng.uniform(0.1, 0.9, 6))


DRAW: dict[str, Callable[[np.random.Generator], Instance]] = {
    "gap": gap, "knapsacks": knapsacks, "covering": covering, "location": location, "routing": routing,
    "unit commitment": unit_commitment, "hard": hard,
}  # fmt: skip
SCALE = {"gap": 150, "knapsacks": 3, "covering": 60, "location": 300, "routing": 150, "unit commitment": 30, "hard": 1}


@pytest.fixture
def knapsack_columns() -> Callable[[GAP], list[list[np.ndarray]]]:
    """For every agent of an assignment problem, all sets of tasks that it can carry."""

    def columns(P: GAP) -> list[list[np.ndarray]]:
        sets = [np.array(bits) for bits in itertools.product([0, 1], repeat=P.n)]
        return [[bits for bits in sets if P.weight[i] @ bits <= P.capacity[i]] for i in range(P.m)]

    return columns


@pytest.fixture(params=DRAW, ids=lambda name: name.replace(" ", "-"))
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def draw(family: str) -> Callable[[int], Instance]:
    """An instance of the family for a seed."""
    return lambda seed: DRAW[family](np.random.default_rng(seed))


@pytest.fixture
def some_pi(family: str) -> Callable[[Instance, np.random.Generator], np.ndarray]:
    """Random multipliers in Pi, of the size that matters for the family."""

    def at(P: Instance, rng: np.random.Generator) -> np.ndarray:
        return np.where(P.equality, rng.uniform(-0.5, 1, P.n_rows), rng.uniform(0, 1, P.n_rows)) * SCALE[family]

    return at
