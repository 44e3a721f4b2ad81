"""Biographies of persons who never lived, by a writer who knows some of them better than others: text whose truth is exact.

A world holds a true value for each attribute of each person (birthplace, profession, university, award, field, spouse, place
of death). The writer knows a person to a degree kappa ~ U(0, 1), and writes several answers. Each answer states each attribute
once: truly with probability kappa, else with a wrong value drawn uniformly. An attribute is worded in one of six ways or more, of
other words and lengths; up to four sentences that state nothing are mixed in; the order is shuffled.

    independent    as above
    style          kappa = 1: all is true, only the wording varies
    consistent     truth or the wrong value is drawn once a person and repeated in every answer: confident, uniform falsehood
    mixed          half of the persons consistent, half independent

The factuality of an answer is the share of its attributes that are true. The consistency of a person is the mean over attributes
and pairs of answers of [same value]: what any measure of agreement can hope to see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Literal, TypeVar, get_args

import numpy as np

from upheld.isotropy.data import bioworld_sentences
from upheld.isotropy.data.bioworld_sentences import (
    FILLERS,
    FIRST_NAMES,
    FIRST_STATEMENTS,
    KINDS,
    LATER_STATEMENTS,
    OPENERS,
    ORDINALS,
    SURNAMES,
    SYNONYMS,
    VALUES,
)

Mode = Literal["independent", "style", "consistent", "mixed"]
T = TypeVar("T")

MOST_FILLERS = 4
OPENED = 0.3  # share of sentences that begin with "moreover" or the like
CALLED = (
    ("full", 0.15),
    ("surname", 0.45),
    ("pronoun", 0.4),
)  # how often a person is called so, after the first sentence


@dataclass(frozen=True)
class Person:
    """A person of the world, and what was written about them.

    Attributes
    ----------
    name : unique in a world
    knowledge : kappa, the probability with which the writer states an attribute truly
    consistent : whether all answers repeat the same values
    truth : the true value of each attribute
    stated : for each answer, the value that it states of each attribute, in the order of `truth`
    answers : their texts
    """

    name: str
    knowledge: float
    consistent: bool
    truth: tuple[str, ...]
    stated: tuple[tuple[str, ...], ...]
    answers: tuple[str, ...]

    @property
    def prompt(self) -> str:
        return f"Write a short biography of {self.name}."

    @property
    def factualities(self) -> tuple[float, ...]:
        """For each answer, the share of its attributes that are true."""
        return tuple(
            float(np.mean([value == true for value, true in zip(values, self.truth, strict=True)]))
            for values in self.stated
        )

    @property
    def factuality(self) -> float:
        """Mean over the answers."""
        return float(np.mean(self.factualities))

    @property
    def consistency(self) -> float:
        """Share of attributes and pairs of answers that state the same value."""
        pairs = combinations(self.stated, 2)
        return float(np.mean([[a == b for a, b in zip(one, other, strict=True)] for one, other in pairs]))


def generate(
    rng: np.random.Generator, *, persons: int = 30, answers: int = 5, mode: Mode = "independent", attributes: int = 7
) -> list[Person]:
    """A world of `persons` and the biographies written about them.

    Parameters
    ----------
    rng : decides everything. From the same state, more answers leave the first ones as they are, and the modes share their
        persons and true values.
    persons : at most 1,200
    answers : at least 2, a person
    mode : see above
    attributes : 7, 14 or 28, for answers of about 100, 200 and 400 tokens; beyond 7 the kinds come again as second, third and
        fourth (home, occupation, ...)

    Raises
    ------
    ValueError
        On another mode or number.

    Examples
    --------
    >>> person = generate(np.random.default_rng(0), persons=1, answers=2, mode="style")[0]
    >>> person.factualities, person.consistency
    ((1.0, 1.0), 1.0)
    """
    names = [
        (f"{first} {surname}", pronoun)
        for pronoun, firsts in FIRST_NAMES.items()
        for first in firsts
        for surname in SURNAMES
    ]
    if mode not in get_args(Mode):
        raise ValueError(f"mode must be one of {', '.join(get_args(Mode))}, got {mode!r}")
    if attributes not in (7, 14, 28):
        raise ValueError(f"attributes must be 7, 14 or 28, got {attributes}")
    if answers < 2 or not 1 <= persons <= len(names):
        raise ValueError(
            f"a world has 1 to {len(names)} persons of at least 2 answers each, got {persons} of {answers}"
        )
    chosen = rng.permutation(len(names))[:persons]
    first_half = rng.permutation(persons) < persons // 2
    seeds = rng.integers(2**62, size=persons)
    consistent = {"consistent": np.ones_like(first_half), "mixed": first_half}.get(mode, np.zeros_like(first_half))
    return [
        _person(*names[chosen[i]], seed=int(seeds[i]), answers=answers, consistent=bool(consistent[i]), attributes=attributes,
                knowledge=1.0 if mode == "style" else None)
        for i in range(persons)
    ]  # fmt: skip


def bioworld_hash() -> str:
    """SHA-256 of the generator's sources and of a sample of what it makes; goes into the ledger before the first race."""
    digest = sha256()
    for source in (__file__, bioworld_sentences.__file__):
        digest.update(Path(source).read_bytes())
    for person in generate(np.random.default_rng(0), persons=4, answers=3, mode="mixed", attributes=14):
        digest.update(repr(person).encode())
    return digest.hexdigest()


