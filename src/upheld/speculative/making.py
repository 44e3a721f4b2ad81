"""A drafter for a model in one call: regenerate, cache, fit, export, within a number of minutes.

>>> made = make_drafter(target, tokenizer, training_set(), Path("mine"), minutes=60)          # doctest: +SKIP
>>> made.report.accepted_length, made.path                                                     # doctest: +SKIP
(1.84, PosixPath('mine/drafter'))
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from transformers import PreTrainedModel

from upheld.speculative.data import Prompt
from upheld.speculative.decoder import check_pair
from upheld.speculative.drafter import DFlashDrafter
from upheld.speculative.features import Features
from upheld.speculative.pairs import read_drafter
from upheld.speculative.responses import Progress, Response, load_responses, regenerate
from upheld.speculative.taps import target_digest
from upheld.speculative.training import DrafterTrainer, Loss, TrainReport
from upheld.storage import whole_file

SHORT_SHARE = 0.6
"""Share of the training that short blocks take, where they are asked for."""

FIRST = "drafter-0"
"""The drafter that a training was begun from, beside those it made of so many answers."""

GENERATING = 0.5
"""Share of the time that goes into responses: a pass over them costs about as much as writing them did."""


@dataclass(frozen=True)
class Made:
    """A drafter that was made: where it lies, how its training went, and what it was made from."""

    path: Path
    report: TrainReport
    provenance: dict[str, Any]


def make_drafter(
    target: PreTrainedModel,
    tokenizer: Any,
    prompts: Sequence[Prompt],
    folder: Path,
    *,
    minutes: float,
    start: Path | None = None,
    held_out: Sequence[Prompt] | None = None,
    epochs: int = 6,
    anchors: int = 16,
    lr: float = 8e-4,
    batch: int = 2,
    gamma: float | None = None,
    loss: Loss = "ce",
    short_block: int | None = None,
    temperatures: Sequence[float] = (0.0, 1.0),
    generating: float = GENERATING,
    rows: int = 64,
    max_new_tokens: int = 128,
    autocast: torch.dtype | None = None,
    seed: int = 0,
    command: str = "make_drafter",
    told: Callable[[Progress | TrainReport], None] | None = None,
    **shape: Any,
) -> Made:
    """Let the target answer, train on what it said, write ``folder/drafter`` with a ``provenance.json``.

    Called again with the same folder it goes on where it was stopped. Called again after it had ended, it lets the target answer more
    prompts, and trains the drafter that lies there further on all answers.

    Parameters
    ----------
    target, tokenizer : on the device that is to do the work
    prompts : to train on; the target's own answers are the data
    minutes : of the whole
    start : folder of a drafter of this target to go on from, in its own shape and on whole blocks alone; a copy of it is kept as
        ``folder/drafter-0``. None begins from the target
    generating : the part of them that goes into answers at most
    temperatures : at which the target answers each prompt: those at which it will be used
    held_out : prompts to judge by; None parts a tenth of the groups off
    epochs, anchors, lr, batch, gamma : as of `DrafterTrainer`. On a processor steps are what is scarce: with equal processor time few
        anchors a step learn more than many, and gamma = 1, which weighs the first drafts most, more than the published 4
    loss : as of `DrafterTrainer`; "kl" learns the target's whole law at each place, which few answers are not enough to learn by heart
    short_block : train first on blocks of so many tokens, with as many more anchors: most cycles end within the first drafts, and these
        blocks cost less. None: whole blocks throughout
    command : what to note as having made it
    shape : of `DFlashDrafter.from_target`

    Raises
    ------
    ValueError
        If the time is not enough for two groups of answers, the folder is of another recipe or begun from another drafter, or `start`
        belongs to another target or has another shape than is asked for.
    """
    if start is not None:
        _begin(folder, start, target, shape)
    options: dict[str, Any] = {
        "temperatures": temperatures, "max_new_tokens": max_new_tokens, "rows": rows, "seed": seed, "told": told
    }  # fmt: skip
    judged: list[Response] | None = None
    if held_out is not None:
        regenerate(target, tokenizer, held_out, folder / "held-out", **options)
        judged = load_responses(folder / "held-out")
    share = generating * minutes
    said = regenerate(
        target, tokenizer, prompts, folder / "responses", minutes=share, part_seconds=min(60.0, 10 * share), **options
    )
    if not said.responses:
        raise ValueError(f"the target ended no answer in {minutes:g} minutes; give it more, or shorter answers")
    responses = load_responses(folder / "responses")
    base = _base(folder, len(responses))
    drafter = DFlashDrafter.from_target(target, seed=seed, **shape) if base is None else _taken_up(base, target, shape)
    drafter.to(device=target.device, dtype=torch.float32)  # type: ignore[call-arg]
    whole = drafter.config.block_size
    stages = [(whole, 1.0)]
    if base is None and short_block is not None and short_block < whole:
        stages = [(short_block, SHORT_SHARE), (whole, 1 - SHORT_SHARE)]
    features: Literal["cached"] | Features = "cached"
    reports: list[TrainReport] = []
    told_of = [] if base is None else list(_described(base).get("stages", []))
    for block, part in stages:
        drafter.config.block_size = block
        trainer = DrafterTrainer(
            target, tokenizer, drafter, responses, epochs=max(1, round(part * epochs)), lr=lr, anchors=anchors * whole // block,
            batch=batch, gamma=gamma, loss=loss, features=features, held_out=judged, folder=folder / f"training-{len(responses)}-{block}",
            seconds=60 * part * (minutes - share), seed=seed, autocast=autocast, told=told,
        )  # fmt: skip
        features = trainer.features
        reports.append(trainer.fit())
        told_of.append(_stage(trainer, reports[-1]))
    return export(
        drafter, target, responses, together(reports), folder / "drafter", command=command, seed=seed, stages=told_of,
        start=_hashes(folder / FIRST) if (folder / FIRST).is_dir() else None,
    )  # fmt: skip


def _base(folder: Path, responses: int) -> Path | None:
    """The drafter that an earlier call made of fewer answers. It is kept beside, since the one to come takes its name."""
    made = folder / "drafter"
    if made.is_dir() and (of := _described(made)["responses"]) < responses:
        kept = folder / f"drafter-{of}"
        if not kept.exists():
            _copied(made, kept)
    numbers = [int(path.name.removeprefix("drafter-")) for path in folder.glob("drafter-*")]
    fewer = [number for number in numbers if number < responses]
    return folder / f"drafter-{max(fewer)}" if fewer else None


def _begin(folder: Path, start: Path, target: PreTrainedModel, shape: dict[str, Any]) -> None:
    """Keep a copy of the drafter that all later calls go on from.

    Raises
    ------
    ValueError
        If the folder was begun otherwise, or the drafter cannot be gone on from.
    """
    first = folder / FIRST
    if first.is_dir():
        if _hashes(first) != _hashes(start):
            raise ValueError(f"{folder} was begun from another drafter than {start}; take another folder")
        return
    if (folder / "drafter").is_dir() or any(folder.glob("training-*")):
        raise ValueError(f"{folder} holds a training that was not begun from {start}; take another folder")
    _taken_up(start, target, shape)
    _copied(start, first)


def _copied(source: Path, path: Path) -> None:
    """A copy of a folder, whole or not at all."""
    beside = path.with_name(f".{path.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    shutil.copytree(source, beside)
    beside.rename(path)


def _taken_up(base: Path, target: PreTrainedModel, shape: dict[str, Any]) -> DFlashDrafter:
    """
    Raises
    ------
    ValueError
        If the drafter that lies there is of another target, or has another shape than the one asked for.
    """
    found = read_drafter(base)
    check_pair(target, found)
    config = found.config
    there = {
        "block_size": config.block_size, "num_layers": config.num_hidden_layers, "taps": len(config.target_layer_ids or ()),
        "injection": config.injection, "autoregressive": config.autoregressive, "mask_token_id": config.mask_token_id,
        "draft_vocab_size": config.draft_vocab_size, "context_window": config.context_window,
    }  # fmt: skip
    for name, wanted in shape.items():
        if name in there and wanted != "auto" and there[name] != wanted:
            raise ValueError(
                f"the drafter in {base} has {name} {there[name]}, not {wanted}; ask for the same, or take another folder"
            )
    return found


def _described(made: Path) -> dict[str, Any]:
    """A drafter's provenance; nothing is told of one from elsewhere."""
    file = made / "provenance.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return found


