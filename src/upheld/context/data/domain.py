"""A domain: a task, and the rules that made it where they are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from upheld.context.task import Sample, Task


@dataclass(frozen=True)
class Domain:
    """Samples with their true rule table; plain data, to be saved beside results."""

    name: str
    task: Task
    rules: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def split(self, seed: int, train: int, val: int, test: int) -> tuple[list[Sample], list[Sample], list[Sample]]:
        """Disjoint samples. Raises ValueError when there are too few."""
        wanted = train + val + test
        if wanted > len(self.task.samples):
            raise ValueError(f"{self.name} has {len(self.task.samples)} samples, {wanted} are asked for; ask for fewer")
        order = np.random.default_rng([seed, 0x5B117]).permutation(len(self.task.samples))[:wanted]
        drawn = [self.task.samples[place] for place in order]
        return drawn[:train], drawn[train : train + val], drawn[train + val :]
