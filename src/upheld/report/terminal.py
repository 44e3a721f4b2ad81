"""The verdicts on a terminal: one row a claim, wide or narrow, plain text when piped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from upheld.claims import Claim, Outcome, Verdict
from upheld.claims.decisive import decisive
from upheld.report.digits import bracketed, shortened
from upheld.report.marks import MARKS
from upheld.report.results import MethodResults
from upheld.report.tables import Tally, judged, tally

WIDE = 120  # columns from which statement and name stand side by side
MOST_NAMES = 3  # a remark about more claims than these says how many
LONGEST_STATEMENT = 130


class VerdictTable:
    """Every method's verdicts, the authors' claims before our own checks.

    ::

        Console().print(VerdictTable(results))
    """

    def __init__(self, results: Sequence[MethodResults]) -> None:
        self.results = results

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for index, one in enumerate(self.results):
            if index:
                yield Text()
            yield Text.assemble((one.name, "bold"), f": {one.title}, {one.scale} scale")
            for ours in (False, True):
                pairs = judged(one, ours=ours)
                if pairs:
                    yield Text.assemble(
                        "  ",
                        "our own checks" if ours else "its authors' claims",
                        ": ",
                        summary(tally(pairs)),
                        style="dim",
                    )
                    rows = [_wide(pairs)] if options.max_width >= WIDE else _narrow(pairs)
                    yield from (Padding(row, (0, 0, 0, 2)) for row in rows)
            yield from _remarks(one)


def summary(tally: Tally) -> Text:
    """``3 upheld, 1 not upheld``, in the outcomes' colours."""
    parts = [(f"{n} {outcome}", MARKS[outcome].style) for outcome, n in tally.counts.items() if n]
    return Text(", ").join(Text(text, style=style) for text, style in parts)


def _wide(pairs: Sequence[tuple[Claim, Verdict]]) -> Table:
    """Everything of a claim on one line, in columns that stand below each other from table to table."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False, pad_edge=False, expand=True)
    table.add_column("verdict", width=14, no_wrap=True)
    table.add_column("claim", width=22, overflow="fold")
    table.add_column("statement", ratio=1)
    table.add_column("estimate", width=26, justify="right")
    table.add_column("n", width=9, justify="right", no_wrap=True)
    for claim, verdict in pairs:
        table.add_row(_outcome(verdict), _name(claim), _statement(claim), *_figures(verdict))
    return table


def _narrow(pairs: Sequence[tuple[Claim, Verdict]]) -> Iterator[RenderableType]:
    """Verdict, name and figures on one line, the statement below them."""
    for claim, verdict in pairs:
        table = Table(box=None, padding=(0, 1, 0, 0), show_header=False, pad_edge=False, expand=True)
        table.add_column("verdict", width=14, no_wrap=True)
        table.add_column("claim", ratio=1, overflow="fold")
        table.add_column("estimate", justify="right")
        table.add_column("n", width=8, justify="right", no_wrap=True)
        table.add_row(_outcome(verdict), _name(claim), *_figures(verdict))
        yield table
        yield Padding(_statement(claim), (0, 0, 0, 15))


def _outcome(verdict: Verdict) -> Text:
    mark = MARKS[verdict.outcome]
    return Text(f"{mark.glyph} {verdict.outcome}", style=mark.style)


def _name(claim: Claim) -> Text:
    return Text(claim.id.removeprefix(f"{claim.method}."), style="bold")


def _statement(claim: Claim) -> Text:
    return Text(shortened(claim.statement, LONGEST_STATEMENT))


def _figures(verdict: Verdict) -> tuple[Text, Text]:
    """The decisive estimate with its interval, and the number of units behind it."""
    finding = decisive(verdict)
    if finding is None:
        return Text(f"{len(verdict.findings)} figures" if verdict.findings else ""), Text()
    figures = bracketed(finding.estimate, finding.low, finding.high, finding.region)
    return Text(figures), Text(f"n={finding.units:,}", style="dim")


def _remarks(one: MethodResults) -> Iterator[RenderableType]:
    """What a reader must not miss: why a claim was not decided, which rule was changed, which trials were lost."""
    about: dict[str, list[str]] = {}
    for claim, verdict in zip(one.claims, one.verdicts, strict=True):
        undecided = verdict.outcome in (Outcome.INCONCLUSIVE, Outcome.NOT_RUN)
        for text in filter(None, [verdict.note if undecided else "", verdict.earlier]):
            about.setdefault(text, []).append(_name(claim).plain)
    for text, names in about.items():
        yield _remark(", ".join(names) if len(names) <= MOST_NAMES else f"{len(names)} claims", text)
    for experiment, verdict in {
        claim.experiment.name: verdict for claim, verdict in zip(one.claims, one.verdicts, strict=True)
    }.items():
        if verdict.reasons:
            lost = "; ".join(f"{n} × {shortened(reason, 100)}" for reason, n in verdict.reasons.items())
            yield _remark(experiment, f"{verdict.trials.failed} of {verdict.trials.wanted} trials failed: {lost}")


def _remark(about: str, text: str) -> RenderableType:
    return Padding(Text.assemble((about, "bold"), f": {' '.join(text.split())}"), (0, 0, 0, 2))
