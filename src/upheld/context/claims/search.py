"""The search over skills, from a naive start: with the meta level and without, with ACE's schema, and with operators taken away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from scipy.stats import spearmanr

from upheld.claims import Measurement, Trial
from upheld.context.claims.setting import Run, Setting, setting
from upheld.context.folder import Context, ContextFunction
from upheld.context.skill import NAIVE, Genes

SCHEMA = ("select", "represent", "retrieve", "prune")
FIXED, RANDOM = "first skill each time", "random skills"
SCHEMAS = {"ACE's schema, wrong rollouts": NAIVE, "ACE's schema, all rollouts": NAIVE.with_(select="all")}
CONCATENATED = "the same files, concatenated"


def measure_search(trial: Trial) -> Iterator[Measurement]:
    """Test metric of what each way of writing skills ends with, at the same number of rollouts."""
    with setting(trial) as one:
        run = one.evolve("mce", one.agent(init="naive"))
        yield Measurement("MCE", "score", one.tested(run.context)[0])
        for name, strategy in ((FIXED, "fixed"), (RANDOM, "random")):
            found = one.evolve(strategy, one.agent(init="naive", strategy=strategy))
            yield Measurement(name, "score", one.tested(found.context)[0])
        for name, genes in SCHEMAS.items():
            found = one.evolve(name, one.agent(init=genes, frozen=SCHEMA))
            yield Measurement(name, "score", one.tested(found.context)[0])
        yield Measurement(CONCATENATED, "score", one.tested(concatenated(one, run))[0])
        yield from by_iteration(run)


def concatenated(one: Setting, run: Run) -> ContextFunction:
    """The accepted files with an operator that shows them all, cut to the budget."""
    context = Context(one.folder / "concatenated")
    context.write(run.context.context.lines(), Genes(retrieve="all", budget=one.budget))
    return replace(run.context, context=context)


def by_iteration(run: Run) -> Iterator[Measurement]:
    """How the accepted context does on the test set after each iteration; what it was chosen by is shown beside it."""
    scores = run.trajectory()
    for i, (entry, score) in enumerate(zip(run.incumbents(), scores, strict=True)):
        yield Measurement("MCE", "test by iteration", score, f"{i}")
        yield Measurement("MCE", "validation by iteration", entry.val, f"{i}")
    learned = scores[1:]
    yield Measurement("MCE", "last less first iteration", learned[-1] - learned[0])
    flat = len(set(learned)) < 2
    yield Measurement(
        "MCE", "Spearman of iteration and test", 0.0 if flat else float(spearmanr(range(len(learned)), learned)[0])
    )
