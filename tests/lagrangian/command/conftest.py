"""Models on disk: assignment problems as our own writer and as OR-Tools write them."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from upheld import catalog
from upheld.lagrangian import data
from upheld.lagrangian.families import GAP

LISTED = catalog.Method(
    "lagrangian",
    title="Learned Lagrangian relaxation",
    field="optimisation",
    summary="certified bounds",
    paper="Le, Nguyen, Nguyen",
)


@pytest.fixture
def lagrangian(inside, monkeypatch) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``upheld run lagrangian`` in this process, whether or not the catalog lists the method yet."""
    if "lagrangian" not in {method.name for method in catalog.METHODS}:
        monkeypatch.setattr(catalog, "METHODS", (*catalog.METHODS, LISTED))
    return lambda *arguments: inside("run", "lagrangian", *arguments)


@pytest.fixture(scope="session")
def instances() -> list[GAP]:
    """Seven days of one assignment problem, 3 agents and 7 tasks."""
    return list(itertools.islice(data.gap_stream("D", 3, 7, np.random.default_rng(5)), 7))


@pytest.fixture
def days(tmp_path: Path, instances: list[GAP]) -> Path:
    """``past/day_1.mps`` to ``day_5.mps``, ``today.mps`` and ``tomorrow.mps``; the coupling rows are ``assign_1`` to ``assign_7``."""
    data.write_instances(tmp_path / "past", list(instances[:5]), [f"day_{k}" for k in range(1, 6)])
    data.write_instances(tmp_path, list(instances[5:]), ["today", "tomorrow"])
    return tmp_path
