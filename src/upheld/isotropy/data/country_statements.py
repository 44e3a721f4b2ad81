"""Which statements of a text about a country can be checked against the closed world, and which of them are right.

A statement is a cue, then words that carry no meaning of their own, then a name of the world (or the other way round):
"capital ... is ... Lima", "Lima, ... the capital". Where any other word stands between, nothing is taken for a statement, so a negated
one ("is not the capital") is never counted. A statement is right if the name is in the country's own set, wrong if it is in
another's; a name outside the world (a city that is no capital, "the Middle East") is no checkable statement. What is said twice
counts once. What is said of another country ("the capital of Chile", "Peru, which borders Chile") is not counted.

    capital       the city
    region        region, subregion or intermediate region, where the country is said to lie
    neighbour     each country named behind "borders", "bordered by", "neighbours", up to the end of that part of the sentence;
                  borders at sea are left out, and so are rivers, seas and lakes that bear a country's name
    language      each language that is said to be spoken or official
    currency      unit with or without its adjective ("franc", "Swiss franc"), or code; a bare unit is right if one of the
                  country's currencies has it
    population    right within 20 %; not counted where the sentence speaks of a city
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from upheld.isotropy.data.countries import Country, plain, world
from upheld.isotropy.data.country_names import (
    AREAS,
    CURRENCY_OWNERS,
    CURRENCY_UNITS,
    EITHER,
    LANGUAGES,
    NORTH_AMERICA,
    UNIT_SPELLINGS,
)

Relation = Literal["capital", "region", "neighbour", "language", "currency", "population"]
TOLERANCE = 0.2


@dataclass(frozen=True)
class Statement:
    """One checkable statement: what relation, which name or number in it, and whether it is right."""

    relation: Relation
    value: str
    right: bool


def statements(text: str, country: Country) -> tuple[Statement, ...]:
    """The checkable statements of `text` about `country`, each once.

    Examples
    --------
    >>> peru = world()["PER"]
    >>> statements("The capital of Peru is Lima. It borders Chile and Spain.", peru)  # doctest: +NORMALIZE_WHITESPACE
    (Statement(relation='capital', value='Lima', right=True), Statement(relation='neighbour', value='Chile', right=True),
     Statement(relation='neighbour', value='Spain', right=False))
    """
    found = [
        statement
        for sentence in _sentences(_marked(plain(text), country))
        for read in (_capitals, _regions, _neighbours, _languages, _currencies, _populations)
        for statement in read(sentence, country)
    ]
    return tuple(dict.fromkeys(found))


def share_right(text: str, country: Country) -> float | None:
    """Share of the checkable statements that are right; None if there is none."""
    checked = statements(text, country)
    return sum(statement.right for statement in checked) / len(checked) if checked else None


# Words


def _any(words: Iterable[str]) -> str:
    """Any of the words, the longest first, so that a name is never found inside a longer one."""
    return "(?:" + "|".join(re.escape(word) for word in sorted(set(words), key=lambda word: (-len(word), word))) + ")"


def _word(pattern: str) -> str:
    """The pattern as words of their own: Niger is not in Nigeria, Guinea not in Guinea-Bissau, Dominica not in Dominican."""
    return rf"(?<![\w-])(?:{pattern})(?![\w-])"


@cache
def _countries_by_name() -> dict[str, frozenset[str]]:
    named = {name: frozenset([code]) for code, country in world().items() for name in country.names}
    return named | {name: frozenset(codes) for name, codes in EITHER.items()}


@cache
def _country_name() -> str:
    return _word(_any(_countries_by_name()))


OWN = "@"
"""Stands in a sentence for the name of the country that it is about, so that one pattern does for all countries."""


def _marked(text: str, country: Country) -> str:
    """The text with the country's own name replaced, also where it is in capitals, but not inside a longer name."""
    text = text.replace(OWN, " ")
    for name in country.names:
        text = re.sub(_word(re.escape(name.upper())), OWN, text)
    city = _any(name for name in country.capitals if name not in country.names and _names_within(name))
    names = _compiled(rf"(?:{city})(?![\w-])|{_country_name()}") if city != "(?:)" else _compiled(_country_name())
    return names.sub(
        lambda match: OWN if country.code in _countries_by_name().get(match.group(), ()) else match.group(), text
    )


