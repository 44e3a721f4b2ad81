"""A skill: how rollouts become a context. A folder with SKILL.md, for people and language models; for program agents a typed
program of ten genes stands in it as YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

OVERVIEW = "## Skill Overview"
NO_CAP = 0

VALUES: Mapping[str, tuple[str | int, ...]] = {
    "select": ("errors", "all", "low-margin", "class-balanced"),
    "represent": ("cases", "glossary", "contrast", "rules", "cases+glossary", "cases+contrast", "cases+rules"),
    "guard": ("none", "support", "folds"),
    "prune": ("off", "harm"),
    "cap": (4, 8, 16, NO_CAP),
    "retrieve": ("all", "lexical", "embedding", "hybrid", "two-stage"),
    "k": (1, 3, 5, 10, 16),
    "order": ("similar-last", "similar-first", "class-interleaved"),
    "format": ("bullet", "qa", "table"),
}
"""The genes and their values; a cap of 0 is none."""


@dataclass(frozen=True)
class Genes:
    """A skill as a program.

    Attributes
    ----------
    select : which rollouts are learned from
    represent : what is written: labelled cases, per-label keywords, two-label discriminators, n-gram rules, or two of them
    guard : what a new block must show first: nothing, support of 3, or a gain on held-out folds of the rollouts
    prune : whether lines that harmed twice more than they helped are removed
    cap : lines a label, 0 for no cap
    retrieve, k, order : which lines a query sees, how many, in which order
    format : text of a line
    budget : most tokens a query
    """

    select: str = "all"
    represent: str = "cases"
    guard: str = "none"
    prune: str = "off"
    cap: int = NO_CAP
    retrieve: str = "embedding"
    k: int = 5
    order: str = "similar-last"
    format: str = "bullet"
    budget: int = 1500

    def __post_init__(self) -> None:
        for name, values in VALUES.items():
            if getattr(self, name) not in values:
                raise ValueError(f"gene {name} is {getattr(self, name)!r}; choose one of {', '.join(map(str, values))}")
        if isinstance(self.budget, bool) or not isinstance(self.budget, int) or self.budget < 1:
            raise ValueError(f"gene budget is {self.budget!r}; give a whole number of tokens, at least 1")

    def with_(self, **changed: Any) -> Genes:
        return replace(self, **changed)

    def items(self) -> dict[str, str | int]:
        return asdict(self)


FEW_SHOT = Genes()
"""What a practitioner would deploy: all cases, the five nearest shown."""

NAIVE = Genes(select="errors", retrieve="all")
"""Errors only, the whole store in the context."""

FIRST = {"few-shot": FEW_SHOT, "naive": NAIVE}


@dataclass(frozen=True)
class Skill:
    """A skill's text and, for program agents, its genes.

    Raises
    ------
    ValueError
        If the text has no heading ``## Skill Overview``.

    Examples
    --------
    >>> Skill.of(NAIVE, "Start from errors.").genes.retrieve
    'all'
    """

    text: str
    genes: Genes | None = None
    files: Mapping[str, str] | None = None
    """Scripts and templates beside SKILL.md, by relative path."""

    def __post_init__(self) -> None:
        if not re.search(rf"^{OVERVIEW}\s*$", self.text, re.MULTILINE):
            raise ValueError(
                f"SKILL.md has no heading {OVERVIEW!r}; add it with a paragraph that says what the skill does"
            )

    @property
    def overview(self) -> str:
        """The text under the heading, up to the next one."""
        found = re.split(rf"^{OVERVIEW}\s*$", self.text, maxsplit=1, flags=re.MULTILINE)[1]
        return re.split(r"^#", found, maxsplit=1, flags=re.MULTILINE)[0].strip()

    @classmethod
    def of(cls, genes: Genes, rationale: str) -> Skill:
        """A program as a skill, with why it was chosen."""
        program = yaml.safe_dump(genes.items(), sort_keys=False).strip()
        return cls(f"# Skill\n\n{OVERVIEW}\n\n{rationale}\n\n## Program\n\n```yaml\n{program}\n```\n", genes)

    @classmethod
    def load(cls, folder: str | Path) -> Skill:
        """A skill from its folder.

        Raises
        ------
        ValueError
            If there is no SKILL.md, its heading is missing, or its program is malformed.
        """
        folder = Path(folder)
        if not (folder / "SKILL.md").is_file():
            raise ValueError(f"{folder} holds no SKILL.md; a skill is a folder with that file")
        text = (folder / "SKILL.md").read_text(encoding="utf-8")
        paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "SKILL.md")
        others = {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in paths}
        return cls(text, program(text, folder), others or None)

    def save(self, folder: str | Path) -> None:
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_text(self.text, encoding="utf-8")
        for name, content in (self.files or {}).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content, encoding="utf-8")


def program(text: str, where: str | Path) -> Genes | None:
    """The genes in a skill's text; None where it has no program."""
    block = re.search(r"^## Program\s*```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    if block is None:
        return None
    try:
        read = yaml.safe_load(block[1])
    except yaml.YAMLError as wrong:
        raise ValueError(f"the program in {where} is not YAML; write one 'gene: value' a line") from wrong
    known = [gene.name for gene in fields(Genes)]
    if not isinstance(read, dict) or (unknown := [key for key in read if key not in known]):
        named = ", ".join(map(str, unknown)) if isinstance(read, dict) else "no list of genes"
        raise ValueError(f"the program in {where} holds {named}; its genes are {', '.join(known)}")
    return Genes(**read)
