"""The offline loop: invariants of selection, of resuming, of who sees what."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from context_samples import drawn, hashed

from upheld.context import (
    ContextEngineer,
    Loop,
    ProgramBaseAgent,
    ProgramMetaAgent,
    RolloutCache,
    Sample,
    Settings,
    Task,
    embedding_reader,
    evaluate,
)  # fmt: skip
from upheld.context.rollouts import figure


def loop(folder: Path, val: list[Sample], *, base=None, told=None, **settings) -> Loop:
    task = Task(drawn(40, 0))
    chosen = Settings(**{"iterations": 4, "train_limit": 30, "batch_size": 10, "budget": 60, "seed": 3, **settings})
    return Loop(
        task, val, embedding_reader(task, hashed), ProgramMetaAgent(init="naive", budget=chosen.budget, seed=chosen.seed),
        base or ProgramBaseAgent(hashed), hashed, chosen, folder, RolloutCache(), told=told,
    )  # fmt: skip


def files(folder: Path) -> dict[str, bytes]:
    """All files; seconds, which differ, taken out of the history."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    rows = [json.loads(line) for line in found["history.jsonl"].splitlines()]
    found["history.jsonl"] = json.dumps([{**row, "seconds": 0} for row in rows]).encode()
    return found


def test_iteration_zero_is_the_bare_consumer(tmp_path, val):
    run = loop(tmp_path, val)
    history = run.run()
    bare = run.consumer.answer([one.question for one in val], [""] * len(val))
    assert history[0].val == np.mean([one.text == sample.target for one, sample in zip(bare, val, strict=True)])
    assert len(history) == 5


def test_it_learns_what_there_is_to_learn(tmp_path, val):
    history = loop(tmp_path, val).run()
    assert history.incumbent.val >= history[0].val + 0.3


def test_the_same_seed_gives_the_same_files(tmp_path, val):
    loop(tmp_path / "a", val).run()
    loop(tmp_path / "b", val).run()
    assert files(tmp_path / "a") == files(tmp_path / "b")


class Interrupted(Exception):
    pass


class Killed(ProgramBaseAgent):
    """Dies in the middle of its n-th batch, after it has written."""

    def __init__(self, embed, at: int) -> None:
        super().__init__(embed)
        self.left = at

    def apply(self, skill, context, rollouts):
        done = super().apply(skill, context, rollouts)
        self.left -= 1
        if self.left < 0:
            raise Interrupted
        return done


@pytest.mark.parametrize("at", [0, 2, 4, 11])
def test_killed_in_any_batch_it_goes_on_as_if_nothing_had_been(tmp_path, val, at):
    loop(tmp_path / "whole", val).run()
    with pytest.raises(Interrupted):
        loop(tmp_path / "killed", val, base=Killed(hashed, at)).run()
    loop(tmp_path / "killed", val).run()
    assert files(tmp_path / "whole") == files(tmp_path / "killed")


def test_best_never_falls_and_rollouts_add_up(tmp_path, val):
    history = loop(tmp_path, val, accept="best").run()
    values = [entry.val for entry in history if entry.accepted]
    assert values == sorted(values)
    assert history[-1].rollouts == len(val) + 4 * (30 + len(val))


def test_train_is_measured_before_it_is_learned_from(tmp_path, val):
    history = loop(tmp_path, val, train_limit=10, iterations=1).run()
    rows = json.loads((tmp_path / "iterations/01/train/0.json").read_text())
    assert all(row["tokens"] == 0 for row in rows)
    assert history[1].train == np.mean([row["is_correct"] for row in rows])


def test_test_labels_touch_no_file(tmp_path, val):
    def run(folder: Path, flipped: bool) -> dict[str, bytes]:
        test = [replace(one, target="bone") if flipped else one for one in drawn(20, 5, "t")]
        offline = loop(folder, val)
        history = offline.run()
        figure(
            offline.task,
            evaluate(offline.task, test, offline.function(history.incumbent), offline.consumer, offline.cache),
        )
        return files(folder)

    assert run(tmp_path / "a", False) == run(tmp_path / "b", True)


def test_the_base_agent_sees_no_validation(tmp_path, val):
    class Watching(ProgramBaseAgent):
        def apply(self, skill, context, rollouts):
            seen.update(one.id for one in rollouts)
            text = "".join(path.read_text() for path in context.root.rglob("*") if path.is_file())
            assert not any(f'"{one.id}"' in text for one in val)
            return super().apply(skill, context, rollouts)

    seen: set[str] = set()
    loop(tmp_path, val, base=Watching(hashed)).run()
    assert seen
    assert not seen & {one.id for one in val}


def test_another_run_in_the_same_folder_is_refused(tmp_path, val):
    loop(tmp_path, val, iterations=1).run()
    with pytest.raises(ValueError, match="holds a run on other data or settings"):
        loop(tmp_path, val, iterations=2).run()


@pytest.mark.parametrize(("name", "value"), [("iterations", 0), ("budget", 1.5), ("batch_size", True)])
def test_settings_without_sense(name, value):
    with pytest.raises(ValueError, match=f"{name} is {value}"):
        Settings(**{name: value})


def test_engineer_is_a_classifier():
    train, test = drawn(60, 0), drawn(30, 9)
    engineer = ContextEngineer(iterations=2, embed=hashed, token_budget=80)
    engineer.fit([one.question for one in train], [one.target for one in train])
    X, y = [{"question": one.question} for one in test], [one.target for one in test]
    assert engineer.score(X, y) == np.mean(engineer.predict(X) == np.array(y, dtype=object)) > 0.6
    shares = engineer.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert list(engineer.classes_[shares.argmax(axis=1)]) == list(engineer.predict(X))
    assert engineer.get_params()["token_budget"] == 80


def test_engineer_refuses(embed):
    with pytest.raises(ValueError, match="2 questions cannot bear 1 labels"):
        ContextEngineer(embed=embed).fit(["a", "b"], ["x"])
    with pytest.raises(ValueError, match="are too few"):
        ContextEngineer(embed=embed).fit(["a", "b"], ["x", "y"])
    with pytest.raises(ValueError, match="1 validation questions stand in X too"):
        ContextEngineer(embed=embed).fit(["a", "b"], ["x", "y"], ["A"], ["x"])
    with pytest.raises(TypeError, match="a question is text"):
        ContextEngineer(embed=embed).fit([1, 2], ["x", "y"])


def test_texts_may_hold_separators_of_lines(tmp_path, val):
    """What was learned from is kept as JSON lines, whose texts may hold what other readers take for the end of one."""
    run = loop(tmp_path, val, iterations=1)
    torn = [replace(one, question=one.question.replace(" ", "\u2028", 1)) for one in run.task.samples]
    history = replace(run, task=Task(torn)).run()
    assert history[1].train > 0.5
