"""``upheld run lagrangian --train past/*.mps --test today.mps --coupling 'demand_.*'``: a proven bound, and a plan, for today."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "upheld run lagrangian --train {file}/past/*.mps --test {file}/today.mps --coupling 'demand_.*|reserve_.*' --compare --out out/"
WRITES_A_FOLDER = True


def run(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...", help="More files of the option before them, as a shell leaves them of past/*.mps."
        ),
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(
            "--train",
            help="Past instances, oldest first: .mps or .lp files (also .gz), OR-Library's gap and cap files (.txt; gap1.txt:1-4 for "
            "some of those in it), CVRPLIB's .vrp; a pattern, or a folder.",
        ),
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option("--test", help="New instances to bound, with the same coupling rows.")
    ] = None,
    coupling: Annotated[
        str | None,
        typer.Option(
            "--coupling",
            help="Rows of a model that tie the blocks together: a regular expression that matches whole row names. If left out, "
            "those of --multipliers, or found by themselves.",
        ),
    ] = None,
    capacity: Annotated[
        float | None,
        typer.Option("--capacity", help="Of the sites, where an OR-Library cap file leaves it open (capa to capc)."),
    ] = None,
    vehicles: Annotated[
        int | None,
        typer.Option("--vehicles", min=1, help="For .vrp files; by default the number in a name such as A-n32-k5."),
    ] = None,
    maximise: Annotated[
        bool, typer.Option("--maximise", help="OR-Library's gap files ask for the most (gap1 to gap12), not the least.")
    ] = False,
    learner: Annotated[
        str | None,
        typer.Option(
            "--learner",
            help="sga (default): averaged stochastic gradient ascent; paper: the same as published, with its theorem; tracking: follows "
            "prices that drift, with --online; erm: best mean on "
            "the past; warm-start: mean of past optima, a start for --steps; contextual: a network that looks at the instance.",
        ),
    ] = None,
    multipliers: Annotated[
        Path | None, typer.Option("--multipliers", help="Saved multipliers, instead of --train.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save", help="Where to save the learned multipliers: .json, .npz or .safetensors (contextual: the last)."
        ),
    ] = None,
    online: Annotated[
        bool, typer.Option("--online", help="Learn from each new instance after it was bounded.")
    ] = False,
    pi_max: Annotated[
        float | None,
        typer.Option("--pi-max", help="Largest multiplier; twice the largest LP multiplier of the past by default."),
    ] = None,
    learn_calls: Annotated[
        int | None,
        typer.Option(
            "--learn-calls", min=1, help="For erm and warm-start: most block solutions of an instance; 500 by default."
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", min=1, help="For contextual: most passes over the past; 50 by default.")
    ] = None,
    steps: Annotated[
        int, typer.Option("--steps", min=0, help="Steps from the learned multipliers on each new instance.")
    ] = 20,
    method: Annotated[
        str, typer.Option("--method", help="Of these steps: level, kelley, subgradient or volume.")
    ] = "level",
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds", help="Most time for the plan of an instance, and for the solvers' root nodes; 0: no plan."
        ),
    ] = 10.0,
    block_gap: Annotated[
        float, typer.Option("--block-gap", help="Relative gap at which a block may stop; its proven bound counts then.")
    ] = 0.0,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Threads that share the blocks.")] = 1,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Beside it: the same steps from zero and from the LP's multipliers; HiGHS' root node, and GCG's if UPHELD_GCG_PYTHON "
            "names an interpreter that has it.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the contextual network.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder for report.json, bounds.parquet (every step), prices.csv, plan.csv, multipliers.json and a picture.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Multipliers on the coupling rows, learned from past instances, and with them a certified bound on the optimum of a new one in
    one solution of its blocks; a few more steps from there, a feasible plan, and its proven gap."""
    asked = dict(locals())
    from upheld.lagrangian.command.options import Options, check
    from upheld.lagrangian.command.reading import attributed
    from upheld.lagrangian.command.running import planned
    from upheld.lagrangian.command.terminal import print_run
    from upheld.report.content import json_text

    asked["train"], asked["test"] = attributed(train or [], test or [], asked.pop("files") or [], sys.argv[1:])
    options = Options(**asked)
    check(options)
    document, written = planned(options)
    if json:
        sys.stdout.write(json_text(document))
    else:
        print_run(document, written)


def write_data(out: Path) -> None:
    """Twenty days of a system of ten power plants in ``past/``, and ``today.mps``."""
    from upheld.lagrangian.data import write_days

    write_days(out)
