from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

# Workers must be able to import the jobs, as they import a method.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def children() -> Callable[[], list[psutil.Process]]:
    """Processes that this one, or a child of it, has started since the test began; zombies count.

    Tests of other files in this process may have left workers that wait for more, as joblib's do.
    """
    earlier = set(psutil.Process().children(recursive=True))
    return lambda: [process for process in psutil.Process().children(recursive=True) if process not in earlier]
