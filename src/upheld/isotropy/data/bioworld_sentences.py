"""What the biographies of `bioworld` are made of: values, and sentences that state them.

Values of one kind differ in meaning, none is a synonym or a part of another, and none occurs in a sentence or a name below.
Sentences of one kind say the same in other words and at other lengths. In them stand

    {value}, {a}       the value, and the article that it takes
    {who}, {whose}     the person: a name or a pronoun, and its possessive
    {own}              her or his
    {ordinal}          second, third, fourth
    {then}, {mainly}, {about}, {known}     one of several synonyms

Frozen: a change makes other data of every race.
"""

from __future__ import annotations

KINDS = ("birthplace", "profession", "university", "award", "field", "spouse", "place of death")

VALUES: dict[str, tuple[str, ...]] = {
    "birthplace": (
        "Lisbon",
        "Toronto",
        "Nairobi",
        "Osaka",
        "Reykjavik",
        "Santiago",
        "Helsinki",
        "Karachi",
        "Melbourne",
        "Warsaw",
        "Havana",
        "Marrakesh",
    ),
    "profession": (
        "botanist",
        "surgeon",
        "architect",
        "cellist",
        "journalist",
        "shipbuilder",
        "translator",
        "beekeeper",
        "diplomat",
        "watchmaker",
        "lawyer",
        "cartographer",
    ),
    "university": (
        "Uppsala University",
        "Kyoto University",
        "Leiden University",
        "Harvard University",
        "Charles University",
        "McGill University",
        "Durham University",
        "Peking University",
        "Makerere University",
        "Stanford University",
        "Coimbra University",
        "Otago University",
    ),
    "award": (
        "Golden Quill Medal",
        "Northern Star Prize",
        "Hartwell Fellowship",
        "Lighthouse Award",
        "Order of the Oak",
        "Riverstone Prize",
        "Copper Beech Medal",
        "Aurora Fellowship",
        "Meridian Award",
        "Silver Anchor",
        "Falconer Cup",
        "Laurel of the Academy",
    ),
    "field": (
        "marine biology",
        "medieval history",
        "organic chemistry",
        "number theory",
        "seismology",
        "linguistics",
        "optics",
        "economics",
        "immunology",
        "metallurgy",
        "astronomy",
        "folklore",
    ),
    "spouse": (
        "Ingrid Falk",
        "Tomas Reyes",
        "Amina Diallo",
        "Viktor Hansen",
        "Lucia Moretti",
        "Kenji Mori",
        "Priya Nair",
        "Owen Gallagher",
        "Elena Petrov",
        "Samuel Adeyemi",
        "Chloe Dubois",
        "Martin Keller",
    ),
    "place of death": (
        "Vienna",
        "Boston",
        "Cairo",
        "Singapore",
        "Dublin",
        "Lima",
        "Oslo",
        "Mumbai",
        "Auckland",
        "Athens",
        "Manila",
        "Geneva",
    ),
}

FIRST_STATEMENTS: dict[str, tuple[str, ...]] = {
    "birthplace": (
        "{who} was born in {value}",
        "{whose} birthplace was {value}",
        "{value} is the city in which {who} was born",
        "{who} came into the world in {value}, the youngest of a large family",
        "{who} hailed from {value}",
        "it was in {value} that {who} first saw the light of day and spent {own} early childhood",
        "born in {value}, {who} grew up in modest circumstances",
    ),
    "profession": (
        "{who} worked as {a} {value}",
        "by profession {who} was {a} {value}",
        "{who} earned {own} living as {a} {value} for the better part of {own} life",
        "trained as {a} {value}, {who} stayed in that trade for decades",
        "the occupation that {who} took up and never gave up was that of {a} {value}",
        "{whose} calling was that of {a} {value}",
    ),
    "university": (
        "{who} studied at {value}",
        "{who} took {own} degree at {value}",
        "{whose} student years were spent at {value}, where {who} made lasting friends",
        "{value} is where {who} was educated",
        "{who} enrolled at {value} at an early age and left it with honours some years afterwards",
        "a scholarship allowed {who_object} to attend {value}",
    ),
    "award": (
        "{who} received the {value}",
        "{who} was honoured with the {value} in recognition of many years of effort",
        "the {value} went to {who_object}",
        "among the distinctions that came {own} way, {who} was {mainly} proud of the {value}",
        "{who} won the {value}",
        "a jury chose {who_object} for the {value} by a narrow vote",
    ),
    "field": (
        "{whose} field was {value}",
        "{who} contributed {mainly} to {value}",
        "{value} was the subject to which {who} devoted most of {own} attention",
        "{who} is {known} for writings on {value}",
        "in {own} spare time and at work alike, {who} pursued questions of {value}",
        "{who} specialised in {value}",
    ),
    "spouse": (
        "{who} married {value}",
        "{who} was married to {value}",
        "{value} became {whose} spouse after a long engagement",
        "{who} shared {own} life with {value}, whom {who} had met through friends and wed in a small ceremony",
        "{whose} spouse was {value}",
        "the wedding of {who_object} and {value} was a quiet affair",
    ),
    "place of death": (
        "{who} died in {value}",
        "{whose} life ended in {value}",
        "{who} passed away in {value} after a short illness, surrounded by {own} family",
        "death came to {who_object} in {value}",
        "{value} is where {who} spent {own} last days and died",
        "it was in {value} that {who} breathed {own} last",
    ),
}

