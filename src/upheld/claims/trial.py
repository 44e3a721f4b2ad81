"""One independent repetition of an experiment, and what it measures.

All randomness of a trial derives from (experiment, condition, seed), never from the scale, the worker or the clock, so a
trial gives the same numbers at every scale, in any process, in any order.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

Scalar = str | int | float | bool
Condition = Mapping[str, Scalar]


class Scale(StrEnum):
    """How much is measured, never what."""

    SMOKE = "smoke"
    QUICK = "quick"
    STANDARD = "standard"
    FULL = "full"


class NotRun(Exception):
    """Raised by a measurement that cannot be made here, with the reason: a data set that only the user has, a missing GPU.

    The trial is recorded as *not run*; it counts neither as a measurement nor as a failure, and is tried again next time.
    """


@dataclass(frozen=True)
class Measurement:
    """One number in long format.

    Parameters
    ----------
    method : who was measured, ``"jic"``, ``"glasso"``
    metric : what was measured, ``"auc"``, ``"seconds"``
    value : the number; infinity is a value, NaN is refused
    item : which part of the trial, when one trial measures several: a run, a task, a prompt
    """

    method: str
    metric: str
    value: float
    item: str = ""

    def __post_init__(self) -> None:
        for field in ("method", "metric", "item"):
            if not isinstance(getattr(self, field), str):
                raise TypeError(f"{field} of a measurement must be text, got {getattr(self, field)!r}")
        if math.isnan(self.value):
            raise ValueError(
                f"{self.method}: {self.metric} is NaN; a trial that cannot measure should say why by raising"
            )
        object.__setattr__(self, "value", float(self.value))  # it travels: no scalar of NumPy or torch does


@dataclass(frozen=True)
class Trial:
    """One repetition: experiment, condition, seed, scale."""

    experiment: str
    condition: Condition
    seed: int
    scale: Scale

    def rng(self, stream: str = "", *, ignoring: tuple[str, ...] = ()) -> np.random.Generator:
        """Generator of the named stream.

        Parameters
        ----------
        stream : trials that draw several things name them, so that one does not move the other
        ignoring : condition keys that shall not change the draw. A network that stays the same while the sample size
            ``n`` varies is drawn from ``trial.rng("network", ignoring=("n",))``.
        """
        return np.random.default_rng(self._entropy(stream, ignoring))

    def torch_generator(self, stream: str = "", *, ignoring: tuple[str, ...] = ()) -> torch.Generator:
        """The same for torch, on the CPU."""
        import torch

        return torch.Generator().manual_seed(self._entropy(stream, ignoring) % 2**63)

    def _entropy(self, stream: str, ignoring: tuple[str, ...]) -> int:
        unknown = set(ignoring) - set(self.condition)
        if unknown:
            raise ValueError(
                f"{self.experiment}: no condition {sorted(unknown)} to ignore; there are {sorted(self.condition)}"
            )
        kept = {key: value for key, value in self.condition.items() if key not in ignoring}
        text = "\n".join((self.experiment, canonical(kept), str(self.seed), stream))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")

    def __str__(self) -> str:
        shown = ", ".join(f"{key}={value}" for key, value in self.condition.items())
        return f"{self.experiment}({shown}) seed {self.seed}"


def canonical(condition: Condition) -> str:
    """The one text of a condition: keys sorted, so that two orders of writing are the same condition."""
    return json.dumps(dict(condition), sort_keys=True, separators=(",", ":"), allow_nan=False)
