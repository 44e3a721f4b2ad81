from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # scripted_agent.py

from upheld.sandbox import Sandbox, protections

STRONG = protections().strong


@pytest.fixture(scope="session")
def sandbox():
    if not STRONG:
        pytest.skip("this machine cannot confine a program")
    with Sandbox(preload=["numpy"]) as running:
        yield running
