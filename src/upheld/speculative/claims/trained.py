"""The race of trained drafters: equal responses, equal processor seconds, on the small target `byteworld`.

It says how far drafts are accepted, never how fast anything is. Where a claim is about speed, tau is divided by costs that are timed on
the shapes of SmolLM2, and the result is called modelled. Texts are sampled at temperature 1, drafters have one layer: two would be 59 %
of this target, a language model of their own that needs nobody's features. At quick scale costs are timed once a trial, after a round
that does not count, for their time alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel

from upheld.claims import Experiment, Measurement, NotRun, Preparation, Scale, Trial, grid
from upheld.claims.preparation import Recipe
from upheld.speculative.byteworld import KINDS, ByteTokenizer, beginnings, byteworld
from upheld.speculative.claims.models import smollm2
from upheld.speculative.costs import draft_costs, forward_costs, speed_up
from upheld.speculative.decoder import SpeculativeDecoder
from upheld.speculative.drafter import DRAFT_VOCABULARY, DFlashDrafter
from upheld.speculative.eagle_trees import EagleTreeDecoder
from upheld.speculative.features import OnlineFeatures, online_in_eights
from upheld.speculative.heads import EagleHead, Head, HeadProposer, MedusaHeads
from upheld.speculative.proposals import Proposer, proposer_of
from upheld.speculative.responses import Response, load_responses, regenerate
from upheld.speculative.stats import SpecStats
from upheld.speculative.taps import decoder_layers
from upheld.speculative.training import DrafterTrainer, TrainReport

BLOCK, TEXTS, ANCHORS = 8, 8, 16
"""Tokens a block, texts a step, blocks a text."""

LR = 3e-3
"""For all alike: the best of 0.001, 0.003 and 0.01 for the block drafter on responses held out of training, before any race."""

ENDLESS = 1000
"""Passes over the responses that no budget reaches: training ends with its seconds."""

TRAINING_SEED, TEST_SEED = 1, 10_000

Trainee = DFlashDrafter | EagleHead | MedusaHeads

Maker = Callable[[PreTrainedModel, int], Trainee]

DFLASH, NO_FEATURES, EAGLE, MEDUSA = "DFlash", "no features", "EAGLE-style", "Medusa"


def block_drafter(**options: Any) -> Maker:
    """Drawn at random, as in the paper: the warm start would favour the variant whose features are the target's own states."""

    def make(target: PreTrainedModel, seed: int) -> Trainee:
        return DFlashDrafter.from_target(
            target,
            **{"block_size": BLOCK, "num_layers": 1, "draft_vocab_size": None, "init": "random", **options},
            seed=seed,
        )

    return make


MAKERS: dict[str, Maker] = {
    DFLASH: block_drafter(),
    NO_FEATURES: block_drafter(injection="none"),
    EAGLE: lambda target, seed: EagleHead.from_target(target, block_size=BLOCK, seed=seed),
    MEDUSA: lambda target, seed: MedusaHeads.from_target(target, block_size=BLOCK),
    "features at the input": block_drafter(injection="input"),
    "autoregressive": block_drafter(autoregressive=True),
    "two layers": block_drafter(num_layers=2),
}


# -- what is learned from


def write_texts(folder: Path, count: int, tokens: int) -> None:
    """Sampled answers to beginnings of documents, and the target's states at all layers of them."""
    torch.set_num_threads(1)
    target = byteworld()
    regenerate(
        target, ByteTokenizer(), beginnings(count, seed=TRAINING_SEED), folder, temperatures=(1.0,), max_new_tokens=tokens,
        rows=128, part_seconds=3600,
    )  # fmt: skip
    responses = load_responses(folder)
    layers = range(len(decoder_layers(target)))
    states = online_in_eights(OnlineFeatures(target, list(layers), responses), range(len(responses)))
    torch.save([one.to(torch.bfloat16) for one in states], folder / "states.pt")


TEXTS_OF_BYTEWORLD = Preparation("speculative.byteworld-texts", write_texts, timeout_s=3600)


@dataclass(frozen=True)
class HeldStates:
    """States at all layers, of which a drafter is given those of its taps.

    Parameters
    ----------
    states : of each response (n, L D)
    """

    states: Sequence[Tensor]
    width: int
    taps: Sequence[int]

    def of(self, numbers: Sequence[int]) -> list[Tensor]:
        return [
            torch.cat([self.states[number][:, tap * self.width : (tap + 1) * self.width] for tap in self.taps], dim=1)
            for number in numbers
        ]