def _person(
    name: str, pronoun: str, *, seed: int, answers: int, consistent: bool, attributes: int, knowledge: float | None
) -> Person:
    """One person, from a seed of their own; every answer has a stream of its own, so that none depends on their number."""
    rng = np.random.default_rng(seed)
    kappa = float(rng.random())
    kappa = kappa if knowledge is None else knowledge
    truth = _true_values(rng, attributes)
    fixed = _stated(rng, truth, kappa)
    stated, texts = [], []
    for i in range(answers):
        writer = np.random.default_rng([seed, i + 1])  # with 0 it would be the stream that drew kappa
        values = _stated(writer, truth, kappa)
        values = fixed if consistent else values
        stated.append(values)
        texts.append(_biography(writer, name, pronoun, values))
    return Person(name, kappa, consistent, truth, tuple(stated), tuple(texts))


def _true_values(rng: np.random.Generator, attributes: int) -> tuple[str, ...]:
    """The kinds in turn, first, second, ...; the values of one kind differ."""
    rounds = attributes // len(KINDS)
    drawn = {kind: [VALUES[kind][i] for i in rng.permutation(len(VALUES[kind]))[:rounds]] for kind in KINDS}
    return tuple(drawn[kind][r] for r in range(rounds) for kind in KINDS)


def _stated(rng: np.random.Generator, truth: Sequence[str], kappa: float) -> tuple[str, ...]:
    """Each attribute truly with probability kappa, else a uniformly drawn wrong value of its kind."""
    known = rng.random(len(truth)) < kappa
    values = []
    for i, true in enumerate(truth):
        wrong = _pick(rng, [value for value in VALUES[KINDS[i % len(KINDS)]] if value != true])
        values.append(true if known[i] else wrong)
    return tuple(values)


def _biography(rng: np.random.Generator, name: str, pronoun: str, values: Sequence[str]) -> str:
    """A sentence for each value and up to four that state nothing, shuffled."""
    sentences: list[tuple[str, dict[str, str]]] = []
    for i, value in enumerate(values):
        kind, r = KINDS[i % len(KINDS)], i // len(KINDS)
        statements = LATER_STATEMENTS if r else FIRST_STATEMENTS
        article = "an" if value[0] in "aeiou" else "a"
        sentences.append((_pick(rng, statements[kind]), {"value": value, "a": article, "ordinal": ORDINALS[r]}))
    fillers = rng.permutation(len(FILLERS))[: rng.integers(MOST_FILLERS + 1)]
    sentences += [(FILLERS[i], {}) for i in fillers]
    order = rng.permutation(len(sentences))
    told = [_sentence(rng, *sentences[i], name=name, pronoun=pronoun, first=p == 0) for p, i in enumerate(order)]
    return " ".join(told)


def _sentence(
    rng: np.random.Generator, words: str, slots: dict[str, str], *, name: str, pronoun: str, first: bool
) -> str:
    called = "full" if first else _weighted(rng, CALLED)
    own, them = ("her", "her") if pronoun == "she" else ("his", "him")
    surname = name.split()[-1]
    who = {"full": name, "surname": surname, "pronoun": pronoun}[called]
    slots = slots | {synonym: _pick(rng, choices) for synonym, choices in SYNONYMS.items()}
    body = words.format(
        who=who,
        whose=own if called == "pronoun" else f"{who}'s",
        who_object=them if called == "pronoun" else who,
        own=own,
        **slots,
    )
    opener = _pick(rng, OPENERS)
    if rng.random() < OPENED and not first:
        body = f"{opener}, {body}"
    return f"{body[0].upper()}{body[1:]}."


def _pick(rng: np.random.Generator, choices: Sequence[T]) -> T:
    return choices[int(rng.integers(len(choices)))]


def _weighted(rng: np.random.Generator, choices: Sequence[tuple[T, float]]) -> T:
    at = np.searchsorted(np.cumsum([weight for _, weight in choices]), rng.random(), side="right")
    return choices[min(int(at), len(choices) - 1)][0]
