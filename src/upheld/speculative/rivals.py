"""The alternatives, under one interface: the same target, the same prompt, the same clock.

Plain decoding (our own loop with blocks of one token, and `generate` of transformers), prompt lookup and an assistant model
through `generate`, an EAGLE-3-style head in a chain or a tree, Medusa heads, and the method itself. All of them write the
target's own text; Medusa's "typical acceptance", which does not, is off. Running servers (vLLM, SGLang) are measured from
outside, see `endpoints`.

The clock is the processor's; on a GPU, after it has finished, and with several threads it is the wall's. Prefill and the first
token are told apart from the rest: a method is compared by what it takes from the first token on.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel
from transformers.generation.streamers import BaseStreamer

from upheld.speculative.decoder import SpeculativeDecoder
from upheld.speculative.drafter import DFlashDrafter
from upheld.speculative.eagle_trees import EagleTreeDecoder
from upheld.speculative.heads import EagleHead, HeadProposer, MedusaHeads
from upheld.speculative.stats import SpecStats, clock_of

LOOKUP_TOKENS = (3, 5, 10)
"""Drafts a cycle that prompt lookup is tuned over."""


@dataclass(frozen=True)
class Decoded:
    """A text, and what it took.

    Parameters
    ----------
    tokens : (n,) what was written
    prefill_s : seconds up to the first tokens
    decode_s, wall_s : seconds of the rest by `clock_of` the device, and by the wall's
    timed : tokens of the rest
    stats : cycles, where the method tells them
    """

    tokens: Tensor
    prefill_s: float
    decode_s: float
    wall_s: float
    timed: int
    stats: SpecStats | None = None

    @property
    def seconds_a_token(self) -> float:
        """Of decoding alone; NaN where the text ended with its first tokens."""
        return self.decode_s / self.timed if self.timed else float("nan")


class Method(Protocol):
    """Anything that writes the target's text."""

    @property
    def name(self) -> str: ...

    def decode(self, prompt: Tensor, config: GenerationConfig, *, seed: int = 0) -> Decoded:
        """Go on with one prompt.

        Parameters
        ----------
        prompt : (1, n)
        config : max_new_tokens, do_sample, temperature, top_k, top_p, eos_token_id
        seed : of all sampling
        """


class _Watch(BaseStreamer):
    """Stops the time when the first tokens come; the prompt, which comes before them, does not count."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.puts, self.first_tokens = device, 0, 0
        self._seconds = clock_of(device)
        self.begin = self.first = self.now()

    def now(self) -> tuple[float, float]:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return self._seconds(), time.perf_counter()

    def put(self, value: Tensor) -> None:
        self.puts += 1
        if self.puts == 2:
            self.first, self.first_tokens = self.now(), value.numel()

    def end(self) -> None: ...


def _timed(prompt: Tensor, write: Callable[[_Watch], tuple[Tensor, SpecStats | None]], watch: _Watch) -> Decoded:
    text, stats = write(watch)
    end, tokens = watch.now(), text[0, prompt.shape[1] :]
    return Decoded(
        tokens, watch.first[0] - watch.begin[0], end[0] - watch.first[0], end[1] - watch.first[1],
        len(tokens) - watch.first_tokens, stats,
    )  # fmt: skip


@dataclass(frozen=True)
class Own:
    """A decoder of this package."""

    name: str
    decoder: SpeculativeDecoder

    def decode(self, prompt: Tensor, config: GenerationConfig, *, seed: int = 0) -> Decoded:
        generator = torch.Generator(device=prompt.device).manual_seed(seed)

        def write(watch: _Watch) -> tuple[Tensor, SpecStats]:
            return self.decoder.generate(prompt, config, streamer=watch, generator=generator, return_stats=True)

        return _timed(prompt, write, _Watch(prompt.device))


@dataclass(frozen=True)
class Transformers:
    """`generate` of transformers, as it is or with one of its own ways to draft.

    Parameters
    ----------
    drafts : of prompt lookup, a cycle
    model : assistant that drafts
    """

    name: str
    target: PreTrainedModel
    drafts: int | None = None
    model: PreTrainedModel | None = None

    def decode(self, prompt: Tensor, config: GenerationConfig, *, seed: int = 0) -> Decoded:
        target: Any = self.target
        config = copy.deepcopy(config)
        config.prompt_lookup_num_tokens = self.drafts

        def write(watch: _Watch) -> tuple[Tensor, None]:
            text = target.generate(
                prompt, attention_mask=torch.ones_like(prompt), generation_config=config, streamer=watch,
                assistant_model=self.model,
            )  # fmt: skip
            return text, None

        devices = [prompt.device] if prompt.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), torch.inference_mode():
            torch.manual_seed(seed)
            return _timed(prompt, write, _Watch(prompt.device))


def plain(target: PreTrainedModel) -> Own:
    """Our loop, one token a cycle."""
    return Own("plain", SpeculativeDecoder(target, None))


def generate(target: PreTrainedModel) -> Transformers:
    """What the user has today."""
    return Transformers("generate", target)


def prompt_lookup(target: PreTrainedModel, drafts: int) -> Transformers:
    """Drafts are what followed the last tokens earlier in the text."""
    return Transformers("lookup", target, drafts=drafts)


def assistant(target: PreTrainedModel, model: PreTrainedModel) -> Transformers:
    """A smaller model of the same vocabulary drafts."""
    return Transformers("assistant", target, model=model)


def eagle_chain(target: PreTrainedModel, head: EagleHead) -> Own:
    """One draft after another, as many as a block has."""
    return Own("EAGLE chain", SpeculativeDecoder(target, HeadProposer(target, head)))


def eagle_tree(target: PreTrainedModel, head: EagleHead, nodes: int, top: int = 10) -> Own:
    """A tree of drafts: 16 nodes for an equal width of verification, 60 for the longest acceptance."""
    return Own(f"EAGLE tree {nodes}", EagleTreeDecoder(target, head, nodes=nodes, top=top))


def medusa(target: PreTrainedModel, heads: MedusaHeads) -> Own:
    """A chain of Medusa's drafts, accepted exactly."""
    return Own("Medusa", SpeculativeDecoder(target, HeadProposer(target, heads)))


def dflash(target: PreTrainedModel, drafter: DFlashDrafter) -> Own:
    """The method."""
    return Own("DFlash", SpeculativeDecoder(target, drafter))


def interleaved(
    methods: Sequence[Method],
    prompt: Tensor,
    config: GenerationConfig,
    *,
    seed: int = 0,
    repeats: int = 1,
    turn: int = 0,
) -> dict[str, list[Decoded]]:
    """Every method on one prompt, taking turns; who begins moves on with every repeat and with `turn`."""
    found: dict[str, list[Decoded]] = {method.name: [] for method in methods}
    for repeat in range(repeats):
        first = (turn + repeat) % len(methods)
        for method in (*methods[first:], *methods[:first]):
            found[method.name].append(method.decode(prompt, config, seed=seed))
    return found