@lru_cache(maxsize=1)
def learned_from(count: int, tokens: int) -> tuple[list[Response], list[Response], list[Tensor]]:
    """Responses to train on, to judge by, and the states of both in this order."""
    folder = TEXTS_OF_BYTEWORLD(count=count, tokens=tokens).folder()
    responses, states = load_responses(folder), torch.load(folder / "states.pt", weights_only=True)
    held_out = max(1, len(responses) // 20)
    return responses[:-held_out], responses[-held_out:], states


@lru_cache(maxsize=1)
def target() -> PreTrainedModel:
    torch.set_num_threads(1)
    return byteworld()


def train(trainee: Trainee, texts: int, tokens: int, seconds: float, seed: int, **options: Any) -> TrainReport:
    """Fit in place, for so many processor seconds of training steps; states of the target are at hand for all alike."""
    training, held_out, states = learned_from(texts, tokens)
    at_hand = HeldStates(states, target().config.hidden_size, tuple(trainee.config.target_layer_ids or ()))
    trainer = DrafterTrainer(
        target(), None, trainee, training, held_out=held_out, epochs=ENDLESS, lr=LR, anchors=ANCHORS, batch=TEXTS,
        features=at_hand, seconds=seconds, seed=seed, **options,
    )  # fmt: skip
    return trainer.fit()


# -- how far drafts are accepted


def acceptance(decoder: SpeculativeDecoder, prompts: int, tokens: int, seed: int) -> dict[str, SpecStats]:
    """Kind of text -> what decoding prompts of it at temperature 1 took; the same prompts for every drafter of a seed."""
    config = GenerationConfig(max_new_tokens=tokens, do_sample=True, top_k=0, pad_token_id=0)  # type: ignore[no-untyped-call]
    generator = torch.Generator().manual_seed(seed)
    found = {}
    for kind in KINDS:
        found[kind] = SpecStats()
        for prompt in beginnings(prompts, seed=TEST_SEED + seed, kind=kind):
            ids = torch.tensor([prompt.ids(ByteTokenizer())])
            _, stats = decoder.generate(ids, config, generator=generator, return_stats=True)
            found[kind] = found[kind].add(stats)
    return found


def proposing(trainee: Trainee) -> Proposer:
    return HeadProposer(target(), trainee) if isinstance(trainee, Head) else proposer_of(target(), trainee)


# -- what drafts cost where they are used


def costs(turns: int) -> dict[str, float]:
    """c_v + c_d of a cycle of 7 drafts on the shapes of SmolLM2: two layers at once, one layer seven times, seven heads."""
    real, _ = smollm2("float32")
    steps = forward_costs(real, [1, BLOCK], context=128, repeats=turns)
    eagle = EagleHead.from_target(real, block_size=BLOCK, draft_vocab_size=DRAFT_VOCABULARY)
    heads = MedusaHeads.from_target(real, block_size=BLOCK, draft_vocab_size=DRAFT_VOCABULARY)
    proposers: dict[str, Proposer] = {
        DFLASH: proposer_of(real, DFlashDrafter.from_target(real, block_size=BLOCK)),
        EAGLE: HeadProposer(real, eagle),
        MEDUSA: HeadProposer(real, heads),
    }
    taken = {}
    for name, proposer in proposers.items():
        drafts = draft_costs(real, proposer, [BLOCK], context=128, repeats=turns)
        taken[name] = (steps[BLOCK] + drafts[BLOCK]) / steps[1]
    return taken


# -- the race


def prepare_trained(trial: Trial) -> Iterable[Recipe]:
    if trial.scale is Scale.FULL:
        return []
    return [TEXTS_OF_BYTEWORLD(count=int(trial.condition["texts"]), tokens=int(trial.condition["tokens"]))]


def measure_trained(trial: Trial) -> Iterator[Measurement]:
    """One training seed: four drafters trained alike, their acceptance on texts they have not seen, the speed that it would give."""
    if trial.scale is Scale.FULL:
        raise NotRun(FULL_NEEDS)
    cost = costs(int(trial.condition["turns"]))
    for name in (DFLASH, NO_FEATURES, EAGLE, MEDUSA):
        trainee = MAKERS[name](target(), trial.seed)
        yield from reported(name, train(trainee, **_budget(trial)))
        decoder = SpeculativeDecoder(target(), proposing(trainee))
        found = acceptance(decoder, int(trial.condition["prompts"]), int(trial.condition["written"]), trial.seed)
        whole = SpecStats.together(found.values())
        yield Measurement(name, "tau", whole.tau)
        for place, share in enumerate(whole.position_acceptance, start=1):
            if share == share:
                yield Measurement(name, f"acceptance of draft {place}", share)
        if name in cost:
            yield Measurement(name, "c_v + c_d", cost[name])
            yield Measurement(name, "modelled speed-up", speed_up(whole.tau, cost[name], 0.0))
            for kind, stats in found.items():
                if stats.acceptance_lengths:
                    yield Measurement(name, f"modelled speed-up on {kind}", speed_up(stats.tau, cost[name], 0.0))


def reported(name: str, report: TrainReport) -> Iterator[Measurement]:
    """What the budget came to."""
    yield Measurement(name, "training seconds", report.seconds)
    yield Measurement(name, "training steps", report.steps)
    yield Measurement(name, "gradient tokens", report.gradient_tokens)


def _budget(trial: Trial) -> dict[str, Any]:
    return {
        "texts": int(trial.condition["texts"]), "tokens": int(trial.condition["tokens"]),
        "seconds": float(trial.condition["seconds"]), "seed": trial.seed,
    }  # fmt: skip


FULL_NEEDS = (
    "needs a GPU of 80 GB, 100,000 responses of each target and days of training, or the published checkpoints of DFlash and EAGLE-3; "
    "none of them comes with this package"
)

_QUICK = {"texts": [512], "tokens": [160], "prompts": [2], "written": [48], "turns": [1]}
_STANDARD = {"texts": [2048], "tokens": [256], "prompts": [6], "written": [128], "turns": [4]}

TRAINED = Experiment(
    "speculative.trained", measure_trained,
    conditions={
        Scale.SMOKE: grid(seconds=[0.5], texts=[24], tokens=[48], prompts=[1], written=[16], turns=[1]),
        Scale.QUICK: grid(seconds=[10.0], **_QUICK), Scale.STANDARD: grid(seconds=[30.0], **_STANDARD),
        Scale.FULL: grid(seconds=[3600.0], **_STANDARD),
    },
    repeats={Scale.SMOKE: 1, Scale.QUICK: 5, Scale.STANDARD: 10, Scale.FULL: 1},
    timeout_s={Scale.SMOKE: 600, Scale.QUICK: 1200, Scale.STANDARD: 3600, Scale.FULL: 60}, prepare=prepare_trained,
)  # fmt: skip


# -- one thing changed at a time, from standard scale on

CHANGES: dict[str, tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]]] = {
    "input": ((DFLASH, {}), ("features at the input", {})),
    "autoregressive": ((DFLASH, {}), ("autoregressive", {})),
    "depth": ((DFLASH, {}), ("two layers", {})),
    "uniform": ((DFLASH, {}), (DFLASH, {"gamma": float("inf")})),
    "grid": ((DFLASH, {}), (DFLASH, {"anchors_at": "grid"})),
}


