"""The examples in the docstrings give what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = ["bernstein", "bounds", "branch_and_bound", "cflp", "column_generation", "command.formats", "contextual", "covering",
           "data", "drift", "dual", "gap", "hard_family",
           "instance", "learners", "minimum_norm", "oracles", "projection", "routing", "saving", "tracking", "unit_commitment"]  # fmt: skip


@pytest.mark.parametrize("module", ["upheld.lagrangian", *(f"upheld.lagrangian.{name}" for name in MODULES)])
def test_examples(module):
    failed, attempted = doctest.testmod(importlib.import_module(module))
    assert attempted > 0
    assert failed == 0
