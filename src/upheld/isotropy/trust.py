"""The score where it is used: one trusted answer instead of one answer, and a plain verdict for programs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from upheld.isotropy.adaptive import Scorer
from upheld.isotropy.result import IsotropyResult, IsotropyWarning
from upheld.isotropy.sampling import SampledResponses, draw_range
from upheld.isotropy.semantic_isotropy import SemanticIsotropy
from upheld.llm import LanguageModel

MEANING = (
    "score 0: the responses say the same; 1: they have nothing in common. A high score is a warning. A low one is no proof: "
    "it measures agreement, and a falsehood that all responses share scores low."
)


@dataclass(frozen=True)
class TrustedCompletion:
    """The medoid of several answers, and how far they spread.

    Attributes
    ----------
    text : the answer that is nearest to all, the one to show
    score, se : HIGH = less trustworthy, with its standard error
    result : all about the spread; responses : all answers
    """

    text: str
    score: float
    se: float
    result: IsotropyResult
    responses: SampledResponses

    @property
    def trust(self) -> float:
        """1 - score, between 0 and 1."""
        return self.result.trust


def trusted_completion(
    client: LanguageModel,
    prompt: str,
    n: int = 5,
    scorer: Scorer | None = None,
    *,
    temperature: float = 0.7,
    max_tokens: int = 700,
    seed: int | None = None,
) -> TrustedCompletion:
    """Ask `n` times, give the answer that agrees best with the others, and say how far they agree.

    Parameters
    ----------
    scorer : a `SemanticIsotropy`; None takes its defaults
    client, prompt, temperature, max_tokens, seed : see `upheld.isotropy.sampling.sample_responses`

    Raises
    ------
    ValueError
        If n < 2, the prompt is empty, or the temperature is 0.
    ModelError
        If model or embedder cannot be reached, or an answer is empty.

    Examples
    --------
    >>> from upheld.llm import language_model                                                    # doctest: +SKIP
    >>> done = trusted_completion(language_model("embedded"), "Who was Ada Lovelace?", seed=0)   # doctest: +SKIP
    >>> done.text, done.score                                                                    # doctest: +SKIP
    """
    if n < 2:
        raise ValueError(f"n must be at least 2, got {n}: one answer has nothing to agree with")
    responses = draw_range(client, prompt, range(n), temperature, max_tokens, seed)
    result = (scorer or SemanticIsotropy()).explain(responses.texts, prompt=prompt)
    return TrustedCompletion(responses.texts[result.medoid], result.score, result.se, result, responses)


def assess_trust(prompt: str, responses: Sequence[str], scorer: Scorer | None = None) -> dict[str, Any]:
    """How far several responses to one prompt agree, as plain values that JSON holds: for tool servers and other programs.

    Parameters
    ----------
    prompt : what was asked
    responses : at least 2 answers that one model gave to it independently
    scorer : a `SemanticIsotropy`; None takes its defaults

    Returns
    -------
    score, standard error `se`, `trust`, `response` (the medoid's text), `influence` of every response and the rest of
    `IsotropyResult` but the cosines; `meaning` says how to read them, and `remarks` what stands against it

    Raises
    ------
    ValueError
        On fewer than 2 responses, or an empty one.

    Examples
    --------
    >>> import numpy as np
    >>> words = SemanticIsotropy(lambda texts: np.array([[t.count("Peru"), t.count("Chile")] for t in texts], float))
    >>> found = assess_trust("Where is Lima?", ["In Peru.", "Peru, I think.", "In Chile."], words)
    >>> found["response"], round(found["score"], 3), [round(x, 2) for x in found["influence"]]
    ('In Peru.', 0.579, [-0.42, -0.42, 0.58])
    """
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", IsotropyWarning)
        result = (scorer or SemanticIsotropy()).explain(responses, prompt=prompt)
    remarks = [warning for warning in heard if issubclass(warning.category, IsotropyWarning)]
    for other in (warning for warning in heard if warning not in remarks):
        warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    found = result.to_dict()
    del found["cosines"]
    return {
        "prompt": prompt,
        "response": responses[result.medoid],
        **found,
        "meaning": MEANING,
        "remarks": list(dict.fromkeys(str(warning.message) for warning in remarks)),
    }