def measure_change(trial: Trial) -> Iterator[Measurement]:
    """The method as it is, and with one thing changed: same seed, same responses, same seconds."""
    if trial.scale is Scale.FULL:
        raise NotRun(FULL_NEEDS)
    for label, (maker, options) in zip(("as it is", "changed"), CHANGES[str(trial.condition["change"])], strict=True):
        trainee = MAKERS[maker](target(), trial.seed)
        yield from reported(label, train(trainee, **_budget(trial), **options))
        decoder = SpeculativeDecoder(target(), proposing(trainee))
        found = acceptance(decoder, int(trial.condition["prompts"]), int(trial.condition["written"]), trial.seed)
        yield Measurement(label, "tau", SpecStats.together(found.values()).tau)


CHANGED = Experiment(
    "speculative.changed", measure_change,
    conditions={
        Scale.STANDARD: grid(change=list(CHANGES), seconds=[30.0], **_STANDARD),
        Scale.FULL: grid(change=list(CHANGES), seconds=[3600.0], **_STANDARD),
    },
    repeats={Scale.STANDARD: 10, Scale.FULL: 1}, timeout_s={Scale.STANDARD: 1800, Scale.FULL: 60}, prepare=prepare_trained,
)  # fmt: skip


def measure_trees(trial: Trial) -> Iterator[Measurement]:
    """The rival at its best: its trees of 16 and of 60 nodes, verified as widely as they are wide."""
    if trial.scale is Scale.FULL:
        raise NotRun(FULL_NEEDS)
    turns, real = int(trial.condition["turns"]), smollm2("float32")[0]
    block, head = (MAKERS[name](target(), trial.seed) for name in (DFLASH, EAGLE))
    assert isinstance(head, EagleHead)
    for trainee in (block, head):
        train(trainee, **_budget(trial))
    steps = forward_costs(real, [1, BLOCK, 17, 61], context=128, repeats=turns)
    cost = costs(turns)
    decoders = {
        DFLASH: (SpeculativeDecoder(target(), proposing(block)), cost[DFLASH]),
        "EAGLE tree 16": (
            EagleTreeDecoder(target(), head, nodes=16),
            cost[EAGLE] + (steps[17] - steps[BLOCK]) / steps[1],
        ),
        "EAGLE tree 60": (
            EagleTreeDecoder(target(), head, nodes=60),
            cost[EAGLE] + (steps[61] - steps[BLOCK]) / steps[1],
        ),
    }
    for name, (decoder, taken) in decoders.items():
        found = acceptance(decoder, int(trial.condition["prompts"]), int(trial.condition["written"]), trial.seed)
        whole = SpecStats.together(found.values())
        yield Measurement(name, "tau", whole.tau)
        yield Measurement(name, "modelled speed-up", speed_up(whole.tau, taken, 0.0))


TREES = Experiment(
    "speculative.trees", measure_trees,
    conditions={Scale.STANDARD: grid(seconds=[30.0], **_STANDARD), Scale.FULL: grid(seconds=[3600.0], **_STANDARD)},
    repeats={Scale.STANDARD: 10, Scale.FULL: 1}, timeout_s={Scale.STANDARD: 1800, Scale.FULL: 60}, prepare=prepare_trained,
)  # fmt: skip