def _names_within(city: str) -> bool:
    return _compiled(_country_name()).search(city) is not None


def _glue(words: str) -> str:
    """Words that carry no meaning of their own, with what separates them; as few as do."""
    own = rf"(?:\b(?:the |this |our )?(?:country|nation|state|kingdom|republic)|{OWN})(?:'s)?"
    return rf"(?:(?:[\s,:;*_\"(=-]|(?i:\b(?:{words})\b)|{own}(?![\w-]))*?)(?<![A-Za-z-])"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


ABBREVIATION = re.compile(r"\b(?:St|D\.C|U\.S|U\.S\.A|approx|ca|e\.g|i\.e|No|Mt|Dr)\.$")


def _sentences(text: str) -> Iterator[str]:
    """Sentences; the items of a list are one with the line that announces them."""
    text = re.sub(r"[:：][*_ ]*\n+\s*(?:[-*•+]|\d+[.)])\s*", ": ", text)
    text = re.sub(r"(?<=: )([^\n:.]+)((?:\n\s*(?:[-*•+]|\d+[.)])\s*[^\n:.]+)+)", _one_line, text)
    begun = ""
    for piece in re.split(r"((?<=[.!?])[\"')*]*\s+|\n+)", text):
        begun += piece
        if not ABBREVIATION.search(begun.rstrip()) and begun.strip() and (not piece.strip() or piece == ""):
            yield begun.strip()
            begun = ""
    if begun.strip():
        yield begun.strip()


def _one_line(match: re.Match[str]) -> str:
    return match[1] + re.sub(r"\n\s*(?:[-*•+]|\d+[.)])\s*", ", ", match[2])


# Relations

CAPITAL_FORWARD = (
    "is|was|are|the|of|city|cities|town|and|largest|biggest|main|most|populous|named|called|known|as|located|in|at|being|specifically|"
    "which|also|officially|its|current|currently"
)
CAPITAL_BACKWARD = (
    "is|was|being|which|as|serves|serving|served|the|its|both|and|largest|biggest|most|populous|city|political|official|administrative|"
    "current|also|national|vibrant|a|bustling"
)


def _capitals(sentence: str, country: Country) -> Iterator[Statement]:
    for match in _compiled(_capital_forward()).finditer(sentence):
        if not _of_another(sentence[: match.start()]):
            yield from _capital(match["value"], country)
    for match in _compiled(_capital_backward()).finditer(sentence):
        if not _compiled(rf"^(?: city)?,? of (?:the )?(?:[\w-]+ )*?{_country_name()}").search(match["after"]):
            yield from _capital(match["value"], country)


def _capital(named: str, country: Country) -> Iterator[Statement]:
    """A city; the country's own name where the capital bears it too, as in Luxembourg."""
    if named != OWN:
        yield Statement("capital", _first_spelling(named), named in country.capitals)
    elif set(country.names) & set(country.capitals):
        yield Statement("capital", country.capitals[0], True)


@cache
def _capital_forward() -> str:
    cities = {name for country in world().values() for name in country.capitals}
    states = rf"(?<!of )(?<!of the )(?:{_word(_any(cities & set(_countries_by_name())))}|{OWN})(?!'s)"
    city = rf"(?:{_word(_any(cities - set(_countries_by_name())))}|{states})"
    return rf"\b[Cc]apital\b{_glue(CAPITAL_FORWARD)}(?P<value>{city})"


@cache
def _capital_backward() -> str:
    city = _word(_any(name for country in world().values() for name in country.capitals))
    return rf"(?P<value>{city}){_glue(CAPITAL_BACKWARD)}\bcapital\b(?P<after>.{{0,40}})"


def _of_another(before: str) -> bool:
    """Whether the words just before are another country's possessive: "Chile's" capital."""
    return _compiled(rf"{_country_name()}'s?\s*(?:current |national |official )?$").search(before) is not None


@cache
def _first_spelling(city: str) -> str:
    return next(country.capitals[0] for country in world().values() if city in country.capitals)


