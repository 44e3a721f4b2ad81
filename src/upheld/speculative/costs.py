"""Whether a drafter pays on this machine: what a block costs here, and how many tokens it gives.

With T(k) the time of a target forward on k tokens behind a context, T_d(B) that of a draft, and tau the tokens a cycle emits
(Chen, Liang & Liu 2026, section 3)::

    c_v(B) = T(B) / T(1),   c_d(B) = T_d(B) / T(1),   speed-up = tau / (c_v(B) + c_d(B))                  (1)

tau never exceeds B, so B / (c_v + c_d) bounds what any drafter could give on this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel

from upheld.speculative.decoder import SpeculativeDecoder
from upheld.speculative.drafter import DFlashDrafter, embedding_of
from upheld.speculative.proposals import Proposer, proposer_of
from upheld.speculative.reading import Reader
from upheld.speculative.stats import SpecStats, clock_of, expected_tau
from upheld.speculative.verification import Sampling

WORTH_IT = 1.05
"""A predicted speed-up below this is within what a busy machine adds or takes; the drafter is then not recommended."""


@dataclass(frozen=True)
class CostTable:
    """What was measured.

    Parameters
    ----------
    step_s : T(1), seconds of a one-token step
    verify : k -> c_v(k), of every block and of what else was timed
    draft : B -> c_d(B), of the blocks that are considered
    acceptance : of each draft, given that those before it stood
    texts : the same of every text by itself, where it was seen
    """

    step_s: float
    verify: dict[int, float]
    draft: dict[int, float]
    acceptance: list[float]
    texts: Sequence[Sequence[float]] = ()

    @property
    def predicted(self) -> dict[int, float]:
        """B -> speed-up (1)."""
        return {
            block: speed_up(expected_tau(self.acceptance[: block - 1]), self.verify[block], cost)
            for block, cost in self.draft.items()
        }

    @property
    def best_block(self) -> int:
        return max(self.predicted, key=self.predicted.__getitem__)

    @property
    def whole_block(self) -> int:
        """The longest that was considered: the drafter's own, unless fewer sizes were asked for."""
        return max(self.draft)

    @property
    def recommended(self) -> bool:
        return self.predicted[self.best_block] >= WORTH_IT

    @property
    def bounds(self) -> dict[int, float]:
        """B -> speed-up of a drafter that is always right."""
        return {block: speed_up(block, self.verify[block], cost) for block, cost in self.draft.items()}

    @property
    def text_by_text(self) -> list[float]:
        """Speed-up (1) of the best block on every text by itself: one prompt may lie far from what is predicted of all."""
        best = self.best_block
        taus = [expected_tau(list(text[: best - 1])) for text in self.texts]
        return [speed_up(tau, self.verify[best], self.draft[best]) for tau in taus]

    @property
    def advice(self) -> str:
        """One sentence: use it with which block, or leave it."""
        best = self.best_block
        ratio, bound = self.predicted[best], max(self.bounds.values())
        each = self.text_by_text
        spread = f"; from text to text {min(each):.2f} to {max(each):.2f}" if len(each) > 1 else ""
        if self.recommended:
            return f"use blocks of {best}: {ratio:.2f} times as fast as plain decoding is expected here (bound {bound:.2f}){spread}"
        return (
            f"do not use it here: the best block ({best}) is expected to run at {ratio:.2f} times plain decoding "
            f"(no drafter could exceed {bound:.2f} on this machine){spread}"
        )


def speed_up(tau: float, c_v: float, c_d: float) -> float:
    """Equation (1).

    Examples
    --------
    >>> speed_up(4.0, 2.4, 0.1)
    1.6
    """
    return tau / (c_v + c_d)


def calibrate(
    target: PreTrainedModel,
    drafter: DFlashDrafter | Proposer,
    prompts: Sequence[Tensor],
    *,
    sizes: Sequence[int] | None = None,
    context: int = 128,
    repeats: int = 6,
    max_new_tokens: int = 48,
) -> CostTable:
    """Measure c_v and c_d on this machine, and the drafter's acceptance on prompts it was not trained on.

    Parameters
    ----------
    prompts : (1, n) each, decoded greedily with the whole block
    sizes : blocks that are considered, at most the drafter's; None takes 2, 3, 4, 6, 8, 12, 16, ...
    context : tokens in the caches while costs are measured
    repeats : the least time of so many, the sizes taking turns; by `clock_of` the device

    Raises
    ------
    ValueError
        If there is no prompt, or a size is not within 2 and the drafter's block.
    """
    if not prompts:
        raise ValueError("calibrate needs at least one prompt to see how many drafts are accepted")
    sizes = block_sizes(proposer_of(target, drafter), sizes)
    decoder = SpeculativeDecoder(target, drafter)
    config = GenerationConfig(max_new_tokens=max_new_tokens)  # type: ignore[no-untyped-call]
    stats = [decoder.generate(prompt, config, return_stats=True)[1] for prompt in prompts]
    acceptance = SpecStats.together(stats).acceptance
    table = cost_table(target, drafter, acceptance, sizes=sizes, context=context, repeats=repeats)
    # A text that ends at once tells nothing.
    return replace(table, texts=[one.acceptance for one in stats if one.acceptance_lengths])


