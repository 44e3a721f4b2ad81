"""What a forward on k tokens costs, what a draft costs, and how large a drafter is: by the processor's clock, on one thread, in turns.

At quick scale everything is timed once a trial, after a round that does not count: fewer turns for their time alone, five trials as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from transformers import PreTrainedModel

from upheld.claims import Experiment, Measurement, Scale, Trial, grid
from upheld.speculative.claims.models import drafter_for, has_bfloat16, question, smollm2
from upheld.speculative.costs import draft_costs, forward_costs
from upheld.speculative.drafter import DRAFT_VOCABULARY, DFlashDrafter
from upheld.speculative.heads import EagleHead, HeadProposer
from upheld.speculative.proposals import BlockProposer, StepProposer
from upheld.speculative.rivals import dflash
from upheld.speculative.verification import Sampling

CONTEXT = 128
VERIFIED = (1, 2, 4, 8, 16, 32)
DRAFTED = (2, 7, 15, 32)
"""Drafts a cycle; 7 and 15 are those of blocks of 8 and 16."""

BATCH_BLOCK = 8


def measure_costs(trial: Trial) -> Iterator[Measurement]:
    """c_v(k) in float32 (from standard scale on in bfloat16 too), drafting's cost by length, and the ceiling at larger batches."""
    torch.set_num_threads(1)
    turns = int(trial.condition["turns"])
    steps: dict[str, dict[int, float]] = {}
    formats = ["float32", "bfloat16"] if trial.condition["bfloat16"] and has_bfloat16() else ["float32"]
    for dtype in formats:
        steps[dtype] = forward_costs(smollm2(dtype)[0], VERIFIED, context=CONTEXT, repeats=turns)
        for k in VERIFIED:
            yield Measurement(dtype, f"seconds of {k} tokens", steps[dtype][k])
            yield Measurement(dtype, f"c_v({k})", steps[dtype][k] / steps[dtype][1])
        yield from ceilings(dtype, steps[dtype])
    yield from measure_drafts(turns, steps["float32"])


def ceilings(dtype: str, step: dict[int, float]) -> Iterator[Measurement]:
    """B c_v(b) / c_v(b B): what drafts that are always right could give b texts at once, drafting left out; its slope in b."""
    batches = [b for b in VERIFIED if b * BATCH_BLOCK in step]
    ceiling = {b: BATCH_BLOCK * step[b] / step[b * BATCH_BLOCK] for b in batches}
    for b, value in ceiling.items():
        yield Measurement(dtype, f"ceiling at batch {b}", value)
    yield Measurement(dtype, "slope of log ceiling in log batch", slope(ceiling))


def measure_drafts(turns: int, step: dict[int, float]) -> Iterator[Measurement]:
    """The block drafter and the head that drafts token after token, untrained: time does not depend on what they have learned."""
    target, _ = smollm2("float32")
    block = max(DRAFTED) + 1
    head = EagleHead.from_target(target, block_size=block, draft_vocab_size=DRAFT_VOCABULARY)
    proposers: dict[str, BlockProposer | HeadProposer] = {
        "DFlash": BlockProposer(target, DFlashDrafter.from_target(target, block_size=block)),
        "EAGLE-style": HeadProposer(target, head),
    }
    yield from by_length(target, proposers, turns, step)


def measure_autoregressive(trial: Trial) -> Iterator[Measurement]:
    """The same layers as a block and token after token: what k drafts cost."""
    torch.set_num_threads(1)
    target, _ = smollm2("float32")
    turns, block = int(trial.condition["turns"]), max(DRAFTED) + 1
    one, many = (DFlashDrafter.from_target(target, block_size=block, autoregressive=ahead) for ahead in (False, True))
    step = forward_costs(target, [k + 1 for k in DRAFTED], context=CONTEXT, repeats=turns)
    proposers = {"DFlash": BlockProposer(target, one), "autoregressive": StepProposer(target, many)}
    yield from by_length(target, proposers, turns, step)


def by_length(
    target: PreTrainedModel, proposers: Mapping[str, BlockProposer | HeadProposer], turns: int, step: dict[int, float]
) -> Iterator[Measurement]:
    """Seconds of k drafts, their slope in k, drafting's part of a cycle, and forwards of the drafter."""
    for name, proposer in proposers.items():
        found = draft_costs(target, proposer, [k + 1 for k in DRAFTED], context=CONTEXT, repeats=turns)
        seconds = {size - 1: took for size, took in found.items()}
        for k, took in seconds.items():
            yield Measurement(name, f"seconds of {k} drafts", took)
            if k + 1 in step:
                yield Measurement(name, f"drafting's share of a cycle of {k} drafts", took / (took + step[k + 1]))
        yield Measurement(name, "slope of log seconds in log drafts", slope(seconds))
        for k in DRAFTED:
            yield Measurement(name, "forwards a cycle", float(forwards(proposer, k)), item=str(k))


@torch.inference_mode()
def forwards(proposer: BlockProposer | HeadProposer, drafts: int) -> int:
    """How often the drafter is run for one block."""
    width = proposer.rows.shape[1] if isinstance(proposer, HeadProposer) else proposer.head.shape[1]
    proposer.begin(64)
    states = torch.zeros(1, 8, len(proposer.taps) * width)
    proposer.propose(torch.arange(9)[None], states, drafts, Sampling(), None)
    return proposer.forwards


def slope(of: dict[int, float]) -> float:
    """Least-squares slope of logarithm on logarithm."""
    return float(np.polyfit(np.log(list(of)), np.log(list(of.values())), 1)[0])


COSTS = Experiment(
    "speculative.costs", measure_costs,
    conditions={
        Scale.SMOKE: grid(turns=[1], bfloat16=[0]), Scale.QUICK: grid(turns=[1], bfloat16=[0]),
        Scale.STANDARD: grid(turns=[6], bfloat16=[1]), Scale.FULL: grid(turns=[10], bfloat16=[1]),
    },
    repeats={Scale.SMOKE: 1, Scale.QUICK: 5, Scale.STANDARD: 20, Scale.FULL: 20},
    timeout_s={Scale.SMOKE: 600, Scale.QUICK: 900, Scale.STANDARD: 3600, Scale.FULL: 1200}, alone=True,
)  # fmt: skip

COSTS_OF_STEPS = Experiment(
    "speculative.costs-autoregressive", measure_autoregressive,
    conditions={Scale.STANDARD: grid(turns=[6]), Scale.FULL: grid(turns=[10])}, repeats={Scale.STANDARD: 20, Scale.FULL: 20},
    timeout_s={Scale.STANDARD: 1800, Scale.FULL: 1800}, alone=True,
)  # fmt: skip


def measure_weight(trial: Trial) -> Iterator[Measurement]:
    """Weights of the drafter over the target's, and bytes held beyond plain decoding."""
    target, tokenizer = smollm2("float32")
    drafter = drafter_for(target)
    own, whole = (sum(p.numel() for p in model.parameters()) for model in (drafter, target))
    yield Measurement("DFlash", "weights over the target's", own / whole)
    config = target.generation_config.__class__(max_new_tokens=16, do_sample=False, pad_token_id=0)
    stats = dflash(target, drafter).decode(question(trial.seed, tokenizer), config).stats
    assert stats is not None
    yield Measurement("DFlash", "added memory over the target's", stats.peak_bytes / (whole * target.dtype.itemsize))


WEIGHT = Experiment(
    "speculative.weight", measure_weight, conditions={scale: [{}] for scale in Scale}, repeats=dict.fromkeys(Scale, 1),
    timeout_s=dict.fromkeys(Scale, 600.0),
)  # fmt: skip
