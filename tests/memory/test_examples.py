"""Examples in docstrings give what they show."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import upheld.memory

MODULES = [
    found.name for found in pkgutil.walk_packages(upheld.memory.__path__, "upheld.memory.") if not found.name.endswith("_kernels")
]  # fmt: skip


@pytest.mark.parametrize("name", ["upheld.memory", *MODULES])
@pytest.mark.filterwarnings("ignore")
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
