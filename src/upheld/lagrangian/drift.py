"""Has the world moved? An alarm when an instance does not look like those that multipliers were learned from.

An instance is summed up by the mean and the spread of every row and column feature. Its strangeness is the mean squared distance
of these numbers from their mean over the past, in standard deviations of the past. Against the past's own (each left out in turn)
that gives a p-value that is valid as long as instances are exchangeable::

    p = (1 + #{i : strangeness_i >= strangeness}) / (1 + N)                                                          (1)

An AR(1) demand is not exchangeable from day to day; alarms then come somewhat more often than `level` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from upheld.lagrangian.graph import Graph, graph_of
from upheld.lagrangian.oracles import Instance

FEWEST = 3


class DriftAlarm:
    """Compares instances with the past by their features.

    Examples
    --------
    >>> from upheld.lagrangian import data
    >>> rng = np.random.default_rng(0)
    >>> past = data.unit_commitment_days(30, rng)
    >>> alarm = DriftAlarm().fit([graph_of(day) for day in past])
    >>> alarm.rings(data.unit_commitment_days(1, rng)[0]), alarm.rings(data.ten_unit_day(3, cost="piecewise"))
    (False, True)
    """

    def fit(self, graphs: Sequence[Graph]) -> Self:
        """Learn what the past looks like.

        Raises
        ------
        ValueError
            If there are fewer than three instances.
        """
        if len(graphs) < FEWEST:
            raise ValueError(f"{len(graphs)} instances do not show a spread; give at least {FEWEST}")
        seen = np.array([_summary(graph) for graph in graphs])
        self._mean, self._sd = seen.mean(axis=0), _spread(seen)
        rest = [np.delete(seen, i, axis=0) for i in range(len(seen))]
        self._strangeness = np.array(
            [_distance(one, other.mean(axis=0), _spread(other)) for one, other in zip(seen, rest, strict=True)]
        )
        return self

    def p_value(self, instance: Instance) -> float:
        """(1): small for an instance unlike the past ones; never below 1 / (1 + N)."""
        strange = _distance(_summary(graph_of(instance)), self._mean, self._sd)
        return float((1 + np.sum(self._strangeness >= strange)) / (1 + self._strangeness.size))

    def rings(self, instance: Instance, level: float = 0.05) -> bool:
        """Whether the p-value is at most `level`, or as small as so few past instances allow."""
        return self.p_value(instance) <= max(level, 1 / (1 + self._strangeness.size))

    def arrays(self) -> dict[str, np.ndarray]:
        """What `of` needs to make the same alarm."""
        return {"mean": self._mean, "sd": self._sd, "strangeness": self._strangeness}

    @classmethod
    def of(cls, arrays: dict[str, np.ndarray]) -> Self:
        """The alarm that was saved as `arrays`."""
        alarm = cls()
        alarm._mean, alarm._sd, alarm._strangeness = arrays["mean"], arrays["sd"], arrays["strangeness"]
        return alarm


def _summary(graph: Graph) -> np.ndarray:
    return np.concatenate([part for of in (graph.rows, graph.columns) for part in (of.mean(axis=0), of.std(axis=0))])


def _spread(seen: np.ndarray) -> np.ndarray:
    """Standard deviations; what never varied counts as varying by a hundredth, so that a change of it is strange."""
    sd = seen.std(axis=0)
    return np.where(sd > 1e-9, sd, 1e-2)


def _distance(one: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> float:
    return float(np.mean(((one - mean) / sd) ** 2))
