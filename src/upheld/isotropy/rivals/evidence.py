"""What rivals may look at: one prompt's answers and, computed once for all of them, what they have in common.

The matrices are made when a rival first asks for them and kept: every graph rival reads one N x N matrix, LUQ and SelfCheckGPT one
of sentences against answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from upheld.isotropy.rivals.entailment import Inference, answer_entailment, best_sentence_support, sentence_entailment
from upheld.isotropy.rivals.overlap import jaccard
from upheld.isotropy.spread import cosine_matrix
from upheld.llm import LanguageModel

FloatArray = NDArray[np.float64]
T = TypeVar("T")


class Need(StrEnum):
    """What a rival cannot do without, beside the answers; its value says what is missing."""

    EMBEDDINGS = "no embeddings"
    NLI = "no NLI model"
    LOGPROBS = "no log-probabilities"
    ALTERNATIVES = "no log-probabilities of alternative tokens"
    MODEL = "no language model"


@dataclass(frozen=True, eq=False)
class Evidence:
    """One prompt's answers with whatever is known of them.

    Parameters
    ----------
    texts : the N >= 2 answers
    prompt : what was asked
    embeddings : (N, D), one vector an answer, of any length but 0
    nli : judges pairs of texts, see `upheld.isotropy.rivals.nli.NLI`
    logprobs : for each answer, the log-probability of each token
    alternatives : for each answer and place, log-probabilities of the likeliest tokens, by token
    model : the language model that answered

    Raises
    ------
    TypeError
        If `texts` is one text.
    ValueError
        If there are fewer than 2 answers, one is empty, or something is not given for each answer.
    """

    texts: Sequence[str]
    prompt: str = ""
    embeddings: FloatArray | None = None
    nli: Inference | None = None
    logprobs: Sequence[Sequence[float]] | None = None
    alternatives: Sequence[Sequence[Mapping[str, float]]] | None = None
    model: LanguageModel | None = None

    def __post_init__(self) -> None:
        if isinstance(self.texts, str):
            raise TypeError("texts must be a list of answers, got one text")
        if len(self.texts) < 2:
            raise ValueError(f"{len(self.texts)} answer(s): whether answers agree needs at least 2; sample more")
        for i, text in enumerate(self.texts):
            if not isinstance(text, str) or not text.strip():
                raise ValueError(f"answer {i} is {text!r}; drop it or sample it again")
        for name in ("embeddings", "logprobs", "alternatives"):
            given = getattr(self, name)
            if given is not None and len(given) != len(self.texts):
                raise ValueError(f"{name} are given for {len(given)} answers, but there are {len(self.texts)}")

    def lacks(self, need: Need) -> bool:
        given = {
            Need.EMBEDDINGS: self.embeddings,
            Need.NLI: self.nli,
            Need.LOGPROBS: self.logprobs,
            Need.ALTERNATIVES: self.alternatives,
            Need.MODEL: self.model,
        }
        return given[need] is None

    @cached_property
    def cosines(self) -> FloatArray:
        """(N, N)."""
        return cosine_matrix(given(self.embeddings, Need.EMBEDDINGS))

    @cached_property
    def jaccard(self) -> FloatArray:
        """(N, N)."""
        return jaccard(self.texts)

    @cached_property
    def entailment(self) -> FloatArray:
        """(N, N, 3), see `upheld.isotropy.rivals.entailment.answer_entailment`."""
        return answer_entailment(self.texts, given(self.nli, Need.NLI))

    @cached_property
    def sentence_entailment(self) -> list[FloatArray]:
        """N arrays (S_i, N-1, 3), see `upheld.isotropy.rivals.entailment.sentence_entailment`."""
        return sentence_entailment(self.texts, given(self.nli, Need.NLI))

    @cached_property
    def best_sentence_support(self) -> list[FloatArray]:
        """N arrays (S_i, N-1), see `upheld.isotropy.rivals.entailment.best_sentence_support`."""
        return best_sentence_support(self.texts, given(self.nli, Need.NLI))


def given(value: T | None, need: Need) -> T:
    """What is needed, or a ValueError that says what is missing."""
    if value is None:
        raise ValueError(f"{need}; give it, or leave this rival out")
    return value
