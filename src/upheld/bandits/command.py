"""``upheld run bandits choices.csv --threshold 0.7``: which policy would have done well on a user's own arms, and is any good enough?"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from upheld.report.content import drawn, json_text, records
from upheld.report.progress import Progress
from upheld.report.writing import expect_folder

if TYPE_CHECKING:
    from rich.table import Table

    from upheld.bandits.evaluation import Evaluation

EXAMPLE = "upheld run bandits {file} --threshold 0.9 --out out/"
SCHEMA = "upheld.bandits.run/1"
POLICIES = ("uncertain-ucb", "sat-ucb", "ucb", "ts")
FOR_UNIT_REWARDS = "uncertain-kl-ucb"
ROUNDS = 10_000
NOTICE = {
    "replay": "Replayed: a policy learns from the rows in which it would have chosen the logged arm, and skips the others.",
    "bootstrap": "BOOTSTRAP, not a replay: rewards are drawn again from those logged for each arm. If the log gave some arms the "
    "easier cases, so does this.",
    "simulation": "Simulated from the given means.",
}


def run(
    threshold: Annotated[float, typer.Option("--threshold", help="The mean reward that is good enough.")],
    file: Annotated[
        Path | None, typer.Argument(metavar="LOG", help="A log of choices: CSV or Parquet, a row a choice.")
    ] = None,
    log: Annotated[Path | None, typer.Option("--log", help="The same, as an option.")] = None,
    arm: Annotated[str, typer.Option("--arm", help="Column of the arm that was chosen.")] = "arm",
    reward: Annotated[str, typer.Option("--reward", help="Column of the reward it gave.")] = "reward",
    propensity: Annotated[
        str | None,
        typer.Option(
            "--propensity", help="Column of the probability of the choice, if it was not the same for all arms."
        ),
    ] = None,
    bootstrap: Annotated[
        bool, typer.Option("--bootstrap", help="Draw again from each arm's rewards: for logs that were not randomised.")
    ] = False,
    means: Annotated[
        Path | None, typer.Option("--means", help="No log: simulate the arms of this table, columns arm and mean.")
    ] = None,
    policies: Annotated[
        str | None,
        typer.Option(
            "--policies",
            help=f"Names, separated by commas; {','.join(POLICIES)} by default, and {FOR_UNIT_REWARDS} for rewards in [0, 1].",
        ),
    ] = None,
    sigma: Annotated[
        float | None,
        typer.Option("--sigma", help="How wild rewards are (sub-Gaussian constant); 1/2 is right for any in [0, 1]."),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Repetitions.")] = 200,
    horizon: Annotated[
        int | None,
        typer.Option(
            "--horizon", min=1, help=f"Rounds of a run; a replay takes what the log allows, else {ROUNDS:,} are played."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of everything random.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for results.parquet, report.json and pictures.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    serve: Annotated[
        bool,
        typer.Option(
            "--serve", help="Play live: a JSON event a line on standard input, the next arm on standard output."
        ),
    ] = False,
    arms: Annotated[str | None, typer.Option("--arms", help="With --serve: the arms, separated by commas.")] = None,
    state: Annotated[
        Path | None, typer.Option("--state", help="With --serve: a file to go on from, kept up to date.")
    ] = None,
) -> None:
    """Choose among arms until one is certified good enough. A log of past choices shows which policy would have lost least, and which
    arms reach the threshold; --means plays on given arms, --serve plays live."""
    chosen = _policies(policies)
    _check_numbers(threshold, sigma)
    source = _one_of({"LOG": file, "--log": log, "--means": means, "--arms": arms if serve else None}, serve)
    if serve:
        for option, value in (("--bootstrap", bootstrap), ("--out", out), ("--means", means), ("--json", json)):
            _only(option, not value, "is not for --serve; leave it out")
        labels = _labels(arms, source, arm, reward)
        _serve(labels, threshold, sigma, chosen, seed, state)
        return
    for option, given in (("--arms", arms), ("--state", state)):
        _only(option, given is None, "goes with --serve; add that, or leave it out")
    _only("--propensity", not (propensity and (bootstrap or means)), "is for replays; leave it out")
    _only("--bootstrap", not (bootstrap and means), "needs a log, not --means; leave one of them out")
    if out is not None:
        import pyarrow  # noqa: F401 - writes results.parquet

        expect_folder(out)
    table = _read(source, arm, reward, propensity, sigma, simulate=means is not None)
    names = chosen or _default(table, sigma, simulate=means is not None)
    with _progress(names, runs) as told:
        options: dict[str, Any] = {"name": source.name, "runs": runs, "horizon": horizon, "seed": seed, "told": told}
        found = _evaluate(table, names, threshold, sigma, bootstrap=bootstrap, **options)
    document = _document(found, source, runs)
    if out is not None:
        _write(found, document, out)
    if json:
        sys.stdout.write(json_text(document))
    else:
        _print(found, document, out)


def write_data(out: Path) -> None:
    """Twenty thousand choices of a classifier for a random digit: which one is accurate enough?"""
    from upheld.bandits.data import write_digits_log

    write_digits_log(out)


# -- what was asked


def _policies(text: str | None) -> list[str]:
    """Names that exist, each once; none if none were named."""
    from upheld.bandits.policies import names

    if text is None:
        return []
    chosen = [name.strip() for name in text.split(",") if name.strip()]
    if not chosen:
        raise ValueError(f"--policies names none; there are {', '.join(names())}")
    for name in chosen:
        if name not in names():
            raise ValueError(f"no policy is called {name!r}; there are {', '.join(names())}")
    return list(dict.fromkeys(chosen))


def _check_numbers(threshold: float, sigma: float | None) -> None:
    if not math.isfinite(threshold):
        raise ValueError(
            f"--threshold must be a finite number, got {threshold}; pass the mean reward that is good enough"
        )
    if sigma is not None and not (math.isfinite(sigma) and sigma > 0):
        raise ValueError(f"--sigma must be a positive number, got {sigma:g}; for rewards in [a, b] it is (b - a)/2")


def _one_of(sources: dict[str, Path | str | None], serve: bool) -> Path:
    """The one source of arms that was named."""
    named = [option for option, value in sources.items() if value is not None]
    if not named:
        needed = (
            "--arms a,b,c, or a log whose arms to take"
            if serve
            else "a log of choices, or --means with a table of arms"
        )
        raise ValueError(f"there is nothing to play on: name {needed}")
    if len(named) > 1:
        raise ValueError(f"{' and '.join(named)} both say what to play on; give one of them")
    return Path(sources[named[0]] or "")


def _only(option: str, allowed: bool, otherwise: str) -> None:
    if not allowed:
        raise ValueError(f"{option} {otherwise}")


def _read(source: Path, arm: str, reward: str, propensity: str | None, sigma: float | None, *, simulate: bool) -> Any:
    from upheld.bandits.data import MissingColumn, check_unit_rewards, read_log, read_means

    if simulate:
        return read_means(source, arm=arm)
    try:
        table = read_log(source, arm=arm, reward=reward, propensity=propensity)
    except MissingColumn as error:
        raise ValueError(f"{error}; name yours with --arm, --reward and --propensity") from error
    if sigma is None:
        check_unit_rewards(table, str(source))
    return table


def _default(table: Any, sigma: float | None, *, simulate: bool) -> list[str]:
    """The policy for rewards in [0, 1] goes first where they are."""
    unit = sigma is None if simulate else bool(table["reward"].between(0, 1).all())
    return [FOR_UNIT_REWARDS, *POLICIES] if unit else list(POLICIES)


def _evaluate(
    table: Any,
    names: Sequence[str],
    threshold: float,
    sigma: float | None,
    *,
    bootstrap: bool,
    horizon: int | None,
    **options: Any,
) -> Evaluation:
    import pandas as pd

    from upheld.bandits import evaluation

    if isinstance(table, pd.Series):
        return evaluation.simulated(table, names, threshold, sigma=sigma, horizon=horizon or ROUNDS, **options)
    if bootstrap:
        return evaluation.bootstrapped(table, names, threshold, sigma=sigma, horizon=horizon or ROUNDS, **options)
    return evaluation.replayed(table, names, threshold, sigma=sigma or 0.5, horizon=horizon, **options)


# -- playing live


def _labels(arms: str | None, source: Path, arm: str, reward: str) -> list[Any]:
    from upheld.bandits.data import read_log
    from upheld.bandits.replay import Log

    if arms is None:
        return Log.of(read_log(source, arm=arm, reward=reward)).labels
    labels = [label.strip() for label in arms.split(",") if label.strip()]
    if len(labels) < 2:
        raise ValueError(f"--arms names {len(labels)} arm; a choice needs at least 2, separated by commas")
    return labels


def _serve(
    labels: list[Any], threshold: float, sigma: float | None, names: list[str], seed: int, state: Path | None
) -> None:
    from upheld.bandits.policies import RulePolicy, make
    from upheld.bandits.replay import takes_sigma
    from upheld.bandits.server import serve

    if len(names) > 1:
        raise ValueError(f"--serve plays one policy, but --policies names {len(names)}; keep one of them")
    name = names[0] if names else POLICIES[0]
    extra = {"sigma": sigma} if sigma is not None and takes_sigma(name) else {}
    policy = make(name, labels, threshold, random_state=seed, **extra)
    if not isinstance(policy, RulePolicy):
        raise ValueError(f"{name} is another library's policy, and its state cannot be kept; serve one of upheld's own")
    for answer in serve(policy, sys.stdin, state=state, unit=sigma is None):
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


# -- what comes out


@contextmanager
def _progress(names: Sequence[str], runs: int) -> Iterator[Callable[[str], None]]:
    """On standard error: which policy is being played, and how many are left."""
    with Progress() as progress, progress.part(f"{runs:,} runs of each policy", len(names)) as part:
        ended = 0
        part.reach(0, f"{names[0]}, 1 of {len(names)}")

        def told(policy: str) -> None:
            nonlocal ended
            ended += 1
            following = names[ended : ended + 1]
            part.reach(ended, f"{following[0]}, {ended + 1} of {len(names)}" if following else "done")

        yield told


def _document(found: Evaluation, source: Path, runs: int) -> dict[str, Any]:
    """``report.json``."""
    import importlib.metadata
    import platform

    import upheld

    lengths = {policy: {"shortest": int(n.min()), "longest": int(n.max())} for policy, n in found.lengths.items()}
    return {
        "schema": SCHEMA,
        "kind": found.kind,
        "label": found.instance,
        "notice": NOTICE[found.kind],
        "settings": {
            "file": source.name,
            "threshold": found.threshold,
            "sigma": found.sigma,
            "policies": found.policies,
            "runs": runs,
            "seed": found.seed,
        },
        "versions": {
            "upheld": upheld.__version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in ("numpy", "scipy", "pandas")},
        },
        "effective_horizon": {"common": found.horizon, "policies": lengths},
        "arms": records(found.arms),
        "policies": records(found.summary()),
    }


def _write(found: Evaluation, document: dict[str, Any], out: Path) -> None:
    from upheld.bandits import plots
    from upheld.report.writing import write_files

    label = found.frame["certified_arm"].map(lambda arm: None if arm is None else str(arm))
    contents: dict[str, str | bytes] = {
        "results.parquet": found.frame.assign(certified_arm=label).to_parquet(index=False),
        "report.json": json_text(document),
    }
    figures = {"regret": plots.regret_over_time(found.frame, title=found.instance)}
    certifying = [policy for policy in document["policies"] if policy["policy"].startswith("uncertain")]
    if certifying:
        followed = max(certifying, key=lambda policy: policy["certified"])["policy"]
        title = f"one run of {followed}, {found.instance}"
        figures["certificates"] = plots.certificates(found.timeline(followed), found.threshold, title=title)
    for name, figure in figures.items():
        contents |= {f"{name}.{ending}": drawn(figure, ending) for ending in ("png", "svg")}
    write_files(out, contents)


def _print(found: Evaluation, document: dict[str, Any], out: Path | None) -> None:
    from upheld.report.printing import Terminal

    terminal = Terminal()
    terminal.say(
        f"{found.instance[0].upper()}{found.instance[1:]}: {len(found.arms)} arms, good enough is a mean reward of {found.threshold:g}."
    )
    terminal.say(NOTICE[found.kind])
    if found.kind == "replay":
        terminal.say(
            f"Effective horizon: {found.horizon:,} of {found.arms['rows'].sum():,} rows; every run of every policy accepted as many."
        )
    estimated = "" if found.kind == "simulation" else ", estimated from the log"
    runs = document["settings"]["runs"]
    terminal.say(
        f"\nReward lost in {found.horizon:,} rounds{estimated}: mean of {runs:,} run{'s' * (runs > 1)} (99 in 100 lose less than):\n"
    )
    terminal.show(_policy_table(found, document))
    terminal.say(_meaning(found))
    terminal.show(_arm_table(found))
    if out is not None:
        terminal.say(f"wrote {out}: results.parquet, report.json, pictures (png and svg)")


def _policy_table(found: Evaluation, document: dict[str, Any]) -> Table:
    from upheld.report.printing import cell, plain_table

    table = plain_table()
    table.add_column("\npolicy", no_wrap=True)
    for heading in ("refined\nregret", "threshold\nregret", "standard\nregret", "ends\ncertified", "by\nround"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("mostly\narm", overflow="fold")
    table.add_column("that is truly\ngood enough", justify="right", no_wrap=True)
    for row in document["policies"]:
        losses = [
            f"{row[name]:,.1f} ({row[f'{name}_q99']:,.0f})" for name in ("regret_refined", "regret_threshold", "regret")
        ]
        if row["certified"]:
            ends = (
                _percent(row["certified"]),
                f"{row['certified_by']:,.0f}",
                cell(row["certified_arm"]),
                _percent(row["satisficing"]),
            )
        else:
            ends = ("never" if row["policy"].startswith("uncertain") else "makes none", "", cell(""), "")
        table.add_row(row["policy"], *losses, *ends)
    return table


def _meaning(found: Evaluation) -> str:
    s = f"{found.threshold:g}"
    judge = "by the given means" if found.kind == "simulation" else "given the whole log"
    return (
        f"\nrefined regret: what rounds on arms below {s} lost against the best arm; threshold regret: what they fell short of {s}; "
        f"standard regret: what all rounds lost against the best arm.\ncertified: the run ends with a proof that an arm reaches {s}; "
        f"truly good enough: the probability of that, {judge}.\n"
    )


def _arm_table(found: Evaluation) -> Table:
    from upheld.report.printing import cell, plain_table

    log = "rows" in found.arms
    table = plain_table()
    table.add_column("arm", overflow="fold")
    for heading in (
        *(["rows"] if log else []),
        "mean reward",
        *(["± (standard error)"] if log else []),
        f"reaches {found.threshold:g}",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in found.arms.sort_values("mean", ascending=False).to_dict("records"):
        numbers = [f"{row['rows']:,}"] if log else []
        numbers += [f"{row['mean']:.4g}"] + ([f"{row['se']:.2g}"] if log else [])
        table.add_row(cell(row["arm"]), *numbers, _percent(row["satisficing"]))
    return table


def _percent(share: float) -> str:
    """
    >>> _percent(1.0), _percent(0.9996), _percent(0.5), _percent(0.0002)
    ('100 %', '>99.9 %', '50 %', '<0.1 %')
    """
    if 0.999 < share < 1:
        return ">99.9 %"
    if 0 < share < 0.001:
        return "<0.1 %"
    return f"{100 * share:.3g} %"
