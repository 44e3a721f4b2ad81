from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld.isotropy.data.countries import world
from upheld.isotropy.data.country_statements import share_right, statements

BY_NAME = {country.name: country for country in world().values()}


def found(name: str, text: str) -> dict[str, list[str]]:
    """Relation -> values, a wrong one behind a bang."""
    by_relation: dict[str, list[str]] = {}
    for statement in statements(text, BY_NAME[name]):
        by_relation.setdefault(statement.relation, []).append(
            statement.value if statement.right else "!" + statement.value
        )
    return by_relation


@pytest.mark.parametrize(
    ("name", "text", "capitals"),
    [
        ("Peru", "The capital of Peru is Lima.", ["Lima"]),
        ("Peru", "Its capital city, Lima, is large.", ["Lima"]),
        ("Peru", "**Capital:** Lima", ["Lima"]),
        ("Peru", "Lima is the country's capital and largest city.", ["Lima"]),
        ("Peru", "Lima, the capital of Peru, lies on the coast.", ["Lima"]),
        ("Peru", "Peru's capital is Santiago.", ["!Santiago"]),
        ("Peru", "The capital is not Lima.", []),
        ("Peru", "Lima is not the capital.", []),
        ("Peru", "The capital of Chile is Santiago.", []),
        ("Peru", "Santiago is the capital of Chile.", []),
        ("Peru", "Chile's capital is Santiago.", []),
        ("Peru", "The capital is Cusco.", []),  # no capital of any country
        ("Peru", "Lima is a city. Its capital is nice. Quito too.", []),
        ("Kazakhstan", "The capital is Astana.", ["Nur-Sultan"]),
        ("Bolivia", "Its capitals are Sucre and La Paz. La Paz is the capital.", ["Sucre"]),
        ("Colombia", "The capital is Bogotá. The capital is Bogota.", ["Bogota"]),
        ("Guatemala", "The capital of Guatemala is Guatemala City.", ["Guatemala City"]),
        ("Luxembourg", "The capital of Luxembourg is Luxembourg.", ["Luxembourg"]),
        ("Luxembourg", "The capital of Luxembourg is pretty.", []),
        ("Malawi", "The capital of Singapore is unknown.", []),
        ("Slovakia", "The capital city of Bratislava is on the Danube.", ["Bratislava"]),
        ("Guinea-Bissau", "Bissau is the capital.", ["Bissau"]),
        ("Guinea", "The capital is Bissau.", ["!Bissau"]),
        ("United States", "The capital is Washington, D.C. It is not a state.", ["Washington D.C."]),
        ("Kenya", "KENYA's capital, specifically, is Nairobi.", ["Nairobi"]),
    ],
)  # fmt: skip
def test_capitals(name, text, capitals):
    got = found(name, text).get("capital", [])
    assert set(capitals) <= set(got)
    assert [value for value in got if value.lstrip("!") not in ("Sucre",)] == [c for c in capitals if c != "Sucre"]


