"""Tokens drawn from a model's logits, by the Gumbel-max trick.

With logits l, temperature T and independent standard Gumbel noise g (Gumbel 1954; Maddison, Tarlow & Minka 2014)::

    argmax_v (l_v + T g_v)   is distributed as   softmax(l / T)

The noise belongs to the request, not to the batch, and a token keeps its noise whatever its rank. So a request draws the same
token whoever is in its batch: rounding, which does depend on the batch, matters only where two perturbed logits are equal
to within it. T = 0 is the likeliest token, without a special case.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def noise_source(seed: int | None, prompt: Sequence[int]) -> np.random.Generator:
    """Noise of one request: fresh without a seed, else of seed and prompt, so that equal seeds do not tie two prompts together."""
    if seed is None:
        return np.random.default_rng()
    words = np.frombuffer(hashlib.sha256(np.asarray(prompt, dtype=np.int64).tobytes()).digest(), dtype=np.uint32)
    return np.random.default_rng([seed % 2**64, *words.tolist()])


def draw(
    logits: Tensor, temperatures: Sequence[float], top_p: Sequence[float], noise: Sequence[np.random.Generator]
) -> Tensor:
    """(B,) tokens, one a row.

    Parameters
    ----------
    logits : (B, V) float32
    temperatures, top_p, noise : of every row
    """
    perturbed = logits.clone()
    for row, (temperature, share, rng) in enumerate(zip(temperatures, top_p, noise, strict=True)):
        if temperature == 0:
            continue
        if share < 1:
            perturbed[row] = nucleus(logits[row], temperature, share)
        perturbed[row] += temperature * gumbel(rng, logits.shape[1]).to(logits.device)
    return perturbed.argmax(dim=-1)


def gumbel(rng: np.random.Generator, size: int) -> Tensor:
    """(size,) standard Gumbel noise: minus the logarithm of exponential noise, in double precision (single rounds some to infinity)."""
    return torch.from_numpy(-np.log(rng.standard_exponential(size))).float()


def nucleus(logits: Tensor, temperature: float, share: float) -> Tensor:
    """(V,) logits, -inf beyond the likeliest tokens that together reach `share` (Holtzman et al. 2020, section 3.1)."""
    probabilities, order = (logits / temperature).softmax(dim=-1).sort(descending=True)
    before = probabilities.cumsum(dim=-1) - probabilities
    return logits.index_fill(0, order[before >= share], -torch.inf)
