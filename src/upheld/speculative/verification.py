"""Which drafted tokens stand, so that the text has the target's own law.

With p_k the target's law of the k-th token given the drafts before it, and q_k the law that draft d_k was drawn from
(Leviathan, Kalman & Matias 2023; Chen et al. 2023)::

    accept d_k with probability min(1, p_k(d_k) / q_k(d_k))                                             (1)
    at the first rejection draw from (p_k - q_k)_+ / sum (p_k - q_k)_+                                   (2)
    if all B - 1 are accepted, draw one more from p_B                                                    (3)

Exact for any q_k that does not depend on d_k itself; a block drafter's q_k depends on no draft at all. The share accepted is
1 - TV(p, q) with (1), and sum p q where a draft is only accepted if the target draws the same (`match`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor
from transformers import (
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

LEAST_TEMPERATURE = 1e-6
"""Below it the likeliest token is drawn as surely as numbers of 32 bits can tell, and not much further logits overflow."""

Verify = Literal["rejection", "match"]
Warper = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Draft:
    """What was proposed after an anchor.

    Parameters
    ----------
    tokens : (b, k) ids in the target's vocabulary, drawn from `law`
    law : (b, k, K) the probabilities they were drawn from; None: every draft is the only one there was (a point mass)
    ids : (K,) the target's ids of the law's entries; None: K = V, all of them
    """

    tokens: Tensor
    law: Tensor | None = None
    ids: Tensor | None = None


@dataclass(frozen=True)
class Sampling:
    """What is done with logits before a token is taken, in the order of transformers.

    Parameters
    ----------
    do_sample : draw, or take the likeliest
    temperature, top_k, top_p : warp the laws of target and drafter alike (0 and 1 leave top_k and top_p out)
    repetition_penalty, processors : see the text so far, so they act on the target's law only; row k sees the drafts before k.
        A processor takes (1, n) ids and (1, V) scores, as those of transformers do
    dtype : in which the laws are compared
    """

    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    processors: Sequence[Warper] = ()
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        if self.do_sample and not LEAST_TEMPERATURE <= self.temperature < math.inf:
            raise ValueError(
                f"temperature must be a number of at least {LEAST_TEMPERATURE:g} to sample, got {self.temperature}; "
                "for the likeliest token take do_sample=False"
            )
        if not 0 < self.top_p <= 1 or self.top_k < 0:
            raise ValueError(f"top_p must lie in (0, 1] and top_k be 0 or more, got {self.top_p} and {self.top_k}")
        if not self.repetition_penalty > 0:
            raise ValueError(f"repetition_penalty must be positive, got {self.repetition_penalty}")

    def rows(self, text: Tensor, drafts: Tensor, logits: Tensor) -> Tensor:
        """(1, n) text, (1, k) drafts, (1, k + 1, V) logits -> the logits after all that depends on the text.

        Row i is the target's answer to the text and the first i drafts.
        """
        if self.repetition_penalty == 1 and not self.processors:
            return logits
        chain: list[Warper] = []
        if self.repetition_penalty != 1:
            chain.append(RepetitionPenaltyLogitsProcessor(self.repetition_penalty))
        chain += self.processors
        whole = torch.cat([text, drafts], dim=1)
        found = []
        for row in range(logits.shape[1]):
            seen, scores = whole[:, : text.shape[1] + row], logits[:, row].to(self.dtype)
            for process in chain:
                scores = process(seen, scores)
            found.append(scores)
        return torch.stack(found, dim=1)

    def law(self, logits: Tensor) -> Tensor:
        """(..., V) logits -> probabilities after temperature, top-k and top-p."""
        scores = logits.to(self.dtype).flatten(0, -2)
        nothing = torch.empty(len(scores), 0, dtype=torch.long, device=scores.device)
        for warp in self.warpers(scores.shape[-1]):
            scores = warp(nothing, scores)
        return scores.softmax(-1).view(logits.shape)

    def warpers(self, vocabulary: int) -> list[Warper]:
        """Those of transformers that stand for temperature, top_k and top_p, in its order."""
        found: list[Warper] = []
        if self.temperature != 1:
            found.append(TemperatureLogitsWarper(float(self.temperature)))
        if 0 < self.top_k < vocabulary:
            found.append(TopKLogitsWarper(self.top_k))
        if self.top_p < 1:
            found.append(TopPLogitsWarper(self.top_p))
        return found


class Verifier(Protocol):
    """(b, k) drafts and (b, k + 1, V) laws of the target -> (b,) numbers accepted, (b,) the token after them."""

    def __call__(self, draft: Draft, target: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]: ...


def greedy(drafts: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
    """Accept while the draft is the target's likeliest token; then that token.

    Examples
    --------
    >>> logits = torch.eye(4)[None, [2, 1, 3]]
    >>> greedy(torch.tensor([[2, 0]]), logits)
    (tensor([1]), tensor([1]))
    """
    return _agreeing(drafts, logits.argmax(-1))


def match(draft: Draft, target: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Draw from the target at every row, accept while the draft is what was drawn."""
    return _agreeing(draft.tokens, draw(target, generator))


