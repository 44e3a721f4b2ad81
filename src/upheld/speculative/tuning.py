"""Which block pays here, and how many drafts prompt lookup should take: told from a few texts, each decoded once.

The texts are of prompts that nothing is timed on afterwards. Decoding them with the drafter's whole block tells how many drafts stand.
A text is the same whoever drafts for it (greedy), or has the same law (sampled), so the cycles that prompt lookup would have taken
over it are counted without decoding: transformers' own rule proposes, and the text says what would have stood. With costs c_v(k)
measured once::

    block = argmax_B  tau(B) / (c_v(B) + c_d(B)),     drafts of lookup = argmin_k  sum over its cycles of c_v(1 + drafts found)     (1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessorList, PreTrainedModel
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

from upheld.speculative.costs import CostTable, block_sizes, cost_table
from upheld.speculative.decoder import SpeculativeDecoder, settings
from upheld.speculative.drafter import DFlashDrafter
from upheld.speculative.proposals import Proposer, proposer_of
from upheld.speculative.rivals import LOOKUP_TOKENS
from upheld.speculative.stats import SpecStats

MATCHED = 2
"""Tokens that prompt lookup looks for at most, as transformers has it by default."""


@dataclass(frozen=True)
class Tuned:
    """What was found.

    Parameters
    ----------
    costs : with the acceptance on the tuning texts
    lookup : drafts a cycle with which prompt lookup is fastest
    """

    costs: CostTable
    lookup: int

    @property
    def block(self) -> int:
        return self.costs.best_block


def tune(
    target: PreTrainedModel,
    drafter: DFlashDrafter | Proposer,
    prompts: Sequence[Tensor],
    config: GenerationConfig,
    *,
    ks: Sequence[int] = LOOKUP_TOKENS,
    context: int = 128,
    repeats: int = 3,
    seed: int = 0,
) -> Tuned:
    """Decode each prompt once, time what a block costs, and choose by (1).

    Parameters
    ----------
    prompts : (1, n) each, none of which anything is timed on
    config : as of the decoding that is tuned for
    ks : drafts that prompt lookup is tuned over
    context, repeats : as of `calibrate`

    Raises
    ------
    ValueError
        If there is no prompt, or no number to choose from.
    """
    if not prompts or not ks:
        raise ValueError(
            f"{len(prompts)} prompts and {len(ks)} numbers of drafts are too few to tune on; give one of each"
        )
    proposer = proposer_of(target, drafter)
    decoder, stats, texts = SpeculativeDecoder(target, drafter), [], []
    generator = torch.Generator(target.device).manual_seed(seed)
    for prompt in prompts:
        text, found = decoder.generate(prompt, config, generator=generator, return_stats=True)
        stats.append(found)
        texts.append(text)
    lengths = [k + 1 for k in ks]
    costs = cost_table(
        target, drafter, SpecStats.together(stats).acceptance, sizes=block_sizes(proposer), lengths=lengths, context=context,
        repeats=repeats,
    )  # fmt: skip
    spent = {
        k: sum(
            lookup_cost(lookup_cycles(target, text, prompt.shape[1], k, config), costs)
            for text, prompt in zip(texts, prompts, strict=True)
        )
        for k in ks
    }
    return Tuned(costs, min(spent, key=spent.__getitem__))


def lookup_cycles(
    target: PreTrainedModel, text: Tensor, prompt: int, drafts: int, config: GenerationConfig
) -> list[int]:
    """The drafts verified in every cycle that `generate(prompt_lookup_num_tokens=drafts)` takes to write a text.

    Parameters
    ----------
    text : (1, n) prompt and answer
    prompt : tokens of the prompt; its reading is the first cycle
    """
    ending, sampling, _ = settings(target, config, None, None, prompt=prompt)
    vocabulary = target.config.get_text_config().vocab_size
    warpers = sampling.warpers(vocabulary) if sampling.do_sample else []
    rule: Any = PromptLookupCandidateGenerator(
        eos_token_id=torch.tensor(sorted(ending.stops), device=text.device) if ending.stops else None,
        num_output_tokens=drafts, max_matching_ngram_size=MATCHED, max_length=prompt + ending.max_new_tokens,
        logits_processor=LogitsProcessorList(warpers) if warpers else None, vocab_size=vocabulary,
    )  # fmt: skip
    at, cycles = prompt, []
    while at < text.shape[1]:
        proposed = rule.get_candidates(text[:, :at])[0][0, at:]
        known = text[0, at : at + len(proposed)]
        right = int((proposed[: len(known)] == known).long().cumprod(0).sum())
        cycles.append(len(proposed))
        at += right + 1
    return cycles


def lookup_cost(cycles: Sequence[int], costs: CostTable) -> float:
    """Steps of one token that the cycles after the first take; lengths between those timed cost what lies between."""
    timed = {1: 1.0, **costs.verify}
    lengths = sorted(timed)
    return float(np.interp([1 + drafts for drafts in cycles[1:]], lengths, [timed[k] for k in lengths]).sum())
