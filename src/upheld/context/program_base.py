"""The base agent that executes a skill's genes: rollouts become lines of a store, and parameters of the operator."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from upheld.context.assembly import words
from upheld.context.files import lines_of, write_whole
from upheld.context.folder import Context, Line
from upheld.context.rollouts import Rollout
from upheld.context.skill import Genes, Skill
from upheld.context.vectors import Embed

SUPPORT = {"none": 2, "support": 3, "folds": 2}
KEYWORDS, DISCRIMINATORS, RULES_A_LABEL = 8, 4, 6
PRECISION, RULE_SUPPORT = 0.8, 3
FREQUENT = 2
HARM = 2
FOLDS = 3
KINDS = {"cases": "case", "glossary": "glossary", "contrast": "contrast", "rules": "rule"}


class ProgramBaseAgent:
    """Executes the genes; the same skill, context and rollouts give the same files.

    Parameters
    ----------
    embed : finds the line nearest to a question, whose helpful or harmful count rises
    """

    def __init__(self, embed: Embed) -> None:
        self.embed = embed

    def apply(self, skill: Skill, context: Context, rollouts: Sequence[Rollout]) -> Context:
        """The context after these rollouts. Raises ValueError when the skill has no program."""
        if skill.genes is None:
            raise ValueError(
                "this skill has no program; write its genes under '## Program', or let a language model apply it"
            )
        genes = skill.genes
        experience = remember(context, rollouts)
        lines = counted(context.lines(), rollouts, self.embed)
        born = 1 + max((line.born for line in lines), default=-1)
        kinds = genes.represent.split("+")
        if "cases" in kinds:
            lines = with_cases(lines, chosen(rollouts, genes.select), born)
        for kind in kinds:
            if kind != "cases":
                block = [Line(KINDS[kind], label, text, born=born) for label, text in WRITERS[kind](experience, genes)]
                lines = merged(lines, block, KINDS[kind])
        lines = [line for line in lines if line.kind in {KINDS[kind] for kind in kinds}]
        if genes.guard == "folds":
            lines = gated(lines, experience, self.embed)
        if genes.prune == "harm":
            lines = [line for line in lines if line.harmful - line.helpful < HARM]
        if genes.cap:
            lines = capped(lines, genes.cap)
        context.write(lines, genes)
        return context

    def repair(self, skill: Skill, context: Context, problem: str) -> Context:
        """What a program wrote is the same at every attempt. Raises ValueError."""
        raise ValueError(f"a context written by a program fails ({problem}); was a file in {context.root} changed?")


def remember(context: Context, rollouts: Sequence[Rollout]) -> list[Rollout]:
    """All training rollouts this context has learned from, the latest of every sample."""
    path = context.root / "data" / "experience.jsonl"
    known = {}
    if path.is_file():
        known = {one.id: one for one in (Rollout(**json.loads(line)) for line in lines_of(path))}
    known.update({one.id: one for one in rollouts})
    write_whole(path, "".join(json.dumps(one.__dict__, ensure_ascii=False) + "\n" for one in known.values()))
    return list(known.values())


# -- which rollouts are learned from


def chosen(rollouts: Sequence[Rollout], select: str) -> list[Rollout]:
    if select == "errors":
        return [one for one in rollouts if not one.is_correct]
    if select == "low-margin":
        middle = float(np.median([one.margin for one in rollouts]))
        return [one for one in rollouts if not one.is_correct or one.margin <= middle]
    if select == "class-balanced":
        return balanced(rollouts)
    return list(rollouts)


def balanced(rollouts: Sequence[Rollout]) -> list[Rollout]:
    """As many of every label as the median label has; wrong ones first."""
    groups: dict[str, list[Rollout]] = defaultdict(list)
    for one in rollouts:
        groups[one.target].append(one)
    most = max(1, int(np.median([len(group) for group in groups.values()])))
    kept = {one.id for group in groups.values() for one in sorted(group, key=lambda one: one.is_correct)[:most]}
    return [one for one in rollouts if one.id in kept]


# -- what is written


def with_cases(lines: Sequence[Line], rollouts: Sequence[Rollout], born: int) -> list[Line]:
    """The store with these rollouts as verbatim labelled cases; what stands there already is not repeated."""
    known = {(line.label, line.text) for line in lines}
    cases = [Line("case", one.target, flat(one.question), born=born) for one in rollouts]
    return [*lines, *(case for case in dict.fromkeys(cases) if (case.label, case.text) not in known)]


def flat(text: str) -> str:
    return " ".join(text.split())


def glossary(experience: Sequence[Rollout], genes: Genes) -> list[tuple[str, str]]:
    """Keywords of every label by smoothed log-odds."""
    counts = by_label(experience)
    total = sum(counts.values(), Counter())
    written = []
    for label, count in sorted(counts.items()):
        scored = [
            (log_odds(count, total - count, word), word) for word, n in count.items() if n >= SUPPORT[genes.guard]
        ]
        best = [word for score, word in sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:KEYWORDS] if score > 0]
        if best:
            written.append((label, " ".join(best)))
    return written


def contrast(experience: Sequence[Rollout], genes: Genes) -> list[tuple[str, str]]:
    """For pairs of labels that are often confused: the words that tell one from the other."""
    counts = by_label(experience)
    wrong = Counter((one.target, one.answer) for one in experience if not one.is_correct)
    written = []
    for (target, answer), n in sorted(wrong.items()):
        if n < FREQUENT or answer not in counts:
            continue
        scored = sorted(
            (-log_odds(counts[target], counts[answer], word), word)
            for word, support in counts[target].items()
            if support >= SUPPORT[genes.guard]
        )
        if best := [word for score, word in scored[:DISCRIMINATORS] if score < 0]:
            written.append((target, " ".join(best)))
    return written


def rules(experience: Sequence[Rollout], genes: Genes) -> list[tuple[str, str]]:
    """n-grams of one to two words that name a label with precision of 0.8 and support of 3."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for one in experience:
        told = list(words(one.question))
        spoken = flat(one.question).lower().split()
        for gram in {*told, *(" ".join(pair) for pair in pairwise(spoken))}:
            seen[gram][one.target] += 1
    found: dict[str, list[tuple[float, int, str]]] = defaultdict(list)
    for gram, labels in seen.items():
        label, n = labels.most_common(1)[0]
        if n >= RULE_SUPPORT and n / labels.total() >= PRECISION:
            found[label].append((-n / labels.total(), -n, gram))
    return [(label, gram) for label, grams in sorted(found.items()) for _, _, gram in sorted(grams)[:RULES_A_LABEL]]


