from __future__ import annotations

import re
from hashlib import sha256

import numpy as np
import pytest

from upheld.isotropy.data.bioworld import bioworld_hash, generate
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

MODES = ("independent", "style", "consistent", "mixed")
FROZEN = "6b96072f2791ccf7903b68a65cb9da63c7b158ad375eff6d4460478c8e350f3a"


def world(seed=0, **options):
    return generate(np.random.default_rng(seed), **options)


def values_in(text: str, attributes: int) -> tuple[str, ...]:
    """What a reader finds: the value of each kind in the sentence with the ordinal, or without any for the first round."""
    sentences = re.split(r"(?<=\.) (?=[A-Z])", text)
    found = []
    for r in range(attributes // len(KINDS)):
        mine = [
            s
            for s in sentences
            if (ORDINALS[r] in s.split() if r else not set(ORDINALS[1:]) & set(re.findall(r"\w+", s)))
        ]
        for kind in KINDS:
            hits = [
                value for value in VALUES[kind] for s in mine if re.search(rf"\b{re.escape(value)}\b", s, re.IGNORECASE)
            ]
            assert len(hits) == 1, (kind, r, hits, text)
            found.append(hits[0])
    return tuple(found)


def test_the_sample_is_the_frozen_one():
    """Whoever changes the generator makes other data of every race; then this digest, and the verdicts, must be renewed."""
    digest = sha256()
    for mode in MODES:
        for attributes in (7, 14, 28):
            for person in world(persons=4, answers=3, mode=mode, attributes=attributes):
                digest.update(repr(person).encode())
    assert digest.hexdigest() == FROZEN


def test_the_hash_is_stable_and_of_sources_too():
    assert bioworld_hash() == bioworld_hash()
    assert re.fullmatch(r"[0-9a-f]{64}", bioworld_hash())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("attributes", [7, 14, 28])
def test_truth_can_be_read_off_the_text(mode, attributes):
    for person in world(1, persons=8, answers=3, mode=mode, attributes=attributes):
        for text, stated, share in zip(person.answers, person.stated, person.factualities, strict=True):
            read = values_in(text, attributes)
            assert read == stated
            right = sum(value == true for value, true in zip(read, person.truth, strict=True))
            assert share == pytest.approx(right / attributes)


def test_style_is_all_true_and_worded_in_many_ways():
    for person in world(2, persons=10, answers=6, mode="style"):
        assert person.factualities == (1.0,) * 6
        assert person.consistency == 1
        assert len(set(person.answers)) == 6


def test_consistent_repeats_truth_and_falsehood_alike():
    persons = world(3, persons=200, mode="consistent")
    assert all(person.consistency == 1 and len(set(person.factualities)) == 1 for person in persons)
    shares = np.array([person.factuality for person in persons])
    assert shares.min() < 0.2 < 0.8 < shares.max()


def test_half_of_mixed_are_consistent():
    persons = world(4, persons=30, mode="mixed")
    assert sum(person.consistent for person in persons) == 15
    assert all(person.consistency == 1 for person in persons if person.consistent)


def test_independent_follows_kappa():
    """Share true = kappa; two answers agree with probability kappa^2 + (1 - kappa)^2/11: both true, or the same of 11 wrong values."""
    persons = world(5, persons=400, answers=4, mode="independent")
    kappa = np.array([person.knowledge for person in persons])
    share = np.array([person.factuality for person in persons])
    agreement = np.array([person.consistency for person in persons])
    expected = kappa**2 + (1 - kappa) ** 2 / 11
    assert np.mean(share - kappa) == pytest.approx(0, abs=4 * np.sqrt(1 / 6 / 28 / 400))
    assert np.mean(agreement - expected) == pytest.approx(0, abs=0.02)
    assert np.corrcoef(kappa, share)[0, 1] > 0.95
    assert kappa.min() < 0.02 < 0.98 < kappa.max()
    assert kappa.mean() == pytest.approx(0.5, abs=0.05)


def test_wrong_values_are_uniform():
    """Chi-square over the 12 values of each kind; 0.999 quantile with 11 degrees of freedom is 31.3."""
    persons = world(6, persons=600, answers=5)
    for k, kind in enumerate(KINDS):
        wrong = [s[k] for person in persons for s in person.stated if s[k] != person.truth[k]]
        counts = np.array([wrong.count(value) for value in VALUES[kind]])
        expected = counts.sum() / 12
        assert ((counts - expected) ** 2 / expected).sum() < 31.3, kind


def test_modes_share_persons_and_truth():
    worlds = [world(7, persons=5, mode=mode) for mode in MODES]
    assert len({tuple((person.name, person.truth) for person in persons) for persons in worlds}) == 1


def test_more_answers_leave_the_first_as_they_are():
    few, many = (world(8, persons=6, answers=n, mode="mixed") for n in (3, 10))
    for a, b in zip(few, many, strict=True):
        assert a.answers == b.answers[:3]
        assert a.stated == b.stated[:3]


def test_names_are_unique_and_seeds_matter():
    persons = world(9, persons=1200)
    assert len({person.name for person in persons}) == 1200
    assert world(10)[0] != world(11)[0]


def test_fair_by_design():
    """Six wordings or more of each kind, of various lengths; eight fillers or more; no value hides in another text."""
    for statements in (FIRST_STATEMENTS, LATER_STATEMENTS):
        assert set(statements) == set(KINDS)
        for wordings in statements.values():
            assert len(set(wordings)) >= 6
            lengths = [len(wording.split()) for wording in wordings]
            assert max(lengths) >= 1.75 * min(lengths)
    assert len(FILLERS) >= 8
    every = [value for values in VALUES.values() for value in values]
    names = [*FIRST_NAMES["she"], *FIRST_NAMES["he"], *SURNAMES]
    wordings = [
        w for statements in (FIRST_STATEMENTS, LATER_STATEMENTS) for group in statements.values() for w in group
    ]
    other = [*wordings, *FILLERS, *OPENERS, *names, *(word for group in SYNONYMS.values() for word in group)]
    assert len(set(every)) == len(every) == 7 * 12
    for value in every:
        assert not any(value.lower() in text.lower() for text in [*other, *(v for v in every if v != value)]), value


def test_wording_and_order_and_length_vary():
    texts = [text for person in world(12, persons=40, answers=5, mode="style") for text in person.answers]
    words = np.array([len(text.split()) for text in texts])
    fillers = [sum(filler.split("}")[-1].strip() in text for filler in FILLERS) for text in texts]
    assert 60 <= words.mean() <= 100
    assert words.std() > 8
    assert set(fillers) >= {0, 1, 2, 3, 4}
    assert len({text.split()[0] for text in texts}) > 30


def test_longer_lives_make_longer_texts():
    words = [np.mean([len(t.split()) for p in world(13, attributes=n) for t in p.answers]) for n in (7, 14, 28)]
    assert 1.6 < words[1] / words[0] < 2.2
    assert 1.6 < words[2] / words[1] < 2.2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "random"}, "mode must be one of independent, style, consistent, mixed, got 'random'"),
        ({"attributes": 10}, "attributes must be 7, 14 or 28, got 10"),
        ({"answers": 1}, "1 to 1200 persons of at least 2 answers each, got 30 of 1"),
        ({"persons": 5000}, "got 5000 of 5"),
        ({"persons": 0}, "got 0 of 5"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        world(**options)


def test_no_attribute_and_no_answer_is_special():
    """Each of the 7 attributes in each of the 4 answers is true with the probability kappa, 1/2 on average: 5 sd of 1,200 draws."""
    persons = world(14, persons=1200, answers=4)
    true = np.array([[np.equal(stated, person.truth) for stated in person.stated] for person in persons])
    assert np.abs(true.mean(axis=0) - 0.5).max() < 5 * np.sqrt(0.25 / 1200)
