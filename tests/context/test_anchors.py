"""Figures that do not come from the package's own search: what no context may exceed, and what a full rule table must reach."""

from __future__ import annotations

import numpy as np
import pytest
from context_samples import drawn, hashed
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld.context import (
    Answered,
    Context,
    ContextFunction,
    Genes,
    Line,
    RolloutCache,
    Task,
    embedding_reader,
    evaluate,
)
from upheld.context.data import ledger, triage
from upheld.context.data.generated import FEWEST_SAID, MOST_SAID
from upheld.context.rollouts import figure

DRAWS = 100_000


def bayes_on_all_findings(seed: int) -> float:
    """Accuracy of the likeliest condition, by the true table, when *all* present findings are seen: more than any text tells, so no
    context may exceed it. Drawn as the generator draws: a condition, its findings, and again when fewer than four are present; a
    pattern with four has the likelihood of the table whatever else was thrown away."""
    p = np.array(triage(1, seed=seed).rules["probabilities"])
    rng = np.random.default_rng(0)
    condition = rng.integers(len(p), size=DRAWS)
    present = rng.random((DRAWS, p.shape[1])) < p[condition]
    told = present.sum(axis=1) >= FEWEST_SAID
    score = present[told] @ np.log(p).T + ~present[told] @ np.log1p(-p).T
    return float((score.argmax(axis=1) == condition[told]).mean())


def test_no_reading_of_triage_exceeds_bayes_on_all_findings(tmp_path):
    bound = bayes_on_all_findings(seed=3)
    assert 0.5 < bound < 1.0
    domain = triage(500, seed=3)
    train, test = domain.task.samples[:300], domain.task.samples[300:]
    context = Context(tmp_path / "c")
    context.write([Line("case", one.target, one.question) for one in train], Genes(retrieve="all", budget=10**6))
    reader = embedding_reader(domain.task, hashed)
    read = figure(
        domain.task, evaluate(domain.task, test, ContextFunction(context, hashed, 10**6), reader, RolloutCache())
    )
    assert read <= bound + 3 * np.sqrt(bound * (1 - bound) / len(test))
    assert read > 3 / 20  # and it does learn: chance is one in twenty
    assert all(FEWEST_SAID <= len(one.extras["findings"]) <= MOST_SAID for one in domain.task.samples)


class TableReader:
    """An oracle: applies the one line of the context whose three words all stand in the question."""

    id, reads_order = "table", False

    def prompt(self, context: str, question: str) -> str:
        return f"{context}\n\n{question}"

    def answer(self, questions, contexts):
        return [Answered(self._tag(q, c), 1.0, 0) for q, c in zip(questions, contexts, strict=True)]

    @staticmethod
    def _tag(question: str, context: str) -> str:
        rows = [line.removeprefix("- ").split(": ") for line in context.splitlines()]
        fitting = [
            tag
            for tag, cell in rows
            if all(f" {part} " in f" {question.rstrip('.').replace(',', ' ')} " for part in cell.split("; "))
        ]
        return fitting[0] if len(fitting) == 1 else ""


@pytest.mark.parametrize("rules", [5, 48, 80])
def test_the_full_table_of_the_ledger_answers_everything(tmp_path, rules):
    domain = ledger(300, seed=4, rules=rules)
    context = Context(tmp_path / "c")
    context.write(
        [Line("rule", tag, "; ".join(cell)) for *cell, tag in domain.rules["table"]],
        Genes(retrieve="all", budget=10**6),
    )
    found = evaluate(
        domain.task, domain.task.samples, ContextFunction(context, hashed, 10**6), TableReader(), RolloutCache()
    )
    assert figure(domain.task, found) == 1.0


def test_an_empty_context_leaves_every_answer_as_it_was(tmp_path):
    samples = drawn(30, 5)
    task = Task(samples)
    reader = embedding_reader(task, hashed)
    empty = ContextFunction(Context(tmp_path / "nothing"), hashed)
    found = evaluate(task, samples, empty, reader, RolloutCache())
    bare = reader.answer([one.question for one in samples], [""] * len(samples))
    assert [one.answer for one in found] == [one.text for one in bare]
    assert {reader.prompt("", one.question) for one in samples} == {task.prompt("", one.question) for one in samples}


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 12))
def test_the_order_of_lines_is_nothing_to_a_nearest_line_reader(seed, size):
    rng = np.random.default_rng(seed)
    samples = drawn(size + 6, seed % 97)
    lines = [f"- {one.target}: {one.question}" for one in samples[:size]]
    task = Task(drawn(9, 0))
    reader = embedding_reader(task, hashed)
    asked = [one.question for one in samples[size:]]
    shuffled = [lines[place] for place in rng.permutation(size)]
    given_, turned = (reader.scores(asked, ["\n".join(part)] * len(asked)) for part in (lines, shuffled))
    assert np.allclose(given_, turned)
