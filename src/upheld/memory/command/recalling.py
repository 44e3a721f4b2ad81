"""``upheld run memory``: recall from a user's vectors."""

from __future__ import annotations

import copy
import io
import math
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch  # noqa: F401  (limits of threads reach what is loaded)
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from upheld.memory import rivals
from upheld.memory.command.vectors import read_vectors
from upheld.memory.data import corrupt
from upheld.memory.estimator import AssociativeMemory
from upheld.memory.geometry import FloatArray
from upheld.memory.theory import alpha_c, alpha_th
from upheld.report.content import drawn, json_text, plain, records
from upheld.report.progress import Progress
from upheld.report.writing import expect_folder, write_files

SCHEMA = "upheld.memory.run/1"
NOISE_STEPS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5)
MOST_DRAWN, MOST_RACED = 1000, 600
NOISE_STREAM = 5  # a user's patterns may be drawn with the same seed: the noise must not be those numbers again


@dataclass(frozen=True)
class Asked:
    """As it was asked for; see `run`."""

    patterns: Path | None
    cues: Path | None
    truth: str | None
    ids: str | None
    kernel: str
    beta: str
    normalize: bool
    on_empty: str
    backend: str
    noise: float
    compare: bool
    seed: int

    def settings(self) -> dict[str, Any]:
        return {name: value.name if isinstance(value, Path) else value for name, value in vars(self).items()}


def recall(asked: Asked, out: Path | None, as_json: bool) -> None:
    """Store, recall, sum up, write."""
    if asked.patterns is None:
        raise ValueError("there is nothing to store; name the file of vectors with --patterns")
    if asked.truth is not None and asked.cues is None:
        raise ValueError("--truth names a column of the cues; name their file with --cues")
    if out is not None:
        expect_folder(out)
    stored, names = read_vectors(asked.patterns, without=asked.ids)
    remarks: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        with threadpool_limits(1):  # tuning is many small steps: threads wait for each other on a busy machine
            memory = _memory(asked, asked.patterns).fit(_usable(stored, asked.patterns, asked.normalize))
    remarks += [str(one.message) for one in caught]
    cues, truth = _cues(asked, stored)
    found = memory.recall(cues)
    index = memory.predict(cues)
    document = {
        "schema": SCHEMA, "settings": asked.settings(), "summary": _summary(memory, asked, found, index, truth),
        "boundaries": _boundaries(memory, asked.noise), "remarks": remarks,
        "compared": [],
    }  # fmt: skip
    if asked.compare and truth is not None:
        with threadpool_limits(1):
            document["compared"] = records(_compared(memory, cues, truth))
        if rivals.HNSW not in rivals.raced():
            remarks.append("HNSW is not among the rivals, since faiss is not installed: pip install 'upheld[faiss]'")
    elif asked.compare:
        remarks.append(
            "nothing is compared: that needs --truth, the column that says which pattern a cue was made from"
        )
    curve = _curve(memory, stored, asked.seed)
    document["recall_by_noise"] = records(curve)
    if out is not None:
        named = {} if names is None else {"pattern_id": [names.iloc[row] if row >= 0 else None for row in index]}
        recalls = pd.DataFrame({
            "cue": np.arange(len(index)), "pattern": index, **named, "refused": found.empty, "iterations": found.iterations,
            "support": found.support,
            "score": [plain(float(one)) for one in memory.score_samples(cues)], **({} if truth is None else {"truth": truth}),
        })  # fmt: skip
        _write(out, document, recalls, curve)
    if as_json:
        sys.stdout.write(json_text(document))
    else:
        _print(document, out)


def _memory(asked: Asked, path: Path) -> AssociativeMemory:
    beta: float | str = asked.beta
    if asked.beta not in ("auto", "separation"):
        try:
            beta = float(asked.beta)
        except ValueError:
            raise ValueError(f"--beta must be auto, separation or a number, got {asked.beta!r}") from None
        if not 0 < beta < math.inf:
            raise ValueError(f"--beta must be a finite number above 0, got {asked.beta}")
    return AssociativeMemory(
        asked.kernel,
        beta,
        asked.normalize,
        asked.on_empty,
        asked.backend,
        cue_noise=asked.noise,
        random_state=asked.seed,
    )


