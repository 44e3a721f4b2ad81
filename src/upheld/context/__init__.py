"""Meta context engineering: evolve how rollouts become a context, and the context, for a fixed language model.

For engineers with a few hundred labelled examples who want a better prompt rather than a fine-tuned model. The result is a folder to
read, edit, version and call.

Ye, He, Arak, Dong, Song: Meta Context Engineering via Agentic Skill Evolution, ICML 2026, arXiv 2601.21557. Program agents, budgets,
paired acceptance and prequential scoring are ours.

>>> from upheld.context import ContextEngineer                                 # doctest: +SKIP
>>> engineer = ContextEngineer(token_budget=400).fit(texts, labels)            # doctest: +SKIP
>>> engineer.context_("chest pain since monday")                               # doctest: +SKIP
'- cardiology: pain behind the breastbone ...'
"""

from __future__ import annotations

from upheld.context.agents import BaseAgent, MetaAgent
from upheld.context.consumers import Answered, Consumer, LineReader, Workflow, embedding_reader, tfidf_reader
from upheld.context.crossover import ProgramMetaAgent
from upheld.context.engineer import ContextEngineer
from upheld.context.folder import Context, ContextFunction, Line, Made
from upheld.context.generate_lm import GenerateLM
from upheld.context.history import Entry, History
from upheld.context.label_lm import LabelLM
from upheld.context.loop import Loop, Settings
from upheld.context.metrics import METRICS, Metric, register_metric
from upheld.context.program_base import ProgramBaseAgent
from upheld.context.rollouts import Rollout, RolloutCache, evaluate
from upheld.context.skill import Genes, Skill
from upheld.context.task import Sample, Task
from upheld.context.vectors import Vectors

__all__ = [
    "METRICS",
    "Answered",
    "BaseAgent",
    "Consumer",
    "Context",
    "ContextEngineer",
    "ContextFunction",
    "Entry",
    "GenerateLM",
    "Genes",
    "History",
    "LabelLM",
    "Line",
    "LineReader",
    "Loop",
    "Made",
    "MetaAgent",
    "Metric",
    "ProgramBaseAgent",
    "ProgramMetaAgent",
    "Rollout",
    "RolloutCache",
    "Sample",
    "Settings",
    "Skill",
    "Task",
    "Vectors",
    "Workflow",
    "embedding_reader",
    "evaluate",
    "register_metric",
    "tfidf_reader",
]  # fmt: skip
