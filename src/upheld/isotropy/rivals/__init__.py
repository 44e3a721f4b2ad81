"""Whom a user would otherwise ask whether a model's answers can be trusted.

To add a rival, put one `Rival` into `RIVALS`: a name, what it cannot do without, and a function from `Evidence` to a number that is *high
when the answers deserve less trust*. It can then be raced by name. A rival whose need is not met is reported as not run, with the
reason; nothing takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from upheld.isotropy.confidence import Confidence, p_true_each, verbalised_confidence_each
from upheld.isotropy.rivals import entailment, likelihood
from upheld.isotropy.rivals.eigenscore import eigenscore
from upheld.isotropy.rivals.evidence import Evidence, Need, given
from upheld.isotropy.rivals.graphs import degree, eccentricity, eigenvalue_sum
from upheld.isotropy.rivals.kernel_language_entropy import (
    Kernel,
    entailment_graph,
    heat_kernel,
    kernel_language_entropy,
    matern_kernel,
    semantic_graph,
)
from upheld.isotropy.rivals.overlap import rouge_l
from upheld.isotropy.spread import mean_cosine_distance
from upheld.llm import LanguageModel

FloatArray = NDArray[np.float64]

# What is equal must tie: the rounding errors of an eigenvalue solver would else put prompts in order.
DECIMALS = 10


@dataclass(frozen=True)
class Rival:
    """One alternative signal.

    Attributes
    ----------
    name, title : what it is called, in a command and in a table
    measure : number of one prompt's answers; high = less trustworthy; NaN where it has nothing to say
    needs : what it cannot do without, beside the texts
    """

    name: str
    title: str
    measure: Callable[[Evidence], float]
    needs: tuple[Need, ...] = ()

    def not_run(self, prompts: Sequence[Evidence]) -> str | None:
        """Why it cannot run on these prompts; None if it can."""
        for need in self.needs:
            without = sum(evidence.lacks(need) for evidence in prompts)
            if without:
                return f"{need}" if without == len(prompts) else f"{need} for {without} of {len(prompts)} prompts"
        return None


@dataclass(frozen=True, eq=False)
class Signal:
    """What a rival says of P prompts: `values` (P,), to ten decimals, or None and the reason in `not_run`."""

    rival: Rival
    values: FloatArray | None
    not_run: str | None = None


def _on_jaccard(graph: Callable[[FloatArray], float], evidence: Evidence) -> float:
    return graph(evidence.jaccard)


def _on_entailment(graph: Callable[[FloatArray], float], evidence: Evidence) -> float:
    return graph(entailment.entailment_similarity(evidence.entailment))


def _kle(graph: Callable[[FloatArray], FloatArray], kernel: Kernel, evidence: Evidence) -> float:
    return kernel_language_entropy(graph(evidence.entailment), kernel)


def _doubt(ask: Callable[[LanguageModel, str, Sequence[str]], list[Confidence]], evidence: Evidence) -> float:
    """1 - mean over the answers of which the model said how sure it is; NaN if it said so of none."""
    said = [each.value for each in ask(given(evidence.model, Need.MODEL), evidence.prompt, evidence.texts)]
    known = [value for value in said if not np.isnan(value)]
    return 1.0 - float(np.mean(known)) if known else float("nan")


RIVALS: tuple[Rival, ...] = (
    Rival("cosine", "Mean cosine distance", lambda e: float(mean_cosine_distance(e.cosines)), needs=(Need.EMBEDDINGS,)),
    Rival(
        "eigenscore",
        "EigenScore",
        lambda e: eigenscore(given(e.embeddings, Need.EMBEDDINGS)),
        needs=(Need.EMBEDDINGS,),
    ),
    Rival("lexical", "Lexical distance (1 - ROUGE-L)", lambda e: 1 - rouge_l(e.texts)),
    Rival("jaccard-degree", "Degree, Jaccard", partial(_on_jaccard, degree)),
    Rival("jaccard-eccentricity", "Eccentricity, Jaccard", partial(_on_jaccard, eccentricity)),
    Rival("jaccard-eigv", "EigV, Jaccard", partial(_on_jaccard, eigenvalue_sum)),
    Rival("nli-degree", "Degree, NLI", partial(_on_entailment, degree), needs=(Need.NLI,)),
    Rival("nli-eccentricity", "Eccentricity, NLI", partial(_on_entailment, eccentricity), needs=(Need.NLI,)),
    Rival("nli-eigv", "EigV, NLI", partial(_on_entailment, eigenvalue_sum), needs=(Need.NLI,)),
    Rival(
        "semantic-entropy",
        "Semantic entropy",
        lambda e: entailment.semantic_entropy(e.entailment),
        needs=(Need.NLI,),
    ),
    Rival("kle-heat", "Kernel language entropy, heat", partial(_kle, semantic_graph, heat_kernel), needs=(Need.NLI,)),
    Rival(
        "kle-matern", "Kernel language entropy, Matérn", partial(_kle, semantic_graph, matern_kernel), needs=(Need.NLI,)
    ),
    Rival(
        "kle-heat-tested",
        "Kernel language entropy, heat, on tested edges",
        partial(_kle, entailment_graph, heat_kernel),
        needs=(Need.NLI,),
    ),
    Rival("luq", "LUQ", lambda e: entailment.luq(e.sentence_entailment), needs=(Need.NLI,)),
    Rival("luq-pair", "LUQ-Pair", lambda e: entailment.luq_pair(e.best_sentence_support), needs=(Need.NLI,)),
    Rival(
        "selfcheck-nli",
        "SelfCheckGPT-NLI of the first answer",
        lambda e: entailment.selfcheck(e.sentence_entailment[0]),
        needs=(Need.NLI,),
    ),
    Rival(
        "perplexity",
        "Log-perplexity",
        lambda e: likelihood.perplexity(given(e.logprobs, Need.LOGPROBS)),
        needs=(Need.LOGPROBS,),
    ),
    Rival(
        "token-entropy",
        "Mean token entropy",
        lambda e: likelihood.token_entropy(given(e.alternatives, Need.ALTERNATIVES)),
        needs=(Need.ALTERNATIVES,),
    ),
    Rival("p-true", "1 - P(True)", partial(_doubt, p_true_each), needs=(Need.MODEL,)),
    Rival("verbalised", "1 - verbalised confidence", partial(_doubt, verbalised_confidence_each), needs=(Need.MODEL,)),
)


def chosen(names: Sequence[str], among: Sequence[Rival] = RIVALS) -> list[Rival]:
    """The rivals of these names, in the order of the list; the first word of names stands for all that begin with it.

    Raises
    ------
    ValueError
        If a name is unknown; lists the names there are.

    Examples
    --------
    >>> [rival.name for rival in chosen(["lexical", "jaccard"])]
    ['lexical', 'jaccard-degree', 'jaccard-eccentricity', 'jaccard-eigv']
    """
    wanted: set[str] = set()
    for name in names:
        exact = {rival.name for rival in among if rival.name == name}
        found = exact or {rival.name for rival in among if rival.name.startswith(f"{name}-")}
        if not found:
            raise ValueError(f"there is no rival {name!r}; there are {', '.join(rival.name for rival in among)}")
        wanted |= found
    return [rival for rival in among if rival.name in wanted]


def race(
    prompts: Sequence[Evidence],
    rivals: Sequence[Rival] = RIVALS,
    told: Callable[[int, int], None] | None = None,
) -> list[Signal]:
    """Ask every rival about every prompt.

    Parameters
    ----------
    prompts : P of them
    rivals : all of them by default; see `chosen`
    told : hears how many of how many prompts are done

    Examples
    --------
    >>> prompts = [Evidence(["In Lima.", "In Lima."]), Evidence(["In Lima.", "Close to Quito"])]
    >>> for signal in race(prompts, chosen(["lexical", "luq"])):
    ...     print(signal.rival.name, signal.values, signal.not_run)
    lexical [0. 1.] None
    luq None no NLI model
    """
    absent = {rival.name: rival.not_run(prompts) for rival in rivals}
    values = {rival.name: np.empty(len(prompts)) for rival in rivals if absent[rival.name] is None}
    for place, evidence in enumerate(prompts):
        for rival in rivals:
            if rival.name in values:
                values[rival.name][place] = round(rival.measure(evidence), DECIMALS)
        if told is not None:
            told(place + 1, len(prompts))
    return [Signal(rival, values.get(rival.name), absent[rival.name]) for rival in rivals]
