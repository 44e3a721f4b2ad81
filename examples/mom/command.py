"""``upheld run mom values.csv --column seconds``: the mean of a user's own column."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "upheld run mom {file} --column value"


def run(
    file: Annotated[Path, typer.Argument(help="A CSV file.")],
    column: Annotated[str, typer.Option("--column", help="The column to average.")],
    delta: Annotated[float, typer.Option("--delta", help="How likely the error may exceed its bound.")] = 0.05,
    seed: Annotated[int, typer.Option("--seed", help="Splits the blocks.")] = 0,
) -> None:
    """Mean of a column that a few wild values cannot move, the plain mean beside it."""
    import numpy as np

    from mom.data import load_column
    from mom.estimator import median_of_means

    x = load_column(file, column)
    typer.echo(f"median of means {median_of_means(x, delta, rng=np.random.default_rng(seed)):.6g}")
    typer.echo(f"mean            {x.mean():.6g}")


def write_data(out: Path) -> None:
    """A thousand Pareto values."""
    import numpy as np
    import pandas as pd

    from mom.data import pareto

    pd.DataFrame({"value": pareto(np.random.default_rng(0), 1000)}).to_csv(out, index=False)
