"""Responses by the target itself: what a drafter learns from, since the drafter must guess what *this* model would say.

Rows of a batch are answers of different age. Keys and values lie in tensors allocated once, a row each; the rows alive are always the
first ones, and a row that is finished is filled with the next prompt. So a step costs one forward of the target for as many tokens as
there are rows alive, and nothing is copied but the row that moves into a gap.

Responses go to a folder in parts, each whole or not there. A run that is killed at any moment goes on where the last part ended.

>>> from upheld.speculative.responses import load_responses, regenerate
>>> regenerate(network, tokenizer, training_set(), Path("responses"), minutes=60)        # doctest: +SKIP
>>> sum(len(response.tokens) for response in load_responses(Path("responses")))          # doctest: +SKIP
312844
"""

from __future__ import annotations

import hashlib
import inspect
import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache

from upheld.speculative.data import Prompt
from upheld.speculative.taps import target_digest
from upheld.storage import whole_file

RECIPE = "recipe.json"

PROMPT_TOKENS = {"cpu": 512, "cuda": 16384}
"""Tokens of prompts read in one forward: on a processor more no longer fit the caches, and take longer each."""


@dataclass(frozen=True)
class Response:
    """What the target answered.

    Parameters
    ----------
    tokens : (n,) prompt, then response, the token that ended it included
    prompt_tokens : how many of them are the prompt's
    temperature : at which it was drawn; 0 is the likeliest token each time
    group : of its prompt; groups are not parted between training and testing
    """

    tokens: NDArray[np.int64]
    prompt_tokens: int
    temperature: float
    group: str


@dataclass(frozen=True)
class Progress:
    """How far a generation is: responses and response tokens in the folder, of how many responses, in how many seconds of this run."""

    responses: int
    tokens: int
    planned: int
    seconds: float


