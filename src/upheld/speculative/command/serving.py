"""``upheld run speculative serve``: an endpoint that any client of OpenAI's can ask."""

from __future__ import annotations

from upheld.llm.loading import quietly
from upheld.speculative.command.asking import Asked, drafter_of, load_pair, tuning_prompts
from upheld.speculative.decoder import SpeculativeDecoder
from upheld.speculative.server import Service, listen
from upheld.speculative.tuning import tune

TUNING, TURNS = 16, 1
"""Tokens of each text that the block is told from, and times that costs are taken: fewer than for a report, since a server should answer
soon. With --block-size there is nothing to wait for."""


def serve(asked: Asked) -> None:
    """Answer requests until stopped; what is asked for in a request (temperature, length) is followed."""
    with quietly():
        pair = load_pair(asked)
        drafter = drafter_of(asked, pair.target)
        block, why = asked.block_size, ""
        if block is None and not asked.adaptive:
            prompts = tuning_prompts(asked, pair, TUNING)
            tuned = tune(pair.target, drafter, prompts, asked.generation(TUNING), repeats=TURNS, seed=asked.seed)
            block, why = tuned.block, f"blocks of {tuned.block}: {tuned.costs.advice}"
    decoder = SpeculativeDecoder(pair.target, drafter, block_size=block, adaptive=asked.adaptive)
    listen(Service(decoder, pair.tokenizer, asked.model), asked.host, asked.port, note=why)
