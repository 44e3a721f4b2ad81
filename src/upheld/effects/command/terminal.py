"""The running table, and what is said at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.table import Table

from upheld.effects.command.document import FEW_ARMS, assumptions
from upheld.effects.command.watching import Report
from upheld.effects.estimate import EffectEstimate
from upheld.report.progress import Progress

PIPE = 140
MOST_COVARIATES = 15
KERNEL = "(all features)"  # the row of the balance table that is no covariate
NOTEWORTHY = 0.1  # standardised difference in means, by convention


class Terminal:
    """Standard output, plain in a pipe."""

    def __init__(self) -> None:
        self._console = Console(width=None if sys.stdout.isatty() else PIPE, highlight=False)
        self._headed = False

    def say(self, text: str) -> None:
        clean = "".join(sign if sign.isprintable() or sign == "\n" else " " for sign in text)
        self._console.print(clean, markup=False, highlight=False, soft_wrap=not sys.stdout.isatty())

    def report(self, report: Report) -> None:
        """A line an arm of the running table."""
        if not self._headed:
            self.say(
                f"{'rows':>12}  {'arm':<10}  {'effect':>10}  {'interval':<24}  {'effective rows':>14}  {'memory':>9}  {'rows/s':>8}"
            )
            self._headed = True
        estimate = report.estimate
        for one in estimate.contrasts:
            least = min((value for value in estimate.ess.values()), default=float("nan"))
            found = (
                f"{'refused':>10}  {one.reason[:24]:<24}" if one.reason
                else f"{one.ate:>10.4g}  {f'[{one.ci_low:.4g}, {one.ci_high:.4g}]':<24}"
            )  # fmt: skip
            cost = f"{size(estimate.memory_bytes):>9}  {report.rate:>8,.0f}"
            self.say(f"{report.rows:>12,}  {str(one.arm)[:10]:<10}  {found}  {least:>14,.0f}  {cost}")
        sys.stdout.flush()

    def end(self, document: Mapping[str, Any], estimate: EffectEstimate) -> None:
        """Effects in words, what stands beside them, balance, warnings, assumptions."""
        self.say("")
        few = FEW_ARMS if estimate.n else "no row could be used"
        for one in estimate.contrasts:
            self.say(_effect(one, estimate, document) if len(estimate.n_arm) > 1 else f"There is no effect: {few}.")
        for found in document["sensitivity"]:
            if found["e_value"] is not None:
                self.say(_unmeasured(found, many=len(estimate.contrasts) > 1))
        for name, count in document["skipped"].items():
            self.say(f"Left out: {count:,} row{'s' * (count > 1)} whose {name} could not be used.")
        if document["beside"]:
            self.say("\nThe same rows, other ways:\n")
            self._console.print(_beside_table(document))
        if document["balance"]:
            self._balance(document["balance"])
        for warning in estimate.warnings:
            self.say(f"Note: {warning}.")
        self.say(f"\n{assumptions()}\n{document['notice']}")

    def _balance(self, balance: list[dict[str, Any]]) -> None:
        """The covariates that differed most, and the distance over the whole class."""
        ordered = sorted(
            (row for row in balance if row["covariate"] != KERNEL), key=lambda row: -(row["smd_before"] or 0.0)
        )
        more = f", the {MOST_COVARIATES} that differed most of {len(ordered)}" if len(ordered) > MOST_COVARIATES else ""
        self.say(f"\nBalance: standardised differences in means, noteworthy (!) over {NOTEWORTHY:g}{more}:\n")
        self._console.print(_balance_table(ordered))
        for row in balance:
            if row["covariate"] == KERNEL and row["smd_after"] is not None:
                between = f"Distance of arm {row['arm']} from {row['reference']} over all functions of the class"
                self.say(f"{between}: {row['smd_before']:.3f} before, {row['smd_after']:.3f} after.")


def _effect(one: Any, estimate: EffectEstimate, document: Mapping[str, Any]) -> str:
    whose = {
        "ate": "all rows",
        "recent": "recent rows",
        "att": f"the rows of {one.arm}",
        "atc": f"the rows of {one.reference}",
    }
    what = f"Effect of {one.arm} against {one.reference}, mean over {whose[estimate.estimand]} ({estimate.n:,} seen)"
    naive = document["difference_in_means"].get(str(one.arm))
    plain = "" if naive is None else f"; the plain difference in means is {naive:.4g}"
    if one.reason:
        return f"{what}: none is given, since {document['refused'][str(one.arm)]}{plain}."
    return (
        f"{what}: {one.ate:.4g}, {estimate.level:.0%} interval {one.ci_low:.4g} to {one.ci_high:.4g}{plain}."
        f"\nThe interval has no term for what compression can hide at worst, {estimate.compression_allowance:.2g}."
    )


def _unmeasured(found: Mapping[str, Any], many: bool) -> str:
    """What a confounder that is in no column would have to do."""
    bounds = found["bounds"]
    if bounds[0]["low"] is None:
        factor = "no known size"  # weights of either sign bound nothing
    elif found["tipping"] is None:
        factor = f"more than {bounds[-1]['factor']:g}"
    else:
        factor = f"{found['tipping']:.2g}"
    whose = f"the effect of {found['arm']}" if many else "the effect"
    return (
        f"To explain {whose} away, a confounder that is in no column would have to put weights off by a factor of {factor} (E-value "
        f"{found['e_value']:.1f}; {found['e_value_interval']:.1f} to bring 0 into the interval)."
    )


def _beside_table(document: Mapping[str, Any]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("way", no_wrap=True)
    for heading in ("arm", "effect", "interval", "memory"):
        table.add_column(heading, justify="left" if heading in ("arm", "interval") else "right", no_wrap=True)
    ours = {
        "this run": {
            "contrasts": document["estimate"]["contrasts"],
            "memory_bytes": document["estimate"]["memory_bytes"],
        }
    }
    for name, found in (ours | document["beside"]).items():
        for one in found["contrasts"]:
            cells = (
                ("refused", one["reason"]) if one["reason"]
                else (f"{one['ate']:.4g}", f"{one['ci_low']:.4g} to {one['ci_high']:.4g}")
            )  # fmt: skip
            table.add_row(name, _text(one["arm"]), *cells, size(found["memory_bytes"]))
    for arm, gap in document["difference_in_means"].items():
        table.add_row("difference in means", _text(arm), f"{gap:.4g}", "", "")
    return table


def _balance_table(covariates: list[dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("covariate", overflow="fold")
    table.add_column("arm", no_wrap=True)
    for heading in ("before", "after"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in covariates[:MOST_COVARIATES]:
        cells = (_smd(row[name]) for name in ("smd_before", "smd_after"))
        table.add_row(_text(row["covariate"]), _text(row["arm"]), *cells)
    return table


def _text(value: Any) -> Any:
    from rich.text import Text

    return Text("".join(sign if sign.isprintable() else " " for sign in str(value)))


def _smd(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}{' !' if value > NOTEWORTHY else '  '}"


def size(nbytes: float) -> str:
    """
    >>> size(130_000), size(2_500_000)
    ('130 kB', '2.5 MB')
    """
    return f"{nbytes / 1e3:.0f} kB" if nbytes < 1e6 else f"{nbytes / 1e6:.1f} MB"


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, float], None]]:
    """On standard error: rows read, rows a second, and the time left as far as the files' sizes tell."""
    with Progress() as shown, shown.part(label, 1.0) as part:
        begun = time.monotonic()

        def moved(rows: int, share: float) -> None:
            part.reach(share, f"{rows:,} rows, {rows / (time.monotonic() - begun):,.0f} rows/s")

        yield moved
