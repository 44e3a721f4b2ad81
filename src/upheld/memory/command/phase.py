"""``upheld run memory phase``: a Monte Carlo phase diagram with every theory's line, and each theory scored on the same cells.

Rows are appended to ``phase.csv`` as units are done; a run that is stopped goes on where it was. A unit is one draw of patterns at one
load, heated through all temperatures (``--protocol heat``), or one load and temperature with all trials (``restart``).
"""

from __future__ import annotations

import io
import math
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from upheld.memory.escape import RELAXATION_SWEEPS, SMALLEST_N, basin_lifetime, escape_channels
from upheld.memory.geometry import FloatArray
from upheld.memory.montecarlo import SphereSampler
from upheld.memory.theory import B, alpha_c, phi_eq, ramsauer_bound
from upheld.report.content import drawn, json_text, records
from upheld.report.printing import Terminal
from upheld.report.progress import Progress
from upheld.report.writing import write_files

SCHEMA = "upheld.memory.phase/1"
COUNTS = {"full": 148.0, "cone": 1e5, "bulk": 1e5}
SMALLEST_DIMENSION, LINE_POINTS = 6, 60
COLUMNS = [
    "kernel", "scheme", "alpha", "N", "M", "T", "trial", "phi_target", "phi_other_max", "q12", "left_support", "acceptance", "iat",
    "sweeps",
    "seed",
]  # fmt: skip
Line = Callable[[Any], Any]


@dataclass(frozen=True)
class Request:
    """As it was asked for; see `run`."""

    kernel: str
    alpha: str
    temp: str
    scheme: str
    move: str
    protocol: str
    count: float | None
    dimension: int | None
    b: float | None
    beta_net: float
    trials: int
    sweeps: int
    seed: int

    @property
    def kernel_b(self) -> float:
        """`b` as given, 0 included, which is refused; only what was left out is the default."""
        return B if self.b is None else self.b

    @property
    def patterns(self) -> float:
        return COUNTS[self.scheme] if self.count is None else self.count

    def sampler(self, alpha: float, T: list[float], trials: int, seed: int) -> SphereSampler:
        N = self.dimension_at(alpha)
        return SphereSampler(
            self.kernel, alpha, N, T, self.scheme, self.move, trials, random_state=seed, b=self.kernel_b, beta_net=self.beta_net,
            burn_in=self.sweeps // 4, sweeps=self.sweeps, protocol=self.protocol,
        )  # fmt: skip

    def dimension_at(self, alpha: float) -> int:
        """N of a load.

        Raises
        ------
        ValueError
            If so few patterns at that load make a sphere of too few dimensions.
        """
        if self.dimension is not None:
            return self.dimension
        N = round(math.log(self.patterns) / alpha) if alpha > 0 else 0
        if N < SMALLEST_DIMENSION:
            raise ValueError(
                f"M = {self.patterns:g} patterns at alpha = {alpha:g} make N = {N}; give a larger --count, "
                "or --dimension"
            )
        return N


@dataclass(frozen=True)
class Unit:
    """What is run at once: the sampler, and the rows of ``phase.csv`` it gives."""

    alpha: float
    T: tuple[float, ...]
    trials: tuple[int, ...]
    seed: int


def numbers(option: str, text: str) -> list[float]:
    """``FIRST:LAST:COUNT`` or one number.

    >>> numbers("--temp", "0.1:0.3:3")
    [0.1, 0.2, 0.3]
    """
    parts = text.split(":")
    try:
        if len(parts) == 1:
            return [float(text)]
        first, last, count = float(parts[0]), float(parts[1]), int(parts[2])
        if len(parts) != 3 or count < 2 or not first < last:
            raise ValueError
    except (ValueError, IndexError):
        raise ValueError(
            f"{option} must be one number or FIRST:LAST:COUNT with FIRST below LAST, got {text!r}"
        ) from None
    return [float(one) for one in np.linspace(first, last, count).round(10)]


def units(request: Request) -> list[Unit]:
    """All units; building their samplers says now what cannot be run."""
    loads, temperatures = numbers("--alpha", request.alpha), numbers("--temp", request.temp)
    if request.scheme not in COUNTS:
        raise ValueError(f"--scheme must be {', '.join(COUNTS)}, got {request.scheme!r}")
    if not 1 < request.patterns < math.inf:
        raise ValueError(f"--count must be a number above 1, got {request.patterns:g}")
    if not all(0 <= alpha < math.inf for alpha in loads):
        raise ValueError(f"--alpha must be loads of at least 0, got {request.alpha!r}")
    made = []
    for place, alpha in enumerate(loads):
        request.sampler(alpha, temperatures, 1, 0)
        if request.protocol == "heat":
            made += [
                Unit(alpha, tuple(temperatures), (trial,), _seed(request.seed, place, trial))
                for trial in range(request.trials)
            ]
        else:
            made += [
                Unit(alpha, (T,), tuple(range(request.trials)), _seed(request.seed, place, t))
                for t, T in enumerate(temperatures)
            ]
    return made


