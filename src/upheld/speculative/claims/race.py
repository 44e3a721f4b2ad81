"""The race on a real model: SmolLM2-135M-Instruct on one thread, its shipped drafter against plain decoding and prompt lookup.

Test prompts speak of topics that no training prompt spoke of. A trial is one prompt; methods take turns on it, and who begins moves on
with the prompt. Seconds are the processor's, of decoding alone, a token.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel

from upheld.claims import Experiment, GeometricRatio, Measurement, Measurements, NotRun, Scale, Trial, functionals, grid
from upheld.claims.measurements import Cell, Where, shown
from upheld.claims.preparation import Recipe
from upheld.speculative.claims.exactness import divergence
from upheld.speculative.claims.models import (
    TUNING,
    drafter_for,
    has_bfloat16,
    questions,
    race_dtype,
    smollm2,
    tuned,
)
from upheld.speculative.costs import draft_costs, forward_costs, speed_up
from upheld.speculative.data import FAMILIES
from upheld.speculative.decoder import SpeculativeDecoder
from upheld.speculative.drafter import DFlashDrafter
from upheld.speculative.proposals import BlockProposer, proposer_of
from upheld.speculative.reading import Reader
from upheld.speculative.rivals import Decoded, Method, Own, dflash, generate, interleaved, plain, prompt_lookup
from upheld.speculative.verification import Sampling

CALIBRATED = "DFlash, calibrated block"
"""The method with the block that pays best here, found on training prompts; "DFlash" itself has the drafter's whole block, as published."""

EXACT_TOKENS = 32
FULL_NEEDS = (
    "needs a GPU of 80 GB, the published drafters (Qwen3-4B, Qwen3-8B, Qwen3-Coder-30B, Llama-3.1-8B) and their targets; "
    "none of them comes with this package"
)


def prepare_race(trial: Trial) -> Iterable[Recipe]:
    if trial.scale is Scale.FULL:
        return []
    return [TUNING(prompts=int(trial.condition["tuned_on"]), tokens=int(trial.condition["tuned_for"]))]


def measure_race(trial: Trial) -> Iterator[Measurement]:
    """One prompt: every method's pace, and at temperature 0 also what the drafter says when nobody checks it."""
    if trial.scale is Scale.FULL:
        raise NotRun(FULL_NEEDS)
    torch.set_num_threads(1)
    target, tokenizer = smollm2(race_dtype())
    drafter = drafter_for(target)
    family, temperature = str(trial.condition["family"]), float(trial.condition["temperature"])
    item, tokens = f"{family} {trial.seed}", int(trial.condition["tokens"])
    prompt = torch.tensor([questions("test", family)[trial.seed].ids(tokenizer)])
    drafts, block = tuned(int(trial.condition["tuned_on"]), int(trial.condition["tuned_for"]))
    calibrated = Own(CALIBRATED, SpeculativeDecoder(target, drafter, block_size=block))
    runners: list[Method] = [plain(target), dflash(target, drafter), calibrated]
    if temperature == 0:
        runners += [generate(target), prompt_lookup(target, drafts)]
    warm(race_dtype())
    turn, repeats = trial.seed + FAMILIES.index(family), int(trial.condition["repeats"])
    found = interleaved(runners, prompt, asked(temperature, tokens), seed=trial.seed, repeats=repeats, turn=turn)
    for name, texts in found.items():
        for metric, value in paces(texts).items():
            yield Measurement(name, metric, value, item=item)
    for name in ("DFlash", CALIBRATED):
        stats = found[name][0].stats
        assert stats is not None
        if stats.acceptance_lengths:  # a text that ends at once has no whole cycle
            yield Measurement(name, "tau", stats.tau, item=item)
    yield Measurement(CALIBRATED, "block", float(block), item=item)
    if temperature == 0:
        yield from bounds(target, drafter, item, int(trial.condition["turns"]))
        yield from identity(target, prompt, found, item)
        yield from unverified(target, drafter, prompt, found["plain"][0].tokens, item)


