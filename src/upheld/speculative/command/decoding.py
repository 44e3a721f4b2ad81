"""``upheld run speculative``: every method on every prompt, taking turns; what that comes to."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from upheld.report.content import drawn, json_text, plain
from upheld.report.printing import Terminal
from upheld.report.progress import Progress
from upheld.report.writing import write_files
from upheld.speculative import rivals
from upheld.speculative.command.asking import TRAINED_RIVALS, Asked, Pair, drafter_of, load_pair, read, tuning_prompts
from upheld.speculative.costs import CostTable
from upheld.speculative.data import Prompt
from upheld.speculative.decoder import SpeculativeDecoder
from upheld.speculative.pairs import load_target
from upheld.speculative.rivals import (
    Decoded,
    Method,
    Own,
    assistant,
    generate,
    interleaved,
    prompt_lookup,
)
from upheld.speculative.stats import SpecStats, clock_of
from upheld.speculative.tuning import Tuned, tune
from upheld.storage import whole_file

SCHEMA = "upheld.speculative.run/1"
OURS, PLAIN = "DFlash", "plain"
WARMING, TUNING = 4, 32
"""Tokens of the first call, which does not count, and of the texts that the block and prompt lookup are tuned on."""

RESAMPLES = 2000


@dataclass(frozen=True)
class Answer:
    """What one method wrote on one prompt, the repeats of it together."""

    number: int
    prompt: Prompt
    method: str
    texts: Sequence[Decoded]
    answer: str
    identical: bool

    @property
    def pace(self) -> float:
        """Seconds a token of decoding; NaN where the text ended with its first token."""
        return float(np.mean([text.seconds_a_token for text in self.texts]))

    def line(self) -> dict[str, Any]:
        stats = self.texts[0].stats
        told = stats is not None and stats.cycles > 0 and self.method != PLAIN
        return {
            "prompt": self.number, "family": self.prompt.family, "text": self.prompt.text, "method": self.method,
            "answer": self.answer, "tokens": len(self.texts[0].tokens), "identical": self.identical,
            "tokens_per_s": plain(1 / self.pace), "prefill_s": float(np.mean([text.prefill_s for text in self.texts])),
            "decode_s": [text.decode_s for text in self.texts], "wall_s": [text.wall_s for text in self.texts],
            "tau": plain(stats.tau) if told and stats else None, "cycles": stats.cycles if told and stats else None,
            "draft_s": stats.draft_s if told and stats else None, "verify_s": stats.verify_s if told and stats else None,
            "acceptance_lengths": stats.acceptance_lengths if told and stats else None,
        }  # fmt: skip


def decode(asked: Asked) -> None:
    """Load, train if that is asked for, decode, sum up, write."""
    with Progress(announce=True) as progress:
        pair, ours, others, tuned = methods(asked, progress)
        assert asked.prompts is not None
        prompts = read(asked.prompts, pair, asked.max_tokens)
        answers = []
        with progress.part("decoding", len(prompts), "prompts") as part:
            for answer in race(asked, pair, [*others, ours], prompts):
                answers.append(answer)
                part.reach(answer.number)
    costs = costs_of(tuned, answers)
    document = summary(asked, pair, answers, costs, chosen(asked, ours.decoder, tuned))
    written = write(asked, document, answers, costs)
    if asked.json:
        sys.stdout.write(json_text(document))
    else:
        show(document, written)


def methods(asked: Asked, progress: Progress) -> tuple[Pair, Own, list[Method], Tuned]:
    """The pair, the method, and the rivals that were named; trained first where that was asked for, then tuned."""
    heads: dict[str, Own] = {}
    if asked.train_prompts is not None:
        from upheld.speculative.command.training import make, make_heads

        work = _beside(asked)
        made = make(asked, work, progress)
        pair = load_pair(asked)
        drafter = drafter_of(_with_drafter(asked, made.path), pair.target)
        wanted = [name for name in asked.named_rivals if name in TRAINED_RIVALS]
        heads = make_heads(asked, wanted, work, pair.target, made.report.seconds, drafter.config, progress)
    else:
        pair = load_pair(asked)
        drafter = drafter_of(asked, pair.target)
    with progress.part("measuring costs, choosing the block"):
        tuned = tune(
            pair.target, drafter, tuning_prompts(asked, pair, TUNING), asked.generation(TUNING), seed=asked.seed
        )
    # Adaptive blocks find their own length, below the drafter's.
    block = tuned.block if asked.block_size is None and not asked.adaptive else asked.block_size
    decoder = SpeculativeDecoder(pair.target, drafter, block_size=block, adaptive=asked.adaptive)
    others: list[Method] = [
        heads[name] if name in heads else _rival(name, asked, pair, tuned) for name in asked.named_rivals
    ]
    return pair, Own(OURS, decoder), others, tuned


def _beside(asked: Asked) -> Path:
    assert asked.out is not None
    return asked.out.with_name(f"{asked.out.stem}-drafter")


def _with_drafter(asked: Asked, path: Path) -> Asked:
    return Asked(**(vars(asked) | {"drafter": path}))


def _rival(name: str, asked: Asked, pair: Pair, tuned: Tuned) -> Method:
    if name == "plain":
        return rivals.plain(pair.target)
    if name == "generate":
        return generate(pair.target)
    if name == "assistant":
        assert asked.assistant is not None
        helper, words = load_target(
            asked.assistant, dtype=str(pair.target.dtype).removeprefix("torch."), device=asked.device
        )
        if words.get_vocab() != pair.tokenizer.get_vocab():
            raise ValueError(
                f"the assistant {asked.assistant} has another vocabulary than {asked.model}; take a smaller model of the same family"
            )
        return assistant(pair.target, helper)
    return prompt_lookup(pair.target, tuned.lookup)


def race(
    asked: Asked, pair: Pair, runners: Sequence[Method], prompts: Sequence[tuple[Prompt, Tensor]]
) -> Iterator[Answer]:
    """Answers as they come, prompt by prompt; who begins moves on."""
    interleaved(runners, prompts[0][1], asked.generation(WARMING))
    for number, (prompt, ids) in enumerate(prompts, 1):
        found = interleaved(
            runners, ids, asked.generation(), seed=asked.seed + number, repeats=asked.repeats, turn=number
        )
        own = found[PLAIN][0].tokens
        for name, texts in found.items():
            said = str(pair.tokenizer.decode(texts[0].tokens, skip_special_tokens=True))
            same = all(torch.equal(text.tokens, own) for text in texts)
            yield Answer(number, prompt, name, texts, said, same)


def costs_of(tuned: Tuned, answers: Sequence[Answer]) -> CostTable:
    """What blocks cost here, and how far this run's drafts went; places that its blocks did not reach are those of the tuning."""
    ours = [text.stats for one in answers if one.method == OURS for text in one.texts if text.stats is not None]
    told = [stats for stats in ours if stats.acceptance_lengths]  # a text that ends at once tells nothing
    known = tuned.costs.acceptance

    def filled(seen: list[float]) -> list[float]:
        return seen + known[len(seen) :]

    whole = SpecStats.together(told).acceptance
    return replace(tuned.costs, acceptance=filled(whole), texts=[filled(stats.acceptance) for stats in told])


