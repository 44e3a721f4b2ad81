"""``upheld run speculative serve``: an endpoint that any client of OpenAI's can ask."""

from __future__ import annotations

from upheld.llm.loading import quietly
from upheld.speculative.command.asking import Asked, drafter_of, load_pair
from upheld.speculative.decoder import SpeculativeDecoder
from upheld.speculative.server import Service, listen


def serve(asked: Asked) -> None:
    """Answer requests until stopped; what is asked for in a request (temperature, length) is followed."""
    with quietly():
        pair = load_pair(asked)
        drafter = drafter_of(asked, pair.target)
    decoder = SpeculativeDecoder(pair.target, drafter, block_size=asked.block_size, adaptive=asked.adaptive)
    listen(Service(decoder, pair.tokenizer, asked.model), asked.host, asked.port)
