"""Drafters trained anew for SmolLM2-135M, from standard scale on: equal answers, equal seconds, raced by the clock.

Each kind is trained once, on the target's own greedy answers, from weights drawn at random: the warm start would favour the kind
whose features are the target's own states. A trial is one test prompt, and all kinds take turns on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from upheld.claims import Experiment, Measurement, NotRun, Preparation, Scale, Trial, grid
from upheld.claims.preparation import Recipe
from upheld.speculative.batched import BatchedDecoder
from upheld.speculative.claims.models import drafter_for, questions
from upheld.speculative.claims.race import FULL_NEEDS, asked, drafter_alone, nats, paces
from upheld.speculative.costs import in_turn
from upheld.speculative.data import FAMILIES, training_set
from upheld.speculative.decoder import SpeculativeDecoder
from upheld.speculative.drafter import DRAFT_VOCABULARY, DFlashDrafter
from upheld.speculative.heads import EagleHead, MedusaHeads
from upheld.speculative.pairs import load_target
from upheld.speculative.responses import load_responses, regenerate
from upheld.speculative.rivals import Method, Own, eagle_chain, eagle_tree, interleaved, medusa, plain
from upheld.speculative.training import DrafterTrainer

BLOCK, TREES = 8, (16, 60)
LR, ANCHORS, TEXTS = 1e-3, 16, 2
"""For all alike: the peak of the learning rate, blocks a text, texts a step."""

ENDLESS = 1000
"""Passes over the answers that no budget reaches: training ends with its seconds."""

Trainee = DFlashDrafter | EagleHead | MedusaHeads


@lru_cache(maxsize=1)
def real() -> tuple[PreTrainedModel, Any]:
    """SmolLM2-135M-Instruct in float32, on a GPU where there is one."""
    torch.set_num_threads(1)
    return load_target("smollm2", dtype="float32")


def block_drafter(target: PreTrainedModel, **options: Any) -> DFlashDrafter:
    return DFlashDrafter.from_target(target, **{"block_size": BLOCK, "init": "random", **options})


KINDS: dict[str, Callable[[PreTrainedModel], Trainee]] = {
    "DFlash": block_drafter,
    "no features": partial(block_drafter, injection="none"),
    "features at the input": partial(block_drafter, injection="input"),
    "autoregressive": partial(block_drafter, autoregressive=True),
    "EAGLE-style": partial(EagleHead.from_target, block_size=BLOCK, draft_vocab_size=DRAFT_VOCABULARY),
    "Medusa": partial(MedusaHeads.from_target, block_size=BLOCK, draft_vocab_size=DRAFT_VOCABULARY),
    "five taps": partial(block_drafter, taps=5),
    "blocks of 16": partial(block_drafter, block_size=16),
}

RACED = ("DFlash", "no features", "features at the input", "autoregressive", "EAGLE-style", "Medusa")
CHANGED = ("DFlash", "five taps", "blocks of 16")


# -- prepared once


def write_answers(folder: Path, count: int, tokens: int) -> None:
    target, tokenizer = real()
    regenerate(target, tokenizer, training_set()[:count], folder, temperatures=(0.0,), max_new_tokens=tokens)


ANSWERS = Preparation("speculative.smollm2-answers", write_answers, timeout_s=14400)


def train_kind(folder: Path, kind: str, seconds: float, count: int, tokens: int) -> None:
    """So many processor seconds of steps, the target's states of every step read anew by all alike."""
    target, tokenizer = real()
    answers = load_responses(ANSWERS(count=count, tokens=tokens).folder())
    trainee = KINDS[kind](target)
    DrafterTrainer(
        target, tokenizer, trainee, answers, epochs=ENDLESS, lr=LR, anchors=ANCHORS * BLOCK // trainee.config.block_size,
        batch=TEXTS, seconds=seconds,
    ).fit()  # fmt: skip
    module: nn.Module = trainee
    torch.save(module.state_dict(), folder / "weights.pt")


DRAFTERS = Preparation("speculative.smollm2-drafters", train_kind, timeout_s=14400)


@lru_cache(maxsize=8)
def trained(kind: str, seconds: float, count: int, tokens: int) -> Trainee:
    target, _ = real()
    path = DRAFTERS(kind=kind, seconds=seconds, count=count, tokens=tokens).folder() / "weights.pt"
    trainee = KINDS[kind](target)
    module: nn.Module = trainee
    module.load_state_dict(torch.load(path, map_location=target.device, weights_only=True))
    module.requires_grad_(False).eval()
    return trainee


def recipe(trial: Trial) -> dict[str, Any]:
    return {
        "seconds": float(trial.condition["seconds"]), "count": int(trial.condition["answers"]),
        "tokens": int(trial.condition["tokens"]),
    }  # fmt: skip


def prepare(trial: Trial, kinds: tuple[str, ...]) -> Iterable[Recipe]:
    """The answers are the first thing that a drafter's own preparation asks for."""
    return [DRAFTERS(kind=kind, **recipe(trial)) for kind in kinds]


# -- the race


def runners(target: PreTrainedModel, kinds: dict[str, Trainee]) -> list[Method]:
    """Every kind under its name; the EAGLE-style head as a chain, and in trees of 16 and of 60 nodes."""
    made: list[Method] = [plain(target)]
    for name, trainee in kinds.items():
        if isinstance(trainee, EagleHead):
            made += [eagle_chain(target, trainee), *(eagle_tree(target, trainee, nodes) for nodes in TREES)]
        elif isinstance(trainee, MedusaHeads):
            made.append(medusa(target, trainee))
        else:
            made.append(Own(name, SpeculativeDecoder(target, trainee)))
            if trainee.config.block_size > BLOCK:
                made.append(Own(f"{name}, 8 at decoding", SpeculativeDecoder(target, trainee, block_size=BLOCK)))
    return made


