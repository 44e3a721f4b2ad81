"""English words for what `countryinfo` writes as codes, and other names of what it names once.

The package is the authority on facts. Here stand spellings alone, but for `SEATS` and `CORRECTED`, which say what they add.
"""

from __future__ import annotations

COUNTRY_NAMES: dict[str, tuple[str, ...]] = {
    "ARE": ("UAE", "Emirates"),
    "BHS": ("Bahamas",),
    "BIH": ("Bosnia", "Bosnia-Herzegovina", "Bosnia & Herzegovina"),
    "BRN": ("Brunei Darussalam",),
    "CHN": ("People's Republic of China",),
    "CIV": ("Côte d'Ivoire", "Cote d'Ivoire"),
    "COD": ("DR Congo", "DRC", "Democratic Republic of Congo", "Congo-Kinshasa", "Zaire"),
    "COG": ("Republic of Congo", "Congo-Brazzaville"),
    "CPV": ("Cabo Verde",),
    "CZE": ("Czechia",),
    "FSM": ("Micronesia",),
    "GBR": ("UK", "Great Britain", "Britain", "England", "Northern Ireland", "Scotland", "Wales"),
    "GMB": ("Gambia",),
    "IRN": ("Islamic Republic of Iran",),
    "KGZ": ("Kyrgyz Republic",),
    "LAO": ("Lao PDR", "Lao People's Democratic Republic"),
    "MAC": ("Macao",),
    "MKD": ("North Macedonia", "Macedonia"),
    "MMR": ("Burma",),
    "NLD": ("Holland",),
    "PRK": ("Democratic People's Republic of Korea",),
    "KOR": ("Republic of Korea",),
    "PSE": ("Palestinian Territories", "West Bank", "Gaza Strip"),
    "RUS": ("Russian Federation",),
    "SSD": ("Republic of South Sudan",),
    "SVK": ("Slovak Republic",),
    "SWZ": ("Eswatini",),
    "SYR": ("Syrian Arab Republic",),
    "TLS": ("Timor-Leste", "Timor Leste"),
    "TUR": ("Türkiye",),
    "TWN": ("Republic of China",),
    "TZA": ("United Republic of Tanzania",),
    "USA": ("United States of America", "USA", "U.S.A.", "US", "U.S."),
    "VAT": ("Vatican City", "Vatican", "Holy See"),
    "VNM": ("Viet Nam",),
    "XKX": ("Kosovo",),
}

EITHER = {"Congo": ("COD", "COG"), "Korea": ("PRK", "KOR")}
"""Names that two countries share: a statement about either holds if it holds of one."""

OBSOLETE = (
    "Burma", "Serbia and Montenegro", "Antilles néerlandaises", "Palestine, State of", "Vatican City State", "Scotland", "Wales",
)  # fmt: skip
"""Entries that the package has twice, or of states that are no more."""

NO_MEMBERS = ("ESH", "GIB", "GUF", "HKG", "MAC", "PSE", "TWN", "VAT")
"""Not member states of the United Nations, among those with facts of every kind."""

CAPITAL_NAMES: dict[str, tuple[str, ...]] = {
    "ARM": ("Erevan",),
    "BRN": ("Bandar Seri Begawan",),
    "CHN": ("Peking",),
    "KAZ": ("Astana", "Nursultan"),
    "MMR": ("Naypyitaw", "Nay Pyi Taw"),
    "MNG": ("Ulan Bator", "Ulaan Baatar"),
    "SMR": ("San Marino",),
    "TCD": ("Ndjamena",),
    "UKR": ("Kiev",),
    "USA": ("Washington, D.C.", "Washington DC", "Washington"),
    "YEM": ("Sanaa", "Sana"),
}

SEATS: dict[str, tuple[str, ...]] = {
    "BDI": ("Gitega",),
    "BOL": ("La Paz",),
    "LKA": ("Sri Jayawardenepura Kotte", "Kotte"),
    "SWZ": ("Mbabane",),
    "ZAF": ("Cape Town", "Bloemfontein"),
}
"""Capitals beside the one that the package gives: it knows one a country, and is older than Burundi's move."""

