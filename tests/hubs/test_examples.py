"""The examples in the docstrings give what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["", ".data", ".detector", ".eigenspaces", ".inverse_components", ".table"])
def test_examples(module):
    failed, attempted = doctest.testmod(importlib.import_module(f"upheld.hubs{module}"))
    assert attempted > 0
    assert failed == 0
