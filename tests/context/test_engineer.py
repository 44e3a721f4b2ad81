"""The estimator with language models, on a stream, and from the user's own prompt."""

from __future__ import annotations

import numpy as np
import pytest
from context_samples import WORDS, drawn, hashed
from servers import chat, serving

from upheld.context import Context, ContextEngineer, ContextFunction, GenerateLM, Genes, LabelLM, Skill, Task
from upheld.context.folder import PROMPT


def split(samples):
    return [one.question for one in samples], [one.target for one in samples]


def organ(handler):
    """A model that knows a word's label only if the context tells it."""
    context, _, question = handler.body["messages"][-1]["content"].rpartition("Text: ")
    words = set(question.split())
    told = {
        line[2:].partition(": ")[0]: set(line.partition(": ")[2].split())
        for line in context.splitlines()
        if ": " in line
    }
    best = max(told, key=lambda label: len(told[label] & words), default="none")
    chat(f"<answer>{best}</answer>")(handler)


def test_a_model_that_writes_its_answers(tmp_path):
    with serving(organ) as server:
        engineer = ContextEngineer(
            consumer="llm", endpoint=server.url, consumer_model="m", iterations=1, token_budget=80, embed=hashed, workdir=tmp_path / "a"
        ).fit(*split(drawn(40, 0)))  # fmt: skip
        asked = len(server.seen)
        again = ContextEngineer(
            consumer="llm", endpoint=server.url, consumer_model="m", iterations=1, token_budget=80, embed=hashed, workdir=tmp_path / "a"
        ).fit(*split(drawn(40, 0)))  # fmt: skip
        assert len(server.seen) == asked  # all is kept in the folder
        assert engineer.score(*split(drawn(12, 9))) > 0.6
    assert engineer.history_[0].val == 0.0  # nothing is known of the labels without a context
    assert engineer.history_.incumbent.iteration == 1
    assert isinstance(engineer.consumer_, GenerateLM)
    assert engineer.usage_["consumer"].completion_tokens >= 3 * 40
    assert again.history_[1].val == engineer.history_[1].val
    with pytest.raises(TypeError, match="gives answers and no scores"):
        engineer.predict_proba(["x"])


def test_a_case_s_own_context_is_read_with_its_question(tmp_path):
    samples = drawn(40, 0)
    X, y = [{"question": f"patient {i}", "context": one.question} for i, one in enumerate(samples)], split(samples)[1]
    first = Context.from_prompt(
        "\n".join(f"- {label}: {' '.join(words)}" for label, words in WORDS.items()), tmp_path, 100
    )
    engineer = ContextEngineer(iterations=1, embed=hashed, token_budget=100, seed_context=first.root).fit(X, y)
    assert engineer.score(X, y) > 0.9
    assert engineer.score([x["question"] for x in X], y) < 0.6
    assert engineer.predict_proba(X).argmax(axis=1).tolist() == [
        list(engineer.classes_).index(a) for a in engineer.predict(X)
    ]
    with pytest.raises(TypeError, match="the field 'context' of a question is text, got int"):
        engineer.predict([{"question": "q", "context": 3}])


def test_a_model_that_scores_labels(causal):
    engineer = ContextEngineer(
        consumer="label-lm", consumer_model=str(causal), iterations=1, train_limit=4, val_size=3, token_budget=20, embed=hashed
    ).fit(*split(drawn(12, 0)))  # fmt: skip
    assert isinstance(engineer.consumer_, LabelLM)
    shares = engineer.predict_proba(["pulse"])
    scores = engineer.consumer_.scores(["pulse"], [engineer.context_("pulse")])
    np.testing.assert_allclose(shares, np.exp(scores) / np.exp(scores).sum(), atol=1e-12)
    assert engineer.predict(["pulse"])[0] == engineer.classes_[shares.argmax()]


def test_a_stream_is_scored_before_it_is_learned_from():
    samples = drawn(60, 2)
    engineer = ContextEngineer(embed=hashed, token_budget=100)
    right = []
    for at in range(0, 60, 20):
        X, y = split(samples[at : at + 20])
        if at:
            right += list(engineer.predict(X) == np.array(y, dtype=object))
        engineer.partial_fit(X, y, classes=list(WORDS))
    first = round(engineer.prequential_ * 60) - sum(right)
    assert 0 <= first <= 20
    assert np.mean(right) > 0.6
    assert list(engineer.classes_) == sorted(WORDS)
    assert engineer.skill_.genes is not None