def _hashes(drafter: Path) -> dict[str, str]:
    """SHA-256 of what makes a drafter: its configuration and weights."""
    files = [drafter / "config.json", *sorted(drafter.glob("*.safetensors"))]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def _stage(trainer: DrafterTrainer, report: TrainReport) -> dict[str, Any]:
    return {
        "block_size": trainer.drafter.block_size,
        "anchors": trainer.anchors,
        "responses": len(trainer.training),
        "steps": report.steps,
        "gradient_tokens": report.gradient_tokens,
        "cpu_seconds": round(report.seconds),
    }


def together(stages: Sequence[TrainReport]) -> TrainReport:
    """What the stages of a training came to; judged by the last."""
    last = stages[-1]
    return TrainReport(
        steps=sum(stage.steps for stage in stages),
        gradient_tokens=sum(stage.gradient_tokens for stage in stages),
        seconds=sum(stage.seconds for stage in stages),
        losses=[loss for stage in stages for loss in stage.losses],
        evaluations=last.evaluations,
        coverage=last.coverage,
        stopped=last.stopped,
    )


def export(
    drafter: DFlashDrafter,
    target: PreTrainedModel,
    responses: Sequence[Response],
    report: TrainReport,
    path: Path,
    *,
    command: str,
    seed: int,
    stages: Sequence[dict[str, Any]],
    start: dict[str, str] | None = None,
) -> Made:
    """Write a trained drafter in float16, whole or not at all, with what it was made from.

    Parameters
    ----------
    stages : of its training, those of the drafter it was begun from among them
    start : the hashes of that drafter's files
    """
    beside = path.with_name(f".{path.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    drafter.to(dtype=torch.float16).save_pretrained(beside)  # type: ignore[call-arg]
    hashes = _hashes(beside)
    provenance = {
        "command": command,
        "seed": seed,
        "target_digest": target_digest(target),
        "responses": len(responses),
        "response_tokens": sum(len(response.tokens) - response.prompt_tokens for response in responses),
        "responses_sha256": _digest(responses),
        "steps": sum(stage["steps"] for stage in stages),
        "gradient_tokens": sum(stage["gradient_tokens"] for stage in stages),
        "training_cpu_seconds": sum(stage["cpu_seconds"] for stage in stages),
        "stages": list(stages),
        **({} if start is None else {"start_sha256": start}),
        "stopped": report.stopped,
        "held_out_loss": round(report.evaluations[-1].loss, 4),
        "held_out_accepted_length": round(report.accepted_length, 4),
        "held_out_position_accuracy": [round(value, 4) for value in report.position_accuracy],
        "coverage": round(report.coverage, 4),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "sha256": hashes,
    }
    with whole_file(beside / "provenance.json") as file:
        file.write(json.dumps(provenance, indent=1) + "\n")
    shutil.rmtree(path, ignore_errors=True)
    beside.rename(path)
    drafter.to(dtype=torch.float32)  # type: ignore[call-arg]
    return Made(path, report, provenance)


def fast_format(device: torch.device) -> torch.dtype:
    """bfloat16 where the hardware multiplies it faster than float32, else float32."""
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    flags = Path("/proc/cpuinfo")
    known = flags.read_text(encoding="utf-8") if flags.is_file() else ""
    return torch.bfloat16 if "avx512_bf16" in known or "amx_bf16" in known else torch.float32


def minutes_given(minutes: float) -> float:
    """
    Raises
    ------
    ValueError
        If it is no time at all.
    """
    if not minutes > 0 or math.isinf(minutes):
        raise ValueError(
            f"minutes must be a positive number, got {minutes}; a useful drafter takes an hour or more on a processor"
        )
    return minutes


def _digest(responses: Sequence[Response]) -> str:
    digest = hashlib.sha256()
    for response in responses:
        digest.update(response.tokens.tobytes())
    return digest.hexdigest()
