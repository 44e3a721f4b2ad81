"""Adaptive sampling: no more answers than a decision about the prompt needs.

The user decides at a threshold, which was chosen for the score of m answers. Scores of different numbers of answers do
not compare, so with n >= m answers drawn the figure set against it is the mean score of m of them::

    U_n = mean over the subsets A of {1..n} with |A| = m of score(A),       E U_n = E score(m answers) at every n   (1)
    se_n = sqrt((n - 1)/n sum_i (U_(-i) - mean U_(-i))^2),                  U_(-i): the subsets without i           (2)

(the score's own jackknife at n = m). Drawing stops at the first n with |U_n - threshold| > z se_n, or at n_max. One
looks after every answer, so the interval errs somewhat more often than its nominal level: it allots effort, and is no
test. The number of subsets is kept below 2,000 by a seeded choice among them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from upheld.isotropy.result import IsotropyResult, IsotropyWarning
from upheld.isotropy.sampling import SampledResponses, draw_range
from upheld.llm import LanguageModel

FloatArray = NDArray[np.float64]

MAX_SUBSETS = 2000


class Scorer(Protocol):
    """What is needed of `SemanticIsotropy`."""

    def explain(self, group: Sequence[str], /, *, prompt: str | None = None) -> IsotropyResult: ...

    def score_samples(self, groups: Sequence[FloatArray], /) -> FloatArray: ...


@dataclass(frozen=True)
class Look:
    """What was known once `n` answers were there: U_n of (1) and se_n of (2)."""

    n: int
    score: float
    se: float


@dataclass(frozen=True)
class AdaptiveSample:
    """Outcome of `sample_until`.

    Attributes
    ----------
    verdict : "below" or "above" the threshold, "undecided" if the interval held it to the end
    score, se : U_n and se_n at the last look
    responses : the answers drawn; result : all about them, at their own n
    looks : one an answer from n_min on
    calls_saved : answers that n_max would have cost besides
    """

    verdict: Literal["below", "above", "undecided"]
    score: float
    se: float
    threshold: float
    responses: SampledResponses
    result: IsotropyResult
    looks: tuple[Look, ...]
    calls_saved: int


def sample_until(
    client: LanguageModel,
    scorer: Scorer,
    prompt: str,
    threshold: float,
    n_min: int = 3,
    n_max: int = 20,
    *,
    level: float = 0.95,
    temperature: float = 0.7,
    max_tokens: int = 700,
    seed: int | None = None,
) -> AdaptiveSample:
    """Draw answers to `prompt` until it is plain on which side of `threshold` its score lies, or there are `n_max`.

    Parameters
    ----------
    client, prompt, temperature, max_tokens, seed : see `sample_responses`
    scorer : a `SemanticIsotropy`
    threshold : a score of `n_min` answers, as of `TrustCalibrator.threshold`
    n_min : answers to begin with, at least 3, and the number for which `threshold` was chosen
    n_max : answers to end with
    level : nominal level of the interval

    Raises
    ------
    ValueError
        If 3 <= n_min <= n_max fails, the threshold is NaN, the level lies outside (0, 1), or the scorer takes only some
        of the answers.
    ModelError
        If the model gives no answer, or an empty one.
    """
    if not 3 <= n_min <= n_max:
        raise ValueError(f"n_min must be at least 3 and at most n_max, got n_min = {n_min} and n_max = {n_max}")
    if math.isnan(threshold):
        raise ValueError("threshold is NaN; give a score")
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level}")
    z = float(norm.ppf((1 + level) / 2))
    responses = draw_range(client, prompt, range(n_min), temperature, max_tokens, seed)
    looks: list[Look] = []
    while True:
        result = scorer.explain(responses.texts, prompt=prompt)
        if result.n != len(responses):
            raise ValueError(
                f"the scorer took {result.n} of {len(responses)} answers; adaptive sampling needs one with n_samples=None"
            )
        look = look_at(result, scorer, n_min)
        looks.append(look)
        if abs(look.score - threshold) > z * look.se:
            verdict: Literal["below", "above", "undecided"] = "below" if look.score < threshold else "above"
            break
        if look.n == n_max:
            verdict = "undecided"
            break
        responses += draw_range(client, prompt, range(look.n, look.n + 1), temperature, max_tokens, seed)
    return AdaptiveSample(
        verdict, look.score, look.se, threshold, responses, result, tuple(looks), n_max - len(responses)
    )


def look_at(result: IsotropyResult, scorer: Scorer, m: int) -> Look:
    """U_n, equation (1), and se_n, equation (2), of the answers of `result`."""
    n = result.n
    if n == m:
        return Look(n, result.score, result.se)
    subsets = subsets_of(n, m)
    vectors = vectors_with(result.cosines)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsotropyWarning)  # `explain` has said it of all the answers
        scores = scorer.score_samples([vectors[list(subset)] for subset in subsets])
    without = np.ones((n, len(subsets)), dtype=bool)
    without[np.asarray(subsets).T, np.arange(len(subsets))] = False
    left_out = without @ scores / without.sum(axis=1)
    se = math.sqrt((n - 1) / n * np.sum((left_out - left_out.mean()) ** 2))
    return Look(n, float(scores.mean()), se)


def subsets_of(n: int, m: int) -> list[tuple[int, ...]]:
    """All subsets of m of n, or 2,000 of them by a fixed random choice with each element left out about equally often."""
    if math.comb(n, m) <= MAX_SUBSETS:
        return list(combinations(range(n), m))
    rng = np.random.default_rng([n, m])
    return [tuple(sorted(rng.permutation(n)[:m].tolist())) for _ in range(MAX_SUBSETS)]


def vectors_with(cosines: FloatArray) -> FloatArray:
    """(n, n) unit vectors whose cosines are these: U sqrt(Λ) of K = U Λ U'."""
    values, basis = np.linalg.eigh(cosines)
    vectors: FloatArray = basis * np.sqrt(np.clip(values, 0.0, None))
    return vectors
