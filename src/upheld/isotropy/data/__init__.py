"""The data that comes with the method, as `Responses`: descriptions of countries by a small model, and generated biographies.

Loaders of the users' own files are in `upheld.isotropy.data.files`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path

from upheld.isotropy.data.bioworld import Person
from upheld.isotropy.data.countries import Country, blocks, world
from upheld.isotropy.data.country_statements import share_right
from upheld.isotropy.data.files import read_responses, write_responses
from upheld.isotropy.data.responses import Responses

COUNTRIES = "countries.jsonl.xz"
LABELLED = 3
"""Labelled answers below which a country is dropped."""


def label_by_facts(item: Responses) -> Responses:
    """The same answers, labelled: the share of right among the checkable statements of each about the country ``item.id``.

    For answers of the user's own model to `upheld.isotropy.data.countries.prompt`. An answer without a checkable statement has no
    label.

    Raises
    ------
    ValueError
        If there is no country of that name.
    """
    country = _by_name().get(item.id)
    if country is None:
        raise ValueError(f"{item.id!r} is no country of the package countryinfo; name countries as it does")
    return replace(item, factuality=None, factualities=tuple(share_right(answer, country) for answer in item.responses))


def load_countries(block: int | None = None) -> list[Responses]:
    """Five descriptions each of 120 countries by SmolLM2-135M-Instruct, labelled by the facts of countryinfo.

    Countries with fewer than 3 labelled answers are left out; `dropped_countries` names them. See ``countries.md`` for how the
    texts were made.

    Parameters
    ----------
    block : one of the 5 disjoint blocks of 24, from 0; None: all

    Raises
    ------
    ValueError
        On another block.
    """
    if block is not None and not 0 <= block < len(blocks()):
        raise ValueError(f"block must lie between 0 and {len(blocks()) - 1}, got {block}")
    wanted = {world()[code].name for b, codes in enumerate(blocks()) if block in (None, b) for code in codes}
    return [item for item in _labelled() if item.id in wanted and _is_labelled(item)]


def dropped_countries() -> list[str]:
    """Countries with fewer than 3 labelled answers."""
    return [item.id for item in _labelled() if not _is_labelled(item)]


def write_countries(path: str | Path) -> list[Responses]:
    """Write the countries with their labels as JSON Lines, the format of the users' own files; returns what was written."""
    items = load_countries()
    write_responses(path, items)
    return items


def from_bioworld(persons: Iterable[Person]) -> list[Responses]:
    """Biographies with the factuality of each, which is exact."""
    return [
        Responses(id=person.name, prompt=person.prompt, responses=person.answers, factualities=person.factualities)
        for person in persons
    ]


@cache
def _labelled() -> Sequence[Responses]:
    with resources.as_file(resources.files(__name__) / COUNTRIES) as path:
        return tuple(label_by_facts(item) for item in read_responses(path))


def _is_labelled(item: Responses) -> bool:
    return sum(label is not None for label in item.factualities or ()) >= LABELLED


@cache
def _by_name() -> dict[str, Country]:
    return {country.name: country for country in world().values()}