def test_labels_may_come_later_and_a_stream_may_follow_a_fit():
    samples = drawn(40, 0)
    two = [one for one in samples if one.target != "bone"]
    engineer = ContextEngineer(embed=hashed, iterations=1, token_budget=100).fit(*split(two))
    lines = len(engineer.context_.context.lines())
    assert list(engineer.classes_) == ["heart", "skin"]
    engineer.partial_fit(*split([one for one in samples if one.target == "bone"]))
    assert list(engineer.classes_) == ["bone", "heart", "skin"]
    assert len(engineer.context_.context.lines()) > lines > 0
    assert engineer.predict(["fracture of a joint in a cast"])[0] == "bone"


def test_several_labels_on_a_stream():
    task = Task(drawn(2, 0), "micro-f1")
    engineer = ContextEngineer(task, embed=hashed)
    engineer.partial_fit(["fire smoke", "knife blow", "fire knife"], ["arson", "assault", "assault; arson"])
    assert list(engineer.classes_) == ["arson", "assault"]
    assert 0 <= engineer.prequential_ <= 1


def test_the_users_own_prompt_comes_first_and_stays(tmp_path):
    (tmp_path / "AGENTS.md").write_text("Sort complaints by organ.\n- heart: pulse\n")
    engineer = ContextEngineer(
        embed=hashed, iterations=2, token_budget=60, seed_context=tmp_path / "AGENTS.md", workdir=tmp_path / "run"
    ).fit(*split(drawn(40, 0)))  # fmt: skip
    assert engineer.history_[0].tokens == 9
    context = engineer.context_("an itch")
    assert context.startswith("Sort complaints by organ.\n- heart: pulse\n- ")
    assert engineer.context_.tokens("an itch") <= 60
    assert engineer.history_.incumbent.iteration > 0
    moved = ContextFunction(engineer.context_.context.copy(tmp_path / "moved"), hashed, 60)
    assert moved("an itch") == context
    with pytest.raises(ValueError, match="holds a run on other data or settings"):
        ContextEngineer(embed=hashed, iterations=2, token_budget=60, workdir=tmp_path / "run").fit(*split(drawn(40, 0)))


def test_a_context_to_start_from(tmp_path):
    first = ContextEngineer(embed=hashed, iterations=1, token_budget=80).fit(*split(drawn(40, 0)))
    first.context_.save(tmp_path / "c")
    second = ContextEngineer(embed=hashed, iterations=1, token_budget=80, seed_context=tmp_path / "c").fit(
        *split(drawn(40, 1))
    )
    assert second.history_[0].val > 0.5
    assert second.history_[0].tokens > 0


def test_a_prompt_beyond_the_budget(tmp_path):
    with pytest.raises(ValueError, match="the prompt to start from has 5 tokens, the budget is 4 a query"):
        Context.from_prompt("one two three four five", tmp_path, 4)
    assert not (tmp_path / "context" / PROMPT).exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"consumer": "gpt"}, "consumer is 'gpt'; choose embedding, tfidf, label-lm, llm"),
        ({"consumer": "llm", "endpoint": "http://127.0.0.1:9/v1"}, "may serve many models; name one as consumer_model"),
        ({"meta": "llm", "base": "llm", "endpoint": "http://127.0.0.1:9/v1"}, "name one as agent_model"),
        ({"meta": "llm", "agent_model": "m", "endpoint": "http://127.0.0.1:9/v1"}, "let base be 'llm' too"),
        ({"init_skill": Skill("## Skill Overview\n\nx\n")}, "the skill to begin with has no program"),
        ({"seed_context": "/nowhere"}, "is neither a file with a prompt nor a folder"),
        ({"base": "x"}, "base is 'x'; choose program or llm"),
        ({"meta": "x"}, "meta is 'x'; choose program or llm"),
    ],
)
def test_it_refuses(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        ContextEngineer(embed=hashed, workdir=tmp_path, **options).fit(*split(drawn(40, 0)))


def test_a_skill_with_a_program_begins():
    skill = Skill.of(Genes(k=1, retrieve="lexical"), "Mine.")
    engineer = ContextEngineer(embed=hashed, iterations=1, init_skill=skill).fit(*split(drawn(40, 0)))
    assert engineer.history_[1].skill.genes == Genes(k=1, retrieve="lexical")


def test_a_stream_read_by_words_weighs_those_of_its_first_batch(tmp_path):
    """With the labels' own words alone every question would look the same."""
    engineer, samples = ContextEngineer(consumer="tfidf", embed=hashed, workdir=tmp_path), drawn(120, 0)
    for start in range(0, 120, 20):
        engineer.partial_fit(*split(samples[start : start + 20]), classes=list(WORDS))
    assert engineer.prequential_ > 0.6