@lru_cache
def warm(dtype: str) -> None:
    """The first call of anything in a process is slower: one of every kind that does not count, greedy and sampled."""
    target, tokenizer = smollm2(dtype)
    prompt = torch.tensor([questions("train", FAMILIES[0])[0].ids(tokenizer)])
    ours = dflash(target, drafter_for(target))
    interleaved([plain(target), ours, generate(target), prompt_lookup(target, 3)], prompt, asked(0.0, 4))
    interleaved([plain(target), ours], prompt, asked(1.0, 4))


def measure_bfloat16(trial: Trial) -> Iterator[Measurement]:
    """One prompt, greedy: plain decoding in float32, and plain decoding and the method in bfloat16."""
    if not has_bfloat16():
        raise NotRun("the processor has no arithmetic in bfloat16")
    torch.set_num_threads(1)
    runners: list[Method] = []
    for dtype in ("float32", "bfloat16"):
        target, tokenizer = smollm2(dtype)
        warm(dtype)
        runners.append(replace(plain(target), name=f"plain in {dtype}"))
    runners.append(replace(dflash(target, drafter_for(target)), name="DFlash in bfloat16"))
    family = str(trial.condition["family"])
    item, turn = f"{family} {trial.seed}", trial.seed + FAMILIES.index(family)
    prompt = torch.tensor([questions("test", family)[trial.seed].ids(tokenizer)])
    repeats = int(trial.condition["repeats"])
    found = interleaved(runners, prompt, asked(0.0, int(trial.condition["tokens"])), repeats=repeats, turn=turn)
    for name, texts in found.items():
        for metric, value in paces(texts).items():
            yield Measurement(name, metric, value, item=item)


