from __future__ import annotations

from itertools import chain

import pytest

from upheld.isotropy.data.countries import blocks, plain, prompt, world
from upheld.isotropy.data.country_names import AREAS, CURRENCY_UNITS, LANGUAGES, NO_MEMBERS, SEATS


def test_facts_that_anyone_can_check():
    peru = world()["PER"]
    assert peru.name == "Peru"
    assert peru.capitals == ("Lima",)
    assert peru.areas == {"Americas", "Latin America and the Caribbean", "South America"}
    assert peru.languages == {"es"}
    assert peru.currencies == {"PEN"}
    assert peru.neighbours == {"BOL", "BRA", "CHL", "COL", "ECU"}
    assert 28e6 < peru.population < 35e6


def test_five_disjoint_blocks_of_complete_countries():
    assert [len(block) for block in blocks()] == [24] * 5
    codes = list(chain.from_iterable(blocks()))
    assert len(set(codes)) == 120
    assert all(world()[code].complete and code not in NO_MEMBERS for code in codes)


def test_blocks_are_fixed():
    """The cached texts are of these countries, in this order."""
    assert blocks()[0][:4] == ("LBY", "HND", "MMR", "ISR")
    assert blocks()[4][-1] == "UKR"


def test_every_code_has_a_word():
    complete = [country for country in world().values() if country.complete]
    units = set(chain.from_iterable(CURRENCY_UNITS.values()))
    fund_codes = {"CLF", "UYI", "USN", "USS", "CHE", "CHW"}  # units of account, which nobody pays with
    for country in complete:
        assert country.languages <= set(LANGUAGES), country
        assert country.areas <= set(AREAS) | {"South-Eastern Asia", "Channel Islands"}, country
        assert country.currencies - fund_codes <= units, country
        assert country.neighbours <= set(world()), country


def test_seats_are_of_known_countries():
    assert set(SEATS) <= set(world())


def test_names_are_unique():
    names = [name for country in world().values() for name in country.names]
    assert len(names) == len(set(names))


def test_plain():
    assert plain("Côte d’Ivoire – São Tomé") == "Cote d'Ivoire – Sao Tome"


def test_prompt_asks_for_all_relations():
    assert prompt("Peru") == (
        "Write a short factual description of Peru: capital, region, neighbours, languages, currency, population."
    )


def test_without_the_package_the_pip_line_is_given(monkeypatch):
    import sys

    world.cache_clear()
    monkeypatch.setitem(sys.modules, "countryinfo", None)
    try:
        with pytest.raises(ImportError, match=r'pip install "upheld\[isotropy\]"'):
            world()
    finally:
        world.cache_clear()