CORRECTED = {"languages": {"rs": "sr", "cnr": "cnr"}, "borders": {"KOS": "XKX", "IT": "ITA"}}
"""Codes that the package has wrong."""

LANGUAGES: dict[str, tuple[str, ...]] = {
    "af": ("Afrikaans",), "am": ("Amharic",), "ar": ("Arabic",), "ay": ("Aymara",), "az": ("Azerbaijani", "Azeri"),
    "be": ("Belarusian", "Belarussian"), "bg": ("Bulgarian",), "bi": ("Bislama",), "bn": ("Bengali", "Bangla"), "bs": ("Bosnian",),
    "ca": ("Catalan",), "ch": ("Chamorro",), "cnr": ("Montenegrin",), "cs": ("Czech",), "da": ("Danish",), "de": ("German",),
    "dv": ("Dhivehi", "Divehi", "Maldivian"), "dz": ("Dzongkha",), "el": ("Greek",), "en": ("English",),
    "es": ("Spanish", "Castilian"), "et": ("Estonian",), "fa": ("Persian", "Farsi"), "ff": ("Fula", "Fulah", "Fulani", "Fulfulde"),
    "fi": ("Finnish",), "fj": ("Fijian",), "fo": ("Faroese",), "fr": ("French",), "ga": ("Irish", "Gaelic"), "gn": ("Guarani",),
    "gv": ("Manx",), "he": ("Hebrew",), "hi": ("Hindi",), "hr": ("Croatian",), "ht": ("Haitian Creole",), "hu": ("Hungarian",),
    "hy": ("Armenian",), "id": ("Indonesian", "Bahasa Indonesia"), "is": ("Icelandic",), "it": ("Italian",), "ja": ("Japanese",),
    "ka": ("Georgian",), "kg": ("Kikongo", "Kongo"), "kk": ("Kazakh",), "kl": ("Greenlandic",), "km": ("Khmer",),
    "ko": ("Korean",), "ku": ("Kurdish",), "ky": ("Kyrgyz", "Kirghiz"), "la": ("Latin",), "lb": ("Luxembourgish",),
    "ln": ("Lingala",), "lo": ("Lao", "Laotian"), "lt": ("Lithuanian",), "lu": ("Luba-Katanga", "Tshiluba"), "lv": ("Latvian",),
    "mg": ("Malagasy",), "mh": ("Marshallese",), "mi": ("Maori",), "mk": ("Macedonian",), "mn": ("Mongolian",),
    "ms": ("Malay", "Bahasa Melayu"), "mt": ("Maltese",), "my": ("Burmese",), "na": ("Nauruan",), "nb": ("Norwegian", "Bokmål"),
    "nd": ("Northern Ndebele", "Ndebele"), "ne": ("Nepali", "Nepalese"), "nl": ("Dutch", "Flemish"), "nn": ("Norwegian", "Nynorsk"),
    "no": ("Norwegian",), "nr": ("Southern Ndebele", "Ndebele"), "ny": ("Chichewa", "Chewa", "Nyanja"), "oc": ("Occitan",),
    "pa": ("Punjabi",), "pl": ("Polish",), "ps": ("Pashto",), "pt": ("Portuguese",), "qu": ("Quechua",), "rn": ("Kirundi", "Rundi"),
    "ro": ("Romanian",), "ru": ("Russian",), "rw": ("Kinyarwanda",), "sg": ("Sango",), "si": ("Sinhala", "Sinhalese"),
    "sk": ("Slovak",), "sl": ("Slovene", "Slovenian"), "sm": ("Samoan",), "sn": ("Shona",), "so": ("Somali",), "sq": ("Albanian",),
    "sr": ("Serbian",), "ss": ("Swazi", "Swati", "siSwati"), "st": ("Sotho", "Sesotho"), "sv": ("Swedish",),
    "sw": ("Swahili", "Kiswahili"), "ta": ("Tamil",), "tg": ("Tajik",), "th": ("Thai",), "ti": ("Tigrinya",), "tk": ("Turkmen",),
    "tn": ("Tswana", "Setswana"), "to": ("Tongan",), "tr": ("Turkish",), "ts": ("Tsonga",), "uk": ("Ukrainian",), "ur": ("Urdu",),
    "uz": ("Uzbek",), "ve": ("Venda",), "vi": ("Vietnamese",), "xh": ("Xhosa", "isiXhosa"),
    "zh": ("Chinese", "Mandarin Chinese", "Mandarin", "Cantonese"), "zu": ("Zulu", "isiZulu"),
}  # fmt: skip