REGION_CUES = (
    r"(?:located|situated|lies|lying|nestled|found|positioned|based)(?:,? \w+ly)? (?:in|within|on|at)\b|"
    r"\b(?:country|countries|nation|nations|state|states|republic|kingdom|monarchy|island|islands) (?:in|within|of)\b|"
    r"\b[Rr]egion(?: is| of [\w ]{2,30}? is)?\s*:|\b[Rr]egion is\b|\bpart of\b|\bcontinent (?:of|is)\b|\b[Cc]ontinent:"
)
DIRECTION = r"(?:north|south|east|west)(?:-?(?:east|west))?(?:-?central)?(?:ern)?(?:most)?"
REGION_GLUE = (
    rf"the|a|an|region|regions|subregion|of|in|continent|heart|center|centre|central|middle|part|parts|side|tip|edge|end|corner|horn|coast|"
    rf"between|both|is|known|as|area|{DIRECTION}"
)


@cache
def _areas_by_word() -> dict[str, frozenset[str]]:
    by_word = {plain(word): frozenset([area]) for area, words in AREAS.items() for word in words}
    return by_word | {"North America": frozenset(NORTH_AMERICA)}


@cache
def _region_patterns() -> tuple[str, str]:
    """An area, or a country, which is none though its name may hold one; and where the country is said to lie in some."""
    area = rf"{_word(_any(_areas_by_word()))}(?! (?:Sea|coast|Ocean|Plate|Union|Community)\b)"
    value = rf"(?:{area}|{_country_name()})"
    listed = rf"(?P<values>{value}(?:(?:,| and|, and|/)(?: the)? {value})*)"
    return value, rf"(?:{REGION_CUES}){_glue(REGION_GLUE)}{listed}"


def _regions(sentence: str, country: Country) -> Iterator[Statement]:
    value, pattern = _region_patterns()
    for match in _compiled(pattern).finditer(sentence):
        for named in _compiled(value).finditer(match["values"]):
            areas = _areas_by_word().get(named.group())
            if areas is not None:
                yield Statement("region", named.group(), bool(areas & country.areas))


NEIGHBOUR_CUES = r"\b(?:[Bb]ordering|[Bb]ordered|[Bb]orders|border)\b(?: on| with| by)?|\b[Nn]eighbou?r(?:s|ing)?\b|\b[Ss]urrounded by\b"
NEIGHBOUR_END = (
    r"[;]|\b(?:[Cc]apital|[Pp]opulation|[Ll]anguage|[Cc]urrenc(?:y|ies)|has|have|which|who|where|while|located|situated|not|but|except|"
    r"home|covers|covering|making|known|member|through|via|across|maritime)\b|\b(?:is|are|was|were) (?:a|an|the|also|one|its|part)\b"
)
WATERS = r"(?:River|Sea|Delta|Basin|Canal|Channel|Valley|Lake|Straits?|Gulf|Mountains?|Desert|Peninsula|Ocean|Trench)"


@cache
def _country_or_water() -> str:
    name = rf"(?:{_country_name()}|{OWN})"
    water = (
        rf"(?:River|Rivers|Lake|Gulf|Bay|Sea|Straits?|Bight|Isthmus|Cape)(?: of)?(?: the)? {name}|(?:South |East )?{name} {WATERS}\b|"
        r"\b(?:New Mexico|Inner Mongolia|Outer Mongolia|West Indies)\b"
    )
    return rf"{water}|(?P<country>{_country_name()})"


def _neighbours(sentence: str, country: Country) -> Iterator[Statement]:
    found = _compiled(_country_or_water())
    for cue in _compiled(NEIGHBOUR_CUES).finditer(sentence):
        before, after = sentence[: cue.start()], sentence[cue.end() :]
        if _denied(before) or _said_of_another(before):
            continue
        end = _compiled(NEIGHBOUR_END).search(after)
        for match in found.finditer(after[: end.start()] if end else after):
            if match["country"]:
                codes = _countries_by_name()[match["country"]]
                yield Statement("neighbour", match["country"], bool(codes & country.neighbours))


def _denied(before: str) -> bool:
    """Whether the cue is negated, or speaks of borders at sea."""
    negated = r"(?:\b(?:not|no|never|without)\b|n't)(?: \w+){0,2} ?$"
    return re.search(rf"{negated}|\b(?:maritime|sea|water|coastal) $", before, re.IGNORECASE) is not None