def _usable(X: FloatArray, path: Path, normalize: bool) -> FloatArray:
    zero = np.flatnonzero(~X.any(1))
    if normalize and zero.size:
        raise ValueError(
            f"row {zero[0]} of {path} is zero and has no direction ({zero.size} such rows); drop it, or add --no-normalize"
        )
    if len(X) < 2:
        raise ValueError(f"{path} holds one vector; a memory needs two")
    return X


def _cues(asked: Asked, stored: FloatArray) -> tuple[FloatArray, Any]:
    """The user's cues, or damaged copies of what is stored."""
    if asked.cues is None:
        return corrupt(stored, rng=_rng(asked.seed), noise=asked.noise), np.arange(len(stored))
    cues, truth = read_vectors(asked.cues, without=asked.truth, names=asked.ids)
    if cues.shape[1] != stored.shape[1]:
        raise ValueError(
            f"{asked.cues} is {cues.shape[1]} columns wide, {asked.patterns} {stored.shape[1]}; cues and patterns need the same columns"
        )
    if asked.normalize and not cues.any(1).all():
        raise ValueError(
            f"row {np.flatnonzero(~cues.any(1))[0]} of {asked.cues} is zero and has no direction; drop it, or add --no-normalize"
        )
    if truth is None:
        return cues, None
    values = truth.to_numpy()
    bad = np.flatnonzero(~np.isin(values, np.arange(-1, len(stored))))
    if bad.size:
        raise ValueError(
            f"row {bad[0]} of {asked.cues} has {values[bad[0]]!r} in column {asked.truth!r}; the patterns' rows are 0 to "
            f"{len(stored) - 1}, "
            "-1 is none"
        )
    return cues, values.astype(int)


def _rng(seed: int | None) -> np.random.Generator:
    return np.random.default_rng([seed or 0, NOISE_STREAM])


def _summary(memory: AssociativeMemory, asked: Asked, found: Any, index: Any, truth: Any) -> dict[str, Any]:
    known = None if truth is None else truth >= 0
    return {
        "patterns": len(memory.patterns_), "width": memory.patterns_.shape[1], "cues": len(index),
        "effective_dimension": memory.effective_dimension_, "beta": memory.beta_, "radius": memory.radius_,
        "recalled_right": None if known is None or not known.any() else float((index[known] == truth[known]).mean()),
        "recalled_wrong": None if truth is None else float(((index >= 0) & (index != truth)).mean()),
        "refused": float((index < 0).mean()), "iterations": float(found.iterations.mean()), "load": memory.load_,
        "margin": memory.margin(asked.noise if asked.cues is None else 0.0),
        "sufficient_dimension": plain(memory.sufficient_dimension(asked.noise if asked.cues is None else 0.0)),
    }  # fmt: skip


def _boundaries(memory: AssociativeMemory, noise: float) -> list[dict[str, Any]]:
    """Load of every boundary, and the margin to it; LSE at T = 0 and at the temperature of the noise."""
    mean_square = float((memory.patterns_**2).sum(1).mean())
    lines: dict[str, float] = {}
    if memory.kernel == "lsr":
        b = memory.beta_ * mean_square
        if b > 1:
            lines = {
                "collective": float(alpha_th(b)),
                "collective, Gaussian (the paper's threshold)": float(alpha_th(b, "gaussian")),
            }
            lines["single, T = 0.1"] = float(alpha_c(0.1, "lsr", b=b, criterion="single"))
    else:
        beta_net = memory.beta_ * mean_square / memory.effective_dimension_
        phi = 1 / math.sqrt(1 + noise**2)
        for name, T in (("T = 0", 0.0), ("T of the noise", (1 - phi**2) / phi)):
            lines[f"equal depth, {name}"] = float(alpha_c(T, "lse", beta_net))
            lines[f"spinodal, {name}"] = float(alpha_c(T, "lse", beta_net, criterion="spinodal"))
            lines[f"equal depth, Gaussian (the paper's line), {name}"] = float(
                alpha_c(T, "lse", beta_net, density="gaussian")
            )
    return [
        {"boundary": name, "load": plain(load), "margin": plain(load - memory.load_)} for name, load in lines.items()
    ]


