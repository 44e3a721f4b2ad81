"""What a run found, as one document of plain values: it is printed as JSON, and the page and the tables are made of it."""

from __future__ import annotations

import importlib.metadata
import math
import platform
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import upheld
from upheld.isotropy.command.survey import ORDER_2, OURS, Digest, Scored
from upheld.isotropy.evaluation import foretold
from upheld.isotropy.trust import MEANING

SCHEMA = "upheld.isotropy.run/1"


def run_document(
    digest: Digest,
    *,
    source: str,
    settings: Mapping[str, Any],
    titles: Mapping[str, str],
    not_run: Mapping[str, str],
    remarks: Sequence[str],
    mixed: bool = False,
    sampling: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """The document.

    Parameters
    ----------
    source : name of the file
    settings : to repeat the run
    titles : of the rivals that were asked for, by name; `not_run` : why some of them say nothing
    remarks : what stands against the scores
    mixed : whether the prompts have different numbers of answers
    sampling : how the answers came
    seed : of the bootstrap
    """
    return {
        "schema": SCHEMA,
        "source": source,
        "meaning": MEANING,
        "settings": dict(settings),
        "prompts": digest.prompts,
        "answers": digest.answers,
        "mean_score": digest.total / digest.prompts,
        "histogram": {"from": 0.0, "to": 1.0, "counts": digest.histogram.tolist()},
        "mixed": mixed,
        "adaptive": any(one.adaptive is not None for one in digest.worst),
        "calibrated": any(one.expected is not None for one in digest.worst),
        "worst": rows(digest.worst),
        "titles": dict(titles),
        "not_run": {titles[name]: why for name, why in not_run.items()},
        "judged": judged(digest, titles, mixed=mixed, seed=seed) if digest.labelled else None,
        "sampling": sampling,
        "remarks": list(remarks),
        "versions": _versions(),
    }


def _versions() -> dict[str, str]:
    used = [name for name in ("torch", "transformers", "openai") if name in sys.modules]
    packages = {name: importlib.metadata.version(name) for name in ("numpy", "scipy", *used)}
    return {"upheld": upheld.__version__, "python": platform.python_version(), **packages}


def rows(worst: Sequence[Scored]) -> list[dict[str, Any]]:
    found = []
    for rank, one in enumerate(worst, start=1):
        row = one.record()
        del row["cosines"]
        low, high = one.interval
        row |= {"score": one.score, "se": _finite(one.se), "rank": rank, "interval": [_finite(low), _finite(high)]}
        row["overlaps_above"] = rank > 1 and one.overlaps(worst[rank - 2])
        row["medoid_text"] = one.item.responses[one.result.medoid]
        found.append(row)
    return found


def judged(digest: Digest, titles: Mapping[str, str], *, mixed: bool, seed: int) -> dict[str, Any]:
    """What each signal foretells of the labels, with bootstrap intervals over prompts."""
    values = digest.values()
    if not mixed:
        del values[ORDER_2]
    names = {OURS: "Semantic isotropy (the score)", ORDER_2: "1 − unbiased purity (ours)", **titles}
    silent = {name: int(np.isnan(column).sum()) for name, column in values.items() if np.isnan(column).any()}
    used = len(digest.factuality)
    said: dict[str, Any] = {"labelled": digest.labelled, "used": used, "signals": [], "sentences": []}
    if used < 5:
        said["sentences"] = [f"{used} labelled prompt{'s' * (used > 1)} tell nothing about a signal; label at least 5."]
        return said
    if np.ptp(digest.factuality) == 0:
        said["sentences"] = [
            f"All {used:,} labelled prompts have the same factuality, so there is nothing to foretell."
        ]
        return said
    heard = {name: column for name, column in values.items() if name not in silent}
    flat = [name for name, column in heard.items() if np.ptp(column) == 0]
    found = foretold(heard, digest.factuality, ours=OURS, seed=seed)
    said["signals"] = [
        {
            "name": name,
            "title": names[name],
            "spearman": list(one.spearman),
            "r_squared": list(one.r_squared),
            "ahead": None if one.ahead is None else list(one.ahead),
        }
        for name, one in sorted(found.items(), key=lambda item: (item[0] != OURS, -item[1].r_squared[0]))
    ]
    said["sentences"] = [
        *_own(said["signals"][0]),
        *_standing([signal for signal in said["signals"] if signal["name"] not in flat]),
        *_wrong_way(said["signals"]),
        *(f"{names[name]} is the same for all of them, so it tells nothing." for name in flat),
        *(
            f"{names[name]} has nothing to say of {n:,} of {used:,} labelled prompts, so it is not judged."
            for name, n in silent.items()
        ),
    ]
    return said


def _own(ours: Mapping[str, Any]) -> list[str]:
    """Whether the score foretells anything at all."""
    estimate, low, high = ours["spearman"]
    if high < 0:
        return [
            "Where the score is high, less of the answers is true: the whole interval of its rank correlation lies below 0."
        ]
    if low <= 0 and estimate <= 0:
        return [
            "On these prompts the score tells nothing certain of factuality: its rank correlation may as well be 0."
        ]
    return []  # said as a signal that points the wrong way


def _standing(signals: Sequence[Mapping[str, Any]]) -> list[str]:
    """Whom the score is ahead of, and who is ahead of it."""
    others = [signal for signal in signals if signal["ahead"] is not None]
    above = [signal["title"] for signal in others if signal["ahead"][1] > 0]
    below = [signal["title"] for signal in others if signal["ahead"][2] < 0]
    even = [signal["title"] for signal in others if signal["title"] not in above + below]
    said = []
    if above:
        said.append(f"The score explains more of the factuality than {_listed(above)} here.")
    if below:
        said.append(f"It explains LESS than {_listed(below)}: on data like this, take that one.")
    if even:
        said.append(f"It cannot be told apart from {_listed(even)} on these prompts.")
    return [" ".join(said)] if said else []


def _wrong_way(signals: Sequence[Mapping[str, Any]]) -> list[str]:
    """Signals that rise with factuality, which R² does not show."""
    return [
        f"{signal['title']} points the wrong way here: where it is high, answers are MORE factual (rank correlation "
        f"{signal['spearman'][0]:+.2f} [{signal['spearman'][1]:+.2f}, {signal['spearman'][2]:+.2f}]"
        f"{'' if signal['spearman'][1] > 0 else ', which may be chance'}); its R² does not show that."
        for signal in signals
        if signal["spearman"][0] > 0
    ]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