def asked(temperature: float, tokens: int) -> GenerationConfig:
    options: dict[str, Any] = (
        {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
    )
    return GenerationConfig(max_new_tokens=tokens, pad_token_id=0, **options)  # type: ignore[no-untyped-call]


def paces(texts: Sequence[Decoded]) -> dict[str, float]:
    """Mean over the repeats; a text that ended with its first token has no pace, and no method can be compared on it."""
    if any(text.timed == 0 for text in texts):
        raise NotRun("the target ends its answer with the first token, so there is nothing to time")
    return {
        "seconds a token": float(np.mean([text.seconds_a_token for text in texts])),
        "wall seconds a token": float(np.mean([text.wall_s / text.timed for text in texts])),
        "prefill seconds": float(np.mean([text.prefill_s for text in texts])),
        "tokens": float(np.mean([len(text.tokens) for text in texts])),
    }


def bounds(target: PreTrainedModel, drafter: DFlashDrafter, item: str, turns: int) -> Iterator[Measurement]:
    """max_B B / (c_v(B) + c_d(B)): what a drafter of this shape and block gives here when every draft is right."""
    block = drafter.config.block_size
    sizes = sorted({size for size in (2, 4, 8, 16) if size < block} | {block})
    steps = forward_costs(target, [1, *sizes], context=128, repeats=turns)
    drafts = draft_costs(target, BlockProposer(target, drafter), sizes, context=128, repeats=turns)
    most = max(speed_up(size, steps[size] / steps[1], drafts[size] / steps[1]) for size in sizes)
    yield Measurement("DFlash", "speed-up if every draft were right", most, item=item)
    yield Measurement("DFlash", "c_v + c_d", (steps[block] + drafts[block]) / steps[1], item=item)


def identity(
    target: PreTrainedModel, prompt: Tensor, found: dict[str, list[Decoded]], item: str
) -> Iterator[Measurement]:
    """Whether the verified drafter wrote the target's own text, but for ties."""
    gap = divergence(target, prompt, found["plain"][0].tokens, found["DFlash"][0].tokens)
    yield Measurement("DFlash", "identical", float(gap is None), item=item)
    yield Measurement("DFlash", "gap of logits at the first divergence", gap or 0.0, item=item)


@torch.inference_mode()
def unverified(
    target: PreTrainedModel, drafter: DFlashDrafter, prompt: Tensor, text: Tensor, item: str
) -> Iterator[Measurement]:
    """Both texts scored by the target, and whether they begin alike."""
    alone = drafter_alone(target, drafter, prompt, len(text))
    for name, said in (("target", text), ("drafter alone", alone)):
        yield Measurement(name, "nats a token", nats(target, prompt, said), item=item)
    until = min(EXACT_TOKENS, len(text))
    same = bool(torch.equal(alone[:until], text[:until]))
    yield Measurement("drafter alone", f"same first {EXACT_TOKENS} tokens", float(same), item=item)


def drafter_alone(target: PreTrainedModel, drafter: DFlashDrafter, prompt: Tensor, tokens: int) -> Tensor:
    """(tokens,) what a drafter says when all of it is accepted, block after block; the target only reads along."""
    proposer = proposer_of(target, drafter)
    proposer.begin(prompt.shape[1] + tokens + proposer.block_size)
    ids = prompt
    with Reader(target, proposer.taps) as reader:
        _, states = reader.read(prompt[:, :-1], keep=1)
        while ids.shape[1] < prompt.shape[1] + tokens:
            draft = proposer.propose(ids, states, proposer.block_size - 1, Sampling(), None)
            _, states = reader.read(torch.cat([ids[:, -1:], draft.tokens[:, :-1]], dim=1), keep=1)
            ids = torch.cat([ids, draft.tokens], dim=1)
    return ids[0, prompt.shape[1] : prompt.shape[1] + tokens]


def nats(target: PreTrainedModel, prompt: Tensor, text: Tensor) -> float:
    """-log p of a text under the target, a token."""
    logits = target(input_ids=torch.cat([prompt, text[None]], dim=1), logits_to_keep=len(text) + 1).logits[0, :-1]
    chances = logits.float().log_softmax(-1).gather(-1, text[:, None])
    return float(-chances.mean())


@dataclass(frozen=True)
class RatioOfRatios(GeometricRatio):
    """One method's metric over another's under `where`, over the same under `base`, unit by unit; the geometric mean."""

    base: Where = field(default_factory=dict, hash=False)

    def parts(self, data: Measurements) -> tuple[tuple[Cell, ...], functionals.Functional]:
        cells = tuple(
            Cell(self.metric, method, where, log=True)
            for where in (self.where, self.base)
            for method in (self.first, self.second)
        )
        return cells, functionals.contrast([1.0, -1.0, -1.0, 1.0])

    def __str__(self) -> str:
        return f"{super().__str__()}, over the same{shown(self.base)}"


def conditions(greedy: int, sampled: int, **options: int) -> list[dict[str, Any]]:
    """Every family, greedy texts of so many tokens and sampled ones of so many."""
    return [
        {"family": family, "temperature": temperature, "tokens": tokens, **options}
        for family in FAMILIES
        for temperature, tokens in ((0.0, greedy), (1.0, sampled))
    ]


RACE = Experiment(
    "speculative.race", measure_race,
    conditions={
        Scale.SMOKE: conditions(10, 10, repeats=1, turns=1, tuned_on=1, tuned_for=5)[:2],
        Scale.QUICK: conditions(48, 24, repeats=1, turns=1, tuned_on=1, tuned_for=32),
        Scale.STANDARD: conditions(128, 128, repeats=3, turns=4, tuned_on=4, tuned_for=64),
        Scale.FULL: conditions(2048, 2048, repeats=3, turns=4, tuned_on=4, tuned_for=64),
    },
    repeats={Scale.SMOKE: 1, Scale.QUICK: 2, Scale.STANDARD: 20, Scale.FULL: 1},
    timeout_s={Scale.SMOKE: 600, Scale.QUICK: 900, Scale.STANDARD: 3600, Scale.FULL: 60}, units="item", alone=True,
    prepare=prepare_race,
)  # fmt: skip

RACE_IN_BFLOAT16 = Experiment(
    "speculative.race-bfloat16", measure_bfloat16,
    conditions={
        Scale.STANDARD: grid(family=list(FAMILIES), tokens=[128], repeats=[3]),
        Scale.FULL: grid(family=list(FAMILIES), tokens=[512], repeats=[3]),
    },
    repeats={Scale.STANDARD: 20, Scale.FULL: 20}, timeout_s={Scale.STANDARD: 1800, Scale.FULL: 3600}, units="item", alone=True,
)  # fmt: skip
