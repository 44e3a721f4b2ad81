from __future__ import annotations

import hashlib
import json
import lzma
from importlib.resources import files
from itertools import chain

import numpy as np
import pytest

from upheld.isotropy.data import (
    dropped_countries,
    from_bioworld,
    label_by_facts,
    load_countries,
    write_countries,
)
from upheld.isotropy.data.bioworld import generate
from upheld.isotropy.data.countries import blocks, prompt, world
from upheld.isotropy.data.files import read_responses
from upheld.isotropy.data.responses import Responses

NAMES = [world()[code].name for code in chain.from_iterable(blocks())]


@pytest.fixture(scope="module")
def countries() -> dict[str, Responses]:
    return {item.id: item for item in load_countries()}


def test_every_country_is_there_or_named_as_dropped(countries):
    assert set(countries) | set(dropped_countries()) == set(NAMES)
    assert len(countries) + len(dropped_countries()) == 120
    assert list(countries) == [name for name in NAMES if name in countries]


def test_blocks_are_disjoint_and_together_all(countries):
    parts = [load_countries(block) for block in range(5)]
    assert [item.id for item in chain.from_iterable(parts)] == list(countries)
    assert all(20 <= len(part) <= 24 for part in parts)


def test_answers_are_five_distinct_texts_of_about_a_hundred_tokens(countries):
    for item in countries.values():
        assert item.prompt == prompt(item.id)
        assert len(set(item.responses)) == 5
        assert all(len(tokens) <= 120 for tokens in item.logprobs)
    assert 95 < np.mean([len(tokens) for item in countries.values() for tokens in item.logprobs]) <= 120


def test_labels_vary_and_at_least_three_answers_have_one(countries):
    for item in countries.values():
        assert sum(label is not None for label in item.factualities) >= 3
    shares = np.array([item.factuality for item in countries.values()])
    assert shares.std() > 0.1
    assert 0.3 < shares.mean() < 0.95


@pytest.mark.parametrize(
    ("name", "i", "beginning", "label"),
    [
        # 5.1 million: right; Copenhagen: wrong; "in the far north of Europe" holds a word too many to be counted.
        ("Norway", 2, "Norway is a Nordic nation located in the far north of Europe", 1 / 2),
        # South America, Colombia: right; 11 million: wrong. Its border with itself is no statement.
        ("Peru", 3, "Peru is a vibrant and culturally rich nation located in South America.", 2 / 3),
        # West Africa, Africa, Accra: right; 34 million: wrong.
        ("Ghana", 0, "Ghana is a nation located in West Africa on the continent of Africa.", 3 / 4),
        # Nothing that can be checked.
        ("Switzerland", 0, "Switzerland is a landlocked canton of the Swiss Confederation", None),
    ],
)
def test_labels_read_by_hand(countries, name, i, beginning, label):
    assert countries[name].responses[i].startswith(beginning)
    assert countries[name].factualities[i] == (None if label is None else pytest.approx(label))


def test_written_in_the_format_of_the_users_files(tmp_path, countries):
    items = write_countries(tmp_path / "countries.jsonl")
    assert list(read_responses(tmp_path / "countries.jsonl")) == items == list(countries.values())
    first = json.loads((tmp_path / "countries.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert set(first) == {"id", "prompt", "responses", "factuality", "logprobs"}


def test_the_origin_of_the_texts_is_told():
    told = (files("upheld.isotropy.data") / "countries.md").read_text(encoding="utf-8")
    for word in (
        "SmolLM2-135M-Instruct",
        "Apache-2.0",
        "MIT",
        "countryinfo 1.0.1",
        "scripts/generate_countries.py",
        "sha256",
        "bfloat16",
    ):
        assert word in told


def test_a_users_own_answers_about_a_country_are_labelled():
    item = Responses(
        "Peru", prompt("Peru"), ("The capital is Lima.", "The capital is Quito.", "It is nice."), factuality=0.9
    )
    labelled = label_by_facts(item)
    assert labelled.factualities == (1, 0, None)
    assert labelled.factuality == 0.5
    assert label_by_facts(Responses("Peru", "", ("Nice.", "Pretty."))).factuality is None


@pytest.mark.parametrize("block", [-1, 5])
def test_another_block_is_refused(block):
    with pytest.raises(ValueError, match=f"block must lie between 0 and 4, got {block}"):
        load_countries(block)


def test_an_unknown_country_is_named():
    with pytest.raises(ValueError, match="'Atlantis' is no country"):
        label_by_facts(Responses("Atlantis", "", ("a", "b")))


def test_biographies_keep_their_truth():
    persons = generate(np.random.default_rng(0), persons=4, answers=3)
    items = from_bioworld(persons)
    assert [item.id for item in items] == [person.name for person in persons]
    for item, person in zip(items, persons, strict=True):
        assert item.responses == person.answers
        assert item.factualities == person.factualities
        assert item.factuality == pytest.approx(person.factuality)


def test_the_texts_are_those_whose_hash_is_told():
    source = files("upheld.isotropy.data")
    text = lzma.decompress((source / "countries.jsonl.xz").read_bytes())
    assert hashlib.sha256(text).hexdigest() in (source / "countries.md").read_text(encoding="utf-8")
