"""``upheld run hubs expression.csv --groups subtype``: common hubs of a user's own groups, how sure they are, and the certificate."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from upheld.report.content import drawn, json_text, plain, records
from upheld.report.progress import Progress
from upheld.report.wording import in_options, options_of, told_as_options
from upheld.report.writing import expect_folder

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from upheld.hubs.analysis import Analysis, Part
    from upheld.hubs.contest import HubCall
    from upheld.report.printing import Terminal

EXAMPLE = """upheld run hubs {file} --groups subtype --compare --out out
  # these are 30 of 2,308 genes, few enough for stability; for 60, in Python: upheld.hubs.data.write_khan("khan60.csv", top=60)"""
SCHEMA = "upheld.hubs.run/1"
SHOWN = 20
P_VALUES = (
    "p: family-wise, of an influence as large by chance if all variables were independent (columns permuted), and if the spectra "
    "were the same but no variable special (variables rotated)."
)
SPREAD = "95 % interval: of resamples, in which influences are shifted, often down: read it as spread; an estimate may lie outside of it."
WIDE = 110  # columns from which the intervals fit
TWO_SD = "mean + 2 sd"
OPTIONS = options_of(["screen", "covariance", "n_components", "at_least", "groups", "index", "layer"])


def run(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="One table with a group column, or one table a group. "
            "CSV, TSV (also .gz, .xz), Parquet or AnnData (.h5ad); a row a sample.",
        ),
    ],
    groups: Annotated[str | None, typer.Option("--groups", help="Column of the group labels, for one table.")] = None,
    index: Annotated[str | None, typer.Option("--index", help="Column of the sample names.")] = None,
    layer: Annotated[str | None, typer.Option("--layer", help="Layer of an AnnData file, instead of X.")] = None,
    n_components: Annotated[
        str, typer.Option("--n-components", metavar="sqrt|INTEGER", help="Dimension of the joint eigenspace.")
    ] = "sqrt",
    covariance: Annotated[
        str,
        typer.Option("--covariance", help="correlation, covariance, threshold, ledoit-wolf or spearman."),
    ] = "correlation",
    screen: Annotated[
        str | None,
        typer.Option(
            "--screen",
            metavar="auto|INTEGER",
            help="Keep this many variables, those tied most strongly to "
            "another one in every group: for more variables than samples.",
        ),
    ] = None,
    at_least: Annotated[
        int | None, typer.Option("--at-least", help="Hubs common to at least this many groups, instead of all.")
    ] = None,
    stability: Annotated[
        int, typer.Option("--stability", min=0, help="Half-samples for the selection frequencies; 0 for none.")
    ] = 100,
    bootstrap: Annotated[
        int, typer.Option("--bootstrap", min=0, help="Resamples for the intervals of the influences; 0 for none.")
    ] = 200,
    null: Annotated[
        int, typer.Option("--null", min=0, help="Draws from either null, for the p-values; 0 for none.")
    ] = 200,
    compare: Annotated[bool, typer.Option("--compare", help="Run the rivals on the same samples.")] = False,
    gmt: Annotated[
        Path | None, typer.Option("--gmt", help="Gene sets (GMT): are the hubs over-represented in one?")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of everything random.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Resamples at a time.")] = 1,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for hubs.csv, hubs.json, hubs.png, hubs.svg.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Variables that are highly connected in every group's conditional-dependence network: influence, stability, p-values, and a
    certificate that the optimum was reached. Another table with --compare: what the rivals say of the same samples."""
    settings: dict[str, Any] = {
        "files": [file.name for file in files], "groups": groups, "index": index, "layer": layer,
        "n_components": _number_or("--n-components", n_components, "sqrt"), "covariance": covariance,
        "screen": None if screen is None else _number_or("--screen", screen, "auto"), "at_least": at_least,
        "stability": stability, "bootstrap": bootstrap, "null": null, "compare": compare,
        "gmt": None if gmt is None else gmt.name, "seed": seed,
    }  # fmt: skip
    if out is not None:
        expect_folder(out)
    _installed(compare)
    from upheld.hubs.analysis import analyse
    from upheld.hubs.detector import JointHubs

    with told_as_options(OPTIONS), _parts() as part:
        tables = _read(files, groups, index, layer)
        estimator = JointHubs(
            settings["n_components"],
            covariance=covariance,
            screen=settings["screen"],
            at_least=at_least,
            n_jobs=jobs,
        )
        answer = analyse(
            estimator,
            tables,
            half_samples=stability,
            resamples=bootstrap,
            null_draws=null,
            compare=compare,
            gene_sets=gmt,
            seed=seed,
            part=part,
        )
    document = _document(answer, settings)
    if out is not None:
        _write(answer, document, out)
    if json:
        sys.stdout.write(json_text(document))
    else:
        _print(answer, document, out)


def write_data(out: Path) -> None:
    """The thirty genes of largest within-class variance of 83 small round blue cell tumours: few enough to be halved."""
    from upheld.hubs.data import write_khan

    write_khan(out, top=30)


# -- what was asked


def _number_or(option: str, text: str, word: str) -> int | str:
    if text == word:
        return word
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{option} must be {word!r} or a whole number, got {text!r}") from None


def _installed(compare: bool) -> None:
    """Say now, and not after the resampling, that the rivals' package is missing."""
    import importlib.util

    if compare and importlib.util.find_spec("gglasso") is None:
        raise ModuleNotFoundError("no gglasso", name="gglasso")


def _read(files: Sequence[Path], groups: str | None, index: str | None, layer: str | None) -> dict[Any, pd.DataFrame]:
    """A table of numbers for each group.

    Raises
    ------
    ValueError
        Naming the file and, where there is one, the row and the column.
    """
    from upheld.hubs.files import load_files, load_table

    with _named(files):
        if len(files) > 1:
            if groups is not None:
                raise ValueError(f"{len(files)} files are one group each; leave out --groups, or name one file")
            tables: dict[Any, pd.DataFrame] = {
                label: _with_sample_names(table) for label, table in load_files(files, index=index, layer=layer).items()
            }
            for file, table in zip(files, tables.values(), strict=True):
                _check_cells(table, file)
            return tables
        if groups is None:
            raise ValueError(f"{files[0]} is one file: name its group column with --groups, or give one file a group")
        table, labels = load_table(files[0], groups=groups, index=index, layer=layer)
        table = _with_sample_names(table)
        _check_cells(table, files[0])
        if labels.isna().any():
            row = int(labels.isna().to_numpy().argmax())
            raise ValueError(
                f"{files[0]}: {_row(table, row)} has no label in the group column {groups!r}"
                f"{_and_more(labels.isna().to_numpy())}; drop such rows or label them"
            )
        tables = dict(iter(table.groupby(labels.to_numpy(), observed=True)))
        if len(tables) == 1:
            raise ValueError(
                f"{files[0]}: all rows belong to one group, {next(iter(tables))!r} in column {groups!r}, and common hubs take "
                "two; for a single network use upheld.hubs.InverseComponentsHubs in Python"
            )
        return tables


@contextmanager
def _named(files: Sequence[Path]) -> Iterator[None]:
    """Say which file is not what its ending says."""
    names = " or ".join(map(str, files))
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{names} is no text in UTF-8 ({error.reason}); save it as CSV in UTF-8") from error
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"{names} cannot be read ({error.strerror or error}); is it whole, and yours?") from error
    except ValueError as error:
        if type(error).__module__.startswith("pyarrow"):
            raise ValueError(f"{names} is no Parquet file ({error}); save it as its ending says") from error
        raise


