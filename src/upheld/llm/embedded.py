"""A causal language model on the own machine: the one that comes as a package, or any in a folder.

>>> from upheld.llm import EmbeddedModel, Sampling                  # doctest: +SKIP
>>> from upheld.llm.model_files import smollm2
>>> model = EmbeddedModel(smollm2())                                # doctest: +SKIP
>>> model.complete("Gravity is", Sampling(temperature=0, max_tokens=5)).text       # doctest: +SKIP
' a fundamental concept in physics'
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from upheld.llm.answer import Answer, Finish, Message, Request, Sampling, Token, Usage
from upheld.llm.batching import batches
from upheld.llm.drawing import draw, noise_source
from upheld.llm.loading import device_for, dtype_for, load_network, load_tokenizer
from upheld.llm.model import LanguageModel, Told, gathered
from upheld.llm.model_files import ModelFiles, local
from upheld.llm.transcript import Transcript

Prompt = str | Sequence[Message]

POSITION_WEIGHT = 16
"""A place whose log-probabilities are kept holds the whole vocabulary: it weighs as much as so many tokens that are only read."""


class EmbeddedModel(LanguageModel):
    """A causal model loaded by transformers, in batches.

    An answer depends on its request alone: not on the batch, up to rounding (`upheld.llm.drawing`), and not on how many
    samples are drawn beside it. A seed ties an answer to model, prompt and sampling; it promises nothing across devices or
    number formats, and in bfloat16 rounding is coarse enough that the batch does show now and then.

    Parameters
    ----------
    files : a model package's files, or a folder with configuration, weights and tokenizer
    device : as PyTorch names it; by default a CUDA device where there is one, else the processor
    dtype : ``"float32"``; ``"bfloat16"`` takes half the memory, and on some processors less time
    batch_tokens : bound on answers at once times the longest of them, prompt counted; with SmolLM2 a thousand are 46 MB
        (float32)

    Attributes
    ----------
    network : the `transformers.PreTrainedModel`, ready for use, no gradients
    tokenizer : the `transformers.PreTrainedTokenizerBase` that belongs to it
    limit : longest prompt and answer together, in tokens (None: the configuration does not say)

    Raises
    ------
    ValueError
        If the folder holds no model, or no causal one.
    """

    network: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase

    def __init__(
        self,
        files: ModelFiles | str | Path,
        *,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype = "float32",
        batch_tokens: int = 16384,
    ) -> None:
        files = files if isinstance(files, ModelFiles) else local(files)
        number = dtype_for(dtype)
        self.id = f"{files.id}:{str(number).removeprefix('torch.')}"
        self.tokenizer = load_tokenizer(files.folder)
        kind = transformers.AutoModelForCausalLM
        self.network = load_network(kind, files.folder, dtype=number, device=device_for(device))
        self.limit: int | None = getattr(self.network.config, "max_position_embeddings", None)
        self._batch_tokens = batch_tokens
        self._understands = frozenset(inspect.signature(self.network.forward).parameters)
        # Older releases of transformers know the keys and values under their second name alone.
        self._cache_name = "cache" if "cache" in self._understands else "past_key_values"
        self._ends = _end_tokens(self.network, self.tokenizer)

    def answers(self, requests: Sequence[Request], told: Told | None = None) -> list[Answer]:
        """One answer a request, in their order.

        Raises
        ------
        ValueError
            If a prompt leaves no room for an answer, or the model has no chat template and is asked to chat.
        """
        return gathered(self.each(requests), len(requests), told)

    def each(self, requests: Sequence[Request]) -> Iterator[tuple[int, Answer]]:
        """Answers as they are finished, each with the place of its request."""
        drafts = [self._draft(request, place) for place, request in enumerate(requests)]
        for batch in batches([draft.longest for draft in drafts], tokens=self._batch_tokens):
            for finished in self._write([drafts[place] for place in batch]):
                for draft in finished:
                    yield draft.place, draft.answer(self.id)

    def stream(self, request: Request) -> Iterator[str]:
        """The answer piece by piece; what may be the beginning of a stop string is held back until it is none."""
        draft = self._draft(request, 0)
        given = 0
        for _ in self._write([draft]):
            text = draft.transcript.settled if draft.finish is None else draft.transcript.text
            if len(text) > given:
                yield text[given:]
                given = len(text)

    def logprobs_of(self, prompt: Prompt, continuation: str, *, alternatives: int = 0) -> tuple[Token, ...]:
        """How likely the model finds a given continuation: its tokens with their natural log-probabilities.

        Parameters
        ----------
        prompt : a text to go on with as it is, or a conversation, whose next turn the continuation is
        alternatives : how many of the likeliest tokens at each place are given too

        Examples
        --------
        >>> tokens = model.logprobs_of("The capital of France is", " Paris")      # doctest: +SKIP
        >>> perplexity = math.exp(-statistics.fmean(token.logprob for token in tokens))      # doctest: +SKIP
        """
        return self.logprobs_of_each([(prompt, continuation)], alternatives=alternatives)[0]

    def logprobs_of_each(
        self, pairs: Sequence[tuple[Prompt, str]], *, alternatives: int = 0, told: Told | None = None
    ) -> list[tuple[Token, ...]]:
        """`logprobs_of` of many (prompt, continuation) pairs, in batches.

        Raises
        ------
        ValueError
            If a continuation is empty, or prompt and continuation are longer than the model reads.
        """
        prompts = [self._prompt_tokens(prompt) for prompt, _ in pairs]
        texts = [self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"] for _, text in pairs]
        for number, (prompt, text) in enumerate(zip(prompts, texts, strict=True)):
            if not text:
                raise ValueError(f"the continuation of pair {number} is empty; it has no log-probabilities")
            if self.limit is not None and len(prompt) + len(text) > self.limit:
                raise ValueError(
                    f"pair {number} is {len(prompt) + len(text)} tokens long, the model reads {self.limit}; shorten it"
                )
        weights = [
            max(len(prompt) + len(text), POSITION_WEIGHT * (len(text) + 1))
            for prompt, text in zip(prompts, texts, strict=True)
        ]
        found: list[tuple[Token, ...]] = [()] * len(pairs)
        done = 0
        for batch in batches(weights, tokens=self._batch_tokens):
            keep = 1 + max(len(texts[place]) for place in batch)
            ids, mask = _left_padded([prompts[place] + texts[place] for place in batch], self.network.device)
            logits, _ = self._forward(ids, mask, keep=keep)
            for row, place in enumerate(batch):
                size = len(texts[place])
                found[place] = self._tokens(logits[row, -size - 1 : -1], texts[place], alternatives)
            done += len(batch)
            if told:
                told(done, len(pairs))
        return found

    def _draft(self, request: Request, place: int) -> _Draft:
        prompt = self._prompt_tokens(request.prompt if request.prompt is not None else request.messages)
        sampling = request.sampling
        room = sampling.max_tokens if self.limit is None else min(sampling.max_tokens, self.limit - len(prompt))
        if room < 1:
            raise ValueError(f"the prompt of request {place} is {len(prompt)} tokens long, and the model reads {self.limit}; "
                             "shorten it to leave room for the answer")  # fmt: skip
        rng = noise_source(sampling.seed, prompt)
        return _Draft(place, sampling, prompt, room, rng, Transcript(self.tokenizer, sampling.stop))

    def _prompt_tokens(self, prompt: Prompt) -> list[int]:
        if isinstance(prompt, str):
            ids = self.tokenizer(prompt, verbose=False)["input_ids"]
            return ids or [min(self._ends) if self.tokenizer.bos_token_id is None else self.tokenizer.bos_token_id]
        if not self.tokenizer.chat_template:
            raise ValueError(f"{self.id} has no chat template, so it cannot chat; let it complete a text")
        turns = [{"role": message.role, "content": message.content} for message in prompt]
        encoded: Any = self.tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=True)
        return list(encoded["input_ids"])

    def _write(self, drafts: list[_Draft]) -> Iterator[list[_Draft]]:
        """Let every draft grow by a token a step; yields those that are finished by it, which leave the batch."""
        ids, mask = _left_padded([draft.prompt for draft in drafts], self.network.device)
        cache = None
        while drafts:
            logits, cache = self._forward(ids, mask, cache=cache)
            last = logits[:, -1]
            samplings = [draft.sampling for draft in drafts]
            chosen = draw(
                last, [s.temperature for s in samplings], [s.top_p for s in samplings], [d.rng for d in drafts]
            )
            for row, (draft, token) in enumerate(zip(drafts, chosen.tolist(), strict=True)):
                self._take(draft, token, last[row])
            going_on = [row for row, draft in enumerate(drafts) if draft.finish is None]
            yield [draft for draft in drafts if draft.finish is not None]
            if going_on and len(going_on) < len(drafts):
                rows = torch.tensor(going_on, device=mask.device)
                cache.batch_select_indices(rows)
                chosen, mask = chosen[rows], mask[rows]
            drafts = [drafts[row] for row in going_on]
            ids = chosen[:, None]
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)

    def _take(self, draft: _Draft, token: int, logits: Tensor) -> None:
        """Write a drawn token down, and see whether the answer ends with it."""
        draft.drawn += 1
        if token in self._ends:
            draft.finish = "stop"
        else:
            draft.transcript.add(token)
            if draft.sampling.logprobs is not None:
                draft.tokens += self._tokens(logits[None], [token], draft.sampling.logprobs)
            if draft.transcript.stopped:
                draft.finish = "stop"
            elif draft.drawn == draft.room:
                draft.finish = "length"
        if draft.finish is not None:
            draft.transcript.end()

    def _tokens(self, logits: Tensor, tokens: Sequence[int], alternatives: int) -> tuple[Token, ...]:
        """(n, V) logits and the n tokens that came -> what is told of them: the model's own law, before temperature and top-p."""
        logprobs = logits.log_softmax(dim=-1)
        own = logprobs[range(len(tokens)), tokens].tolist()
        best, places = logprobs.topk(alternatives, dim=-1)
        return tuple(
            Token(self._spell(token), value, tuple(zip(map(self._spell, others), values, strict=True)))
            for token, value, others, values in zip(tokens, own, places.tolist(), best.tolist(), strict=True)
        )

    def _spell(self, token: int) -> str:
        return str(self.tokenizer.decode([token], clean_up_tokenization_spaces=False))

    @torch.inference_mode()
    def _forward(self, ids: Tensor, mask: Tensor, *, cache: Any = None, keep: int = 1) -> tuple[Tensor, Any]:
        """(B, keep, V) logits in float32 at the last `keep` places, and the keys and values of all."""
        places = (mask.cumsum(dim=-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        options = {self._cache_name: cache, "position_ids": places, "logits_to_keep": keep}
        options = {name: value for name, value in options.items() if name in self._understands}
        out = self.network(input_ids=ids, attention_mask=mask, use_cache=True, **options)
        return out.logits[:, -keep:].float(), out[self._cache_name]


@dataclass
class _Draft:
    """An answer in the making."""

    place: int
    sampling: Sampling
    prompt: list[int]
    room: int
    rng: np.random.Generator
    transcript: Transcript
    tokens: tuple[Token, ...] = ()
    drawn: int = 0
    finish: Finish | None = field(default=None)

    @property
    def longest(self) -> int:
        return len(self.prompt) + self.room

    def answer(self, model: str) -> Answer:
        assert self.finish is not None
        pieces = self.transcript.pieces
        # A token is shown as what it added to the text: half a character adds nothing, and the stop string is cut off.
        tokens = tuple(
            Token(piece, token.logprob, token.alternatives)
            for piece, token in zip(pieces, self.tokens, strict=False)
        )  # fmt: skip
        usage = Usage(len(self.prompt), self.drawn, cost=0.0)
        return Answer(self.transcript.text, self.finish, model, tokens, usage)


def _left_padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """(B, L) tokens and mask, every row ending at the right edge, where the next token is written."""
    longest = max(map(len, rows))
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, tokens in enumerate(rows):
        ids[row, longest - len(tokens) :] = torch.tensor(tokens)
        mask[row, longest - len(tokens) :] = 1
    return ids.to(device), mask.to(device)


def _end_tokens(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Tokens that end an answer: the tokenizer's own, and those of the model's generation settings (one, a list, or none)."""
    named = getattr(network.generation_config, "eos_token_id", None)
    ends = {tokenizer.eos_token_id, *(named if isinstance(named, list) else [named])} - {None}
    if not ends:
        raise ValueError("the model names no token that ends a text; set eos_token_id in its generation_config.json")
    return frozenset(ends)
