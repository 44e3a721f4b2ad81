"""Offline, on one split: the loop and every rival, each at its own length or within a bound; and what the loop's result is good for
elsewhere: at other lengths, under another reader, in other domains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from upheld.claims import Measurement, Trial
from upheld.context.claims.setting import DOMAINS, Run, Setting, line_reader, setting
from upheld.context.consumers import Workflow
from upheld.context.folder import ContextFunction
from upheld.context.gepa_rival import gepa
from upheld.context.rivals import RIVALS, Contender
from upheld.context.skill import FEW_SHOT, Genes

OURS, ACE = "MCE", "ACE"
AGENTIC = ("ACE", "GEPA")
"""What the paper calls agentic context engineering; Dynamic Cheatsheet needs a model that writes, and does not run here."""
BUDGETS = (100, 200, 400, 800, 1600)
POINT = 0.01


def measure_race(trial: Trial) -> Iterator[Measurement]:
    """Test metric, tokens a query and rollouts of everyone; where everyone chose its own length, also what follows from it."""
    with setting(trial) as one:
        run = one.evolve("mce", one.agent())
        contenders = {name: rival(one.contest()) for name, rival in {**RIVALS, "GEPA": gepa}.items()}
        yield from told(one, OURS, run.context, run.history[-1].rollouts)
        for name, found in contenders.items():
            yield from told(one, name, found.context, found.rollouts)
        if trial.condition["length"] == "own":
            yield from lengths(one, run, contenders)
            yield from rollouts_needed(one, run, contenders[ACE])
            yield from other_reader(one, run)
            yield from other_domains(trial, one, run)


def told(
    one: Setting, name: str, context: ContextFunction, rollouts: int, reader: Workflow | None = None
) -> Iterator[Measurement]:
    score, tokens = one.tested(context, reader)
    yield Measurement(name, "score", score)
    yield Measurement(name, "tokens", tokens)
    yield Measurement(name, "rollouts", rollouts)


# -- accuracy by length


def lengths(one: Setting, run: Run, contenders: dict[str, Contender]) -> Iterator[Measurement]:
    """Both contexts shown within budgets, and the fewest tokens a query at which each is as good as ACE at its best, less a point.

    Who never is counts with the tokens of all training cases.
    """
    curves: dict[str, list[tuple[float, float]]] = {}
    for name, context in ((OURS, run.context), (ACE, contenders[ACE].context)):
        curves[name] = [one.tested(replace(context, budget=budget)) for budget in BUDGETS]
        for budget, (score, tokens) in zip(BUDGETS, curves[name], strict=True):
            yield Measurement(name, "score within a budget", score, f"{budget}")
            yield Measurement(name, "tokens within a budget", tokens, f"{budget}")
        curves[name].append(one.tested(context))
    wanted = max(score for score, _ in curves[ACE]) - POINT
    whole = one.tested(contenders["many-shot"].context)[1]
    for name, curve in curves.items():
        enough = [tokens for score, tokens in curve if score >= wanted]
        yield Measurement(name, "reaches ACE's best less a point", float(bool(enough)))
        yield Measurement(name, "tokens for ACE's best less a point", max(min(enough, default=whole), 1.0))


# -- rollouts


def rollouts_needed(one: Setting, run: Run, ace: Contender) -> Iterator[Measurement]:
    """Rollouts, validation included, until the accepted context does as well on the test set as ACE ends.

    All of them, where it never does.
    """
    target = one.tested(ace.context)[0]
    reached = [i for i, score in enumerate(run.trajectory()) if score >= target]
    needed = run.history[reached[0] if reached else len(run.history) - 1].rollouts
    epochs = int(ace.knob.split(", ")[1].split()[0])
    yield Measurement(OURS, "reaches ACE's score", float(bool(reached)))
    yield Measurement(OURS, "rollouts to ACE's score", needed)
    yield Measurement(ACE, "rollouts to ACE's score", ace.rollouts)
    yield Measurement(
        "ACE, chosen setting alone", "rollouts to ACE's score", epochs * len(one.task.samples) + len(one.val)
    )


# -- other readers, other domains

READERS = {"embedding": "tfidf", "tfidf": "embedding"}


def other_reader(one: Setting, run: Run) -> Iterator[Measurement]:
    """Gain over the empty context under the reader it was learned with, and under the other one; both ways."""
    whole = replace(one.task, samples=[*one.task.samples, *one.val, *one.test])
    other = replace(one, reader=line_reader("tfidf", whole, one.task.samples, one.embed), folder=one.folder / "tfidf")
    learned = {"embedding": (one, run), "tfidf": (other, other.evolve("mce", other.agent()))}
    readers = {"embedding": one.reader, "tfidf": other.reader}
    empty = {name: one.tested(one.empty(), reader)[0] for name, reader in readers.items()}
    for name, (_, own) in learned.items():
        for reader in (name, READERS[name]):
            gain = one.tested(own.context, readers[reader])[0] - empty[reader]
            yield Measurement(
                f"learned with {name}", "gain, same reader" if reader == name else "gain, other reader", gain
            )


def other_domains(trial: Trial, one: Setting, run: Run) -> Iterator[Measurement]:
    """The accepted skill carried out once in each other domain, the meta level off; and the first skill in this domain."""
    yield Measurement("first skill", "score of a skill", carried_out(one, FEW_SHOT))
    for domain in DOMAINS:
        if domain != trial.condition["domain"]:
            with setting(trial, domain=domain) as there:
                yield Measurement(
                    "skill of another domain", "score of a skill", carried_out(there, run.genes or FEW_SHOT), domain
                )


def carried_out(one: Setting, genes: Genes) -> float:
    run = one.evolve("skill", one.agent(init=genes, strategy="fixed"), iterations=1)
    return one.tested(run.loop.function(run.history[-1]))[0]