def _with_sample_names(table: pd.DataFrame) -> pd.DataFrame:
    """A first column of texts, no two alike, names the samples; it could be no variable."""
    import pandas as pd

    first = table.iloc[:, 0]
    named = first.is_unique and pd.to_numeric(first, errors="coerce").isna().all() and first.notna().all()
    return table.set_index(str(table.columns[0])) if named else table


def _check_cells(table: pd.DataFrame, file: Path) -> None:
    """Every cell is a finite number; names the first that is not."""
    import numpy as np
    import pandas as pd

    for column in table.columns:
        values = table[column]
        numbers = pd.to_numeric(values, errors="coerce")
        text = (numbers.isna() & values.notna()).to_numpy()
        if text.all():
            raise ValueError(
                f"{file}: column {column!r} is not numeric; drop it, or name it with --groups (the group) or --index "
                "(the sample's name)"
            )
        if text.any():
            row = int(text.argmax())
            raise ValueError(
                f"{file}: column {column!r} holds {values.iloc[row]!r} in {_row(table, row)}, which is no number"
                f"{_and_more(text)}; mend or drop it"
            )
        bad = ~np.isfinite(numbers.to_numpy(float))
        if bad.any():
            row = int(bad.argmax())
            what = "no value (NaN)" if numbers.isna().iloc[row] else "an infinite value"
            raise ValueError(
                f"{file}: column {column!r} holds {what} in {_row(table, row)}{_and_more(bad)}; impute it, or "
                "drop the row or the column"
            )


