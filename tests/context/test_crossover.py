from __future__ import annotations

import pytest
from context_samples import drawn

from upheld.context import Entry, Genes, History, ProgramMetaAgent, Skill, Task
from upheld.context.acceptance import accepts, probability_better
from upheld.context.crossover import diagnoses, draw_weights, parents
from upheld.context.explain import gene_effects, pareto
from upheld.context.metrics import METRICS
from upheld.context.skill import VALUES

ACCURACY = METRICS["accuracy"]


def entry(i: int, genes: Genes | None, val: float, outcomes: tuple[float, ...] = (1.0, 0.0), **more) -> Entry:
    given = {"train": val, "wrong": (), "malformed": 0.0, "tokens": 50.0, "longest": 50, "accepted": i == 0, **more}
    skill = Skill.of(genes, "r") if genes else None
    return Entry(i, skill, val=val, outcomes=outcomes, rollouts=i, seconds=0.0, folder=str(i), **given)


def history(*entries: Entry) -> History:
    made = History()
    for one in entries:
        made.append(one)
    return made


def test_the_second_parent_is_the_most_complementary_not_the_second_best():
    a = entry(1, Genes(), 0.6, (1, 1, 1, 0, 0))
    same = entry(2, Genes(k=3), 0.6, (1, 1, 1, 0, 0))
    other = entry(3, Genes(k=1), 0.4, (0, 0, 0, 1, 1))
    assert parents([a, same, other]) == (a, other)


def test_weights_lean_to_what_did_better():
    import numpy as np

    entries = [
        entry(i, Genes(k=10 if i % 2 else 1, retrieve="lexical"), 0.9 if i % 2 else 0.3, (1.0,) * 5000)
        for i in range(1, 20)
    ]
    draws = [draw_weights(entries, list(VALUES), np.random.default_rng(i)) for i in range(200)]
    assert np.mean([draw["k", 10] > draw["k", 1] for draw in draws]) > 0.9


@pytest.mark.parametrize(
    ("more", "genes", "said"),
    [
        ({"train": 0.9}, Genes(), "lies above validation"),
        ({"train": 0.3}, Genes(), "both low"),
        ({"malformed": 0.2}, Genes(), "no label"),
        ({"wrong": (("a", "b", 9), ("c", "d", 1))}, Genes(), "few pairs"),
        ({"longest": 1490}, Genes(retrieve="all"), "exceeds the budget"),
    ],
)
def test_each_diagnosis_is_made(more, genes, said):
    val = 0.3 if said == "both low" else 0.7
    found = diagnoses(genes, entry(1, genes, val, **{"train": val, **more}))
    assert any(said in why for why, _ in found)


def test_proposals_are_new_leave_frozen_genes_alone_and_repeat_with_the_seed():
    task = Task(drawn(9, 0))
    made = history(entry(0, None, 0.3))
    for i in range(1, 12):
        agent = ProgramMetaAgent(init="naive", budget=300, frozen=("select",), seed=4)
        skill = agent.propose(task, made)
        assert skill == ProgramMetaAgent(init="naive", budget=300, frozen=("select",), seed=4).propose(task, made)
        assert skill.genes not in [one.skill.genes for one in made.skilled]
        assert (skill.genes.select, skill.genes.budget, skill.genes.order) == ("errors", 300, "similar-last")
        made.append(entry(i, skill.genes, 0.3 + 0.01 * i))
    assert "Parents: iteration" in skill.overview


def test_fixed_and_random_do_as_they_are_called():
    task, made = Task(drawn(9, 0)), history(entry(0, None, 0.3), entry(1, Genes(), 0.5))
    assert ProgramMetaAgent(strategy="fixed").propose(task, made).genes == Genes()
    drawn_genes = {ProgramMetaAgent(strategy="random", seed=i).propose(task, made).genes for i in range(20)}
    assert len(drawn_genes) > 15


def test_a_history_is_only_appended_to():
    with pytest.raises(ValueError, match="iteration 2 cannot follow 0"):
        history(entry(0, None, 0.3), entry(2, Genes(), 0.3))


def test_paired_acceptance():
    targets = ["a"] * 40
    worse, better = ["b"] * 20 + ["a"] * 20, ["b"] * 10 + ["a"] * 30
    assert probability_better(better, worse, targets, ACCURACY) > 0.99
    assert probability_better(worse, worse, targets, ACCURACY) == 0.5
    assert accepts("paired", (better, 0.75, 100), (worse, 0.5, 10), targets, ACCURACY)
    assert not accepts("paired", (worse, 0.5, 100), (worse, 0.5, 100), targets, ACCURACY)
    assert accepts("paired", (worse, 0.5, 80), (worse, 0.5, 100), targets, ACCURACY)
    one_more = ["b"] * 19 + ["a"] * 21
    mixed = ["a"] * 8 + ["b"] * 21 + ["a"] * 11
    assert accepts("best", (one_more, 0.525, 1), (worse, 0.5, 1), targets, ACCURACY)
    assert not accepts("paired", (mixed, 0.475, 1), (worse, 0.5, 1), targets, ACCURACY)


def test_front_and_effects():
    made = history(
        entry(0, None, 0.3, tokens=0.0), entry(1, Genes(), 0.5, tokens=90.0), entry(2, Genes(k=3), 0.7, tokens=60.0),
        entry(3, Genes(k=1), 0.2, tokens=10.0),
    )  # fmt: skip
    assert [one.iteration for one in pareto(made)] == [0, 2]
    effects = gene_effects(made)
    assert effects["k", 3] > 0 > effects["k", 1]
    assert ("k", 16) not in effects


def test_a_skill_that_harms_learns_from_more_than_errors():
    naive = Genes(select="errors")
    why, changes = diagnoses(naive, entry(1, naive, 0.4), bare=0.5)[0]
    assert "no better than the seed" in why
    assert {"select": "all"} in changes
    assert not any("seed" in why for why, _ in diagnoses(naive, entry(1, naive, 0.6), bare=0.5))
