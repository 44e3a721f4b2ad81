"""What a model of natural-language inference (NLI) says about N answers, and the signals read from it.

Of a pair (premise, hypothesis) the model gives log-probabilities of contradiction, neutral and entailment, the last axis of
every array here, in this order. The premise is what is taken as given: another answer. A pair of equal texts is entailed with
certainty and never asked. From its matrices::

    support           = P(entailment) / (P(entailment) + P(contradiction))                  the neutral class left out
    semantic entropy  = - sum_c p_c log p_c, p_c the share of answers in cluster c; an answer joins the first cluster whose first
                        member it entails and is entailed by                                (2302.09664; discrete: 2024)
    LUQ               = mean_i (1 - mean_(j != i) mean_(s in i) support(answer j, sentence s))                  (2403.20279)
    LUQ-Pair          = the same with max over the sentences s' of j of support(s', s)
    SelfCheckGPT-NLI  = mean_(s in 0) mean_(j != 0) (1 - support(answer j, sentence s))                         (2303.08896)

SelfCheckGPT checks one response, here the first, against the others; its mean over all answers in the place of the first is
LUQ, which is in the race too. All are high when the answers disagree.

Sources: L. Kuhn, Y. Gal, S. Farquhar, "Semantic Uncertainty" (ICLR 2023); S. Farquhar et al., "Detecting hallucinations in
large language models using semantic entropy" (Nature 2024); C. Zhang et al., "LUQ: Long-text Uncertainty Quantification for
LLMs" (EMNLP 2024); P. Manakul, A. Liusie, M. Gales, "SelfCheckGPT" (EMNLP 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, expit

from upheld.isotropy.sentences import sentence_spans

FloatArray = NDArray[np.float64]
Pair = tuple[str, str]
T = TypeVar("T")

CONTRADICTION, NEUTRAL, ENTAILMENT = 0, 1, 2
CERTAIN = np.array([-np.inf, -np.inf, 0.0])


class Inference(Protocol):
    """Whatever judges pairs of texts; see `upheld.isotropy.rivals.nli.NLI`."""

    def log_probabilities(self, pairs: Sequence[Pair]) -> FloatArray:
        """(n, 3) log-probabilities of contradiction, neutral, entailment, one row a (premise, hypothesis)."""
        ...


def answer_entailment(texts: Sequence[str], model: Inference) -> FloatArray:
    """(N, N, 3): entry (i, j) of answer i as premise, answer j as hypothesis. Asks N(N-1) pairs at most."""
    N = len(texts)
    return _asked(model, [(premise, hypothesis) for premise in texts for hypothesis in texts]).reshape(N, N, 3)


def sentence_entailment(texts: Sequence[str], model: Inference) -> list[FloatArray]:
    """For answer i, (S_i, N-1, 3): its S_i sentences as hypotheses, the other answers in order as premises.

    Asks `sentence_pairs` pairs at most.
    """
    sentences = [sentences_of(text) for text in texts]
    asked = [(other, sentence) for i, own in enumerate(sentences) for sentence in own for other in _others(texts, i)]
    others = len(texts) - 1
    edges = np.cumsum([len(own) * others for own in sentences])[:-1]
    return [rows.reshape(-1, others, 3) for rows in np.split(_asked(model, asked), edges)]


def best_sentence_support(texts: Sequence[str], model: Inference) -> list[FloatArray]:
    """For answer i, (S_i, N-1): support of each of its sentences by the sentence of answer j that supports it most."""
    sentences = [sentences_of(text) for text in texts]
    asked = [
        (premise, hypothesis)
        for i, own in enumerate(sentences)
        for hypothesis in own
        for other in _others(sentences, i)
        for premise in other
    ]
    flat, best = support(_asked(model, asked)), []
    start = 0
    for i, own in enumerate(sentences):
        sizes = [len(other) for other in _others(sentences, i)]
        edges = np.cumsum([0, *sizes])
        rows = flat[start : start + len(own) * edges[-1]].reshape(len(own), edges[-1])
        best.append(np.maximum.reduceat(rows, edges[:-1], axis=1))
        start += rows.size
    return best


def sentences_of(text: str) -> list[str]:
    """The sentences of an answer, at least one."""
    return [text[start:end] for start, end in sentence_spans(text)] or [text]


def sentence_pairs(texts: Sequence[str]) -> int:
    """How many pairs LUQ and SelfCheckGPT have judged for a prompt: (N - 1) times the sentences of all answers."""
    return (len(texts) - 1) * sum(len(sentences_of(text)) for text in texts)


def support(log_p: FloatArray) -> FloatArray:
    """P(entailment) against P(contradiction) alone, (...,) of (..., 3); exact where both vanish beside neutral.

    >>> support(np.log([[0.1, 0.6, 0.3]])).round(6).tolist()
    [0.75]
    """
    return expit(log_p[..., ENTAILMENT] - log_p[..., CONTRADICTION])


def entailment_similarity(log_p: FloatArray) -> FloatArray:
    """W, (N, N): probability of entailment, averaged over both directions. For `upheld.isotropy.rivals.graphs`."""
    P = np.exp(log_p[..., ENTAILMENT])
    return (P + P.T) / 2


def semantic_clusters(log_p: FloatArray) -> list[list[int]]:
    """Answers of one meaning: each joins the first cluster whose first member it entails and is entailed by.

    "Entails" means that entailment is the likeliest of the three. As published, and so dependent on the order of the answers
    where the relation is not transitive.
    """
    entails = np.argmax(log_p, axis=-1) == ENTAILMENT
    mutual = entails & entails.T
    clusters: list[list[int]] = []
    for i in range(len(log_p)):
        home = next((cluster for cluster in clusters if mutual[cluster[0], i]), None)
        if home is None:
            clusters.append([i])
        else:
            home.append(i)
    return clusters


def semantic_entropy(log_p: FloatArray) -> float:
    """Entropy in nats of the shares of the answers in the clusters of meaning; 0 ... log N."""
    sizes = np.array([len(cluster) for cluster in semantic_clusters(log_p)])
    return float(entr(sizes / sizes.sum()).sum())


def luq(by_sentence: Sequence[FloatArray]) -> float:
    """LUQ of the arrays of `sentence_entailment`; 0 (all supported) ... 1."""
    return float(np.mean([1 - support(log_p).mean() for log_p in by_sentence]))


def luq_pair(best: Sequence[FloatArray]) -> float:
    """LUQ-Pair of the arrays of `best_sentence_support`; 0 ... 1."""
    return float(np.mean([1 - supported.mean() for supported in best]))


def selfcheck(log_p: FloatArray) -> float:
    """SelfCheckGPT-NLI of one checked response, its (S, N-1, 3) of `sentence_entailment`; 0 ... 1."""
    return float(1 - support(log_p).mean())


def _asked(model: Inference, pairs: Sequence[Pair]) -> FloatArray:
    """(n, 3); pairs of equal texts are certain, and a pair that comes twice is asked once."""
    asked = list(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))
    known = dict(zip(asked, model.log_probabilities(asked) if asked else (), strict=True))
    return np.array([known.get(pair, CERTAIN) for pair in pairs]).reshape(-1, 3)


def _others(items: Sequence[T], i: int) -> list[T]:
    return [item for j, item in enumerate(items) if j != i]