def regenerate(
    target: PreTrainedModel,
    tokenizer: Any,
    prompts: Sequence[Prompt],
    folder: Path,
    *,
    temperatures: Sequence[float] = (0.0, 1.0),
    max_new_tokens: int = 128,
    rows: int = 64,
    seed: int = 0,
    minutes: float = float("inf"),
    tokens: int | None = None,
    part_seconds: float = 60.0,
    told: Callable[[Progress], None] | None = None,
) -> Progress:
    """Let the target answer every prompt at every temperature, into `folder`; what is there already is not made again.

    Parameters
    ----------
    target : a causal language model, on any device, in any dtype
    tokenizer : the target's
    prompts : answered in their order, each at all temperatures
    folder : of this recipe alone
    rows : answers at once
    seed : of all sampling; a response depends on it, its prompt and its temperature (and, through rounding, on its batch)
    minutes : of this run; what is finished by then is kept
    tokens : response tokens after which the folder is full enough
    part_seconds : how much work a kill may cost at most

    Raises
    ------
    ValueError
        If the folder holds responses of another recipe, or the model's cache is none of keys and values in every layer.
    """
    started = time.monotonic()
    encoded = [prompt.ids(tokenizer) for prompt in prompts]
    ends = end_tokens(target)
    recipe = {
        "target": target_digest(target), "prompts": _digest(encoded), "temperatures": list(temperatures),
        "max_new_tokens": max_new_tokens, "seed": seed, "dtype": str(target.dtype).removeprefix("torch."),
    }  # fmt: skip
    _open(folder, recipe)
    done = _answered(folder)
    requests = deque(
        _Request(number, encoded[number // len(temperatures)], temperature, prompt.group, max_new_tokens, seed)
        for number, (prompt, temperature) in enumerate(product(prompts, temperatures))
        if number not in done
    )
    planned, made = len(prompts) * len(temperatures), sum(done.values())
    waiting: list[_Request] = []
    last = time.monotonic()
    for request in _write(target, requests, rows, ends):
        if request is not None:
            waiting.append(request)
            done[request.number] = len(request.tokens) - request.prompt_tokens
            made += done[request.number]
        now = time.monotonic()
        over = now - started > 60 * minutes or (tokens is not None and made >= tokens)
        if waiting and (over or now - last > part_seconds):
            _keep(folder, waiting)
            waiting, last = [], now
            if told:
                told(Progress(len(done), made, planned, now - started))
        if over:
            break
    if waiting:
        _keep(folder, waiting)
    progress = Progress(len(done), made, planned, time.monotonic() - started)
    if told:
        told(progress)
    return progress


def load_responses(folder: Path) -> list[Response]:
    """All responses in a folder, in the order of their prompts.

    Raises
    ------
    ValueError
        If the folder holds none.
    """
    found: dict[int, Response] = {}
    for part in sorted(folder.glob("part-*.npz")):
        with np.load(part) as arrays:
            edges = arrays["edges"]
            for row, number in enumerate(arrays["number"].tolist()):
                found[number] = Response(
                    arrays["tokens"][edges[row] : edges[row + 1]].astype(np.int64), int(arrays["prompt_tokens"][row]),
                    float(arrays["temperature"][row]), str(arrays["group"][row]),
                )  # fmt: skip
    if not found:
        raise ValueError(f"the folder {folder} holds no responses; make some first with regenerate")
    return [found[number] for number in sorted(found)]


def end_tokens(target: PreTrainedModel) -> frozenset[int]:
    """Tokens that end an answer, by the model's generation settings."""
    named = target.generation_config.eos_token_id if target.generation_config is not None else None
    named = target.config.eos_token_id if named is None else named
    return frozenset(named if isinstance(named, list) else [] if named is None else [named])


@dataclass
class _Request:
    """An answer in the making."""

    number: int
    tokens: list[int]
    temperature: float
    group: str
    room: int
    seed: int

    def __post_init__(self) -> None:
        self.prompt_tokens = len(self.tokens)
        self.tokens = list(self.tokens)
        # The draws belong to the request: who else is in its batch does not matter.
        self.rng = np.random.default_rng([self.seed, self.number])

    @property
    def longest(self) -> int:
        return self.prompt_tokens + self.room

    def take(self, token: int, ends: frozenset[int]) -> bool:
        """Write a token down; is the answer finished?"""
        self.tokens.append(token)
        return token in ends or len(self.tokens) == self.longest


def _write(
    target: PreTrainedModel, requests: deque[_Request], rows: int, ends: frozenset[int]
) -> Iterator[_Request | None]:
    """Finished answers as they come; None after a step without one."""
    if not requests:
        return
    rows = min(rows, len(requests))
    cache = RowCache(rows, max(request.longest for request in requests))
    step = _Forward(target, cache)
    step.share(_common_beginning([request.tokens[:-1] for request in requests]))
    alive: list[_Request] = []
    while alive or requests:
        # A few free rows are worth waiting for: prompts read together cost less than one by one.
        if requests and rows - len(alive) >= min(max(1, rows // 8), len(requests)):
            fresh = [requests.popleft() for _ in range(min(rows - len(alive), len(requests)))]
            step.read([request.tokens[:-1] for request in fresh], first=len(alive))
            alive += fresh
        logits = step.next([request.tokens[-1] for request in alive], [len(request.tokens) - 1 for request in alive])
        chosen = _draw(logits, alive)
        over = [
            row for row, (request, token) in enumerate(zip(alive, chosen, strict=True)) if request.take(token, ends)
        ]
        for row in reversed(over):
            yield alive[row]
            cache.move(len(alive) - 1, row)
            alive[row] = alive[-1]
            alive.pop()
        if not over:
            yield None


def _common_beginning(prompts: Sequence[list[int]]) -> list[int]:
    least, greatest = min(prompts), max(prompts)
    same = next(
        (i for i, (a, b) in enumerate(zip(least, greatest, strict=False)) if a != b), min(len(least), len(greatest))
    )
    return least[:same]


def _draw(logits: Tensor, alive: Sequence[_Request]) -> list[int]:
    """A token a row: the likeliest, or by inversion of the cumulative probabilities at one uniform number of the request's own."""
    tokens = logits.argmax(dim=-1).tolist()
    hot = [row for row, request in enumerate(alive) if request.temperature > 0]
    if hot:
        temperature = torch.tensor([alive[row].temperature for row in hot], device=logits.device)[:, None]
        mass = (logits[hot].float() / temperature).softmax(dim=-1).cumsum(dim=-1)
        uniform = torch.tensor([alive[row].rng.random() for row in hot], dtype=mass.dtype, device=mass.device)[:, None]
        # Rounding leaves the total a little off one: the uniform number is scaled to it.
        drawn = torch.searchsorted(mass, uniform * mass[:, -1:], right=True).clamp(max=mass.shape[1] - 1)
        for row, token in zip(hot, drawn[:, 0].tolist(), strict=True):
            tokens[row] = token
    return tokens


class RowCache(Cache):
    """Keys and values of rows that are not equally long, in tensors allocated once.

    Parameters
    ----------
    rows, longest : size of the tensors, which are made when the first keys come
    """

    def __init__(self, rows: int, longest: int) -> None:
        # The layers of the base class are not used: a layer here is a pair of tensors, and every layer is as long as the others.
        super().__init__(layers=[])
        self.rows, self.longest = rows, longest
        self.stored: list[tuple[Tensor, Tensor]] = []
        self.reading: slice | None = None
        self.places = torch.zeros(0, dtype=torch.long)
        self.start = self.width = 0

    def read_into(self, rows: slice, start: int) -> None:
        """What comes next are prompts, from their token `start` on, into these rows."""
        self.reading, self.start = rows, start

    def share(self, length: int) -> None:
        """Let every row begin with the first `length` positions of row 0, for good."""
        for keys, values in self.stored:
            keys[1:, :, :length] = keys[:1, :, :length]
            values[1:, :, :length] = values[:1, :, :length]

    def append_at(self, places: Tensor, width: int) -> None:
        """What comes next is one token a row of the first len(places) rows, at these places, all below `width`."""
        self.reading, self.places, self.width = None, places, width

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        if layer_idx == len(self.stored):
            heads = key_states.shape[1]
            sizes = [(self.rows, heads, self.longest, states.shape[-1]) for states in (key_states, value_states)]
            self.stored.append((key_states.new_zeros(sizes[0]), value_states.new_zeros(sizes[1])))
        keys, values = self.stored[layer_idx]
        if self.reading is not None:
            until = self.start + key_states.shape[2]
            keys[self.reading, :, self.start : until] = key_states
            values[self.reading, :, self.start : until] = value_states
            return keys[self.reading, :, :until], values[self.reading, :, :until]
        alive = torch.arange(len(self.places), device=self.places.device)
        keys[alive, :, self.places] = key_states[:, :, 0]
        values[alive, :, self.places] = value_states[:, :, 0]
        return keys[: len(alive), :, : self.width], values[: len(alive), :, : self.width]

    def move(self, source: int, goal: int) -> None:
        """Let the row `source` take the place of `goal`."""
        if source != goal:
            for keys, values in self.stored:
                keys[goal] = keys[source]
                values[goal] = values[source]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0


class _Forward:
    """Forwards of the target over the rows of a cache."""

    def __init__(self, target: PreTrainedModel, cache: RowCache) -> None:
        self.target, self.cache, self.device, self.shared = target, cache, target.device, 0
        understands = inspect.signature(target.forward).parameters
        self.cache_name = "cache" if "cache" in understands else "past_key_values"

    def share(self, beginning: Sequence[int]) -> None:
        """Read once what all prompts begin with (most chat templates put a system's turn first)."""
        if beginning:
            self._read([beginning], first=0)
            self.cache.share(len(beginning))
            self.shared = len(beginning)

    def read(self, prompts: Sequence[Sequence[int]], first: int) -> None:
        """Prompts into the rows from `first` on."""
        longest = max(map(len, prompts)) - self.shared
        if longest > 0:
            some = max(1, PROMPT_TOKENS.get(self.device.type, 512) // longest)
            for start in range(0, len(prompts), some):
                self._read([prompt[self.shared :] for prompt in prompts[start : start + some]], first + start)

    @torch.no_grad()
    def _read(self, prompts: Sequence[Sequence[int]], first: int) -> None:
        # They end at different places; what is written beyond is masked until the answer writes over it.
        longest = max(map(len, prompts))
        if longest == 0:
            return
        ids = torch.tensor([[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts], device=self.device)
        mask = torch.ones(longest, self.shared + longest, dtype=torch.bool, device=self.device).tril(self.shared)
        places = torch.arange(self.shared, self.shared + longest, device=self.device)[None].expand(len(prompts), -1)
        self.cache.read_into(slice(first, first + len(prompts)), self.shared)
        self._call(ids, mask.expand(len(prompts), 1, -1, -1), places)

    @torch.no_grad()
    def next(self, tokens: Sequence[int], places: Sequence[int]) -> Tensor:
        """(rows, V) logits after one more token a row."""
        at = torch.tensor(places, device=self.device)
        width = max(places) + 1
        mask = (torch.arange(width, device=self.device)[None] <= at[:, None])[:, None, None]
        self.cache.append_at(at, width)
        logits: Tensor = self._call(torch.tensor(tokens, device=self.device)[:, None], mask, at[:, None])
        return logits[:, -1]

    def _call(self, ids: Tensor, mask: Tensor, places: Tensor) -> Tensor:
        options = {self.cache_name: self.cache}
        # Keys and values alone are wanted of a prompt, so one row of logits is enough there too.
        out = self.target(
            input_ids=ids, attention_mask=mask, position_ids=places, use_cache=True, logits_to_keep=1, **options
        )
        found: Tensor = out.logits
        return found


def _open(folder: Path, recipe: dict[str, Any]) -> None:
    path = folder / RECIPE
    if path.is_file():
        there = json.loads(path.read_text(encoding="utf-8"))
        other = sorted(key for key in recipe if there.get(key) != recipe[key])
        if other:
            raise ValueError(
                f"the folder {folder} holds responses of another recipe ({', '.join(other)} differ); take another folder, or empty it"
            )
        return
    with whole_file(path) as file:
        json.dump(recipe, file, indent=1)


def _answered(folder: Path) -> dict[int, int]:
    """Requests that the folder holds answers of, with their numbers of response tokens."""
    found: dict[int, int] = {}
    for part in sorted(folder.glob("part-*.npz")):
        with np.load(part) as arrays:
            made = np.diff(arrays["edges"]) - arrays["prompt_tokens"]
            found.update(zip(arrays["number"].tolist(), made.tolist(), strict=True))
    return found


def _keep(folder: Path, finished: Sequence[_Request]) -> None:
    # Named after its content: parts of a run that was killed and of the one that goes on never meet.
    name = f"part-{min(r.number for r in finished):07d}-{_digest([[r.number for r in finished]])[:8]}.npz"
    with whole_file(folder / name, "wb") as file:
        np.savez_compressed(
            file,
            number=np.array([request.number for request in finished]),
            tokens=np.concatenate([np.array(request.tokens, dtype=np.int32) for request in finished]),
            edges=np.cumsum([0] + [len(request.tokens) for request in finished]),
            prompt_tokens=np.array([request.prompt_tokens for request in finished]),
            temperature=np.array([request.temperature for request in finished]),
            group=np.array([request.group for request in finished]),
        )


def _digest(rows: Sequence[Sequence[int]]) -> str:
    return hashlib.sha256(json.dumps([list(map(int, row)) for row in rows]).encode()).hexdigest()[:16]