def _seed(*parts: int) -> int:
    return int(np.random.SeedSequence(parts).generate_state(1)[0])


def diagram(request: Request, jobs: int, out: Path | None, as_json: bool) -> None:
    """Run what is missing, then draw, score and write."""
    todo = units(request)
    table = pd.DataFrame(columns=COLUMNS)
    if out is not None:
        table = begun(request, out)
        done = {(one.alpha, one.T, one.trial) for one in table.itertuples()}
        todo = [
            unit for unit in todo if not all((unit.alpha, T, trial) in done for T in unit.T for trial in unit.trials)
        ]
    parts = [table] if len(table) else []
    for part in _run(request, todo, jobs):
        parts.append(part)
        if out is not None:
            _append(out / "phase.csv", part)
    table = pd.concat(parts, ignore_index=True).drop_duplicates(["alpha", "T", "trial"])
    table = table.sort_values(["alpha", "T", "trial"], ignore_index=True)
    found = cells(table, request)
    scores = scored(found, request)
    document = {"schema": SCHEMA, "settings": asdict(request), "theories": records(scores), "cells": records(found)}
    if out is not None:
        _finish(out, table, found, request, document)
    if as_json:
        sys.stdout.write(json_text(document))
    else:
        _print(found, scores, out)


def _run(request: Request, todo: list[Unit], jobs: int) -> Iterator[pd.DataFrame]:
    """Chains are compiled and let go of the interpreter, so threads are enough."""

    def one(unit: Unit) -> pd.DataFrame:
        part = request.sampler(unit.alpha, list(unit.T), len(unit.trials), unit.seed).run().table()
        return part.assign(trial=[unit.trials[trial] for trial in part["trial"]])[COLUMNS]

    with (
        Progress() as progress,
        progress.part("phase diagram", len(todo), "chains") as part,
        ThreadPoolExecutor(jobs) as pool,
    ):
        waiting = [pool.submit(one, unit) for unit in todo]
        try:
            for finished in as_completed(waiting):
                part.advance()
                yield finished.result()
        finally:
            for one_waiting in waiting:
                one_waiting.cancel()


# -- a run that goes on


def begun(request: Request, out: Path) -> pd.DataFrame:
    """Rows that an earlier run of the same settings left; a last line that was cut off is dropped.

    Raises
    ------
    ValueError
        If the folder holds a run of other settings.
    """
    path, settings = out / "phase.csv", out / "phase.settings.json"
    text = json_text({"schema": SCHEMA, **asdict(request)})
    if settings.is_file() and settings.read_text() != text:
        raise ValueError(
            f"{out} holds a phase diagram of other settings; name another folder with --out, or repeat them"
        )
    if not settings.is_file() and path.is_file():
        raise ValueError(
            f"{path} is there, but {settings.name} is not, so it cannot be told what it holds; name another folder with --out"
        )
    write_files(out, {settings.name: text})
    if not path.is_file():
        write_files(out, {path.name: ",".join(COLUMNS) + "\n"})
    whole = path.read_text()
    whole = whole[: whole.rfind("\n") + 1]
    write_files(out, {path.name: whole})
    rows = pd.read_csv(io.StringIO(whole), float_precision="round_trip")
    if set(COLUMNS) - set(rows.columns):
        raise ValueError(
            f"{path} is damaged: it lacks the column {next(name for name in COLUMNS if name not in rows.columns)}; move it away, or name "
            "another folder with --out"
        )
    return rows


def _append(path: Path, part: pd.DataFrame) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(part.to_csv(index=False, header=False))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise ValueError(
            f"cannot write {path}: {error.strerror}; free some space and run the same line again"
        ) from error


# -- what the cells say


def cells(table: pd.DataFrame, request: Request) -> pd.DataFrame:
    """A row a cell: mean alignment, the closed finite-N curve, and the share of trials that were retrieved."""
    found = table.groupby(["alpha", "N", "T"], as_index=False).agg(
        M=("M", "max"),
        phi=("phi_target", "mean"),
        sd=("phi_target", "std"),
        acceptance=("acceptance", "mean"),
        trials=("trial", "size"),
    )
    expected = np.empty(len(found))
    for N, part in found.groupby("N"):
        expected[part.index] = phi_eq(part["T"].to_numpy(), request.kernel, request.kernel_b, N=int(N))  # type: ignore[arg-type]
    found["phi_N"] = expected
    merged = table.merge(found[["alpha", "T", "phi_N"]], on=["alpha", "T"])
    merged["kept"] = merged["phi_target"] >= merged["phi_N"] - 0.05
    kept = merged.groupby(["alpha", "T"], as_index=False)["kept"].mean()
    return found.merge(kept, on=["alpha", "T"]).rename(columns={"kept": "retrieved"})


