"""All policies, ours and the rivals, by name.

>>> from upheld.bandits import policies
>>> policy = policies.SatUCB(3, threshold=0.5, random_state=0)
>>> policies.get("uncertain-ucb-safe").name
'uncertain-ucb-safe'
"""

from __future__ import annotations

from typing import Any

from upheld.bandits.policy import REGISTRY, Policy, RulePolicy, UncertainUCB
from upheld.bandits.rivals import (
    KLUCB,
    MOSS,
    UCB,
    UCL,
    MABWiser,
    SatUCB,
    SatUCBPlus,
    Select,
    SimpleSat,
    Thompson,
)
from upheld.bandits.rule import Rule

__all__ = [
    "KLUCB",
    "MOSS",
    "REGISTRY",
    "UCB",
    "UCL",
    "MABWiser",
    "Policy",
    "Rule",
    "RulePolicy",
    "SatUCB",
    "SatUCBPlus",
    "Select",
    "SimpleSat",
    "Thompson",
    "UncertainUCB",
    "get",
    "make",
    "names",
]


def names() -> list[str]:
    """Names under which policies can be raced."""
    return sorted(REGISTRY)


def _entry(name: str) -> tuple[type[Policy], dict[str, Any]]:
    if name not in REGISTRY:
        raise ValueError(f"no policy is called {name!r}; there are {', '.join(names())}")
    return REGISTRY[name]


def get(name: str, **parameters: Any) -> Rule:
    """The rule called `name`, with `parameters` (such as ``width=0.5``) on top of those the name stands for."""
    cls, preset = _entry(name)
    if not issubclass(cls, RulePolicy):
        raise ValueError(f"{name} is an adapter and has no rule; pass its name to simulate, or use make()")
    return cls.rule(**{**preset, **parameters})


def make(name: str, arms: Any, threshold: float, **parameters: Any) -> Policy:
    """The policy called `name`, ready to be played step by step on `arms`."""
    cls, preset = _entry(name)
    return cls(arms, threshold, **{**preset, **parameters})