def block_sizes(proposer: Proposer, sizes: Sequence[int] | None = None) -> list[int]:
    """The blocks that are considered; None takes 2, 3, 4, 6, 8, 12, 16, ... up to the drafter's.

    Raises
    ------
    ValueError
        If one is not within 2 and the drafter's block.
    """
    largest = proposer.block_size
    if sizes is None:
        sizes = sorted({k for k in (2, 3, 4, 6, 8, 12, 16, 24, 32) if k <= largest} | {largest})
    if not sizes or min(sizes) < 2 or max(sizes) > largest:
        raise ValueError(
            f"block sizes must lie in 2 to {largest}, the block the drafter was trained with, got {list(sizes)}"
        )
    return list(sizes)


def cost_table(
    target: PreTrainedModel,
    drafter: DFlashDrafter | Proposer,
    acceptance: Sequence[float],
    *,
    sizes: Sequence[int] | None = None,
    lengths: Sequence[int] = (),
    context: int = 128,
    repeats: int = 6,
) -> CostTable:
    """Measure c_v and c_d on this machine; how many drafts stand is known.

    Parameters
    ----------
    acceptance : of each draft, given that those before it stood
    sizes, context, repeats : as of `calibrate`
    lengths : tokens read at once that are timed beside the blocks, for rivals that draft as many
    """
    proposer = proposer_of(target, drafter)
    sizes = block_sizes(proposer, sizes)
    steps = forward_costs(target, sorted({1, *sizes, *lengths}), context=context, repeats=repeats)
    drafts = draft_costs(target, proposer, sizes, context=context, repeats=repeats)
    step = steps.pop(1)
    return CostTable(
        step, {k: t / step for k, t in steps.items()}, {k: t / step for k, t in drafts.items()}, list(acceptance)
    )


@torch.inference_mode()
def forward_costs(target: PreTrainedModel, sizes: Sequence[int], *, context: int, repeats: int) -> dict[int, float]:
    """k -> T(k), seconds of a forward on k tokens behind `context` others."""
    ids = _tokens(target, context + max(sizes))
    with Reader(target) as reader:
        reader.read(ids[:, :context], keep=1)

        def forward(size: int) -> None:
            reader.read(ids[:, context : context + size])
            reader.forget(size)

        return in_turn({size: partial(forward, size) for size in sizes}, repeats, target.device)


@torch.inference_mode()
def draft_costs(
    target: PreTrainedModel, proposer: Proposer, sizes: Sequence[int], *, context: int, repeats: int
) -> dict[int, float]:
    """B -> T_d(B), seconds of a greedy draft of B - 1 tokens, with two new committed positions."""
    sampling, new = Sampling(), 2
    ids = _tokens(target, context + new * (repeats + 1) * len(sizes) + 1)
    # What a draft costs does not hang on what the states say: the target need not read the text for it.
    weight = embedding_of(target).weight
    width = len(proposer.taps) * weight.shape[1]
    states = torch.randn(1, ids.shape[1], width, generator=torch.Generator().manual_seed(0)).to(weight)
    proposer.begin(ids.shape[1] + max(sizes))
    at = context
    proposer.propose(ids[:, : at + 1], states[:, :at], max(sizes) - 1, sampling, None)

    def draft(size: int) -> None:
        nonlocal at
        proposer.propose(ids[:, : at + new + 1], states[:, at : at + new], size - 1, sampling, None)
        at += new

    return in_turn({size: partial(draft, size) for size in sizes}, repeats, target.device)


def in_turn(calls: dict[int, Callable[[], Any]], repeats: int, device: torch.device) -> dict[int, float]:
    """The least seconds of each call, all taking turns, after a first round that does not count."""
    waits = device.type == "cuda"
    clock = clock_of(device)
    least = dict.fromkeys(calls, float("inf"))
    for turn in range(repeats + 1):
        for key, call in calls.items():
            start = clock()
            call()
            if waits:
                torch.cuda.synchronize(device)
            if turn:
                least[key] = min(least[key], clock() - start)
    return least


def _tokens(target: PreTrainedModel, count: int) -> Tensor:
    vocabulary = target.config.get_text_config().vocab_size
    return torch.randint(vocabulary, (1, count), generator=torch.Generator().manual_seed(0)).to(target.device)
