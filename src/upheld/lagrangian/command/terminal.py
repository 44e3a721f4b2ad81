"""What a run found, as tables on a terminal or in a pipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from upheld.report.printing import Terminal, cell, plain_table

SHOWN_PRICES = 8


def print_run(document: Mapping[str, Any], written: Sequence[Path]) -> None:
    """Print the document of `upheld.lagrangian.command.document.run_document`, and which files were written."""
    terminal = Terminal()
    terminal.say(_coupling(document["coupling"]))
    terminal.say(_learning(document["learning"]))
    terminal.say("")
    terminal.show(_instances(document))
    terminal.say(f"\n{_reading(document)}")
    if document["instances"][0]["rivals"]:
        terminal.say("\nBeside it:\n")
        terminal.show(_rivals(document))
    for name, reason in {name: why for one in document["instances"] for name, why in one["not_run"].items()}.items():
        terminal.say(f"Not run: {name}: {reason}.")
    terminal.say(f"\n{_prices(document)}")
    for remark in document["remarks"]:
        terminal.say(f"Note: {remark}.")
    if written:
        terminal.say("\n" + "\n".join(f"wrote {path}" for path in written))


def _coupling(coupling: Mapping[str, Any]) -> str:
    rows = coupling["rows"]
    shown = f"{rows[0]} to {rows[-1]}" if len(rows) > 1 else rows[0]
    found = ", found by detection: check that they are those you mean" if coupling["found_by"] == "detection" else ""
    return (
        f"{_count(len(rows), 'coupling row')} ({shown}){found}; without them {_count(coupling['blocks'], 'block')}; "
        f"{_count(coupling['variables'], 'variable')}, {coupling['whole_number_variables']:,} of them whole numbers"
    )


def _learning(learning: Mapping[str, Any]) -> str:
    if "loaded" in learning:
        return f"multipliers from {learning['loaded']}"
    text = (
        f"{learning['learner']} learned from {_count(len(learning['instances']), 'instance')} in {learning['seconds']:.1f} s; "
        f"B = {learning['B']:,.6g}, pi_max = {learning['pi_max']:,.6g}"
    )
    if learning["theorem_bound"] is not None:
        what = "squared distance to the mean optimum" if learning["learner"] == "warm-start" else "expected loss"
        text += f"; proven: {what} at most {learning['theorem_bound']:,.4g}"
        if learning.get("observed_bound") is not None:
            text += f", or {learning['observed_bound']:,.4g} by the supergradients seen (95 % sure)"
    if "chosen" in learning:
        text += f"; held-out instances chose {learning['chosen']}"
    return text + _enough(learning)


def _enough(learning: Mapping[str, Any]) -> str:
    """How many instances would prove an expected loss of at most 1 % of the bound."""
    needed = learning["theorem_instances_for_1_percent"]
    if needed is None:
        return ""
    who = "this learner" if learning["learner"] == "erm" else "averaged SGA"
    text = f"\nan expected loss of at most 1 % of the LP bound is proven of {who} from {needed:,} instances on"
    seen = learning.get("observed_instances_for_1_percent")
    return text + (f", by the supergradients seen (95 % sure) from {seen:,} on" if seen is not None else "")


def _instances(document: Mapping[str, Any]) -> Table:
    steps = max(one["steps"] for one in document["instances"])
    planned = any(one["nodes"] is not None for one in document["instances"])
    table = plain_table()
    table.add_column("instance", overflow="fold")
    headings = [
        "LP bound",
        "learned",
        f"{steps} steps on",
        *(["proven", "plan", "gap", "seconds"] if planned else ["seconds"]),
    ]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for one in document["instances"]:
        seconds = sum(one["seconds"].get(name, 0.0) for name in ("learned multipliers", "plan"))
        cells = [_number(one[name]) for name in ("lp_bound", "learned_bound", "bound_after_steps")]
        if planned:
            cells += [_number(one["bound"]), _number(one["plan"], "none found"), _share(one["gap"])]
        table.add_row(cell(Path(one["instance"]).name), *cells, f"{seconds:.2f}")
    return table


def _reading(document: Mapping[str, Any]) -> str:
    side, better = ("upper", "lower") if document["sense"] == "max" else ("lower", "higher")
    text = (
        f"All bounds are certified {side} bounds on the optimum, whatever was learned: {better} is better. learned: at the learned "
        "multipliers, one solution of all blocks."
    )
    if document["instances"][0]["nodes"] is None:
        return text
    return f"{text} proven: the best of all these and of the search for the plan; gap: between it and the plan."


def _rivals(document: Mapping[str, Any]) -> Table:
    """For every way the bound, its calls and its seconds; means of relative distances to the best bound would hide single days."""
    table = plain_table()
    table.add_column("instance", overflow="fold")
    table.add_column("way", no_wrap=True)
    for heading in ("at the start", "after the steps", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in document["instances"]:
        seconds, name = one["seconds"], Path(one["instance"]).name
        ways = [
            (
                "from the learned multipliers",
                one["learned_bound"],
                one["bound_after_steps"],
                seconds["learned multipliers"],
            )
        ]
        ways += [
            (
                "from zero" if start == "zero" else "from its LP's multipliers",
                found["first"],
                found["best"],
                seconds[start],
            )
            for start, found in one["rivals"].items()
        ]
        ways.append(("LP relaxation", one["lp_bound"], None, seconds["lp"]))
        if one["highs_root_bound"] is not None:
            ways.append(("HiGHS, root node with cuts", one["highs_root_bound"], None, seconds["HiGHS root"]))
        if "GCG root" in seconds:
            ways.append(("GCG, root node", one["gcg_root_bound"], None, seconds["GCG root"]))
        for k, (way, first, best, took) in enumerate(ways):
            table.add_row(cell(name if k == 0 else ""), way, _number(first), _number(best, ""), f"{took:.2f}")
    return table


def _prices(document: Mapping[str, Any]) -> str:
    prices = document["multipliers"]
    shown = ", ".join(f"{name} {value:.4g}" for name, value in list(prices.items())[:SHOWN_PRICES])
    more = f", ... ({len(prices) - SHOWN_PRICES} more)" if len(prices) > SHOWN_PRICES else ""
    free = document["rows_without_price"]
    note = (
        f" {_count(free, 'row')} of price 0 did not bind: left out of the coupling, they make the dual smaller."
        if free
        else ""
    )
    return f"Multipliers, in objective units per unit of the row: {shown}{more}.{note}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _number(value: float | None, none: str = "none") -> str:
    if value is None:
        return none
    return f"{value:,.2f}" if abs(value) >= 1000 else f"{value:.6g}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3%}"
