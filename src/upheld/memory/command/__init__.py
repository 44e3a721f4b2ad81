"""``upheld run memory --patterns keys.npy --cues cues.csv`` and ``upheld run memory phase``: recall from a store, and where it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = """upheld run memory --patterns {file} --noise 0.3 --compare --out out/
  upheld run memory phase --kernel lsr --alpha 0.1:0.5:5 --temp 0.05:2:6 --trials 4 --out phase/"""


def run(
    what: Annotated[
        str,
        typer.Argument(
            metavar="[recall|phase]", help="recall from vectors of yours, or a phase diagram of random patterns."
        ),
    ] = "recall",
    patterns: Annotated[
        Path | None,
        typer.Option("--patterns", help="What to store: .npy, .npz, .csv, .parquet or .safetensors, a row a vector."),
    ] = None,
    cues: Annotated[
        Path | None,
        typer.Option("--cues", help="What to recall from, as wide as the patterns; by default the patterns, damaged."),
    ] = None,
    truth: Annotated[
        str | None,
        typer.Option(
            "--truth", help="Column of the cues with the row (from 0) of the pattern each was made from, -1 for none."
        ),
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option(
            "--id", help="Column with the names of the patterns, which the recalls then tell; cues may have it."
        ),
    ] = None,
    kernel: Annotated[str, typer.Option("--kernel", help="lsr: compact support, refuses; lse: softmax.")] = "lsr",
    beta: Annotated[
        str, typer.Option("--beta", help="Inverse variance of the kernel: auto, separation or a number.")
    ] = "auto",
    normalize: Annotated[
        bool, typer.Option("--normalize/--no-normalize", help="Put rows on the sphere of radius sqrt(N) first.")
    ] = True,
    on_empty: Annotated[
        str, typer.Option("--on-empty", help="Cues outside every support: abstain, nearest or error.")
    ] = "abstain",
    backend: Annotated[
        str, typer.Option("--backend", help="torch, or faiss (LSR; touches the support only).")
    ] = "torch",
    noise: Annotated[
        float,
        typer.Option(
            "--noise",
            min=0,
            help="Of cues, in units of the patterns' root mean square: by it they are damaged, and beta auto is set; say it of --cues too.",
        ),
    ] = 0.2,
    compare: Annotated[bool, typer.Option("--compare", help="The rivals on the same cues, tuned alike.")] = False,
    alpha: Annotated[
        str, typer.Option("--alpha", help="phase: loads, FIRST:LAST:COUNT or one number.")
    ] = "0.05:0.5:10",
    temp: Annotated[
        str, typer.Option("--temp", help="phase: temperatures, FIRST:LAST:COUNT or one number.")
    ] = "0.05:2:12",
    scheme: Annotated[
        str, typer.Option("--scheme", help="phase: full, cone (LSE, large M) or bulk (no patterns).")
    ] = "full",
    move: Annotated[str, typer.Option("--move", help="phase: pair or metropolis.")] = "pair",
    protocol: Annotated[
        str,
        typer.Option("--protocol", help="phase: heat carries states up in temperature, restart begins anew at each."),
    ] = "heat",
    count: Annotated[
        float | None,
        typer.Option("--count", help="phase: patterns M, N = ln M / alpha; 148, or 100,000 for cone and bulk."),
    ] = None,
    dimension: Annotated[int | None, typer.Option("--dimension", help="phase: N, instead of --count.")] = None,
    b: Annotated[float | None, typer.Option("--b", help="phase: LSR's kernel, 2 + sqrt 2 by default.")] = None,
    beta_net: Annotated[float, typer.Option("--beta-net", help="phase: LSE's inverse variance.")] = 1.0,
    trials: Annotated[int, typer.Option("--trials", min=1, help="phase: draws of patterns a cell.")] = 10,
    sweeps: Annotated[
        int, typer.Option("--sweeps", min=2, help="phase: recorded sweeps a cell; a quarter more before.")
    ] = 1000,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="phase: cells at a time.")] = 1,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of everything random.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the files; phase goes on where it was stopped.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Recall the right one of your vectors from a damaged cue, or refuse; how far the store is from failure. With phase: a Monte Carlo
    phase diagram, and which theory places how many cells on the wrong side."""
    if what == "phase":
        from upheld.memory.command.phase import Request, diagram

        diagram(
            Request(
                kernel, alpha, temp, scheme, move, protocol, count, dimension, b, beta_net, trials, sweeps, seed
            ), jobs, out, json,
        )  # fmt: skip
    elif what == "recall":
        from upheld.memory.command.recalling import Asked, recall

        recall(
            Asked(patterns, cues, truth, ids, kernel, beta, normalize, on_empty, backend, noise, compare, seed),
            out,
            json,
        )
    else:
        raise ValueError(f"{what!r} is neither recall nor phase; for recall give --patterns FILE")


def write_data(out: Path) -> None:
    """Handwritten digits of scikit-learn, 1,797 vectors of 64 pixels, centred; recall them from damaged copies."""
    from upheld.memory.command.vectors import write_vectors
    from upheld.memory.data import load_digits

    write_vectors(out, load_digits()[0])