@pytest.mark.parametrize(
    ("name", "text", "neighbours"),
    [
        ("Peru", "It borders Chile to the south, Ecuador to the north and Spain.", ["Chile", "Ecuador", "!Spain"]),
        ("Peru", "It borders Chile to the north.", ["Chile"]),  # the direction is not checked
        ("Peru", "Peru does not border Chile.", []),
        ("Peru", "Chile borders Argentina.", []),
        ("Peru", "It is near Chile, which borders Argentina.", []),
        ("Peru", "It shares maritime borders with Mexico.", []),
        ("Peru", "It is surrounded by Peru.", []),
        ("Peru", "It borders Chile; Spain is far away.", ["Chile"]),
        ("Peru", "Neighbours:\n- Chile\n- Brazil\n- Spain\nCurrency: none", ["Chile", "Brazil", "!Spain"]),
        ("Guinea", "Guinea borders Guinea-Bissau and Mali on the Gulf of Guinea.", ["Guinea-Bissau", "Mali"]),
        ("Guinea", "It borders Equatorial Guinea and Papua New Guinea.", ["!Equatorial Guinea", "!Papua New Guinea"]),
        ("Guinea-Bissau", "Guinea-Bissau borders Guinea and Senegal.", ["Guinea", "Senegal"]),
        ("Equatorial Guinea", "It borders Guinea, and Gabon.", ["!Guinea", "Gabon"]),
        ("Niger", "Niger borders Nigeria, the Niger River and Lake Chad.", ["Nigeria"]),
        ("Nigeria", "It borders Niger, Chad and Benin.", ["Niger", "Chad", "Benin"]),
        ("Haiti", "It borders the Dominican Republic.", ["Dominican Republic"]),
        ("Haiti", "It borders Dominica.", ["!Dominica"]),
        ("Gabon", "It borders the Congo and Cameroon.", ["Congo", "Cameroon"]),
        ("Gabon", "It borders the Democratic Republic of the Congo.", ["!Democratic Republic of the Congo"]),
        ("China", "It borders North Korea, South Korea and the East China Sea.", ["North Korea", "!South Korea"]),
        ("Sudan", "It borders South Sudan and Egypt.", ["South Sudan", "Egypt"]),
        ("South Africa", "It borders Botswana, Eswatini and Swaziland.", ["Botswana", "Eswatini", "Swaziland"]),
        ("United States", "It borders Mexico, New Mexico and Canada.", ["Mexico", "Canada"]),
        ("Spain", "The French border is long.", []),
        ("Liberia", "A country close to Equatorial Guinea, bordered by Sierra Leone.", ["Sierra Leone"]),
        ("Serbia", "Serbia borders Kosovo and Bulgaria.", ["Kosovo", "Bulgaria"]),
    ],
)  # fmt: skip
def test_neighbours(name, text, neighbours):
    assert found(name, text).get("neighbour", []) == neighbours


@pytest.mark.parametrize(
    ("name", "text", "regions"),
    [
        ("Peru", "Peru is a country in South America.", ["South America"]),
        ("Peru", "It is located in the western part of South America.", ["South America"]),
        ("Peru", "Region: Africa", ["!Africa"]),
        ("Kenya", "It lies in East Africa, on the continent of Africa.", ["East Africa", "Africa"]),
        ("Kenya", "It is situated in southeastern Africa.", ["Africa"]),
        ("Lesotho", "It is located in South Africa.", []),  # a country, no part of a continent
        ("Lesotho", "It is located within southern Africa.", ["Africa"]),
        ("Iran", "It is located in the Middle East.", []),
        ("Mexico", "It is a country in North America.", ["North America"]),
        ("Peru", "It is a country in North America.", ["!North America"]),
        ("Honduras", "It is located on the Caribbean Sea.", []),
        ("Peru", "It is not located in Africa.", ["!Africa"]),  # see the test of negation
        ("Vietnam", "It is located in Southeast Asia.", ["Southeast Asia"]),
    ],
)  # fmt: skip
def test_regions(name, text, regions):
    assert found(name, text).get("region", []) == regions


@pytest.mark.parametrize(
    ("name", "text", "languages"),
    [
        ("Peru", "The official language is Spanish.", ["es"]),
        ("Peru", "Languages: Spanish, Quechua and French", ["es", "!qu", "!fr"]),
        ("Belgium", "Dutch, French and German are the official languages.", ["nl", "fr", "de"]),
        ("Belgium", "The Dutch border and the French king.", []),  # demonyms
        ("Kenya", "English is widely spoken.", ["en"]),
        ("Kenya", "People speak Swahili and English.", ["sw", "en"]),
        ("Kenya", "English is not an official language.", []),
        ("Iran", "The language is Farsi, also called Persian.", ["fa"]),
        ("Serbia", "The official language of Serbia is Serbian.", ["sr"]),  # the package writes rs
        ("Kenya", "The language is Klingon.", []),
    ],
)  # fmt: skip
def test_languages(name, text, languages):
    assert found(name, text).get("language", []) == languages


