"""The measurements of one experiment as the rules read them: cells, and the independent units in which they repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from upheld.claims.trial import Scalar

Where = Mapping[str, Scalar | Sequence[Scalar]]


NOTHING = pd.DataFrame()
NOT_CONDITIONS = ("seed", "item", "method", "metric", "value")


class Missing(ValueError):
    """What a rule reads was not measured."""


@dataclass(frozen=True)
class Cell:
    """One method's metric under the conditions that match `where`; with `log`, its logarithm."""

    metric: str
    method: str
    where: Where = field(default_factory=dict, hash=False)
    log: bool = False

    def __str__(self) -> str:
        return f"{self.metric} of {self.method}{shown(self.where)}"


def conditions(where: Where) -> tuple[str, ...]:
    """Conditions for a reader, each by itself: ``n = 30``."""
    return tuple(f"{key} = {value}" for key, value in where.items())


def shown(where: Where) -> str:
    """The same behind what is under them: ``, n = 30``; nothing when all are meant."""
    return "".join(f", {condition}" for condition in conditions(where))


class Measurements:
    """Long-format measurements with their sampling units.

    Parameters
    ----------
    frame : one row a measurement: condition keys, seed, item, method, metric, value
    units : see `Experiment`
    """

    def __init__(self, frame: pd.DataFrame, units: str = "seed") -> None:
        self.units = units
        self.crossed = "*" in units
        self._names = units.replace("*", "/").split("/")
        unknown = [name for name in self._names if name not in frame.columns]
        if unknown and len(frame):
            raise ValueError(
                f"units {units!r} name {unknown}, which is neither seed, item nor a condition of the experiment"
            )
        self._means: dict[Cell, pd.Series[float]] = {}
        self._groups = dict(iter(frame.groupby(["metric", "method"], sort=False))) if len(frame) else {}

    def rows(self, cell: Cell) -> pd.DataFrame:
        """Rows of a cell.

        Raises
        ------
        Missing
            If there is none.
        """
        rows = self._groups.get((cell.metric, cell.method), NOTHING)
        for key, wanted in cell.where.items():
            if key not in rows.columns:
                raise Missing(f"nothing was measured for {cell}")
            values = wanted if isinstance(wanted, list | tuple | set) else [wanted]
            rows = rows[rows[key].isin(list(values))]
        if rows.empty:
            raise Missing(f"nothing was measured for {cell}")
        return rows

    def levels(self, cell: Cell, key: str) -> list[Scalar]:
        """The values that a condition key takes in a cell, sorted."""
        rows = self.rows(cell)
        if key not in rows.columns:
            raise Missing(f"{cell}: the experiment has no condition {key!r}")
        return sorted(rows[key].dropna().unique().tolist())

    def contexts(self, cell: Cell, besides: str) -> list[dict[str, Scalar]]:
        """Every combination of the other condition keys that a cell was measured under; sampling units are no conditions."""
        rows = self.rows(cell)
        others = [
            key
            for key in rows.columns
            if key not in {*NOT_CONDITIONS, *self._names, besides} and rows[key].notna().any()
        ]
        found = rows[others].drop_duplicates().itertuples(index=False)
        return [dict(zip(others, values, strict=True)) for values in found] if others else [{}]

    def matrix(self, cells: Sequence[Cell]) -> NDArray[np.float64]:
        """Mean of every cell in every unit: (units, cells), or (seeds, items, cells) when units are crossed.

        Units that lack one of the cells are left out.

        Raises
        ------
        Missing
            If a cell was not measured, or no unit has all of them.
        ValueError
            If the logarithm of a value that is not positive is wanted.
        """
        columns = [self._by_unit(cell) for cell in cells]
        if not self.crossed and len(columns[0]) and all(one.index.equals(columns[0].index) for one in columns):
            return np.array([one.to_numpy() for one in columns], dtype=float).T
        table = pd.concat(columns, axis=1, join="inner", keys=range(len(columns)))
        if table.empty:
            raise Missing(f"no unit ({self.units}) measured all of: {'; '.join(map(str, cells))}")
        if not self.crossed:
            return table.to_numpy(dtype=float)
        cube = np.stack([table[index].unstack().to_numpy() for index in range(len(columns))], axis=-1)
        whole = ~np.isnan(cube).any(axis=(1, 2))
        if not whole.any():
            raise Missing(f"no {self._names[0]} measured every {self._names[1]} for: {'; '.join(map(str, cells))}")
        kept: NDArray[np.float64] = cube[whole]
        return kept

    def _by_unit(self, cell: Cell) -> pd.Series[float]:
        """Mean of a cell in every unit that has it, by unit; rules come back to the same cells with other levels."""
        if cell not in self._means:
            self._means[cell] = self._mean_by_unit(cell)
        return self._means[cell]

    def _mean_by_unit(self, cell: Cell) -> pd.Series[float]:
        rows = self.rows(cell)
        values = rows["value"]
        if cell.log:
            if (values <= 0).any():
                raise ValueError(
                    f"{cell} is compared on the log scale, but holds {int((values <= 0).sum())} values that are not positive"
                )
            values = np.log(values)
        first = rows[self._names[0]]
        if len(self._names) == 1 and first.is_unique and first.notna().all():
            return values.set_axis(pd.Index(first)).sort_index()
        return values.groupby([rows[name] for name in self._names]).mean()
