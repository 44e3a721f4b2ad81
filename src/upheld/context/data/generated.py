"""Five domains drawn from rules. Label names are invented words, so that no trained model knows the answers.

They mirror the paper's: diagnosis (`triage`), finance tags (`ledger`), safety (`policy`), law (`charges`), synthesis (`rewrite`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

from upheld.context.data.domain import Domain
from upheld.context.metrics import SEPARATOR
from upheld.context.task import Sample, Task

ONSETS, VOWELS, CODAS = tuple("bdfgklmnprstvz"), tuple("aeiou"), ("n", "r", "s", "l", "x", "")


def invented(rng: np.random.Generator, n: int) -> list[str]:
    """Distinct words of two or three syllables that mean nothing."""
    found: dict[str, None] = {}
    while len(found) < n:
        syllables = [rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(int(rng.integers(2, 4)))]
        found["".join(map(str, syllables)) + str(rng.choice(CODAS))] = None
    return list(found)


# -- triage: findings by independent coins

FINDINGS = (
    "fever", "cough", "rash", "headache", "nausea", "dizziness", "chills", "wheezing", "back pain", "joint pain", "blurred vision",
    "ear ache", "sore throat", "runny nose", "chest pain", "palpitations", "swollen ankles", "night sweats", "weight loss", "thirst",
    "itching", "numb fingers", "tremor", "hoarse voice", "stomach cramps", "bloating", "constipation", "diarrhoea", "dry eyes",
    "bleeding gums", "hair loss", "muscle weakness", "stiff neck", "insomnia", "fainting", "bruising", "hiccups", "heartburn",
    "cold hands", "loss of smell",
)  # fmt: skip
SAID = ("There is {}.", "The patient complains of {}.", "Since yesterday {} was noticed.")
CORE, SHARED, REST = 0.85, 0.4, 0.03
N_CONDITIONS, N_CORE, N_SHARED = 20, 6, 4
FEWEST_SAID, MOST_SAID = 4, 7


def triage(n: int, *, seed: int = 0, rules: int = N_CONDITIONS) -> Domain:
    """Conditions with 6 core findings (0.85), 4 shared (0.4), the rest at 0.03; 4 to 7 of the present ones are told."""
    rng = np.random.default_rng([seed, 1])
    labels = invented(rng, rules)
    table = np.full((rules, len(FINDINGS)), REST)
    for row in table:
        chosen = rng.permutation(len(FINDINGS))[: N_CORE + N_SHARED]
        row[chosen[:N_CORE]], row[chosen[N_CORE:]] = CORE, SHARED
    samples: list[Sample] = []
    while len(samples) < n:
        condition = int(rng.integers(rules))
        present = np.flatnonzero(rng.random(len(FINDINGS)) < table[condition])
        if len(present) < FEWEST_SAID:
            continue
        told = rng.permutation(present)[: int(rng.integers(FEWEST_SAID, MOST_SAID + 1))]
        text = " ".join(SAID[int(rng.integers(len(SAID)))].format(FINDINGS[place]) for place in told)
        samples.append(
            Sample(f"triage-{len(samples)}", text, labels[condition], {"findings": [FINDINGS[place] for place in told]})
        )
    known = {"labels": labels, "findings": list(FINDINGS), "probabilities": table.tolist()}
    return Domain("triage", Task(samples, text="Name the condition."), known, seed)


# -- ledger: a decision table with exceptions

NOUNS, PERIODS, UNITS = (
    ("rent", "payroll", "licences", "freight", "interest", "royalties", "repairs", "insurance"),
    ("first quarter", "second quarter", "full year"), ("thousand", "million"),
)  # fmt: skip
BOOKED = (
    "{} of {} {} for the {} was booked.",
    "We recorded {1} {2} of {0} in the {3}.",
    "In the {3}, {0} came to {1} {2}.",
)
N_TAGS, N_EXCEPTIONS = 12, 6


def ledger(n: int, *, seed: int = 0, rules: int = 48) -> Domain:
    """Tags by account noun, period and unit: a noun's tag by period, and 6 exceptions; `rules` combinations occur."""
    rng = np.random.default_rng([seed, 2])
    nouns = [*NOUNS, *invented(rng, 16)]
    cells = [tuple(cell) for cell in product(nouns, PERIODS, UNITS)][: max(rules, 1)]
    tags = invented(rng, N_TAGS)
    usual = {
        pair: tags[int(rng.integers(N_TAGS))] for pair in dict.fromkeys((noun, period) for noun, period, _ in cells)
    }
    table = {cell: usual[cell[0], cell[1]] for cell in cells}
    for place in rng.permutation(len(cells))[:N_EXCEPTIONS]:
        others = [tag for tag in tags if tag != table[cells[place]]]
        table[cells[place]] = others[int(rng.integers(len(others)))]
    samples: list[Sample] = []
    for number in range(n):
        noun, period, unit = cell = cells[int(rng.integers(len(cells)))]
        amount = f"{rng.integers(1, 999)}.{rng.integers(10)}"
        said = BOOKED[int(rng.integers(len(BOOKED)))]
        text = said.format(noun, amount, unit, period)
        samples.append(Sample(f"ledger-{number}", text, table[cell], {"cell": list(cell)}))
    known = {"table": [[*cell, tag] for cell, tag in table.items()]}
    return Domain("ledger", Task(samples, text="Tag the amount."), known, seed)


# -- policy: rules with an exception each

ACTS = ("sharing a password", "posting an address", "selling a ticket above its price", "copying a lecture")
UNLESS = ("with the owner's consent", "of a public office", "to a charity", "for a blind student")
ASIDE = ("by mail", "in the evening", "for a friend", "in the forum", "on the phone")
HARMLESS = ("asking for the time", "thanking the host", "reporting a fault", "naming a book")