def measure_trained(trial: Trial) -> Iterator[Measurement]:
    """One prompt, greedy: pace and tau of every kind; and what block by block and token by token say when nobody checks them."""
    target, kinds, prompt, item = one_prompt(trial, RACED)
    yield from raced(trial, target, kinds, prompt, item)
    for name in ("DFlash", "autoregressive"):
        drafter = kinds[name]
        assert isinstance(drafter, DFlashDrafter)
        with torch.inference_mode():
            said = drafter_alone(target, drafter, prompt, int(trial.condition["tokens"]))
            yield Measurement(f"{name} alone", "nats a token", nats(target, prompt, said), item=item)


def measure_changed(trial: Trial) -> Iterator[Measurement]:
    """One prompt, greedy: the method as it is, with more taps, and with longer blocks."""
    target, kinds, prompt, item = one_prompt(trial, CHANGED)
    yield from raced(trial, target, kinds, prompt, item)


def one_prompt(trial: Trial, kinds: tuple[str, ...]) -> tuple[PreTrainedModel, dict[str, Trainee], Tensor, str]:
    target, tokenizer = real()
    family = str(trial.condition["family"])
    prompt = torch.tensor([questions("test", family)[trial.seed].ids(tokenizer)], device=target.device)
    return target, {kind: trained(kind, **recipe(trial)) for kind in kinds}, prompt, f"{family} {trial.seed}"


def raced(
    trial: Trial, target: PreTrainedModel, kinds: dict[str, Trainee], prompt: Tensor, item: str
) -> Iterator[Measurement]:
    methods, repeats = runners(target, kinds), int(trial.condition["repeats"])
    interleaved(methods, prompt, asked(0.0, 4))
    config = asked(0.0, int(trial.condition["tokens"]))
    turn = trial.seed + FAMILIES.index(str(trial.condition["family"]))
    for name, texts in interleaved(methods, prompt, config, repeats=repeats, turn=turn).items():
        for metric, value in paces(texts).items():
            yield Measurement(name, metric, value, item=item)
        stats = texts[0].stats
        if name != "plain" and stats is not None and stats.acceptance_lengths:
            yield Measurement(name, "tau", stats.tau, item=item)


REAL = Experiment(
    "speculative.trained-smollm2", measure_trained,
    conditions={
        Scale.STANDARD: grid(family=list(FAMILIES), seconds=[600.0], answers=[2000], tokens=[128], repeats=[3]),
        Scale.FULL: grid(family=list(FAMILIES), seconds=[3600.0], answers=[10_000], tokens=[256], repeats=[3]),
    },
    repeats={Scale.STANDARD: 10, Scale.FULL: 10}, timeout_s={Scale.STANDARD: 3600, Scale.FULL: 7200}, units="item", alone=True,
    prepare=partial(prepare, kinds=RACED),
)  # fmt: skip

REAL_CHANGED = Experiment(
    "speculative.changed-smollm2", measure_changed,
    conditions={Scale.FULL: grid(family=list(FAMILIES), seconds=[3600.0], answers=[10_000], tokens=[256], repeats=[3])},
    repeats={Scale.FULL: 10}, timeout_s={Scale.FULL: 7200}, units="item", alone=True, prepare=partial(prepare, kinds=CHANGED),
)  # fmt: skip


# -- several texts at once


def measure_batches(trial: Trial) -> Iterator[Measurement]:
    """So many test prompts at once: seconds a token of `generate` over those of the shipped drafter in one batch."""
    if trial.scale is Scale.FULL:
        raise NotRun(FULL_NEEDS)
    target, tokenizer = real()
    batch, tokens = int(trial.condition["batch"]), int(trial.condition["tokens"])
    mixed = [prompt for few in zip(*(questions("test", family) for family in FAMILIES), strict=False) for prompt in few]
    # Prompts of one seed are those of the next but for one: the same at every size of the batch.
    rows = [mixed[(trial.seed + number) % len(mixed)].ids(tokenizer) for number in range(batch)]
    longest = max(map(len, rows))
    ids = torch.tensor([[0] * (longest - len(row)) + row for row in rows], device=target.device)
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=target.device)
    config = asked(0.0, tokens)
    theirs: Any = target
    ours = BatchedDecoder(target, drafter_for(target))
    seconds = {
        "generate": clocked(target, lambda: theirs.generate(ids, attention_mask=mask, generation_config=config)),
        "DFlash": clocked(target, lambda: ours.generate(ids, config, attention_mask=mask)[0]),
    }
    for name, took in seconds.items():
        yield Measurement(name, "seconds of the batch", took)
    yield Measurement("DFlash", "speed-up", seconds["generate"] / seconds["DFlash"])


def clocked(target: PreTrainedModel, write: Callable[[], Any]) -> float:
    """Seconds of the second time, prefill included: by the processor's clock, on a GPU the wall's."""
    return in_turn({0: write}, 1, target.device)[0]


BATCHES = Experiment(
    "speculative.batches", measure_batches,
    conditions={
        Scale.STANDARD: grid(batch=[1, 2, 4, 8, 16, 32], tokens=[64]), Scale.FULL: grid(batch=[1, 2, 4, 8, 16, 32], tokens=[2048]),
    },
    repeats={Scale.STANDARD: 5, Scale.FULL: 1}, timeout_s={Scale.STANDARD: 3600, Scale.FULL: 60}, alone=True,
)  # fmt: skip