def chosen(asked: Asked, decoder: SpeculativeDecoder, tuned: Tuned) -> dict[str, Any]:
    """The block that was raced, and why that one."""
    block, own = decoder.block_size, tuned.costs.whole_block
    if asked.adaptive:
        return {
            "size": block,
            "by": "adaptive",
            "why": f"Blocks shorten and lengthen themselves, up to {block} tokens.",
        }
    if asked.block_size is not None:
        return {"size": block, "by": "asked", "why": f"Blocks of {block} were taken as asked for."}
    expected = tuned.costs.predicted
    why = (
        f"Blocks of {block} were taken: what they cost here, and how many drafts stood on prompts that are not timed, promised "
        f"{expected[block]:.2f} times plain decoding, the most of all"
    )
    whole = f", against {expected[own]:.2f} with the drafter's whole block of {own}" if block != own else ""
    return {"size": block, "by": "calibration", "why": f"{why}{whole}."}


def summary(
    asked: Asked, pair: Pair, answers: Sequence[Answer], costs: CostTable, block: dict[str, Any]
) -> dict[str, Any]:
    """What the command prints as JSON."""
    rows = [
        row(name, answers, asked.seed, greedy=not asked.temperature)
        for name in dict.fromkeys(one.method for one in answers)
    ]
    stats = SpecStats.together(one.texts[0].stats for one in answers if one.method == OURS)
    return {
        "schema": SCHEMA,
        "settings": asked.settings() | {
            "dtype": str(pair.target.dtype).removeprefix("torch."), "device": str(pair.target.device),
            "block_size": block["size"], "block_size_by": block["by"],
        },
        "prompts": len({one.number for one in answers}),
        "methods": rows,
        "acceptance": {
            "lengths": stats.acceptance_lengths,
            "by_position": [plain(share) for share in stats.position_acceptance],
            "tau_by_family": _by_family(answers),
        },
        "costs": {
            "step_s": costs.step_s, "verify": costs.verify, "draft": costs.draft, "predicted": costs.predicted,
            "bounds": costs.bounds, "text_by_text": costs.text_by_text, "best_block": costs.best_block, "recommended": costs.recommended,
            "advice": costs.advice,
        },
        "remarks": [block["why"], *remarks(asked, rows, pair)],
    }  # fmt: skip


