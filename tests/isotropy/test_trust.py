"""One trusted answer, and a verdict that any program can read."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from scripted_model import ScriptedModel

from upheld.isotropy.result import IsotropyWarning
from upheld.isotropy.semantic_isotropy import SemanticIsotropy
from upheld.isotropy.trust import MEANING, assess_trust, trusted_completion
from upheld.llm import Answer, ModelError, language_model

PERU, CHILE = "Lima lies in Peru.", "Lima lies in Chile."


def countries(texts):
    return np.array([[text.count("Peru") + 0.01 * len(text), text.count("Chile")] for text in texts], dtype=float)


def answers(*texts):
    return ScriptedModel(lambda request: Answer(f"<answer>{texts[request.sampling.seed]}</answer>", "stop", "scripted"))


def test_the_answer_shown_is_the_one_nearest_to_all():
    client = answers(CHILE, PERU, "Lima lies in Peru!!")
    done = trusted_completion(client, "Where is Lima?", 3, SemanticIsotropy(countries), seed=0)
    assert "Peru" in done.text
    assert done.text == done.responses.texts[done.result.medoid]
    assert done.trust == pytest.approx(1 - done.score)
    assert done.result.influence.argmax() == 0, "the odd one adds the most spread"
    agreed = trusted_completion(answers(PERU, PERU + "!"), "Where?", 2, SemanticIsotropy(countries), seed=0)
    assert agreed.score < 1e-3 < done.score


def test_one_answer_has_nothing_to_agree_with():
    client = answers(PERU)
    with pytest.raises(ValueError, match="n must be at least 2, got 1"):
        trusted_completion(client, "Where?", 1, SemanticIsotropy(countries))
    assert client.asked == []
    with pytest.raises(ModelError, match="answer 1 of scripted"):
        trusted_completion(answers(PERU, ""), "Where?", 2, SemanticIsotropy(countries), seed=0)


def test_a_verdict_is_json_without_loss():
    found = assess_trust("Where is Lima?", [PERU, CHILE], SemanticIsotropy(countries))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["se"] is None, "two answers have no jackknife"
    assert found["influence"] == [None, None]
    assert found["response"] == PERU
    assert found["prompt"] == "Where is Lima?"
    assert found["meaning"] == MEANING
    assert found["remarks"] == []
    assert found["score"] + found["trust"] == pytest.approx(1)


def test_what_speaks_against_a_score_is_in_the_verdict_and_nothing_else_is_kept_back():
    def embedder(texts):
        warnings.warn("of the embedder", DeprecationWarning, stacklevel=1)
        return countries(texts)

    with pytest.warns(DeprecationWarning, match="of the embedder") as heard:
        found = assess_trust("Where?", [PERU, PERU, CHILE], SemanticIsotropy(embedder))
    assert len(found["remarks"]) == 1
    assert "identical byte for byte" in found["remarks"][0]
    assert not [warning for warning in heard if warning.category is IsotropyWarning]


def test_the_prompt_reaches_a_template_that_names_it():
    read = []

    def embedder(texts):
        read.extend(texts)
        return countries(texts)

    assess_trust("Where is Lima?", [PERU, CHILE], SemanticIsotropy(embedder, template="excerpt"))
    trusted_completion(answers(PERU, CHILE), "Lima?", 2, SemanticIsotropy(embedder, template="excerpt"), seed=0)
    assert all("Where is Lima?" in text for text in read[:2])
    assert all("Lima?" in text for text in read[2:])


@pytest.mark.parametrize("responses", [[], [PERU], [PERU, " "], "abc"])
def test_responses_that_cannot_be_compared_are_refused(responses):
    with pytest.raises((ValueError, TypeError), match="group 0"):
        assess_trust("Where?", responses, SemanticIsotropy(countries))


@pytest.mark.slow
def test_with_the_models_that_come_as_packages():
    """SmolLM2 answers, MiniLM reads; the paraphrases below agree more than SmolLM2's inventions do."""
    done = trusted_completion(
        language_model("embedded"), "Write a biography of Baruk Tamsin, chemist.", 3, max_tokens=40, seed=0
    )
    same = assess_trust("Where is Lima?", ["Lima lies in Peru.", "Lima is in Peru.", "Peru is where Lima lies."])
    assert 0 < same["score"] < done.score < 1
    assert done.text in done.responses.texts
    assert same["embedder_id"] == done.result.embedder_id
