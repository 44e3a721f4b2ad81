"""The embedded data as a user's own file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from upheld.effects.data import load_nhefs

WORDS = {  # the survey's code book
    "sex": ("male", "female"),
    "race": ("white", "black or other"),
    "education": (
        "",
        "8th grade or less",
        "dropped out of high school",
        "high school",
        "dropped out of college",
        "college or more",
    ),
    "exercise": ("much", "moderate", "little or none"),
    "active": ("very active", "moderately active", "inactive"),
}
NAMES = {"wt71": "weight_1971_kg", "smokeintensity": "cigarettes_a_day", "smokeyrs": "years_of_smoking"}


def write_nhefs(out: Path) -> None:
    """NHEFS in random order, categories as words; in the format that the ending of `out` names."""
    data = load_nhefs().ordered("random", seed=0)
    table = data.X.copy()
    for name, words in WORDS.items():
        table[name] = np.asarray(words)[table[name].astype(int)]
    table = table.rename(columns=NAMES)
    table.insert(0, "quit_smoking", data.w)
    table["weight_gain_kg"] = data.y.round(4)
    ending = out.suffix.lower()
    if ending in (".parquet", ".pq"):
        table.to_parquet(out, index=False)
    elif ending in (".jsonl", ".ndjson", ".json"):
        table.to_json(out, orient="records", lines=True)
    elif ending == ".csv":
        pd.DataFrame(table).to_csv(out, index=False)
    else:
        raise ValueError(
            f"{out.name.removeprefix('.unfinished.')} ends in no known format; name a file in .csv, .parquet or .jsonl"
        )