def lines(request: Request) -> dict[str, Line]:
    """alpha_c(T) of every theory: those of infinite time, and the one that reckons with the sweeps of this run."""

    def of(density: str, criterion: str) -> Line:
        return lambda T: alpha_c(T, request.kernel, request.beta_net, request.kernel_b, density, criterion)

    finite: dict[str, Line] = {finite_time_name(request): lambda T: finite_time_load(request, T)}
    if not has_lifetime(request):
        finite = {}
    if request.kernel == "lsr":
        return {
            "paper": of("gaussian", "paper"), "single, Gaussian": of("gaussian", "single"), "single": of("spherical", "single"),
            "collective, Gaussian": of("gaussian", "collective"), "collective": of("spherical", "collective"), **finite,
        }  # fmt: skip
    return {
        "paper (Gaussian equal depth)": of("gaussian", "equal-depth"), "equal depth": of("spherical", "equal-depth"),
        "spinodal": of("spherical", "spinodal"),
        "Ramsauer bound": lambda T: np.full_like(np.asarray(T, dtype=float), ramsauer_bound(request.beta_net)), **finite,
    }  # fmt: skip


def scored(found: pd.DataFrame, request: Request) -> pd.DataFrame:
    """The share of trials that each theory places on the wrong side, best first."""
    T, alpha = found["T"].to_numpy(), found["alpha"].to_numpy()
    stable = {name: np.asarray(line(T)) >= alpha for name, line in lines(request).items()}
    if has_lifetime(request):  # at the cells themselves, not on the line between them
        lives = [lifetime(request, load, t)[()] for load, t in zip(alpha.tolist(), T, strict=True)]
        stable[finite_time_name(request)] = np.array(lives) > request.sweeps
    rows = [
        {
            "theory": name,
            "misplaced": float(
                np.average(np.where(kept, 1 - found["retrieved"], found["retrieved"]), weights=found["trials"])
            ),
        }
        for name, kept in stable.items()
    ]
    return pd.DataFrame(rows).sort_values("misplaced", ignore_index=True)


# -- the theory of finite time


def finite_time_name(request: Request) -> str:
    return "channels" if request.kernel == "lsr" else "Kramers, finite time"


def has_lifetime(request: Request) -> bool:
    """Whether a lifetime is known there: N of 5 or more, and for LSR a support of less than half the sphere."""
    wide = request.kernel == "lsr" and request.kernel_b <= 1
    return not wide and (request.dimension is None or request.dimension >= SMALLEST_N)


def lifetime(request: Request, alpha: float, T: FloatArray) -> FloatArray:
    """Sweeps that a memory is expected to last at one load, of the shape of T."""
    N = request.dimension_at(alpha)
    if request.kernel == "lsr":
        tau = escape_channels(alpha, T, N, request.kernel_b).tau
    else:
        tau = basin_lifetime(alpha, T, N, request.beta_net)
    return tau * RELAXATION_SWEEPS[request.move]


def finite_time_load(request: Request, T: FloatArray) -> FloatArray:
    """Load up to which a memory outlasts the sweeps of a cell, between the run's loads; NaN where it does at all or none."""
    T = np.asarray(T, dtype=float)
    asked = numbers("--alpha", request.alpha)
    loads = np.linspace(min(asked), max(asked), LINE_POINTS) if len(asked) > 1 else np.array(asked)
    grid = np.linspace(max(float(T.min()), 1e-3), float(T.max()), LINE_POINTS)  # nothing moves at T = 0
    outlasts = np.stack([lifetime(request, float(alpha), grid) > request.sweeps for alpha in loads])
    first = np.where(outlasts[0] & ~outlasts.all(0), loads[(~outlasts).argmax(0)], np.nan)
    return np.asarray(np.interp(T, grid, first))


def _finish(out: Path, table: pd.DataFrame, found: pd.DataFrame, request: Request, document: dict[str, Any]) -> None:
    from upheld.memory.plots import phase_map

    picture = phase_map(found, lines(request))
    write_files(
        out,
        {"phase.csv": table[COLUMNS].to_csv(index=False), "phase.png": drawn(picture, "png"), "phase.svg": drawn(picture, "svg"),
         "report.json": json_text(document)},
    )  # fmt: skip


def _print(found: pd.DataFrame, scores: pd.DataFrame, out: Path | None) -> None:
    terminal = Terminal()
    for (alpha, N), column in found.groupby(["alpha", "N"]):
        lost = column[column["retrieved"] < 0.5]["T"]
        where = f"lost from T = {lost.min():g}" if len(lost) else f"kept to T = {column['T'].max():g}"
        terminal.say(f"alpha = {alpha:<8.4g} N = {N:<5d} M = {int(column['M'].max()):<10,} {where}")
    terminal.say("")
    terminal.table(
        ["theory", "trials on the wrong side"],
        [[str(one.theory), f"{one.misplaced:.1%}"] for one in scores.itertuples()],
    )
    if out is not None:
        terminal.say(f"Written to {out}: phase.csv, phase.png, phase.svg, report.json.")
