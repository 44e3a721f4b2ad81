"""Facts about countries, from the package countryinfo: the closed world against which statements about them are checked."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from upheld.isotropy.data.country_names import (
    CAPITAL_NAMES,
    CORRECTED,
    COUNTRY_NAMES,
    DEMONYMS,
    NO_MEMBERS,
    OBSOLETE,
    SEATS,
)

BLOCKS, BLOCK_SIZE = 5, 24
BLOCK_SEED = 20260214


@dataclass(frozen=True)
class Country:
    """What is known of a country; a field is empty where the package knows nothing.

    Attributes
    ----------
    code : ISO 3166-1 alpha-3
    name : as in prompts
    names, capitals, demonyms : with their other spellings, accents taken off
    areas : region, subregion and intermediate region
    languages : ISO 639-1 codes
    currencies : ISO 4217 codes
    neighbours : codes of the countries that share a border on land
    population : persons
    """

    code: str
    name: str
    names: tuple[str, ...]
    demonyms: tuple[str, ...]
    capitals: tuple[str, ...]
    areas: frozenset[str]
    languages: frozenset[str]
    currencies: frozenset[str]
    neighbours: frozenset[str]
    population: int

    @property
    def complete(self) -> bool:
        facts = (
            self.capitals,
            self.areas,
            self.languages,
            self.currencies,
            self.neighbours,
            self.demonyms,
            self.population,
        )
        return all(facts) and len(self.areas) > 1


@cache
def world() -> dict[str, Country]:
    """Every country and territory of the package by code, and Kosovo, which others border, by name alone.

    Raises
    ------
    ImportError
        If countryinfo is not installed.
    """
    try:
        from countryinfo import all_countries
    except ImportError as error:
        raise ImportError('the facts about countries need countryinfo: pip install "upheld[isotropy]"') from error
    entries: list[Any] = [country.info() for country in all_countries()]
    countries = [_country(entry) for entry in entries if entry["name"] not in OBSOLETE and _code(entry)]
    nothing: frozenset[str] = frozenset()
    kosovo = Country("XKX", "Kosovo", ("Kosovo",), (), (), nothing, nothing, nothing, nothing, 0)
    return {country.code: country for country in [*countries, kosovo]}


def prompt(name: str) -> str:
    """What a model is asked about a country."""
    return f"Write a short factual description of {name}: capital, region, neighbours, languages, currency, population."


@cache
def blocks() -> tuple[tuple[str, ...], ...]:
    """Codes of the countries that are asked about: 5 disjoint blocks of 24, drawn once and for all.

    Drawn from the member states of the United Nations of which all facts are known, neighbours on land among them.
    """
    eligible = sorted(code for code, country in world().items() if country.complete and code not in NO_MEMBERS)
    drawn = np.random.default_rng(BLOCK_SEED).permutation(len(eligible))[: BLOCKS * BLOCK_SIZE]
    codes = [eligible[i] for i in drawn]
    return tuple(tuple(codes[b * BLOCK_SIZE : (b + 1) * BLOCK_SIZE]) for b in range(BLOCKS))


def plain(text: str) -> str:
    """The text without accents, and with straight quotes and hyphens."""
    straight = text.translate(
        {0x2018: "'", 0x2019: "'", 0x02BC: "'", 0x2010: "-", 0x2011: "-", 0x00A0: " ", 0x202F: " "}
    )
    return "".join(sign for sign in unicodedata.normalize("NFKD", straight) if not unicodedata.combining(sign))


def _country(entry: dict[str, Any]) -> Country:
    code = _code(entry)
    name = entry["name"]
    capital = entry.get("capital")
    languages = (CORRECTED["languages"].get(language, language) for language in entry.get("languages") or ())
    borders = (CORRECTED["borders"].get(border, border) for border in entry.get("borders") or ())
    return Country(
        code=code,
        name=name,
        names=_spellings([name, name.removeprefix("The "), *COUNTRY_NAMES.get(code, ())]),
        demonyms=_spellings([*(entry.get("demonym") or "").split(","), *DEMONYMS.get(code, ())]),
        capitals=_spellings([capital or "", *CAPITAL_NAMES.get(code, ()), *SEATS.get(code, ())]),
        areas=frozenset(filter(None, (entry.get(key) for key in ("region", "subregion", "intermediateregion")))),
        languages=frozenset(languages),
        currencies=frozenset(entry.get("currencies") or ()),
        neighbours=frozenset(borders),
        population=int(entry.get("population") or 0),
    )


def _code(entry: dict[str, Any]) -> str:
    return (entry.get("ISO") or {}).get("alpha3") or ""


def _spellings(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(plain(name.strip()) for name in names if name.strip()))
