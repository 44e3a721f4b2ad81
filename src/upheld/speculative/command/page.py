"""A run as one HTML file that loads nothing: the table, four pictures, every answer."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from upheld.report.content import drawn
from upheld.speculative.command.decoding import HEADINGS, OURS, cells
from upheld.speculative.costs import CostTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def page(document: dict[str, Any], lines: Sequence[dict[str, Any]], costs: CostTable) -> str:
    """The page's text.

    Parameters
    ----------
    document : what the command prints as JSON
    lines : a record a prompt and method, as in the file of ``--out``
    """
    environment = Environment(
        loader=PackageLoader("upheld.speculative.command", "."), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("page.html").render(
        document=document,
        headings=HEADINGS,
        rows=[cells(one) for one in document["methods"]],
        pictures={one.what: _embedded(one.figure) for one in pictures(document, costs).values()},
        answers=[line for line in lines if line["method"] == OURS],
    )


class Picture(NamedTuple):
    """What it shows, in words, and the drawing."""

    what: str
    figure: Figure


def pictures(document: dict[str, Any], costs: CostTable) -> dict[str, Picture]:
    """By the names of their files; without a whole cycle there is no acceptance to draw."""
    import pandas as pd

    from upheld.speculative.plots import (
        acceptance_by_position,
        acceptance_histogram,
        cost_curves,
        speed_up_forest,
    )

    found: dict[str, Picture] = {}
    lengths = document["acceptance"]["lengths"]
    block = document["settings"]["block_size"]
    if lengths:
        found["lengths"] = Picture("Tokens emitted in a cycle", acceptance_histogram(lengths, block))
        by_position = [float("nan") if share is None else share for share in document["acceptance"]["by_position"]]
        found["positions"] = Picture(
            "Drafts accepted, by their place in the block", acceptance_by_position({OURS: by_position})
        )
    found["costs"] = Picture("What several tokens cost at once", cost_curves(costs.verify, costs.draft, costs.step_s))
    forest = [
        {"method": one["method"], **{key: _nan(value) for key, value in one["speed_up"].items()}}
        for one in document["methods"]
        if one["method"] != "plain" and one["speed_up"]["estimate"] is not None
    ]
    if forest:
        table = pd.DataFrame(forest)
        forest_of = speed_up_forest(table, ours=(OURS,), bound=max(costs.bounds.values()))
        found["race"] = Picture("Speed-up over plain decoding", forest_of)
    return found


def _nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _embedded(figure: Figure) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn(figure, 'svg')).decode()}"
