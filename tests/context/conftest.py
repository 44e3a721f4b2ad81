from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from context_samples import drawn, hashed

from upheld.context import Sample, Task


@pytest.fixture
def embed():
    return hashed


@pytest.fixture
def task() -> Task:
    return Task(drawn(40, 0))


@pytest.fixture
def val() -> list[Sample]:
    return drawn(24, 1, "v")