def _and_more(bad: Any) -> str:
    more = int(bad.sum()) - 1
    return f" (and {more} more row{'s' * (more > 1)} of this column)" if more else ""


def _row(table: pd.DataFrame, row: int) -> str:
    """Counted from 1 below the header, with the sample's name where it has one."""
    import pandas as pd

    unnamed = isinstance(table.index, pd.RangeIndex)
    return f"row {row + 1}" if unnamed else f"row {row + 1} (sample {table.index[row]!r})"


# -- how far it is


@contextmanager
def _parts() -> Iterator[Part]:
    """Shows each part of the analysis, on standard error."""
    with Progress(announce=True) as progress:

        @contextmanager
        def one(what: str, total: int) -> Iterator[Callable[[], object]]:
            with progress.part(what, total) as part:
                yield part.advance

        yield one


# -- what comes out


def _document(answer: Analysis, settings: Mapping[str, Any]) -> dict[str, Any]:
    """``hubs.json``."""
    import importlib.metadata
    import platform

    import upheld
    from upheld.hubs.detector import two_sd_line

    est = answer.estimator
    assert est.n_samples_ is not None  # fitted from samples
    packages = ["numpy", "scipy", "pandas", "scikit-learn", *(["gglasso"] if answer.calls else [])]
    return {
        "schema": SCHEMA,
        "settings": dict(settings),
        "data": {
            "variables": len(est.influence_),
            "variables_ranked": int((~est.screened_out_).sum()),
            "samples": {str(group): int(n) for group, n in zip(est.groups_, est.n_samples_, strict=True)},
        },
        "certificate": {
            "status": est.status_,
            "certified": bool(est.certified_),
            "optimum": plain(est.objective_),
            "lower_bound": plain(est.lower_bound_),
            "relative_gap": plain(est.relative_gap_),
            "eigengap": plain(est.eigengap_),
            "n_components": len(est.components_),
            "eigendecompositions": int(est.n_iter_),
            "seconds": answer.seconds,
        },
        "group_weights": {str(group): plain(weight) for group, weight in zip(est.groups_, est.group_weights_, strict=True)},
        "lines": {
            TWO_SD: two_sd_line(est.influence_[~est.screened_out_]),
            **{f"{kind} null, 95 %": line for kind, line in answer.null_lines.items()},
        },
        "hubs": answer.hubs(),
        "not_computed": {what: in_options(why, OPTIONS) for what, why in answer.not_computed.items()},
        "remarks": [in_options(remark, OPTIONS) for remark in answer.remarks],
        "variables": records(answer.table),
        "rivals": [_rival_record(answer, call) for call in answer.calls],
        "enrichment": None if answer.enriched is None else records(answer.enriched),
        "versions": {
            "upheld": upheld.__version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in packages},
        },
    }  # fmt: skip


