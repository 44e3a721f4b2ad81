"""The speculative decoder: draft a block, verify it in one forward of the target, keep what stands.

A cycle at committed length s, whose last token y_s the target has not read yet::

    1  features of the newly committed positions; one drafter forward on [y_s, mask, ..., mask] proposes d_1 ... d_(B-1)
    2  one target forward on [y_s, d_1, ..., d_(B-1)] at positions s ... s + B - 1
    3  a drafts stand and one token follows them (`verification`); the target's cache is cropped to s + a + 1

Every cycle emits a + 1 tokens, tau on average, and costs c_v(B) + c_d steps of one token: speed-up tau / (c_v(B) + c_d).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel

from upheld.speculative.adaptive import BlockLength
from upheld.speculative.drafter import DFlashDrafter, head_of
from upheld.speculative.proposals import Proposer, proposer_of
from upheld.speculative.reading import Reader
from upheld.speculative.stats import SpecStats, clock_of
from upheld.speculative.taps import target_digest
from upheld.speculative.verification import VERIFIERS, Draft, Sampling, Verify, Warper, greedy

Criterion = Callable[[Tensor, Any], Any]

HONOURED = {
    "max_new_tokens", "max_length", "eos_token_id", "pad_token_id", "bos_token_id", "do_sample", "temperature", "top_k",
    "top_p", "repetition_penalty", "use_cache", "transformers_version", "num_beams", "num_return_sequences",
}  # fmt: skip
"""Settings of a GenerationConfig that are followed, or that change nothing here."""

DEFAULT_NEW_TOKENS = 20
"""As many as `generate` writes when nobody says how many."""


@dataclass(frozen=True)
class Ending:
    """When a text ends."""

    max_new_tokens: int
    stops: frozenset[int]
    criteria: Sequence[Criterion] = ()


@dataclass(frozen=True)
class Cycle:
    """What a cycle gave.

    Parameters
    ----------
    tokens : (a + 1,) those that stand and the one after them
    states : (1, a + 1, m D) the target's at the taps, of the positions it now holds
    scores : (1, >= a + 1, V) row i is what token i was chosen by
    """

    tokens: Tensor
    states: Tensor | None
    scores: Tensor
    draft_s: float
    verify_s: float


class SpeculativeDecoder:
    """Decodes with a drafter; the text is the target's own, whatever the drafter.

    Greedy text is identical to plain decoding up to ties of the target's logits within rounding; sampled text has the
    target's law exactly.

    Parameters
    ----------
    target : a causal language model whose caches can be cropped
    drafter : a `DFlashDrafter` of this target, any other `Proposer`, or None for plain decoding
    verify : "rejection" accepts with min(1, p/q); "match" only what the target draws itself
    block_size : B at this decoding, at most the drafter's; None takes the drafter's
    adaptive : shorten and lengthen blocks by how many drafts stand
    force : let blocks be longer than those the drafter was trained with

    Raises
    ------
    ValueError
        If the drafter belongs to another target, or the block is longer than its training block.

    Examples
    --------
    >>> decoder = SpeculativeDecoder(target, drafter)                                         # doctest: +SKIP
    >>> ids, stats = decoder.generate(prompt, GenerationConfig(max_new_tokens=64), return_stats=True)    # doctest: +SKIP
    >>> stats.tau                                                                              # doctest: +SKIP
    2.4
    """

    def __init__(
        self,
        target: PreTrainedModel,
        drafter: DFlashDrafter | Proposer | None,
        *,
        verify: Verify = "rejection",
        block_size: int | None = None,
        adaptive: bool = False,
        force: bool = False,
    ) -> None:
        if verify not in VERIFIERS:
            raise ValueError(f"verify must be rejection or match, got {verify!r}")
        if isinstance(drafter, DFlashDrafter):
            check_pair(target, drafter)
        self.target = target
        self.proposer = None if drafter is None else proposer_of(target, drafter)
        trained = 1 if self.proposer is None else self.proposer.block_size
        self.block_size = trained if block_size is None else block_size
        if self.block_size < 1 or (self.block_size > trained and not force):
            raise ValueError(
                f"block_size {self.block_size} is not within 1 to {trained}, the block the drafter was trained with; "
                "take a smaller one, or force=True (drafts past it are guesses, the text stays right)"
            )
        self.adaptive = adaptive
        self._verify = VERIFIERS[verify]

    @overload
    def generate(self, input_ids: Tensor, generation_config: GenerationConfig | None = ..., *, streamer: Any = ...,
                 stopping_criteria: Sequence[Criterion] | None = ..., logits_processor: Sequence[Warper] | None = ...,
                 attention_mask: Tensor | None = ..., generator: torch.Generator | None = ...,
                 return_stats: Literal[False] = ...) -> Tensor: ...  # fmt: skip
    @overload
    def generate(self, input_ids: Tensor, generation_config: GenerationConfig | None = ..., *, streamer: Any = ...,
                 stopping_criteria: Sequence[Criterion] | None = ..., logits_processor: Sequence[Warper] | None = ...,
                 attention_mask: Tensor | None = ..., generator: torch.Generator | None = ...,
                 return_stats: Literal[True]) -> tuple[Tensor, SpecStats]: ...  # fmt: skip

    def generate(
        self,
        input_ids: Tensor,
        generation_config: GenerationConfig | None = None,
        *,
        streamer: Any = None,
        stopping_criteria: Sequence[Criterion] | None = None,
        logits_processor: Sequence[Warper] | None = None,
        attention_mask: Tensor | None = None,
        generator: torch.Generator | None = None,
        return_stats: bool = False,
    ) -> Tensor | tuple[Tensor, SpecStats]:
        """Prompts with what the target says to them, as `generate` of transformers returns them.

        Parameters
        ----------
        input_ids : (b, n) prompts; more than one are decoded one after the other
        generation_config : max_new_tokens, eos_token_id, do_sample, temperature, top_k, top_p and repetition_penalty are
            followed; None takes the target's own
        streamer : told the prompt and every token; for one prompt
        stopping_criteria : asked after every token with the (1, n) text and the (1, V) logits the token came from
        logits_processor : act on the target's logits at every position of a block
        attention_mask : (b, n) 0 where a prompt is padded
        generator : source of randomness, on the target's device

        Raises
        ------
        ValueError
            If a prompt is empty, or a setting is asked for that is not followed here.
        """
        rows = prompt_rows(input_ids, attention_mask)
        if streamer is not None and len(rows) > 1:
            raise ValueError(f"a streamer follows one text, {len(rows)} prompts were given; give one at a time")
        ending, sampling, pad = settings(
            self.target, generation_config, stopping_criteria, logits_processor, prompt=input_ids.shape[1]
        )
        written = [self._write(row, ending, sampling, streamer, generator) for row in rows]
        texts = [text for text, _ in written]
        longest = max(len(text) for text in texts)
        out = torch.full((len(rows), longest), pad, dtype=torch.long, device=input_ids.device)
        for place, text in enumerate(texts):
            out[place, : len(text)] = text
        out = torch.cat([input_ids, out], dim=1)
        return (out, SpecStats.together(stats for _, stats in written)) if return_stats else out

    @torch.inference_mode()
    def stream(
        self,
        input_ids: Tensor,
        generation_config: GenerationConfig | None = None,
        *,
        stopping_criteria: Sequence[Criterion] | None = None,
        logits_processor: Sequence[Warper] | None = None,
        generator: torch.Generator | None = None,
        stats: SpecStats | None = None,
    ) -> Iterator[Tensor]:
        """The text of one prompt as it comes: the tokens of a cycle at a time. What it cost is added to `stats`."""
        (row,) = prompt_rows(input_ids)
        ending, sampling, _ = settings(
            self.target, generation_config, stopping_criteria, logits_processor, prompt=input_ids.shape[1]
        )
        stats = SpecStats() if stats is None else stats
        for emitted in self._cycles(row, ending, sampling, generator, stats):
            stats.tokens += len(emitted)
            yield emitted

    @torch.inference_mode()
    def _write(
        self, prompt: Tensor, ending: Ending, sampling: Sampling, streamer: Any, generator: torch.Generator | None
    ) -> tuple[Tensor, SpecStats]:
        stats, pieces = SpecStats(), [prompt[0]]
        if streamer is not None:
            streamer.put(prompt.cpu())
        for emitted in self._cycles(prompt, ending, sampling, generator, stats):
            pieces.append(emitted)
            if streamer is not None:
                for token in emitted.cpu():
                    streamer.put(token[None])
        if streamer is not None:
            streamer.end()
        text = torch.cat(pieces)[prompt.shape[1] :]
        stats.tokens = len(text)
        return text, stats

    def _cycles(
        self, prompt: Tensor, ending: Ending, sampling: Sampling, generator: torch.Generator | None, stats: SpecStats
    ) -> Iterator[Tensor]:
        """Tokens as the cycles emit them; `stats` is written to."""
        taps = () if self.proposer is None else self.proposer.taps
        length = BlockLength(self.block_size) if self.adaptive and self.block_size > 1 else None
        seconds = clock_of(self.target.device)
        with Reader(self.target, taps) as reader:
            clock = seconds()
            logits, states = reader.read(prompt, keep=1)
            none = prompt[:, :0]
            _, first = choose(Draft(none), sampling.rows(prompt, none, logits), sampling, self._verify, generator)
            ids = torch.cat([prompt, first[:, None]], dim=1)
            emitted, over = cut(first, ids, prompt.shape[1], ending, logits)
            stats.prefill_s = seconds() - clock
            yield emitted
            if self.proposer is not None:
                self.proposer.begin(prompt.shape[1] + ending.max_new_tokens + self.block_size)
            while not over:
                block = length.current if length else self.block_size
                size = min(block, ending.max_new_tokens - (ids.shape[1] - prompt.shape[1]))
                done = self._cycle(reader, ids, states, size, sampling, generator)
                states, stands = done.states, len(done.tokens) - 1
                ids = torch.cat([ids, done.tokens[None]], dim=1)
                emitted, over = cut(done.tokens, ids, prompt.shape[1], ending, done.scores)
                stats.cycles += 1
                stats.draft_s += done.draft_s
                stats.verify_s += done.verify_s
                if size == block and len(emitted) == stands + 1:
                    stats.acceptance_lengths.append(stands + 1)
                    stats.drafted.append(size - 1)
                    if length:
                        length.told(accepted=stands, drafted=size - 1)
                yield emitted
            if self.proposer is not None:
                block_logits = self.block_size * logits.shape[-1] * logits.element_size()
                stats.peak_bytes = self.proposer.nbytes() + block_logits

    def _cycle(
        self,
        reader: Reader,
        ids: Tensor,
        states: Tensor | None,
        size: int,
        sampling: Sampling,
        generator: torch.Generator | None,
    ) -> Cycle:
        """Steps 1 to 3 for a block of `size`."""
        seconds = clock_of(self.target.device)
        clock = seconds()
        draft = Draft(ids[:, :0])
        if size > 1 and self.proposer is not None:
            draft = self.proposer.propose(ids, states, size - 1, sampling, generator)
        drafted = seconds()
        logits, states = reader.read(torch.cat([ids[:, -1:], draft.tokens], dim=1))
        scores = sampling.rows(ids, draft.tokens, logits)
        accepted, after = choose(draft, scores, sampling, self._verify, generator)
        # The one place where a device is waited for.
        stands = int(accepted)
        reader.forget(draft.tokens.shape[1] - stands)
        return Cycle(
            tokens=torch.cat([draft.tokens[0, :stands], after]),
            states=None if states is None else states[:, : stands + 1],
            scores=scores,
            draft_s=drafted - clock,
            verify_s=seconds() - drafted,
        )


def choose(
    draft: Draft, scores: Tensor, sampling: Sampling, verify: Any, generator: torch.Generator | None
) -> tuple[Tensor, Tensor]:
    """How many drafts stand, and the token after them."""
    if not sampling.do_sample:
        return greedy(draft.tokens, scores)
    law = sampling.law(scores)
    accepted, after = verify(draft, law, generator)
    return accepted, after


def cut(emitted: Tensor, ids: Tensor, prompt: int, ending: Ending, scores: Tensor) -> tuple[Tensor, bool]:
    """The tokens of a cycle up to the first at which the text ends, and whether it does."""
    tokens = emitted.tolist()
    start = ids.shape[1] - len(tokens)
    for place, token in enumerate(tokens):
        until = start + place + 1
        over = token in ending.stops or until - prompt >= ending.max_new_tokens
        for criterion in ending.criteria:
            said = criterion(ids[:, :until], scores[:, min(place, scores.shape[1] - 1)])
            over = over or bool(torch.as_tensor(said).all())
        if over:
            return emitted[: place + 1], True
    return emitted, False


def prompt_rows(input_ids: Tensor, attention_mask: Tensor | None = None) -> list[Tensor]:
    """(b, n) padded prompts -> each as (1, n_b), without its padding."""
    if input_ids.dim() != 2:
        raise ValueError(f"input_ids must be (prompts, tokens), got {tuple(input_ids.shape)}")
    mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    rows = [ids[seen.bool()][None] for ids, seen in zip(input_ids, mask, strict=True)]
    for place, row in enumerate(rows):
        if not row.shape[1]:
            raise ValueError(f"prompt {place} is empty; give at least one token (a beginning-of-text token will do)")
    if not rows:
        raise ValueError("there is no prompt")
    return rows


def settings(
    target: PreTrainedModel,
    config: GenerationConfig | None,
    criteria: Sequence[Criterion] | None,
    processors: Sequence[Warper] | None,
    *,
    prompt: int,
) -> tuple[Ending, Sampling, int]:
    """A generation configuration, for a prompt of `prompt` tokens, as when to end, how to choose, and what to pad with.

    Raises
    ------
    ValueError
        If it asks for what is not followed here.
    """
    own = target.generation_config
    config = copy.deepcopy(own if config is None else config)
    assert config is not None
    # What is off says nothing: false, zero, or not given.
    asked = {name: value for name, value in config.to_diff_dict().items() if value and not name.startswith("_")}
    unknown = sorted(set(asked) - HONOURED)
    if unknown or asked.get("num_beams", 1) != 1 or asked.get("num_return_sequences", 1) != 1:
        named = unknown[0] if unknown else "num_beams" if asked.get("num_beams", 1) != 1 else "num_return_sequences"
        raise ValueError(f"the setting {named}={asked[named]!r} is not followed in speculative decoding; leave it out")
    stops = config.eos_token_id if config.eos_token_id is not None else getattr(own, "eos_token_id", None)
    ends = [] if stops is None else [stops] if isinstance(stops, int) else list(stops)
    budget = DEFAULT_NEW_TOKENS if config.max_length is None else config.max_length - prompt
    budget = budget if config.max_new_tokens is None else config.max_new_tokens
    if budget < 1:
        raise ValueError(f"{budget} new tokens are asked for; give max_new_tokens of 1 or more")
    sampling = Sampling(
        do_sample=bool(config.do_sample),
        temperature=1.0 if config.temperature is None else config.temperature,
        top_k=config.top_k if config.top_k is not None else 50 if config.do_sample else 0,
        top_p=1.0 if config.top_p is None else config.top_p,
        repetition_penalty=1.0 if config.repetition_penalty is None else config.repetition_penalty,
        processors=tuple(processors or ()),
        dtype=torch.float64 if target.dtype == torch.float64 else torch.float32,
    )
    pad = config.pad_token_id if config.pad_token_id is not None else (ends[0] if ends else 0)
    return Ending(budget, frozenset(ends), tuple(criteria or ())), sampling, int(pad)


def check_pair(target: PreTrainedModel, drafter: DFlashDrafter) -> None:
    """Refuse a drafter of another target.

    Raises
    ------
    ValueError
        If width, vocabulary, or the recorded hash of the target differ.
    """
    config, (vocabulary, width) = drafter.config, head_of(target).weight.shape
    if config.hidden_size != width or config.vocab_size != vocabulary:
        raise ValueError(
            f"the drafter is for a target of width {config.hidden_size} and {config.vocab_size} tokens, this one has "
            f"{width} and {vocabulary}; train a drafter for it"
        )
    if config.target_digest is not None and config.target_digest != (found := target_digest(target)):
        raise ValueError(
            f"the drafter was trained for another target (hash {config.target_digest}, this one's is {found}); "
            "train one for this target, or load the target it belongs to"
        )
