"""SciPy's documentation: which sub-package does a paragraph describe?"""

from __future__ import annotations

import csv
import io
import lzma
from functools import cache
from pathlib import Path

import numpy as np

from upheld.context.data.domain import Domain
from upheld.context.task import Sample, Task

PATH = Path(__file__).parent / "apidocs.csv.xz"


@cache
def rows() -> tuple[tuple[str, str, str], ...]:
    """(label, name, text) of all 1,220 texts."""
    with lzma.open(PATH) as file:
        table = csv.DictReader(io.StringIO(file.read().decode()))
        return tuple((row["label"], row["name"], row["text"]) for row in table)


def apidocs(n: int | None = None, *, per_label: int = 60, seed: int = 0) -> Domain:
    """At most `per_label` texts of each of 11 sub-packages, `n` of them in all (None: as many as there are).

    SciPy 1.17.1, BSD-3; see apidocs.md beside the table.
    """
    rng = np.random.default_rng([seed, 0xD0C5])
    taken: dict[str, int] = {}
    samples = []
    for place in rng.permutation(len(rows())):
        label, name, text = rows()[place]
        if taken.setdefault(label, 0) < per_label:
            taken[label] += 1
            samples.append(Sample(f"{label}.{name}", text, label))
    if n is not None and n > len(samples):
        raise ValueError(f"apidocs has {len(samples)} texts at {per_label} a label, {n} are asked for; ask for fewer")
    return Domain("apidocs", Task(samples[:n], text="Name the part of a library a description belongs to."), seed=seed)