WRITERS = {"glossary": glossary, "contrast": contrast, "rules": rules}


def by_label(experience: Sequence[Rollout]) -> dict[str, Counter[str]]:
    """In how many texts of each label a word stands."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in experience:
        counts[one.target].update(word for word in words(one.question) if len(word) > 2)
    return counts


def log_odds(inside: Counter[str], outside: Counter[str], word: str) -> float:
    """Log-odds of a word in these texts against those, a half added to every count."""
    a, b = inside[word] + 0.5, outside[word] + 0.5
    return math.log(a / (inside.total() + 1)) - math.log(b / (outside.total() + 1))


def merged(lines: Sequence[Line], block: Sequence[Line], kind: str) -> list[Line]:
    """The store with a block written anew; lines that stay keep their counts."""
    known = {(line.label, line.text): line for line in lines if line.kind == kind}
    return [*(line for line in lines if line.kind != kind), *(known.get((one.label, one.text), one) for one in block)]


# -- what is kept


def counted(lines: Sequence[Line], rollouts: Sequence[Rollout], embed: Embed) -> list[Line]:
    """Each rollout speaks for, or against, the line nearest to its question."""
    if not lines or not rollouts:
        return list(lines)
    near = (embed([flat(one.question) for one in rollouts]) @ embed([line.text for line in lines]).T).argmax(axis=1)
    helpful = Counter(int(place) for place, one in zip(near, rollouts, strict=True) if one.is_correct)
    harmful = Counter(int(place) for place, one in zip(near, rollouts, strict=True) if not one.is_correct)
    return [
        replace(line, helpful=line.helpful + helpful[place], harmful=line.harmful + harmful[place])
        for place, line in enumerate(lines)
    ]


def capped(lines: Sequence[Line], cap: int) -> list[Line]:
    """At most `cap` cases a label; the most harmful go first, among them the oldest."""
    groups: dict[str, list[int]] = defaultdict(list)
    for place, line in enumerate(lines):
        if line.kind == "case":
            groups[line.label].append(place)
    dropped = set()
    for places in groups.values():
        ranked = sorted(
            places, key=lambda place: (lines[place].helpful - lines[place].harmful, lines[place].born, place)
        )
        dropped.update(ranked[: max(0, len(places) - cap)])
    return [line for place, line in enumerate(lines) if place not in dropped]


def gated(lines: Sequence[Line], experience: Sequence[Rollout], embed: Embed) -> list[Line]:
    """Drop each block of derived lines that does not raise nearest-line accuracy on held-out folds of the rollouts."""
    kept = [line for line in lines if line.kind == "case"]
    for kind in ("glossary", "contrast", "rule"):
        block = [line for line in lines if line.kind == kind]
        if block and fold_accuracy(kept + block, experience, embed) > fold_accuracy(kept, experience, embed):
            kept += block
    return kept


def fold_accuracy(lines: Sequence[Line], experience: Sequence[Rollout], embed: Embed) -> float:
    """Share of rollouts whose nearest line bears their label, cases of the own fold left out."""
    if not lines:
        return 0.0
    near = embed([flat(one.question) for one in experience]) @ embed([line.text for line in lines]).T
    fold = {flat(one.question): place % FOLDS for place, one in enumerate(experience)}
    home = np.array([fold.get(line.text, -1) if line.kind == "case" else -1 for line in lines])
    own = np.array([fold[flat(one.question)] for one in experience])
    near = np.where(home[None, :] == own[:, None], -np.inf, near)
    hits = [lines[int(row.argmax())].label == one.target for row, one in zip(near, experience, strict=True)]
    return float(np.mean(hits))
