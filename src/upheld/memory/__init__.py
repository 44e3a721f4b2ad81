"""Thermal dense associative memory: recall from damaged cues, refusal, and the load at which both fail.

For whom: engineers who store vectors and must find the right one from a partial cue or say that it is none of them; users of torch who
want an attention layer whose support ends; theorists who ask how many patterns, at which temperature, before retrieval is lost. Phase
boundaries come in the paper's Gaussian approximation and in the exact geometry of the sphere, with samplers that test them.

Paper: T. Petrova, E. Polyachenko, R. State, *Geometric Entropy and Retrieval Phase Transitions in Continuous Dense Associative Memory*,
ICML 2026 (arXiv 2604.07401).

>>> import numpy as np
>>> from upheld.memory import AssociativeMemory
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(300, 64))
>>> memory = AssociativeMemory(random_state=0).fit(X)
>>> memory.predict(X[:2] + 0.2 * rng.normal(size=(2, 64))).tolist(), bool(memory.margin_ > 0)
([0, 1], True)

Where to look: `upheld.memory.theory` and `upheld.memory.escape` (boundaries), `upheld.memory.montecarlo` (samplers),
`upheld.memory.energies`, `upheld.memory.recall`, `upheld.memory.layers` (torch), `upheld.memory.estimator` (scikit-learn).
"""

from __future__ import annotations

from typing import Any

from upheld.memory import theory
from upheld.memory.montecarlo import SphereSampler, Trace

__all__ = [
    "AssociativeMemory", "DenseAssociativeMemory", "KernelAttention", "LSEEnergy", "LSREnergy", "SphereSampler", "Trace", "theory",
]  # fmt: skip
_LATER = {  # torch and scikit-learn are imported when they are asked for
    "AssociativeMemory": "estimator", "DenseAssociativeMemory": "layers", "KernelAttention": "layers", "LSEEnergy": "energies",
    "LSREnergy": "energies",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