def rejection(draft: Draft, target: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Equations (1) to (3); of no drafts at all, (3) alone."""
    batch, size = draft.tokens.shape
    if not size:
        return torch.zeros(batch, dtype=torch.long, device=target.device), draw(target[:, 0], generator)
    p = target[:, :size].gather(-1, draft.tokens[..., None])[..., 0]
    q = torch.ones_like(p) if draft.law is None else _own(draft)
    u = torch.rand(p.shape, generator=generator, device=p.device, dtype=p.dtype)
    accepted = _run_length(u * q < p)
    rows = torch.arange(batch, device=p.device)
    after = target[rows, accepted]
    # For all rows, rejected or not: to ask which would be to wait for the device.
    left = residual(after, draft, rows, accepted.clamp(max=size - 1))
    return accepted, draw(torch.where((accepted < size)[:, None], left, after), generator)


def residual(p: Tensor, draft: Draft, rows: Tensor, at: Tensor) -> Tensor:
    """(b, V) the law (2) of the token that takes the place of draft `at`; p itself where nothing numerically remains."""
    left = p.clone()
    if draft.law is None:
        left[rows, draft.tokens[rows, at]] = 0
    elif draft.ids is None:
        left = (left - draft.law[rows, at]).clamp(min=0)
    else:
        left[:, draft.ids] = (left[:, draft.ids] - draft.law[rows, at].to(left.dtype)).clamp(min=0)
    total = left.sum(-1, keepdim=True)
    return torch.where(total > 0, left / total.clamp(min=torch.finfo(left.dtype).tiny), p)


def draw(law: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """(..., V) probabilities -> (...,) tokens, by inversion: one random number a token, where `torch.multinomial` takes V.

    The sums are taken in float64, in which the rounding of a long vocabulary's is far below any probability that matters.
    """
    sums = law.flatten(0, -2).to(torch.float64).cumsum(-1)
    u = torch.rand(len(sums), 1, generator=generator, device=law.device, dtype=torch.float64) * sums[:, -1:]
    # The first sum above u: tokens of probability zero have none of their own.
    return torch.searchsorted(sums, u, right=True).clamp(max=law.shape[-1] - 1).view(law.shape[:-1])


def _own(draft: Draft) -> Tensor:
    """(b, k) q_k(d_k)."""
    assert draft.law is not None
    places = draft.tokens if draft.ids is None else torch.searchsorted(draft.ids, draft.tokens)
    return draft.law.gather(-1, places[..., None])[..., 0]


def _agreeing(drafts: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    accepted = _run_length(drafts == chosen[:, : drafts.shape[1]])
    return accepted, chosen.gather(1, accepted[:, None])[:, 0]


def _run_length(passed: Tensor) -> Tensor:
    """(b, k) truths -> (b,) how many come before the first falsehood."""
    return passed.long().cumprod(-1).sum(-1)


VERIFIERS: dict[str, Verifier] = {"rejection": rejection, "match": match}
