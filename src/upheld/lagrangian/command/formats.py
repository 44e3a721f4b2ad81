"""Benchmark files whose format says what problem they hold: OR-Library's assignment and facility location, CVRPLIB's routing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from upheld.lagrangian import data
from upheld.lagrangian.oracles import Instance
from upheld.lagrangian.routing import CVRP

LIBRARIES = (".txt", ".vrp")


@dataclass
class Formats:
    """What the files leave open, and which of it was needed.

    Parameters
    ----------
    capacity : of the sites in ``capa``, ``capb`` and ``capc``
    vehicles : of a CVRPLIB file; None takes the number in a name such as ``A-n32-k5.vrp``
    maximise : ``gap1`` to ``gap12`` ask for the most
    """

    capacity: float | None = None
    vehicles: int | None = None
    maximise: bool = False
    kinds: set[str] = field(default_factory=set)

    def instances(self, path: Path) -> Sequence[Instance]:
        """
        Raises
        ------
        ValueError
            If the file is of no such format, or leaves open what is not given.
        """
        if path.suffix == ".vrp":
            self.kinds.add("vehicles")
            return [data.read_cvrp(path, self._vehicles(path))]
        if data.orlib_kind(path) == "gap":
            self.kinds.add("maximise")
            return data.read_gap(path, maximise=self.maximise)
        if self.capacity is None and data.lacks_capacity(path):
            raise ValueError(f"{path} leaves the capacity of its sites open; give --capacity")
        self.kinds.add("capacity")
        return [data.read_cap(path, self.capacity)]

    def check_needed(self) -> None:
        """
        Raises
        ------
        ValueError
            If something was given that no file left open.
        """
        for name, given, goes_with in (
            ("capacity", self.capacity is not None, "OR-Library's cap files"),
            ("vehicles", self.vehicles is not None, "CVRPLIB's .vrp files"),
            ("maximise", self.maximise, "OR-Library's gap files; a model says so itself"),
        ):
            if given and name not in self.kinds:
                raise ValueError(f"--{name} goes with {goes_with}; leave it out")

    def _vehicles(self, path: Path) -> int:
        if self.vehicles is not None:
            return self.vehicles
        named = re.search(r"-k(\d+)$", path.stem)
        if named is None:
            raise ValueError(f"{path} does not say how many vehicles there are; give --vehicles")
        return int(named[1])


def columns_of(P: Instance) -> list[str]:
    """Names of a plan's entries; routes are told by the arcs driven.

    >>> from upheld.lagrangian.families import CVRP
    >>> columns_of(CVRP([[0, 1], [1, 0]], [1], 1, vehicles=1))
    ['arc_0_0', 'arc_0_1', 'arc_1_0', 'arc_1_1']
    """
    if isinstance(P, CVRP):
        nodes = range(P.demand.size + 1)
        return [f"arc_{i}_{j}" for i in nodes for j in nodes]
    return P.linear_model().column_names
