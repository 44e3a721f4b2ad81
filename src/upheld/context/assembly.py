"""The operator of program agents: which lines of the store a question sees, in which order, within the budget.

This file is copied into every context folder as interfaces/get_context.py. It needs nothing but NumPy; the store and the
parameters lie beside it, so that the folder may be moved.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, str]
Numbers = np.ndarray[Any, Any]
Embed = Callable[[Sequence[str]], Numbers]

TOKEN = re.compile(r"\w+|[^\w\s]")
LABELS_KEPT = 3


def count_tokens(text: str) -> int:
    """Words and punctuation marks: the unit of budgets, the same for every consumer."""
    return len(TOKEN.findall(text))


def get_context(question: str, *, root: str | Path, embed: Embed) -> str:
    """The context of one question."""
    return get_contexts([question], root=root, embed=embed)[0]


def get_contexts(questions: Sequence[str], *, root: str | Path, embed: Embed) -> list[str]:
    """The contexts of several questions, one matrix product for all."""
    store, genes, prompt = read_store(root), read_parameters(root), read_prompt(root)
    if not store:
        return [prompt] * len(questions)
    genes["budget"] = str(int(genes["budget"]) - count_tokens(prompt))
    shown = [formatted(line, genes["format"]) for line in store]
    lengths = np.array([count_tokens(line) for line in shown])
    if genes["retrieve"] == "all":
        return [opened(prompt, joined(newest(store, lengths, int(genes["budget"])), shown))] * len(questions)
    scores = similarities(questions, store, genes["retrieve"], embed)
    return [opened(prompt, joined(selected(row, store, lengths, genes), shown)) for row in scores]


def read_parameters(root: str | Path) -> dict[str, str]:
    """Flat YAML: one 'name: value' a line."""
    lines = (Path(root) / "context" / "parameters.yaml").read_text(encoding="utf-8").splitlines()
    return {name: value for name, _, value in (line.partition(": ") for line in lines) if value}


def read_prompt(root: str | Path) -> str:
    """The user's own prompt, with which every context begins; mostly there is none."""
    path = Path(root) / "context" / "prompt.md"
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def opened(prompt: str, lines: str) -> str:
    return f"{prompt}\n{lines}" if prompt and lines else prompt or lines


def read_store(root: str | Path) -> list[Row]:
    """Rows of lines.csv: kind, label, text, helpful, harmful, born."""
    path = Path(root) / "context" / "lines.csv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def formatted(line: Row, style: str) -> str:
    if style == "qa":
        return f"Q: {line['text']} A: {line['label']}"
    if style == "table":
        return f"| {line['text']} | {line['label']} |"
    return f"- {line['label']}: {line['text']}"


def joined(places: Sequence[int], shown: Sequence[str]) -> str:
    return "\n".join(shown[place] for place in places)


def fitting(ranked: Sequence[int], lengths: Numbers, budget: int) -> list[int]:
    """Places in their ranking as long as they fit; a line is shown whole or not at all."""
    kept: list[int] = []
    used = 0
    for place in ranked:
        if used + lengths[place] <= budget:
            kept.append(int(place))
            used += lengths[place]
    return kept


def newest(store: Sequence[Row], lengths: Numbers, budget: int) -> list[int]:
    """The whole store; where it exceeds the budget, its newest lines. In the order of the store."""
    ranked = sorted(range(len(store)), key=lambda place: (-int(store[place]["born"]), -place))
    return sorted(fitting(ranked, lengths, budget))


def similarities(questions: Sequence[str], store: Sequence[Row], retrieve: str, embed: Embed) -> Numbers:
    """(questions, lines)."""
    texts = [line["text"] for line in store]
    scores = np.zeros((len(questions), len(texts)))
    if retrieve in ("lexical", "hybrid"):
        scores += lexical(questions, texts)
    if retrieve != "lexical":
        asked = np.asarray(embed([" ".join(question.split()) for question in questions]), dtype=np.float32)
        scores += asked @ np.asarray(embed(texts), dtype=np.float32).T
    return scores


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


def lexical(questions: Sequence[str], texts: Sequence[str]) -> Numbers:
    """Cosine of TF-IDF vectors, from the lines' inverted index."""
    counts = [words(text) for text in texts]
    seen = Counter(word for count in counts for word in count)
    weight = {word: math.log((1 + len(texts)) / (1 + n)) + 1 for word, n in seen.items()}
    norms = [math.sqrt(sum((n * weight[word]) ** 2 for word, n in count.items())) or 1.0 for count in counts]
    index: dict[str, list[tuple[int, float]]] = {}
    for place, count in enumerate(counts):
        for word, n in count.items():
            index.setdefault(word, []).append((place, n * weight[word] / norms[place]))
    postings = {word: np.array(pairs) for word, pairs in index.items()}
    scores = np.zeros((len(questions), len(texts)))
    for row, question in zip(scores, questions, strict=True):
        asked = {word: n for word, n in words(question).items() if word in weight}
        norm = math.sqrt(sum((n * weight[word]) ** 2 for word, n in asked.items())) or 1.0
        for word, n in asked.items():
            places, values = postings[word].T
            row[places.astype(int)] += values * n * weight[word] / norm
    return scores


def selected(scores: Numbers, store: Sequence[Row], lengths: Numbers, genes: dict[str, str]) -> list[int]:
    """The k best lines of every kind, best first until the budget is spent, then put in order."""
    k = int(genes["k"])
    allowed = two_stage(scores, store) if genes["retrieve"] == "two-stage" else None
    left = dict.fromkeys((line["kind"] for line in store), k)
    ranked: list[int] = []
    for place in np.argsort(-scores, kind="stable"):
        line = store[place]
        if allowed is not None and line["label"] not in allowed:
            continue
        if left[line["kind"]] > 0:
            left[line["kind"]] -= 1
            ranked.append(int(place))
        elif not any(left.values()):
            break
    kept = fitting(ranked, lengths, int(genes["budget"]))
    if genes["order"] == "similar-last":
        return kept[::-1]
    return interleaved(kept, store) if genes["order"] == "class-interleaved" else kept


def two_stage(scores: Numbers, store: Sequence[Row]) -> dict[str, None]:
    """The labels whose best line is nearest."""
    best: dict[str, None] = {}
    for place in np.argsort(-scores, kind="stable"):
        best.setdefault(store[place]["label"], None)
        if len(best) == LABELS_KEPT:
            break
    return best


def interleaved(places: Sequence[int], store: Sequence[Row]) -> list[int]:
    """One line of each label in turn."""
    turn: dict[int, int] = {}
    seen: Counter[str] = Counter()
    for place in places:
        turn[place] = seen[store[place]["label"]]
        seen[store[place]["label"]] += 1
    return sorted(places, key=lambda place: (turn[place], places.index(place)))
