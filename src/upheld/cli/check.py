"""``upheld check``: measure what the ledger lacks, judge every claim, print the verdicts."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from upheld.catalog import Method
from upheld.cli.options import DEFAULT_LEDGER, JsonOption, LedgerOption, MethodsArgument, ScaleOption
from upheld.cli.output import print_json, progress, results, written

SCHEMA = "upheld.verdicts/1"

if TYPE_CHECKING:
    from upheld.claims import Ledger, Scale
    from upheld.compute import Compute


def check(
    methods: MethodsArgument = None,
    scale: ScaleOption = "quick",
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Trials at a time; the number of cores by default.")
    ] = None,
    ray: Annotated[str | None, typer.Option("--ray", help="Run on Ray: 'auto', or a cluster's address.")] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget what was measured at this scale, and measure again.")
    ] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Measure trials that failed again.")] = False,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", help="Exit with 1 if a claim upheld in this file is upheld no more.")
    ] = None,
    reproduce: Annotated[
        Path | None,
        typer.Option(
            "--reproduce",
            help="Measure the methods whose sources changed since this file; exit with 1 if a verdict differs "
            "(where a clock decides: if it contradicts).",
        ),
    ] = None,
    save: Annotated[Path | None, typer.Option("--save", help="Write the verdicts to this file, as JSON.")] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    json: JsonOption = False,
) -> None:
    """Put claims to the test. What was measured before is not measured again; a run that is stopped goes on where it was."""
    from upheld.claims import Ledger
    from upheld.cli.results import chosen, parse_scale, results_of
    from upheld.compute import choose
    from upheld.report.export import json_text, verdicts_json
    from upheld.report.terminal import VerdictTable
    from upheld.report.writing import expect_file

    measured_at = parse_scale(scale)
    if reproduce is not None and save is not None:
        raise ValueError("--save would keep only the methods that --reproduce measures again; give one of the two")
    known = _known(baseline, reproduce, measured_at)
    if save is not None:
        expect_file(save, "--save")
    selected = chosen(methods)
    if reproduce is not None:
        selected = [method for method in selected if _changed(method, known)]
    with Ledger(ledger) as book:
        failures = _measure(selected, measured_at, book, choose(ray, jobs), fresh=fresh, retry_failed=retry_failed)
        document = verdicts_json(outcome := results_of(selected, measured_at, book))
    if save is not None:
        with written(save) as unfinished:
            unfinished.write_text(json_text(document), encoding="utf-8")
    if json:
        print_json(document)
    elif selected:
        results().print(VerdictTable(outcome))
    else:
        why = f": no source was changed since {reproduce}" if reproduce else ""
        results().print(f"nothing to check{why}", markup=False, soft_wrap=True)
    differing = _lost(document, known, any_change=reproduce is not None)
    for sentence in differing:
        progress().print(sentence, markup=False, soft_wrap=True)
    # A smoke run exists to show that every experiment runs: there a failed trial is the result.
    if differing or (failures and measured_at == "smoke"):
        raise typer.Exit(1)


def _measure(
    selected: Sequence[Method], scale: Scale, book: Ledger, compute: Compute, *, fresh: bool, retry_failed: bool
) -> int:
    """Measure what is missing, with a display; returns the number of failed trials among those measured now."""
    from upheld.claims import plan, run
    from upheld.cli.display import Display

    experiments = list(dict.fromkeys(claim.experiment for method in selected for claim in method.claims()))
    failures = 0
    with book.reserved():
        if fresh:
            book.forget([experiment.name for experiment in experiments], scale)
        todo = plan(experiments, scale, book, retry_failed=retry_failed)
        with Display(todo) as display, closing(run(todo, book, compute)) as measured:
            for result in measured:
                display.show(result)
                failures += result.status == "failed"
    return failures


def _known(baseline: Path | None, reproduce: Path | None, scale: Scale) -> dict[str, dict[str, Any]]:
    """What the file that is named says of each method; only verdicts of one scale can be compared."""
    if baseline is not None and reproduce is not None:
        raise ValueError("--baseline and --reproduce ask different questions; give one of them")
    path = reproduce or baseline
    if path is None:
        return {}
    known = _read(path)
    others = sorted({one["scale"] for one in known.values()} - {scale})
    if others:
        raise ValueError(f"{path} holds verdicts of {', '.join(others)} scale, not of {scale}; add --scale {others[0]}")
    return known


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """A verdicts file, by method."""
    if not path.is_file():
        raise ValueError(f"there is no verdicts file {path}; write one with upheld check --save {path}")
    try:
        document = json_format.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is {document['schema']!r}, not {SCHEMA!r}")
        return {
            method["name"]: {
                "fingerprint": method["fingerprint"],
                "scale": method["scale"],
                "outcomes": {claim["id"]: claim["outcome"] for claim in method["claims"]},
            }
            for method in document["methods"]
        }
    except KeyError as error:
        raise ValueError(
            f"{path} is no verdicts file (it lacks {error}); write one with upheld check --save"
        ) from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is no verdicts file ({error}); write one with upheld check --save") from error


def _changed(method: Method, known: dict[str, dict[str, Any]]) -> bool:
    from upheld.claims import fingerprint

    return method.name not in known or known[method.name]["fingerprint"] != fingerprint(method.name)


def _lost(document: dict[str, Any], known: dict[str, dict[str, Any]], *, any_change: bool) -> list[str]:
    """One sentence a claim whose earlier verdict does not stand; with `any_change`, whatever it was."""
    sentences = []
    for method in document["methods"]:
        before = known[method["name"]]["outcomes"] if method["name"] in known else {}
        now = {claim["id"]: claim for claim in method["claims"]}
        for claim, outcome in before.items():
            found = now[claim]["outcome"] if claim in now else "gone"
            stands = found == outcome or (any_change and claim in now and _wavers(now[claim], outcome))
            if not stands and (any_change or outcome == "upheld"):
                sentences.append(f"{claim} was {outcome}, now it is {found}")
        if any_change:
            sentences += [f"{claim} is new" for claim in now if before and claim not in before]
    return sentences


def _wavers(claim: dict[str, Any], before: str) -> bool:
    """Whether two verdicts by the clock do not contradict each other: one of them is inconclusive."""
    return claim["timed"] and "inconclusive" in (before, claim["outcome"])
