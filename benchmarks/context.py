"""Speed and memory of contexts and their readers, and what a search costs beside ACE and GEPA, in one run; no model is needed.

python benchmarks/context.py [--lines 50000]

Vectors are random where assembly, reading and the search over skills are measured; the race is on the invented domain `triage`, read by
TF-IDF. Processor time on one thread.
"""

from __future__ import annotations

import argparse
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from measuring import Line, seconds
from upheld.context import (
    Context,
    ContextFunction,
    Entry,
    Genes,
    History,
    Loop,
    ProgramBaseAgent,
    ProgramMetaAgent,
    RolloutCache,
    Sample,
    Settings,
    Skill,
    Task,
    Vectors,
    embedding_reader,
    evaluate,
    tfidf_reader,
)
from upheld.context import Line as StoreLine
from upheld.context.claims.setting import Weighed
from upheld.context.data import generate
from upheld.context.gepa_rival import gepa
from upheld.context.rivals import Contender, Contest, ace
from upheld.context.skill import VALUES

WIDTH = 384


class Drawn:
    """A random unit vector for every text, kept: what an embedding cache gives."""

    id = "drawn"

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)
        self._places: dict[str, int] = {}
        self._rows = np.empty((0, WIDTH), dtype=np.float32)

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        missing = [text for text in dict.fromkeys(texts) if text not in self._places]
        if missing:
            rows = self._rng.standard_normal((len(missing), WIDTH), dtype=np.float32)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            self._places.update(zip(missing, range(len(self._rows), len(self._rows) + len(rows)), strict=True))
            self._rows = np.concatenate([self._rows, rows])
        return self._rows[[self._places[text] for text in texts]]


def samples(n: int, labels: int, prefix: str) -> list[Sample]:
    return [
        Sample(f"{prefix}{i}", f"{prefix} text {i} of some nine words in a row", f"label{i % labels}") for i in range(n)
    ]


def store(n: int, labels: int) -> list[StoreLine]:
    return [StoreLine("case", one.target, one.question) for one in samples(n, labels, "case")]


def rollouts(folder: Path) -> Iterator[Line]:
    """Rollouts a minute with vectors that are known; each context, of 200 cases, is new, so that no answer is."""
    embed, queries = Drawn(), samples(2000, 11, "query")
    task = Task(queries)
    for retrieve in ("embedding", "all"):
        context = Context(folder / retrieve)
        context.write(store(200, 11), Genes(retrieve=retrieve, budget=10**6))
        function, reader = ContextFunction(context, embed, 10**6), embedding_reader(task, embed)
        evaluate(task, queries, function, reader, RolloutCache())
        taken = seconds(lambda f=function, r=reader: evaluate(task, queries, f, r, RolloutCache()), 3)
        rate = 60 * len(queries) / taken
        yield Line(
            f"rollouts a minute, 200 cases, retrieve = {retrieve}", f"{rate:,.0f}", "at least 100,000", rate >= 1e5
        )


def memory(folder: Path, n: int) -> Iterator[Line]:
    """Peak of what Python and NumPy hold while 50 questions are answered from a large store, vectors included."""
    embed = Drawn()
    task = Task(samples(50, 11, "query"))
    context = Context(folder / "large")
    context.write(store(n, 11), Genes())
    embed([line.text for line in context.lines()])
    tracemalloc.start()
    evaluate(task, task.samples, ContextFunction(context, embed), embedding_reader(task, embed), RolloutCache())
    held = (tracemalloc.get_traced_memory()[1] + embed._rows.nbytes) / 2**20
    tracemalloc.stop()
    yield Line(f"memory of a store of {n:,} lines", f"{held:.0f} MB", "below 400 MB", held < 400)


def crossover() -> Iterator[Line]:
    """One skill from a history of a hundred."""
    rng, history = np.random.default_rng(0), History()
    bare = Entry(0, None, None, 0.5, (1.0,) * 100, (), 0.0, 0.0, 0, 100, 0.0, True, "0")
    history.append(bare)
    for i in range(1, 101):
        genes = Genes(**{name: values[int(rng.integers(len(values)))] for name, values in VALUES.items()})  # type: ignore[arg-type]
        outcomes = tuple(map(float, rng.random(100) < 0.6))
        history.append(
            replace(bare, iteration=i, skill=Skill.of(genes, "drawn"), val=float(np.mean(outcomes)), outcomes=outcomes)
        )
    task, agent = Task(samples(20, 2, "query")), ProgramMetaAgent(reads_order=True)
    taken = seconds(lambda: agent.propose(task, history), 5) * 1000
    yield Line("a crossover after 100 iterations", f"{taken:.1f} ms", "below 50 ms", taken < 50)


def kept(found: list[Contender], work: Callable[[], Contender]) -> None:
    found.append(work())


def race(folder: Path) -> Iterator[Line]:
    """The whole of a search and of two rivals with their knobs tuned, by the same reader: seconds, rollouts, figure on the test set."""
    home, budget, iterations = generate("triage", 300, seed=0), 1500, 6
    train, val, test = home.split(0, 160, 60, 80)
    task = replace(home.task, samples=train)
    reader = tfidf_reader(home.task, [one.question for one in train])
    embed = reader.embed = Vectors(Weighed(reader.id, reader.embed))  # each text once
    contest = Contest(task, val, reader, embed, budget, folder / "rivals", 1 + iterations)

    def ours() -> Contender:
        settings = Settings(iterations, len(train), budget=budget)
        loop = Loop(
            task, val, reader, ProgramMetaAgent(budget=budget), ProgramBaseAgent(embed), embed, settings, folder / "mce", RolloutCache()
        )  # fmt: skip
        history = loop.run()
        best = history.incumbent
        return Contender("MCE", loop.function(best), history[-1].rollouts, "", best.val)

    spent: dict[str, tuple[float, int]] = {}
    for name, work in (("MCE", ours), ("ACE", lambda: ace(contest)), ("GEPA", lambda: gepa(contest))):
        found: list[Contender] = []
        taken = seconds(partial(kept, found, work))
        spent[name] = taken, found[0].rollouts
        right = np.mean([one.score for one in evaluate(task, test, found[0].context, reader, RolloutCache())])
        yield Line(f"triage, {name}", f"{taken:.1f} s, {found[0].rollouts:,} rollouts, {right:.3f}")
    for name in ("ACE", "GEPA"):
        ratios = [theirs / mine for theirs, mine in zip(spent[name], spent["MCE"], strict=True)]
        yield Line(f"{name} over MCE", f"{ratios[0]:.2f} x seconds, {ratios[1]:.2f} x rollouts")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=50_000)
    chosen = parser.parse_args()
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        for part in (rollouts(Path(folder)), memory(Path(folder), chosen.lines), crossover(), race(Path(folder))):
            for line in part:
                print(line, flush=True)


if __name__ == "__main__":
    main()
