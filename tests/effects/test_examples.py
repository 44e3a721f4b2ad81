"""The examples in the docstrings run and say what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import upheld.effects

MODULES = ["upheld.effects", *(f"upheld.effects.{one.name}" for one in pkgutil.iter_modules(upheld.effects.__path__))]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    with np.printoptions(legacy="1.25"):
        assert doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
