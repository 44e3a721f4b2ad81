"""The stream is scored before it is learned from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from context_samples import drawn, hashed

from upheld.context import (
    Context,
    Genes,
    Line,
    ProgramBaseAgent,
    ProgramMetaAgent,
    RolloutCache,
    Sample,
    Task,
    embedding_reader,
)
from upheld.context.online import OnlineLoop


class Memoriser(ProgramBaseAgent):
    """Writes down every answer; what it was not told it does not know."""

    def apply(self, skill, context: Context, rollouts) -> Context:
        known = context.lines()
        context.write([*known, *(Line("case", one.target, one.question) for one in rollouts)], Genes(k=1, budget=10**6))
        return context


def stream(n: int = 60, seed: int = 0) -> list[Sample]:
    """Nothing to learn but by heart: every text has words of its own, and a label drawn by chance."""
    rng = np.random.default_rng(seed)
    return [Sample(str(i), f"u{seed}x{i} v{seed}x{i}", "abc"[int(rng.integers(3))]) for i in range(n)]


def loop(folder: Path, samples: list[Sample], base=None, **options) -> OnlineLoop:
    task = Task(samples)
    meta = ProgramMetaAgent(init="few-shot")
    return OnlineLoop(
        task,
        embedding_reader(task, hashed),
        meta,
        base or ProgramBaseAgent(hashed),
        hashed,
        folder,
        RolloutCache(),
        **options,
    )


def test_a_memoriser_scores_at_base_level_prequentially_and_near_one_accumulated(tmp_path):
    values: dict[str, list[float]] = {"prequential": [], "accumulated": []}
    for seed in range(6):
        for protocol in values:
            online = loop(
                tmp_path / f"{seed}{protocol}",
                stream(seed=seed),
                Memoriser(hashed),
                protocol=protocol,
                meta_every=0,
                budget=10**6,
            )
            values[protocol].append(online.run(stream(seed=seed), 10))
    assert np.mean(values["prequential"]) < 0.45  # of three labels
    assert np.mean(values["accumulated"]) > 0.98


def test_the_order_within_a_batch_is_nothing(tmp_path):
    samples = drawn(60, 2)
    shuffled = [samples[10 * (i // 10) + (i * 7) % 10] for i in range(60)]
    scores = []
    for name, given in (("a", samples), ("b", shuffled)):
        online = loop(tmp_path / name, samples, meta_every=0)
        scores.append([sum(one.is_correct for one in online.step(given[at : at + 10])) for at in range(0, 20, 10)])
    assert scores[0] == scores[1]


def test_the_meta_level_reviews_each_window_and_answers_stay_those_given_first(tmp_path):
    online = loop(tmp_path, drawn(120, 2), meta_every=2, budget=100)
    given = [one for at in range(0, 120, 20) for one in online.step(drawn(120, 2)[at : at + 20])]
    assert online.scored == given
    assert len(online.history) == 1 + 2 + 2
    assert online.value() == np.mean([one.is_correct for one in given])
    assert online.value() > 0.5


def test_an_unknown_protocol(tmp_path):
    with pytest.raises(ValueError, match="protocol is 'x'; choose prequential or accumulated"):
        loop(tmp_path, drawn(9, 0), protocol="x")


class Interrupted(Exception):
    pass


class Mortal(ProgramBaseAgent):
    """Dies at its n-th batch, after it has written."""

    def __init__(self, embed, at: int) -> None:
        super().__init__(embed)
        self.left = at

    def apply(self, skill, context, rollouts):
        done = super().apply(skill, context, rollouts)
        self.left -= 1
        if self.left < 0:
            raise Interrupted
        return done


def files(folder: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if ".part/" not in name}


@pytest.mark.parametrize("at", [0, 1, 5, 9, 16])
def test_killed_in_any_batch_a_kept_stream_goes_on_as_if_nothing_had_been(tmp_path, at):
    samples = drawn(120, 2)
    options = {"meta_every": 2, "budget": 100, "keep": True}
    whole = loop(tmp_path / "whole", samples, **options)
    value = whole.run(samples, 12)
    with pytest.raises(Interrupted):
        loop(tmp_path / "killed", samples, Mortal(hashed, at), **options).run(samples, 12)
    again = loop(tmp_path / "killed", samples, **options)
    assert again.ahead > 0 or at < 1
    assert again.run(samples, 12) == value
    assert again.scored == whole.scored
    assert files(tmp_path / "whole") == files(tmp_path / "killed")
    assert len(list((tmp_path / "killed").glob("kept-*"))) == 1


class Dear(ProgramBaseAgent):
    def apply(self, skill, context, rollouts):
        raise AssertionError("nobody is asked again")


def test_a_stream_that_was_learned_from_asks_nobody_and_another_one_is_refused(tmp_path):
    samples = drawn(60, 2)
    value = loop(tmp_path, samples, keep=True).run(samples, 20)
    again = loop(tmp_path, samples, Dear(hashed), keep=True)
    assert again.ahead == 3
    assert again.run(samples, 20) == value
    assert again.ahead == 0
    with pytest.raises(ValueError, match="holds a stream whose batch 2 is another"):
        loop(tmp_path, samples, keep=True).run([*samples[:20], *samples[40:]], 20)
    with pytest.raises(ValueError, match="under other settings"):
        loop(tmp_path, samples, keep=True, budget=7)


def test_meta_agents_find_what_was_tried_in_folders(tmp_path):
    online = loop(tmp_path, drawn(120, 2), meta_every=2, budget=100)
    online.run(drawn(120, 2), 20)
    assert [entry.folder for entry in online.history] == [f"iterations/{n:02d}" for n in range(5)]
    for entry in online.history:
        home = tmp_path / entry.folder
        assert Context(home / "context").lines()
        assert (home / "skill/SKILL.md").read_text() == entry.skill.text
        assert (home / "train/0.json").is_file()
    assert len((tmp_path / "history.jsonl").read_text().splitlines()) == 5


def test_answers_that_are_no_label_are_counted(tmp_path):
    """A reader of three labels asked about two of them: what it says of the third is no label of the task."""
    samples = drawn(120, 2)
    online = loop(tmp_path, samples, meta_every=2, budget=100)
    few = Task([one for one in samples if one.target != "bone"])
    online.task = few
    for start in range(0, 120, 20):
        online.step(samples[start : start + 20])
    windows = [online.scored[start : start + 40] for start in range(0, 120, 40)]
    shares = [sum(one.answer == "bone" for one in window) / 40 for window in windows]
    assert shares[1] > 0
    assert [online.history[n].malformed for n in (0, 1, 3)] == shares