def _rival_record(answer: Analysis, call: HubCall) -> dict[str, Any]:
    from upheld.hubs.rivals import rival

    ours, chosen = set(answer.hubs()), answer.selected_by(call)
    union = ours | set(chosen["score"])
    return {
        "name": call.detector,
        "title": rival(call.detector).title,
        "tuning": call.tuning,
        "penalties": [list(penalty) for penalty in call.penalties],
        "at_edge": call.at_edge,
        "converged": call.converged,
        "seconds": call.seconds,
        "selected": chosen["score"],
        "selected_by_intersection": chosen["intersection"],
        "jaccard_with_ours": len(ours & set(chosen["score"])) / len(union) if union else None,
    }


def _write(answer: Analysis, document: Mapping[str, Any], out: Path) -> None:
    from upheld.hubs.plots import influence_plot
    from upheld.report.writing import write_files

    contents: dict[str, str | bytes] = {
        "hubs.csv": answer.table.to_csv(index=False),
        "hubs.json": json_text(document),
    }
    figure = influence_plot(answer.estimator, answer.table, null_lines=answer.null_lines)
    contents |= {f"hubs.{ending}": drawn(figure, ending) for ending in ("png", "svg")}
    write_files(out, contents)


def _print(answer: Analysis, document: Mapping[str, Any], out: Path | None) -> None:
    from upheld.report.printing import Terminal

    terminal = Terminal()
    terminal.say(_summary(document) + "\n")
    terminal.show(_hub_table(answer, terminal.width))
    if "low" in answer.table and terminal.width >= WIDE:
        terminal.say(f"\n{SPREAD}")
    if "p_value_permutation" in answer.table:
        terminal.say(f"\n{P_VALUES}")
    terminal.say("\n" + _certificate(document))
    for remark in document["remarks"]:
        terminal.say(f"Note: {remark}.")
    for what, why in document["not_computed"].items():
        terminal.say(f"Not computed: {what}: {why}.")
    if document["rivals"]:
        _print_rivals(terminal, answer, document)
    if answer.enriched is not None:
        terminal.say(
            "\nGene sets by the hubs they hold (hypergeometric test, FDR of Benjamini and Hochberg)\n", style="bold"
        )
        terminal.show(_enrichment_table(answer.enriched))
    if out is not None:
        terminal.say(f"\nwrote {out}: hubs.csv (all variables), hubs.json, hubs.png, hubs.svg")


def _summary(document: Mapping[str, Any]) -> str:
    data, hubs, lines = document["data"], document["hubs"], dict(document["lines"])
    samples = ", ".join(f"{group} {n}" for group, n in data["samples"].items())
    screened = data["variables"] - data["variables_ranked"]
    left_out = f", of which {screened:,} were screened out" if screened else ""
    found = f"{len(hubs)} above" if hubs else "none above"
    nulls = "; ".join(f"{name}: {line:.3f}" for name, line in lines.items() if name != TWO_SD)
    return (
        f"{data['variables']:,} variables{left_out}; samples: {samples}.\n"
        f"Common hubs: {found} the line of {TWO_SD}, {lines[TWO_SD]:.3f}{f' ({nulls})' if nulls else ''}."
    )


def _certificate(document: Mapping[str, Any]) -> str:
    """Optimum, gap, and which group binds, in a sentence."""
    certificate, weights = document["certificate"], document["group_weights"]
    gap = f"{100 * certificate['relative_gap']:.2g} %"
    if certificate["certified"]:
        proven = f"Certified: {certificate['optimum']:.4g} is the optimum to within {gap}"
        proven += ", though not the only solution" if "not unique" in certificate["status"] else ""
    else:
        proven = (
            f"NOT certified: the optimum lies between {certificate['lower_bound']:.4g} and {certificate['optimum']:.4g} "
            f"(a gap of {gap}), so read the ranking with care"
        )
    order = sorted(weights, key=weights.__getitem__, reverse=True)
    binding = [group for group in order if weights[group] > 1e-6]
    first, *rest = (f"{group} ({weights[group]:.2f})" for group in binding)
    binds = f"{first} binds most, then {', '.join(rest)}" if rest else f"{first} binds alone"
    idle = [group for group in order if group not in binding]
    without = f"; {', '.join(idle)} made no difference" if idle else ""
    return f"{proven} (dimension {certificate['n_components']}). By weight {binds}{without}."