def _said_of_another(before: str) -> bool:
    """Whether another country is the cue's subject: "Chile borders", "Chile, which is bordered", but not "near Chile, bordered"."""
    subject = rf"{_country_name()}(?:'s|,? (?:which|that))?(?: (?:also|is|shares|a|its|land))* ?$"
    return _compiled(subject).search(before) is not None


SPOKEN = (
    "official|national|main|primary|predominant|dominant|common|native|first|second|working|major|most|widely|commonly|spoken|"
    "indigenous|principal"
)
LANGUAGE_FORWARD = (
    "is|are|was|the|a|an|of|in|spoken|here|there|which|that|include|includes|included|including|such|as|like|both|mainly|primarily|"
    "mostly|officially|also|namely|with|being|widely|commonly|official|people|by|and|most"
)
LANGUAGE_BACKWARD = rf"is|are|was|were|which|both|the|a|an|its|also|being|as|serve|serves|one|of|used|{SPOKEN}"


@cache
def _languages_by_name() -> dict[str, frozenset[str]]:
    known = {code for country in world().values() for code in country.languages}
    by_name: dict[str, frozenset[str]] = {}
    for code in sorted(known & set(LANGUAGES)):
        for name in map(plain, LANGUAGES[code]):
            by_name[name] = by_name.get(name, frozenset()) | {code}
    return by_name


@cache
def _language_patterns() -> tuple[str, tuple[str, str]]:
    """A language; and where one or more are said to be spoken."""
    language = _word(_any(_languages_by_name()))
    listed = rf"(?P<values>{language}(?:(?:,|,? and|,? as well as|/| &|,? or)(?: the| also)? {language})*)"
    forward = rf"\b(?:[Ll]anguages?|[Ss]peaks?|[Ss]peaking)\b{_glue(LANGUAGE_FORWARD)}{listed}"
    backward = rf"{listed}{_glue(LANGUAGE_BACKWARD)}\b(?:languages?|spoken)\b"
    return language, (forward, backward)


def _languages(sentence: str, country: Country) -> Iterator[Statement]:
    language, patterns = _language_patterns()
    for pattern in patterns:
        for match in _compiled(pattern).finditer(sentence):
            for named in _compiled(language).finditer(match["values"]):
                codes = _languages_by_name()[named.group()]
                yield Statement("language", min(codes), bool(codes & country.languages))


CURRENCY_FORWARD = "is|are|was|the|a|an|of|in|used|called|named|known|as|official|officially|its|national|which|also|being|currently|local"
CURRENCY_BACKWARD = "is|are|was|which|as|the|its|a|an|also|official|officially|national|main|local|used|serves|being"


@cache
def _currency_patterns() -> tuple[str, tuple[str, str]]:
    """A currency; and where one or more are said to be in use."""
    unit = "(?i:" + _any([*map(plain, CURRENCY_UNITS), *UNIT_SPELLINGS, "sterling"]) + "(?:e?s)?)"
    codes = _any({code for other in world().values() for code in other.currencies})
    adjective = rf"(?P<owner>{_any([*_owners(), 'CFA', OWN])}) (?:[Nn]ew |[Cc]onvertible )?"
    money = rf"(?:(?:{adjective})?\b(?P<unit>{unit})(?: sterling)?\b|\b(?P<code>{codes})\b)"
    inner = re.sub(r"\?P<\w+>", "?:", money)
    listed = rf"(?P<values>{inner}(?:\s*\(?[\s,/&]*(?:and |or )?(?:the )?{inner})*)"
    forward = rf"\b(?:[Cc]urrenc(?:y|ies)|[Uu]ses|[Uu]se)\b{_glue(CURRENCY_FORWARD)}{listed}"
    backward = rf"{listed}\)?{_glue(CURRENCY_BACKWARD)}\bcurrency\b"
    return money, (forward, backward)


def _currencies(sentence: str, country: Country) -> Iterator[Statement]:
    money, patterns = _currency_patterns()
    for pattern in patterns:
        for match in _compiled(pattern).finditer(sentence):
            for named in _compiled(money).finditer(match["values"]):
                meant = _codes_of(named, country)
                if meant:
                    yield Statement("currency", "/".join(sorted(meant)), bool(meant & country.currencies))


