"""Likeness of answers by the words they share, without any model.

- `jaccard`: shared words over all words of two answers, as sets, in lower case, split at white space. As in `lm-polygraph`.
- `rouge_l`: F-measure of the longest common subsequence of words (ROUGE-L, Lin 2004), in the tokens of `rouge-score` with its
  stemmer, averaged over all pairs of answers (Lexical Similarity: Fomicheva et al. 2020; Kuhn et al., arXiv 2302.09664).

`rouge-score` fills a table of |a| x |b| cells in Python. Only the length of the subsequence is wanted here, which Hyyrö's
bit-vector recurrence gives in |b| operations on integers of |a| bits::

    U = V & M[b_t],    V = (V + U) | (V - U),    length = number of zeros among the |a| bits of V

with V of |a| ones at first and M[w] the places of word w in a (H. Hyyrö, "Bit-parallel LCS-length computation revisited", 2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

STEMS_KEPT = 100_000


def jaccard(texts: Sequence[str]) -> FloatArray:
    """(N, N) Jaccard similarities of the word sets, with 1 on the diagonal.

    >>> jaccard(["the cat sat", "The cat ran"]).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    words = [set(text.lower().split()) for text in texts]
    W = np.eye(len(words))
    for i, j in combinations(range(len(words)), 2):
        either = len(words[i] | words[j])
        W[i, j] = W[j, i] = len(words[i] & words[j]) / either if either else 0.0
    return W


def rouge_l(texts: Sequence[str]) -> float:
    """Mean ROUGE-L F-measure over the pairs of at least 2 texts; 1 = the same words in the same order.

    Words are runs of the letters a-z and digits; a text that has none, in another script for instance, is like no other.

    >>> round(rouge_l(["the cat sat down", "the cat ran down"]), 6)
    0.75
    """
    words = [tuple(_tokens(text)) for text in texts]
    return float(np.mean([_f_measure(a, b) for a, b in combinations(words, 2)]))


def common_subsequence(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence of two sequences of words."""
    places: dict[str, int] = {}
    for place, word in enumerate(a):
        places[word] = places.get(word, 0) | 1 << place
    V = ones = (1 << len(a)) - 1
    for word in b:
        U = V & places.get(word, 0)
        # The carry past the last bit is cut, or V would grow by a bit a word.
        V = ((V + U) | (V - U)) & ones
    return len(a) - V.bit_count()


def _f_measure(a: Sequence[str], b: Sequence[str]) -> float:
    """2 P R / (P + R) with P = length / |b| and R = length / |a|."""
    return 2 * common_subsequence(a, b) / (len(a) + len(b)) if a and b else 0.0


def _tokens(text: str) -> list[str]:
    from rouge_score.tokenize import tokenize

    return list(tokenize(text, _stemmer()))


@cache
def _stemmer() -> Any:
    """The stemmer that `rouge-score` takes, which keeps what it has stemmed: stemming is most of the time otherwise."""
    from nltk.stem.porter import PorterStemmer  # type: ignore[import-untyped]

    return SimpleNamespace(stem=lru_cache(STEMS_KEPT)(PorterStemmer().stem))