LATER_STATEMENTS: dict[str, tuple[str, ...]] = {
    "birthplace": (
        "{whose} {ordinal} home was in {value}",
        "{who} made a {ordinal} home in {value}",
        "the family {then} moved to {value}, the {ordinal} place in which {who} lived",
        "{value} was {whose} {ordinal} home town",
        "for {about} five years {who} lived in {value}, which became {own} {ordinal} home",
        "as a {ordinal} home {who} chose {value} and stayed there longer than expected",
    ),
    "profession": (
        "{whose} {ordinal} profession was that of {a} {value}",
        "{who} {then} took up a {ordinal} occupation and became {a} {value}",
        "in a {ordinal} career {who} worked as {a} {value}",
        "{who} had a {ordinal} trade, that of {a} {value}, which {who} had learned from a neighbour",
        "{a} {value} was what {who} became in {own} {ordinal} profession",
        "as {own} {ordinal} calling {who} named that of {a} {value}",
    ),
    "university": (
        "{whose} {ordinal} university was {value}",
        "{who} {then} studied at a {ordinal} place, {value}",
        "for a {ordinal} degree {who} went to {value}",
        "{value} was the {ordinal} school of higher learning that {who} attended",
        "{who} enrolled a {ordinal} time, at {value}, and stayed there for {about} three years",
        "the {ordinal} course of studies took {who_object} to {value}",
    ),
    "award": (
        "{whose} {ordinal} award was the {value}",
        "{who} received a {ordinal} honour, the {value}",
        "the {value} {then} followed as {own} {ordinal} distinction",
        "a {ordinal} jury gave {who_object} the {value} after a lengthy debate",
        "as a {ordinal} award {who} won the {value}",
        "the {ordinal} of the honours that {who} was given in {own} lifetime was the {value}",
    ),
    "field": (
        "{whose} {ordinal} field was {value}",
        "{who} {then} turned to a {ordinal} subject, {value}",
        "{value} was the {ordinal} discipline to which {who} contributed",
        "as a {ordinal} field {who} chose {value}, {mainly} out of curiosity",
        "{who} is {known} for {own} {ordinal} speciality, {value}",
        "a {ordinal} line of writings dealt with {value} and kept {who_object} busy for years",
    ),
    "spouse": (
        "{whose} {ordinal} spouse was {value}",
        "{who} {then} married a {ordinal} time, to {value}",
        "in a {ordinal} marriage {who} wed {value}",
        "{value} became {whose} {ordinal} spouse",
        "the {ordinal} wedding, to {value}, was celebrated with {about} forty guests",
        "{who} entered a {ordinal} marriage with {value}, which lasted for many happy years",
    ),
    "place of death": (
        "{whose} {ordinal} residence in old age was {value}",
        "{who} {then} retired to {value}, a {ordinal} residence",
        "{value} was the {ordinal} place to which {who} withdrew in later life",
        "in old age {who} kept a {ordinal} residence in {value}",
        "the {ordinal} house of {own} old age, bought for {about} a year's income, stood in {value}",
        "as a {ordinal} residence for the winter {who} rented rooms in {value}",
    ),
}

FILLERS = (
    "{who} kept a diary for most of {own} life",
    "friends remembered {who_object} as patient and rather shy",
    "little is recorded about this period",
    "{who} was fond of long walks",
    "letters from those years have survived in a private collection",
    "the sources agree on the broad outline, although some details remain open",
    "{who} is said to have had a dry sense of humour",
    "a portrait of {who_object} was painted late in life",
    "several essays about {who_object} have appeared since",
    "{who} rarely spoke in public",
    "money was scarce at times",
    "contemporaries praised {whose} careful way of working",
)

OPENERS = (
    "moreover",
    "in addition",
    "also",
    "besides",
    "furthermore",
    "as it happens",
    "according to the records",
    "notably",
)

SYNONYMS = {
    "then": ("then", "later", "afterwards", "subsequently"),
    "mainly": ("mainly", "chiefly", "mostly", "above all"),
    "about": ("about", "roughly", "around", "some"),
    "known": ("known", "remembered", "noted"),
}

ORDINALS = ("first", "second", "third", "fourth")

FIRST_NAMES = {
    "she": ("Adela", "Beatrix", "Corinne", "Dagny", "Edith", "Fiona", "Greta", "Hester", "Imelda", "Johanna", "Lavinia", "Maud",
            "Nadine", "Ottilie", "Rosalind", "Sybil", "Thea", "Ursula", "Wilma", "Yvonne"),
    "he": ("Alaric", "Bertram", "Cedric", "Desmond", "Edgar", "Florian", "Gideon", "Horace", "Ignatius", "Jasper", "Leopold",
           "Magnus", "Nestor", "Osric", "Percival", "Roland", "Silas", "Theodore", "Ulric", "Walter"),
}  # fmt: skip

SURNAMES = (
    "Abernathy", "Ashdown", "Bellweather", "Blackwood", "Carrow", "Castellan", "Dunmore", "Eastlake", "Farrow", "Fenwick",
    "Garrick", "Halloran", "Hawthorne", "Ivers", "Jessup", "Kirkbride", "Langley", "Lockhart", "Merriweather", "Norwood",
    "Okonjo", "Pemberton", "Quigley", "Ravenscroft", "Rutherford", "Sorensen", "Tennant", "Underhill", "Valcourt", "Wexford",
)  # fmt: skip