AREAS: dict[str, tuple[str, ...]] = {
    "Africa": ("Africa",),
    "Eastern Africa": ("Eastern Africa", "East Africa"),
    "Middle Africa": ("Middle Africa", "Central Africa"),
    "Northern Africa": ("Northern Africa", "North Africa"),
    "Southern Africa": ("Southern Africa",),
    "Sub-Saharan Africa": ("Sub-Saharan Africa", "sub-Saharan Africa", "Subsaharan Africa"),
    "Western Africa": ("Western Africa", "West Africa"),
    "Americas": ("Americas",),
    "Caribbean": ("Caribbean",),
    "Central America": ("Central America",),
    "Latin America and the Caribbean": ("Latin America and the Caribbean", "Latin America"),
    "Northern America": ("Northern America",),
    "South America": ("South America",),
    "Asia": ("Asia",),
    "Central Asia": ("Central Asia",),
    "Eastern Asia": ("Eastern Asia", "East Asia"),
    "South-eastern Asia": (
        "South-eastern Asia",
        "Southeast Asia",
        "South-East Asia",
        "South East Asia",
        "Southeastern Asia",
    ),
    "Southern Asia": ("Southern Asia", "South Asia"),
    "Western Asia": ("Western Asia", "West Asia"),
    "Europe": ("Europe",),
    "Eastern Europe": ("Eastern Europe",),
    "Northern Europe": ("Northern Europe",),
    "Southern Europe": ("Southern Europe",),
    "Western Europe": ("Western Europe",),
    "Oceania": ("Oceania",),
    "Australia and New Zealand": ("Australia and New Zealand", "Australasia"),
    "Melanesia": ("Melanesia",),
    "Micronesia": ("Micronesia",),
    "Polynesia": ("Polynesia",),
}
"""Words for the package's regions, subregions and intermediate regions."""

NORTH_AMERICA = ("Northern America", "Central America", "Caribbean")
"""What "North America" means: a continent to most, no area of the package."""

