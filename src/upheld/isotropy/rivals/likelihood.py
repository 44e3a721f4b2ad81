"""What the model itself found likely: signals of the log-probabilities it gave its tokens (natural logarithms).

- `perplexity`: mean over the answers of -(1/T) sum_t log p(token_t), in nats a token: the logarithm of the perplexity, which is
  what `lm-polygraph` calls so. Its exponential ranks the same.
- `token_entropy`: mean over the answers and their places of the entropy of the next token, from the likeliest alternatives. What they
  leave of the probability counts as one more alternative, so with few of them this is a lower bound.

They look at each answer by itself, not at whether the answers agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import entr

Alternatives = Mapping[str, float]

ROUNDING = 1e-3  # of the server's numbers: a float16 softmax gives a shade more than probability 1


def perplexity(logprobs: Sequence[Sequence[float]]) -> float:
    """Mean over answers of the mean negative log-probability of their tokens.

    Parameters
    ----------
    logprobs : for each answer, the log-probability of each of its tokens, at most 0

    Raises
    ------
    ValueError
        If an answer has no tokens, or a log-probability is no finite number below 0; names answer and token.

    Examples
    --------
    >>> perplexity([[-1.0, -3.0], [-4.0]])
    3.0
    """
    return float(np.mean([-np.mean(_checked(tokens, i)) for i, tokens in enumerate(logprobs)]))


def token_entropy(alternatives: Sequence[Sequence[Alternatives]]) -> float:
    """Mean over answers of the mean entropy, in nats, of what could have stood in each place.

    Parameters
    ----------
    alternatives : for each answer, for each of its places, the log-probabilities of the likeliest tokens, by token

    Examples
    --------
    >>> round(token_entropy([[{"a": -0.6931472, "b": -0.6931472}, {"a": 0.0}]]), 6)
    0.346574
    """
    return float(
        np.mean(
            [
                np.mean([_place_entropy(place, i, t) for t, place in enumerate(_nonempty(places, i))])
                for i, places in enumerate(alternatives)
            ]
        )
    )


def _place_entropy(place: Alternatives, i: int, t: int) -> float:
    if not isinstance(place, Mapping) or not place:
        raise ValueError(
            f"token {t} of answer {i} must be a non-empty mapping from token to log-probability, got {place!r}"
        )
    p = np.exp(_checked(list(place.values()), i))
    total = p.sum()
    if total > 1 + ROUNDING:
        raise ValueError(f"alternatives of token {t} of answer {i} have probability {total:.3f} together, more than 1")
    return float(entr(p).sum() + entr(max(0.0, 1.0 - total)))


def _checked(tokens: Sequence[float], i: int) -> np.ndarray:
    values = np.asarray(_nonempty(tokens, i), dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(values) & (values <= ROUNDING)))
    if len(bad):
        raise ValueError(
            f"log-probability of token {bad[0]} of answer {i} is {values[bad[0]]:g}; it must be finite and at most 0"
        )
    return np.minimum(values, 0.0)


def _nonempty(tokens: Sequence, i: int) -> Sequence:  # type: ignore[type-arg]
    if not len(tokens):
        raise ValueError(f"answer {i} has no tokens; leave out its log-probabilities, or the answer")
    return tokens
