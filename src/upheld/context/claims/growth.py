"""How much is written down when there is more to know: ledgers of 5 to 80 rules."""

from __future__ import annotations

from collections.abc import Iterator

from upheld.claims import Measurement, Trial
from upheld.context.claims.setting import setting
from upheld.context.program_base import capped
from upheld.context.rivals import cases
from upheld.context.skill import Genes

CAPS = {"1 a label": 1, "2 a label": 2, "4 a label": 4, "8 a label": 8, "16 a label": 16, "all": 0}
STARTS = {"MCE": "few-shot", "MCE, naive start": "naive"}


def measure_growth(trial: Trial) -> Iterator[Measurement]:
    """Tokens of the whole accepted store, and the test metric, beside stores of a fixed number of cases a label."""
    with setting(trial, rules=int(trial.condition["rules"])) as one:
        for name, start in STARTS.items():
            run = one.evolve(start, one.agent(init=start))
            yield Measurement(name, "score", one.tested(run.context)[0])
            yield Measurement(name, "tokens of the store", max(run.context.context.size(), 1))
        for name, cap in CAPS.items():
            lines = cases(one.task.samples)
            context = one.contest().write(name, capped(lines, cap) if cap else lines, Genes(retrieve="all"))
            yield Measurement(name, "score", one.tested(context)[0])
            yield Measurement(name, "tokens of the store", context.context.size())