def _compared(memory: AssociativeMemory, cues: FloatArray, truth: Any) -> pd.DataFrame:
    """This memory and its rivals on the same store and cues, in the space the memory uses; rivals tuned on the same five folds."""
    stored = memory.patterns_[:MOST_RACED]
    chosen = np.flatnonzero(truth < len(stored))[:MOST_RACED]
    task = rivals.Task(stored, memory._cues(cues)[chosen], truth[chosen])
    ours = _refusing(memory)
    ours.patterns_ = stored
    rows = [_scored("this memory", ours.predict(cues[chosen]), task.truth)]
    rng = _rng(memory.random_state)
    folds = rivals.folds(stored, lambda x: memory._used(corrupt(x, rng=rng, noise=memory.cue_noise)))
    raced = rivals.raced()
    with Progress() as progress, progress.part("tuning and racing", len(raced), "rivals") as part:
        for name in raced:
            found = rivals.answered(name, task, rivals.tuned(name, stored, folds))
            rows.append(_scored(name, found, task.truth))
            part.advance()
    return pd.DataFrame(rows)


def _refusing(memory: AssociativeMemory) -> AssociativeMemory:
    """A copy that refuses cues without support where the memory would stop at the first."""
    twin = copy.copy(memory)
    return twin.set_params(on_empty="abstain") if memory.on_empty == "error" else twin


def _scored(name: str, index: Any, truth: Any) -> dict[str, Any]:
    known = truth >= 0
    right = float((index[known] == truth[known]).mean()) if known.any() else float("nan")
    return {
        "way": name,
        "right": right,
        "wrong": float(((index >= 0) & (index != truth)).mean()),
        "refused": float((index < 0).mean()),
    }


def _curve(memory: AssociativeMemory, stored: FloatArray, seed: int) -> pd.DataFrame:
    """Recall, refusal and margin against the noise of copies of stored rows."""
    rng = _rng(seed)
    refusing = _refusing(memory)
    rows = rng.permutation(len(stored))[:MOST_DRAWN]
    points = []
    for noise in NOISE_STEPS:
        index = refusing.predict(corrupt(stored, rng=rng, noise=noise)[rows])
        points.append({
            "noise": noise, "right": float((index == rows).mean()), "refused": float((index < 0).mean()), "margin": memory.margin(noise),
        })  # fmt: skip
    return pd.DataFrame(points)


def _write(out: Path, document: dict[str, Any], recalls: pd.DataFrame, curve: pd.DataFrame) -> None:
    from upheld.memory.plots import recall_by_noise

    table = io.BytesIO()
    recalls.to_parquet(table, index=False)
    picture = recall_by_noise(curve)
    write_files(
        out,
        {"recalls.parquet": table.getvalue(), "recall.png": drawn(picture, "png"), "recall.svg": drawn(picture, "svg"),
         "report.json": json_text(document)},
    )  # fmt: skip


def _print(document: dict[str, Any], out: Path | None) -> None:
    from upheld.report.printing import Terminal

    terminal, found = Terminal(), document["summary"]
    terminal.say(
        f"{found['patterns']:,} patterns of width {found['width']}, effective dimension "
        f"{found['effective_dimension']:.1f}; {found['cues']:,} cues"
    )
    words = {
        "iterations": "iterations, mean",
        "beta": "beta", "radius": "radius of a support", "load": "load alpha", "margin": "margin to the boundary",
        "sufficient_dimension": "effective dimension that would suffice",
    }  # fmt: skip
    shares = {
        "recalled_right": "recalled right, of cues that have a pattern", "recalled_wrong": "recalled wrong, of all cues",
        "refused": "refused, of all cues",
    }  # fmt: skip
    rows = [[word, _share(found[name])] for name, word in shares.items()]
    terminal.table(["", ""], rows + [[word, _number(found[name])] for name, word in words.items()])
    terminal.say("")
    terminal.table(
        ["boundary", "load", "margin"],
        [[one["boundary"], _number(one["load"]), _number(one["margin"])] for one in document["boundaries"]],
    )
    if document["compared"]:
        terminal.say("")
        terminal.table(
            ["way", "right", "wrong", "refused"],
            [
                [one["way"], *(_share(one[key]) for key in ("right", "wrong", "refused"))]
                for one in document["compared"]
            ],
        )
        if document["summary"]["patterns"] > MOST_RACED:
            terminal.say(
                f"For time, they race on the first {MOST_RACED} patterns alone, this memory too; cues are those of these rows."
            )
    for remark in document["remarks"]:
        terminal.say(f"Note: {remark}.")
    terminal.say("Boundaries are those of independent vectors in the effective dimension; real ones differ.")
    if out is not None:
        terminal.say(f"Written to {out}: recalls.parquet, recall.png, recall.svg, report.json.")


def _share(value: float | None) -> str:
    return "–" if value is None or np.isnan(value) else f"{value:.1%}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