def row(name: str, answers: Sequence[Answer], seed: int, *, greedy: bool) -> dict[str, Any]:
    """One method over all prompts; intervals are bootstraps over prompts."""
    own = {one.number: one for one in answers if one.method == name}
    by_steps = {one.number: one for one in answers if one.method == PLAIN}
    timed = [number for number, one in own.items() if math.isfinite(one.pace) and math.isfinite(by_steps[number].pace)]
    paces = np.array([own[number].pace for number in timed])
    ratios = np.array([by_steps[number].pace / own[number].pace for number in timed])
    stats = SpecStats.together(text.stats for one in own.values() for text in one.texts)
    drafted = name != PLAIN and stats.cycles > 0
    return {
        "method": name,
        "tokens_per_s": _estimate(1 / paces, seed, np.mean),
        "speed_up": _estimate(ratios, seed, lambda x: np.exp(np.mean(np.log(x)))),
        "tau": plain(stats.tau) if drafted else None,
        "draft_ms": 1000 * stats.draft_s / stats.cycles if drafted else None,
        "verify_ms": 1000 * stats.verify_s / stats.cycles if drafted else None,
        "identical": sum(one.identical for one in own.values()) if greedy else None,
        "of": len(own),
    }


def _estimate(values: Any, seed: int, mean: Any) -> dict[str, float | None]:
    """The mean and its 95 % interval over prompts; one prompt has no interval, and none no mean."""
    if not len(values):
        return {"estimate": None, "low": None, "high": None}
    found = {"estimate": float(mean(values)), "low": None, "high": None}
    if len(values) > 1:
        rng = np.random.default_rng(seed)
        drawn = [mean(values[rng.integers(len(values), size=len(values))]) for _ in range(RESAMPLES)]
        found["low"], found["high"] = (float(end) for end in np.quantile(drawn, [0.025, 0.975]))
    return found


def _by_family(answers: Sequence[Answer]) -> dict[str, float | None]:
    ours: dict[str, list[SpecStats | None]] = {}
    for one in answers:
        if one.method == OURS:
            ours.setdefault(one.prompt.family, []).append(one.texts[0].stats)
    return {family: plain(SpecStats.together(stats).tau) for family, stats in ours.items()}


def remarks(asked: Asked, rows: Sequence[dict[str, Any]], pair: Pair) -> list[str]:
    """What somebody should know who reads the table."""
    alone = clock_of(pair.target.device) is time.process_time
    said = [
        f"Seconds are {'the processor' if alone else 'the wall'}'s, of decoding alone; intervals are over prompts.",
        "Ratios hold inside transformers on this machine; engines written for it (llama.cpp, vLLM) have other costs, and may be faster "
        "plainly than any row here.",
    ]
    differ = [one for one in rows if one["identical"] is not None and one["identical"] < one["of"]]
    if differ and pair.target.dtype in (torch.bfloat16, torch.float16):
        said.append(
            "In 16 bits a forward of several tokens rounds otherwise than one of a single token, so two nearly equal tokens may change "
            "places and the texts part from there; --dtype float32 shows that nothing else differs."
        )
    if asked.temperature:
        said.append(
            "Sampled texts differ from draw to draw; what is unchanged is their law, so none is compared word by word."
        )
    return said


def write(asked: Asked, document: dict[str, Any], answers: Sequence[Answer], costs: CostTable) -> list[Path]:
    """The files that were asked for."""
    found = []
    if asked.out is not None:
        with whole_file(asked.out) as file:
            file.writelines(json.dumps(one.line(), ensure_ascii=False, allow_nan=False) + "\n" for one in answers)
        found.append(asked.out)
    if asked.html is not None:
        from upheld.speculative.command.page import page

        with whole_file(asked.html) as file:
            file.write(page(document, [one.line() for one in answers], costs))
        found.append(asked.html)
    if asked.pictures is not None:
        from upheld.speculative.command.page import pictures

        drawings = pictures(document, costs).items()
        contents = {
            f"{name}.{ending}": drawn(one.figure, ending) for name, one in drawings for ending in ("png", "svg")
        }
        found += write_files(asked.pictures, contents)
    return found


def show(document: dict[str, Any], written: Sequence[Path]) -> None:
    """The table, the advice, the remarks."""
    terminal = Terminal()
    terminal.table(HEADINGS, [cells(one) for one in document["methods"]])
    terminal.say("")
    terminal.say(document["costs"]["advice"])
    for remark in document["remarks"]:
        terminal.say(remark)
    for path in written:
        terminal.say(f"wrote {path}")


HEADINGS = ("method", "tokens/s", "speed-up", "τ", "draft ms", "verify ms", "identical?")


def cells(one: dict[str, Any]) -> list[str]:
    """A row as it is printed."""
    same = "law only" if one["identical"] is None else f"{one['identical']} of {one['of']}"
    return [
        one["method"], _interval(one["tokens_per_s"], ".1f"), _interval(one["speed_up"], ".2f"), _number(one["tau"], ".2f"),
        _number(one["draft_ms"], ".1f"), _number(one["verify_ms"], ".1f"), same,
    ]  # fmt: skip


def _number(value: float | None, how: str) -> str:
    return "" if value is None else format(value, how)


def _interval(value: dict[str, float | None], how: str) -> str:
    if value["estimate"] is None:
        return "nothing to time"
    shown = format(value["estimate"], how)
    return shown if value["low"] is None else f"{shown} [{value['low']:{how}}, {value['high']:{how}}]"