@cache
def _owners() -> dict[str, frozenset[str]]:
    """Adjectives of currencies: the codes that begin with the country's own two letters, and those that are listed."""
    owners: dict[str, frozenset[str]] = {}
    for country in world().values():
        own = {code for code in country.currencies if _issues(country, code)}
        for word in (*country.demonyms, *country.names):
            owners[word] = owners.get(word, frozenset()) | own
    for code, words in CURRENCY_OWNERS.items():
        for word in words:
            owners[word] = owners.get(word, frozenset()) | {code}
    return owners


def _issues(country: Country, currency: str) -> bool:
    """Whether the currency is the country's own: codes of ISO 4217 begin with the country's of ISO 3166-1 alpha-2."""
    return currency[:2] == _alpha2()[country.code]


@cache
def _alpha2() -> dict[str, str]:
    from countryinfo import all_countries

    codes = [country.info().get("ISO") or {} for country in all_countries()]
    return {code["alpha3"]: code["alpha2"] for code in codes if code.get("alpha3")} | {"XKX": "XK"}


def _codes_of(named: re.Match[str], country: Country) -> frozenset[str]:
    """What a currency's name means; nothing if the world has no such currency (the Zimbabwean dollar)."""
    if named["code"]:
        return frozenset([named["code"]])
    word = named["unit"].lower()
    if word == "sterling":
        return frozenset(["GBP"])
    units = {plain(unit): codes for unit, codes in CURRENCY_UNITS.items()}
    word = next(form for form in (word, word[:-1], word[:-2]) if form in units or form in UNIT_SPELLINGS)
    meant = frozenset(units[UNIT_SPELLINGS.get(word, word)])
    if named["owner"] == "CFA":
        return meant & {"XOF", "XAF"}
    if named["owner"] and word != "euro":
        return meant & _owners()[country.names[0] if named["owner"] == OWN else named["owner"]]
    return meant


NUMBER = (
    r"(?P<number>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?(?= ?(?:[mb]illion|thousand)\b)|\d{5,})(?: ?(?P<scale>[mb]illion|thousand)\b)?"
    r"(?![\d.]*\s?%)"
)
POPULATION_FORWARD = (
    r"of|is|was|has|the|a|an|about|approximately|around|roughly|over|more|than|nearly|almost|estimated|at|to|be|total|stands|currently|just|"
    r"under|some|close|up|with|in|as|approx\.?|(?:19|20)\d\d"
)
SCALES = {"million": 1e6, "billion": 1e9, "thousand": 1e3, None: 1.0}
CITY = re.compile(r"\b(?:[Cc]ity|[Cc]ities|[Cc]apital|[Tt]own|[Mm]etropolis|[Mm]etropolitan|[Uu]rban)\b")


@cache
def _population_patterns() -> tuple[str, str]:
    forward = rf"\b[Pp]opulation\b(?! density){_glue(POPULATION_FORWARD)}\(?{NUMBER}"
    backward = (
        rf"\b(?:home to|inhabited by|populated by|has|have)\b{_glue(POPULATION_FORWARD)}{NUMBER}"
        r" (?:people|inhabitants|residents|citizens)\b(?! (?:who|speak|speaking|of|living in (?!the country|it)))"
    )
    return forward, backward


@cache
def _other_cities() -> str:
    """Capitals that bear no country's name."""
    cities = {name for country in world().values() for name in country.capitals}
    return _word(_any(cities - set(_countries_by_name())))


def _populations(sentence: str, country: Country) -> Iterator[Statement]:
    for pattern in _population_patterns():
        for match in _compiled(pattern).finditer(sentence):
            before = re.split(r"(?<!of )\bthe (?:country|nation)\b", sentence[: match.start("number")])[-1]
            if CITY.search(before) or _compiled(_other_cities()).search(before):
                continue
            number = float(match["number"].replace(",", "")) * SCALES[match["scale"]]
            right = abs(number - country.population) <= TOLERANCE * country.population
            yield Statement("population", f"{number:.4g}", right)
