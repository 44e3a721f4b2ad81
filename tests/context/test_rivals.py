from __future__ import annotations

from dataclasses import replace

import pytest
from context_samples import WORDS, drawn, hashed

from upheld.context import Context, Genes, Line, Skill, Task, embedding_reader
from upheld.context.rivals import RIVALS, Contest, PlaybookAgent, ace, apart, base, knn_few_shot, many_shot, unanswered


@pytest.fixture
def contest(tmp_path, val) -> Contest:
    task = Task(drawn(40, 0))
    return Contest(task, val, embedding_reader(task, hashed), hashed, 2000, tmp_path, 7)


def test_every_rival_stays_in_its_budget_and_counts_its_rollouts(contest):
    small = replace(contest, budget=40)
    for rival in RIVALS.values():
        found = rival(small)
        assert all(made.tokens <= 40 for made in found.context.many([one.question for one in small.val]))
        assert found.rollouts >= len(small.val)


def test_knn_is_tuned_over_all_its_tries_and_no_worse_than_any(contest):
    found = knn_few_shot(contest)
    assert found.rollouts == 7 * len(contest.val)
    assert found.val >= many_shot(contest).val - 1e-9 or found.val > base(contest).val


def test_ace_tries_both_knobs_and_keeps_no_bullet_twice(contest):
    found = ace(contest)
    assert found.rollouts == 4 * len(contest.val) + (1 + 2 + 1 + 2) * len(contest.train)
    lines = [(line.label, line.text) for line in found.context.context.lines()]
    assert len(lines) == len(set(lines)) > 0
    assert found.val > base(contest).val


def test_more_settings_than_tries(contest):
    from upheld.context.rivals import best
    from upheld.context.rollouts import RolloutCache

    empty = base(contest).context
    with pytest.raises(ValueError, match="x has 8 settings to try, 7 are allowed"):
        best(contest, "x", [("", empty)] * 8, RolloutCache())


def test_gepa_runs_through_its_package_and_learns(contest):
    pytest.importorskip("gepa")
    from upheld.context.gepa_rival import gepa

    small = replace(contest, budget=90)
    found = gepa(small)
    assert found.val > base(small).val
    lines = found.context.context.lines()
    assert max(sum(line.label == label for line in lines) for label in small.task.labels()) <= 2
    assert all(made.tokens <= 90 for made in found.context.many([one.question for one in small.val]))
    allowed = 7 * len(small.val) + 6 * len(small.train)
    assert (
        found.rollouts <= allowed + 2 * 2 * len(small.val) + 80
    )  # the package ends after the step that crosses its limit


def test_gepa_is_shown_what_it_optimised_under_any_budget(contest):
    from upheld.context.gepa_rival import Adapter, first_prompt, instructions

    candidate = first_prompt(contest) | {"bone": "joint cast\nfracture of the knee"}
    for budget in (12, 25, 40, 400):
        bounded = replace(contest, budget=budget)
        served = bounded.write("gepa", instructions(candidate), Genes(retrieve="all"))
        assert set(served("x").splitlines()) == set(Adapter(bounded).prompt(candidate).splitlines())


def test_gepa_begins_with_a_line_for_each_label_and_speaks_of_each_label_of_several(contest):
    from upheld.context.gepa_rival import first_prompt

    assert all(set(text.split()) & set(WORDS[label]) for label, text in first_prompt(contest).items())
    rollout = replace(unanswered(contest.train[0]), target="a; b")
    assert [one.target for one in apart(rollout)] == ["a", "b"]


def test_labels_are_described_by_their_own_words(contest):
    found = RIVALS["labels"](contest)
    lines = found.context.context.lines()
    assert [line.label for line in lines] == sorted(WORDS)
    assert all(line.text.split()[0] in WORDS[line.label] for line in lines)


def test_without_a_skill_every_rollout_is_written_down_and_shown(contest):
    found = RIVALS["no-skill"](contest)
    assert found.context("x").count("\n") + 1 == len({one.question for one in contest.train})


@pytest.mark.parametrize("source", ["wrong", "all"])
def test_ace_online_appends_and_says_nothing_twice(contest, tmp_path, source):
    agent, context = PlaybookAgent(hashed, source), Context(tmp_path / "playbook")
    known: list[Line] = []
    for start in (0, 10, 0):
        batch = [
            replace(unanswered(one), is_correct=place % 2 == 0)
            for place, one in enumerate(contest.train[start : start + 10])
        ]
        agent.apply(Skill.of(Genes(), "x"), context, batch)
        assert context.lines()[: len(known)] == known
        known = context.lines()
    cases = [line for line in known if line.kind == "case"]
    assert len(cases) == len({line.text for line in cases}) <= (20 if source == "all" else 10)