def policy(n: int, *, seed: int = 0, rules: int = 4) -> Domain:
    """Safe, and four violations, each lifted by an "unless" clause; half are safe; macro-F1."""
    rng = np.random.default_rng([seed, 3])
    rules = min(rules, len(ACTS))
    safe, *violations = invented(rng, rules + 1)
    samples: list[Sample] = []
    for number in range(n):
        act = int(rng.integers(rules))
        aside = ASIDE[int(rng.integers(len(ASIDE)))]
        excuse = int(rng.integers(rules))
        kind = rng.random()
        if kind < 0.5:
            clause = UNLESS[excuse] if excuse != act else ""  # somebody else's exception does not excuse
            text, label = f"{ACTS[act]} {aside} {clause}".strip(), violations[act]
        elif kind < 0.75:
            text, label = f"{ACTS[act]} {aside} {UNLESS[act]}", safe
        else:
            text, label = f"{HARMLESS[int(rng.integers(len(HARMLESS)))]} {aside}", safe
        samples.append(Sample(f"policy-{number}", f"{text}, {rng.integers(2, 90)} times", label))
    known = {"safe": safe, "rules": [[ACTS[place], UNLESS[place], violations[place]] for place in range(rules)]}
    return Domain("policy", Task(samples, "macro-f1", text="Does it break a rule?"), known, seed)


# -- charges: conjunctions of elements

ELEMENTS = (
    "at night", "with a weapon", "in a dwelling", "against an officer", "by deceit", "for money", "in a group", "with a false name",
    "against a child", "by computer", "in a vehicle", "without a licence", "with threats", "of public funds", "across the border",
    "by breaking a lock", "under influence", "of a document",
)  # fmt: skip
N_CHARGES = 15


def charges(n: int, *, seed: int = 0, rules: int = N_CHARGES) -> Domain:
    """One to three of 15 labels, each a conjunction of two or three elements of the act; micro-F1."""
    rng = np.random.default_rng([seed, 4])
    labels = invented(rng, rules)
    needs: dict[str, frozenset[str]] = {}
    for label in labels:
        while True:
            drawn = rng.permutation(len(ELEMENTS))[: int(rng.integers(2, 4))]
            wanted = frozenset(ELEMENTS[place] for place in drawn)
            if not any(wanted <= other or other <= wanted for other in needs.values()):
                break
        needs[label] = wanted
    samples: list[Sample] = []
    while len(samples) < n:
        chosen = rng.permutation(rules)[: int(rng.integers(1, 3))]
        facts = frozenset[str]().union(*(needs[labels[place]] for place in chosen))
        target = [label for label in labels if needs[label] <= facts]
        if not 1 <= len(target) <= 3:
            continue
        told = [sorted(facts)[place] for place in rng.permutation(len(facts))]
        text = f"The accused, aged {rng.integers(18, 80)}, acted {', '.join(told)}."
        samples.append(Sample(f"charges-{len(samples)}", text, SEPARATOR.join(sorted(target))))
    known = {"needs": {label: sorted(wanted) for label, wanted in needs.items()}}
    return Domain("charges", Task(samples, "micro-f1", text="Name the charges."), known, seed)


# -- rewrite: string rules in order

N_RULES, N_APPLIED, N_RECIPES = 30, 6, 6


def rewrite(n: int, *, seed: int = 0, rules: int = N_RECIPES) -> Domain:
    """Which of six recipes, each 6 of 30 hidden string rules in order, made the second string of the first? 1-of-6."""
    rng = np.random.default_rng([seed, 5])
    letters = "abdefgiklmnoprstuvz"
    pairs = [(letters[a], letters[b]) for a, b in (rng.permutation(len(letters))[:2] for _ in range(N_RULES))]
    labels = invented(rng, rules)
    recipes = {label: [pairs[place] for place in rng.permutation(N_RULES)[:N_APPLIED]] for label in labels}
    samples: list[Sample] = []
    while len(samples) < n:
        word = " ".join(invented(rng, 4))
        results = {label: applied(word, recipe) for label, recipe in recipes.items()}
        label = labels[int(rng.integers(rules))]
        if list(results.values()).count(results[label]) == 1:
            samples.append(Sample(f"rewrite-{len(samples)}", f"{word} became {results[label]}", label))
    return Domain("rewrite", Task(samples, text="Name the recipe."), {"recipes": recipes}, seed)


def applied(word: str, recipe: list[tuple[str, str]]) -> str:
    """A string after each rule (old letter, new letter) in order."""
    for old, new in recipe:
        word = word.replace(old, new)
    return word


GENERATORS: dict[str, Callable[..., Domain]] = {
    "triage": triage, "ledger": ledger, "policy": policy, "charges": charges, "rewrite": rewrite,
}  # fmt: skip


def generate(name: str, n: int, *, seed: int = 0) -> Domain:
    """A domain by its name. Raises ValueError when there is none."""
    from upheld.context.data.apidocs import apidocs

    if name == "apidocs":
        return apidocs(n, seed=seed)
    if name not in GENERATORS:
        raise ValueError(f"there is no domain {name!r}; choose apidocs, {', '.join(GENERATORS)}")
    return GENERATORS[name](n, seed=seed)


def bayes_labels(domain: Domain, findings: NDArray[np.bool_]) -> list[str]:
    """The likeliest condition of `triage` given all findings (n, 40), by its true table."""
    p = np.array(domain.rules["probabilities"])
    score = findings @ np.log(p).T + ~findings @ np.log1p(-p).T
    return [domain.rules["labels"][place] for place in score.argmax(axis=1)]
