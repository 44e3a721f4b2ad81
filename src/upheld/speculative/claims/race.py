"""The race on a real model: SmolLM2-135M-Instruct on one thread, its shipped drafter against plain decoding and prompt lookup.

Test prompts speak of topics that no training prompt spoke of. A trial is one prompt; methods take turns on it, and who begins moves on
with the prompt. Seconds are the processor's, of decoding alone, a token.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel

from upheld.claims import Experiment, Measurement, NotRun, Scale, Trial, grid
from upheld.claims.preparation import Recipe
from upheld.speculative.claims.exactness import divergence
from upheld.speculative.claims.models import (
    LOOKUP,
    drafter_for,
    has_bfloat16,
    questions,
    race_dtype,
    smollm2,
    tuned_lookup,
)
from upheld.speculative.costs import draft_costs, forward_costs, speed_up
from upheld.speculative.data import FAMILIES
from upheld.speculative.drafter import DFlashDrafter
from upheld.speculative.proposals import BlockProposer
from upheld.speculative.reading import Reader
from upheld.speculative.rivals import Decoded, Method, dflash, generate, interleaved, plain, prompt_lookup
from upheld.speculative.verification import Sampling

EXACT_TOKENS = 32
FULL_NEEDS = (
    "needs a GPU of 80 GB, the published drafters (Qwen3-4B, Qwen3-8B, Qwen3-Coder-30B, Llama-3.1-8B) and their targets; "
    "none of them comes with this package"
)


def prepare_race(trial: Trial) -> Iterable[Recipe]:
    if trial.scale is Scale.FULL:
        return []
    return [LOOKUP(prompts=int(trial.condition["tuned_on"]), tokens=int(trial.condition["tokens"]))]


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
    drafts = tuned_lookup(int(trial.condition["tuned_on"]), tokens)
    runners: list[Method] = [plain(target), dflash(target, drafter)]
    if temperature == 0:
        runners += [generate(target), prompt_lookup(target, drafts), *in_bfloat16()]
    turn = trial.seed + FAMILIES.index(family)
    interleaved(runners, prompt, asked(temperature, 4), turn=turn)  # the first call of anything is slower
    repeats = int(trial.condition["repeats"])
    found = interleaved(runners, prompt, asked(temperature, tokens), seed=trial.seed, repeats=repeats, turn=turn)
    for name, texts in found.items():
        for metric, value in paces(texts).items():
            yield Measurement(name, metric, value, item=item)
    ours = found["DFlash"][0]
    assert ours.stats is not None
    if ours.stats.acceptance_lengths:  # a text that ends at once has no whole cycle
        yield Measurement("DFlash", "tau", ours.stats.tau, item=item)
    if temperature == 0:
        yield from bounds(target, drafter, item, int(trial.condition["turns"]))
        yield from identity(target, prompt, found, item)
        yield from unverified(target, drafter, prompt, found["plain"][0].tokens, item)


def in_bfloat16() -> list[Method]:
    """Plain decoding and the method in bfloat16, where the processor computes in it and the race is in float32."""
    if race_dtype() == "bfloat16" or not has_bfloat16():
        return []
    target, _ = smollm2("bfloat16")
    made = (plain(target), dflash(target, drafter_for(target)))
    return [replace(method, name=f"{method.name} in bfloat16") for method in made]


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
    """(tokens,) what the drafter says when all of it is accepted, block after block; the target only reads along."""
    proposer = BlockProposer(target, drafter)
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


def conditions(**options: int) -> list[dict[str, Any]]:
    return grid(family=list(FAMILIES), temperature=[0.0, 1.0], **{key: [value] for key, value in options.items()})


RACE = Experiment(
    "speculative.race", measure_race,
    conditions={
        Scale.SMOKE: conditions(tokens=10, repeats=1, turns=1, tuned_on=1)[:2],
        Scale.QUICK: conditions(tokens=48, repeats=1, turns=1, tuned_on=1),
        Scale.STANDARD: conditions(tokens=128, repeats=3, turns=4, tuned_on=4),
        Scale.FULL: conditions(tokens=2048, repeats=3, turns=4, tuned_on=4),
    },
    repeats={Scale.SMOKE: 1, Scale.QUICK: 2, Scale.STANDARD: 20, Scale.FULL: 1},
    timeout_s={Scale.SMOKE: 600, Scale.QUICK: 900, Scale.STANDARD: 3600, Scale.FULL: 60}, units="item", alone=True,
    prepare=prepare_race,
)  # fmt: skip
