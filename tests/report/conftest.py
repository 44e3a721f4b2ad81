"""Results of two toy methods, built once: every outcome, failures, and names that would like to be HTML."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from upheld.claims import Scale
from upheld.report.results import MethodResults

sys.path.insert(0, str(Path(__file__).parent))
import report_toys


@pytest.fixture(scope="session")
def toy_packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder on the path that holds the toy packages."""
    folder = tmp_path_factory.mktemp("toys")
    report_toys.make_packages(folder)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture(scope="session")
def results(toy_packages: Path) -> Sequence[MethodResults]:
    return report_toys.build(toy_packages)


@pytest.fixture(scope="session")
def smoke_results(toy_packages: Path) -> Sequence[MethodResults]:
    return report_toys.build(toy_packages, Scale.SMOKE)