def _hub_table(answer: Analysis, width: int) -> Table:
    from upheld.report.printing import cell, plain_table

    table = plain_table()
    shown = answer.table.head(SHOWN)
    headings = {
        "influence": "influence", "interval": "95 % interval", "rank": "rank", "selected": "hub", "stability": "stability",
        "p_value_permutation": "p, columns\npermuted", "p_value_rotation": "p, variables\nrotated", "kind": "kind",
    }  # fmt: skip
    table.add_column("variable", no_wrap=True)
    present = [name for name in headings if name in shown or (name == "interval" and "low" in shown and width >= WIDE)]
    for name in present:
        table.add_column(headings[name], justify="left" if name in ("hub", "kind") else "right", no_wrap=name != "kind")
    for row in shown.to_dict("records"):
        row["interval"] = math.nan if math.isnan(row.get("low", math.nan)) else f"{row['low']:.3f} to {row['high']:.3f}"
        cells = [cell(_cell(name, row[name])) for name in present]
        table.add_row(cell(row["variable"]), *cells, style="bold" if row["selected"] else None)
    return table


def _cell(name: str, value: Any) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "n/a"
    if name == "selected":
        return "yes" if value else ""
    if name == "stability":
        return f"{value:.2f}"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _print_rivals(terminal: Terminal, answer: Analysis, document: Mapping[str, Any]) -> None:
    from upheld.report.printing import cell, plain_table

    ours, wide = document["hubs"], terminal.width >= WIDE
    table = plain_table()
    table.add_column("method", overflow="fold")
    for heading in ("hubs", "Jaccard\nwith ours", "seconds,\ntuning included"):
        table.add_column(heading, justify="right", no_wrap=True)
    if wide:
        table.add_column("which", overflow="fold")

    def add(title: str, chosen: Sequence[str], jaccard: str, seconds: float, style: str | None = None) -> None:
        which = [cell(_few(chosen))] if wide else []
        table.add_row(title, str(len(chosen)), jaccard, f"{seconds:.2g}", *which, style=style)

    add("Joint hubs (ours)", ours, "", document["certificate"]["seconds"], "bold")
    for rival in document["rivals"]:
        jaccard = rival["jaccard_with_ours"]
        add(rival["title"], rival["selected"], "none chosen" if jaccard is None else f"{jaccard:.2f}", rival["seconds"])
    terminal.say(
        "\nThe same samples, other methods; penalties cross-validated, hubs by the 2-sd rule on their score\n",
        style="bold",
    )
    terminal.show(table)
    terminal.say("\nRanks side by side; * chosen as hub\n", style="bold")
    terminal.show(_rank_table(answer, [rival["name"] for rival in document["rivals"]], wide))


def _rank_table(answer: Analysis, rivals: Sequence[str], wide: bool) -> Table:
    from upheld.report.printing import cell, plain_table

    ranks = plain_table()
    ranks.padding = (0, 2 if wide else 1, 0, 0)
    ranks.add_column("variable", no_wrap=True)
    for name in ("ours", *rivals):
        ranks.add_column(name.replace("-", "\n"), justify="right", vertical="bottom")
    for row in answer.table.head(SHOWN).to_dict("records"):
        cells = [_rank(row[f"rank{of}"], row[f"selected{of}"]) for of in ("", *(f"_{name}" for name in rivals))]
        ranks.add_row(cell(row["variable"]), *cells)
    return ranks


def _rank(rank: float, chosen: Any) -> str:
    return "n/a" if math.isnan(rank) else f"{int(rank)}{'*' if chosen else ' '}"


def _few(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _enrichment_table(enriched: pd.DataFrame) -> Table:
    from upheld.report.printing import cell, plain_table

    table = plain_table()
    table.add_column("set", overflow="fold")
    for heading in ("genes", "hubs", "p", "FDR"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("which", overflow="fold")
    for row in enriched.head(10).to_dict("records"):
        numbers = (str(row["genes"]), str(row["hubs"]), f"{row['p_value']:.2g}", f"{row['fdr']:.2g}")
        table.add_row(cell(row["set"]), *numbers, cell(_few(row["which"].split())))
    return table