@pytest.mark.parametrize(
    ("name", "text", "currencies"),
    [
        ("Kenya", "The currency is the Kenyan shilling (KES).", ["KES"]),
        ("Kenya", "The currency is the Ugandan shilling.", ["!UGX"]),
        ("Kenya", "The currency is the shilling.", ["KES/SOS/TZS/UGX"]),
        ("Kenya", "The currency is the euro.", ["!EUR"]),
        ("France", "The euro is the official currency.", ["EUR"]),
        ("France", "Its currency is the French Euro.", ["EUR"]),
        ("Ecuador", "It uses the U.S. dollar as its currency.", ["USD"]),
        ("Zimbabwe", "The currency is the Zimbabwean dollar.", []),  # not in the package
        ("Senegal", "The currency is the West African CFA franc.", ["XOF"]),
        ("Senegal", "The currency is the Swiss franc.", ["!CHF"]),
        ("Switzerland", "The currency is the Swiss Franc.", ["CHF"]),
        ("Guatemala", "The currency is the quetzal.", ["GTQ"]),
        ("Brazil", "The currency is the Brazilian real (BRL), not the peso.", ["BRL"]),
        ("South Korea", "The currency is the South Korean won.", ["KRW"]),
        ("Poland", "Currency: Polish złoty", []),
        ("Poland", "Currency: Polish zloty", ["PLN"]),
    ],
)  # fmt: skip
def test_currencies(name, text, currencies):
    assert found(name, text).get("currency", []) == currencies


@pytest.mark.parametrize(
    ("name", "text", "populations"),
    [
        ("Peru", "It has a population of about 31 million people.", ["3.1e+07"]),  # 30.8 million
        ("Peru", "The population is approximately 30,500,000.", ["3.05e+07"]),
        ("Peru", "Population: 45 million", ["!4.5e+07"]),
        ("Peru", "The population of Peru as of 2021 is 33.4 million.", ["3.34e+07"]),
        ("Peru", "Lima has a population of 31 million.", []),
        ("Peru", "Its largest city has a population of 31 million.", []),
        ("Peru", "The capital is Lima, and the country has a population of 31 million.", ["3.1e+07"]),
        ("Peru", "It has a population density of 31,000,000.", []),
        ("Peru", "Peru is home to 31 million people.", ["3.1e+07"]),
        ("Peru", "It has 31 million people who speak Spanish.", []),
        ("Peru", "60% of the population is 31 years old.", []),
        ("China", "It has a population of over 1.4 billion.", ["1.4e+09"]),
    ],
)  # fmt: skip
def test_populations(name, text, populations):
    assert found(name, text).get("population", []) == populations


def test_twenty_per_cent():
    true = BY_NAME["Peru"].population
    for share, right in ((0.81, True), (1.19, True), (0.79, False), (1.21, False)):
        (statement,) = statements(f"Population: {int(share * true):,}", BY_NAME["Peru"])
        assert statement.right is right


def test_the_label_is_the_share_of_right():
    text = "Peru borders Chile and Spain. The capital is Lima. The capital is Lima. The language is French."
    assert share_right(text, BY_NAME["Peru"]) == 0.5
    assert share_right("Nothing to check here.", BY_NAME["Peru"]) is None


@pytest.mark.parametrize(
    "name", ["Peru", "Luxembourg", "Guinea-Bissau", "Republic of the Congo", "Ivory Coast", "United States"]
)
def test_what_the_package_says_is_all_right(name):
    country = BY_NAME[name]
    text = (
        f"{name} is a country in {sorted(country.areas)[0]}. The capital of {name} is {country.capitals[0]}. "
        f"It borders {', '.join(world()[code].name for code in sorted(country.neighbours))}. "
        f"It has a population of {country.population:,}. Currency: {' and '.join(sorted(country.currencies))}."
    )
    got = statements(text, country)
    assert all(statement.right for statement in got), got
    assert {statement.relation for statement in got} >= {"capital", "neighbour", "currency", "population"}


@given(st.text(max_size=300), st.sampled_from(sorted(BY_NAME)))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read(text, name):
    label = share_right(text, BY_NAME[name])
    assert label is None or 0 <= label <= 1


words = st.sampled_from(
    ["The capital", "of", "is", "Lima", "Peru", "Chile", "borders", "and", ",", ".", "\n", "- ", "language", "French", "currency", "dollar",
     "(USD)", "population", "12 million", "5%", "Congo", "@", "not", ":", "located in", "South", "America", "Guinea-Bissau", "'s"]
)  # fmt: skip


@given(st.lists(words, max_size=60).map(" ".join))
@settings(max_examples=200, deadline=2000)
def test_any_string_of_its_words_is_read_in_time(text):
    assert all(statement.relation for statement in statements(text, BY_NAME["Peru"]))