CURRENCY_UNITS: dict[str, tuple[str, ...]] = {
    "afghani": ("AFN",), "ariary": ("MGA",), "baht": ("THB",), "balboa": ("PAB",), "birr": ("ETB",), "bolivar": ("VEF",),
    "boliviano": ("BOB", "BOV"), "cedi": ("GHS",), "colon": ("CRC", "SVC"), "cordoba": ("NIO",), "dalasi": ("GMD",),
    "denar": ("MKD",), "dinar": ("DZD", "BHD", "IQD", "JOD", "KWD", "LYD", "RSD", "TND"), "dirham": ("MAD", "AED"), "dobra": ("STD",),
    "dollar": ("AUD", "BBD", "BMD", "BND", "BSD", "BZD", "CAD", "FJD", "GYD", "HKD", "JMD", "KYD", "LRD", "NAD", "NZD", "SBD", "SGD",
               "SRD", "TTD", "TWD", "USD", "XCD"),
    "dong": ("VND",), "dram": ("AMD",), "escudo": ("CVE",), "euro": ("EUR",), "forint": ("HUF",),
    "franc": ("BIF", "CDF", "CHF", "DJF", "GNF", "KMF", "RWF", "XAF", "XOF", "XPF"), "gourde": ("HTG",), "guarani": ("PYG",),
    "hryvnia": ("UAH",), "kina": ("PGK",), "kip": ("LAK",), "koruna": ("CZK",), "krona": ("SEK", "ISK"), "krone": ("DKK", "NOK"),
    "kuna": ("HRK",), "kwacha": ("MWK", "ZMK"), "kwanza": ("AOA",), "kyat": ("MMK",), "lari": ("GEL",), "lek": ("ALL",),
    "lempira": ("HNL",), "leone": ("SLL",), "leu": ("MDL", "RON"), "lev": ("BGN",), "lilangeni": ("SZL",), "lira": ("TRY",),
    "loti": ("LSL",), "manat": ("AZN", "TMT"), "mark": ("BAM",), "metical": ("MZN",), "naira": ("NGN",), "nakfa": ("ERN",),
    "ngultrum": ("BTN",), "ouguiya": ("MRO",), "pataca": ("MOP",), "peso": ("ARS", "CLP", "COP", "CUP", "CUC", "DOP", "MXN", "PHP", "UYU"),
    "pound": ("EGP", "FKP", "GBP", "GIP", "LBP", "SDG", "SHP", "SSP", "SYP"), "pula": ("BWP",), "quetzal": ("GTQ",), "rand": ("ZAR",),
    "real": ("BRL",), "rial": ("IRR", "OMR", "YER"), "riel": ("KHR",), "ringgit": ("MYR",), "riyal": ("QAR", "SAR"),
    "rouble": ("BYR", "RUB"), "rufiyaa": ("MVR",), "rupee": ("INR", "LKR", "MUR", "NPR", "PKR", "SCR"), "rupiah": ("IDR",),
    "shekel": ("ILS",), "shilling": ("KES", "SOS", "TZS", "UGX"), "sol": ("PEN",), "som": ("KGS", "UZS"), "somoni": ("TJS",),
    "taka": ("BDT",), "tala": ("WST",), "tenge": ("KZT",), "tugrik": ("MNT",), "vatu": ("VUV",), "won": ("KPW", "KRW"),
    "yen": ("JPY",), "yuan": ("CNY",), "zloty": ("PLN",), "pa'anga": ("TOP",),
}  # fmt: skip

UNIT_SPELLINGS = {
    "ruble": "rouble", "renminbi": "yuan", "kroner": "krone", "kronor": "krona", "lei": "leu", "leva": "lev", "emalangeni": "lilangeni",
    "maloti": "loti", "reais": "real", "soles": "sol", "colones": "colon", "meticais": "metical", "togrog": "tugrik", "sum": "som",
    "guaranies": "guarani", "quetzales": "quetzal", "bolivares": "bolivar",
}  # fmt: skip

CURRENCY_OWNERS: dict[str, tuple[str, ...]] = {
    "USD": ("US", "U.S.", "United States", "American"),
    "GBP": ("British",),
    "AUD": ("Australian",),
    "XOF": ("West African CFA",),
    "XAF": ("Central African CFA",),
    "XCD": ("East Caribbean", "Eastern Caribbean"),
    "XPF": ("CFP",),
    "BAM": ("Bosnian", "Bosnia and Herzegovina"),
    "TWD": ("Taiwan",),
    "CDF": ("Congolese",),
}
"""Adjectives of currencies whose code does not begin with the country's own, or that a demonym does not give."""

DEMONYMS: dict[str, tuple[str, ...]] = {
    "ARG": ("Argentine", "Argentinian"),
    "BWA": ("Botswana", "Botswanan"),
    "COM": ("Comorian",),
    "ECU": ("Ecuadorian",),
    "GRC": ("Hellenic",),
    "ISL": ("Icelandic",),
    "KAZ": ("Kazakh",),
    "KGZ": ("Kyrgyz", "Kyrgyzstani"),
    "LSO": ("Basotho", "Lesotho"),
    "MDG": ("Malagasy", "Madagascan"),
    "NPL": ("Nepali",),
    "OMN": ("Omani",),
    "PHL": ("Philippine",),
    "SLV": ("Salvadorean", "Salvadorian"),
    "SVN": ("Slovenian",),
    "SUR": ("Surinamese",),
    "SWZ": ("Eswatini",),
    "TJK": ("Tajik", "Tajikistani"),
    "UZB": ("Uzbek",),
    "ZAF": ("South African",),
}
