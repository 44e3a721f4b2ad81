"""The examples in the docstrings give what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = ["data", "detector", "eigenspaces", "enrichment", "hub_graphical_lasso", "inverse_components", "metrics", "plots", "rivals",
           "selection", "table", "tuning", "weighted_graphical_lasso"]  # fmt: skip


@pytest.mark.parametrize("module", ["upheld.hubs", *(f"upheld.hubs.{name}" for name in MODULES)])
def test_examples(module):
    failed, attempted = doctest.testmod(importlib.import_module(module))
    assert attempted > 0
    assert failed == 0
