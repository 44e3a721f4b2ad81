"""Pictures: what a user's answers show, and what was measured for each claim.

Colours are Okabe and Ito's, which colour-blind readers tell apart; the score is blue throughout, other signals grey or orange, and
what is compared differs by position or mark as well. All are made to be read at 380 pixels.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from upheld.report.drawing import figure, plain_logs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from upheld.isotropy.command.survey import Scored

FloatArray = NDArray[np.float64]

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
INK, QUIET, FAINT = "#1c1c1a", "#6b6b66", "#dddcd5"
OURS, ORDER_2 = "isotropy", "1 - unbiased purity"
NAMES = {
    OURS: "isotropy (ours)",
    ORDER_2: "unbiased purity (ours)",
    "cosine": "mean cosine distance",
    "eigenscore": "EigenScore",
    "lexical": "ROUGE-L",
    "jaccard-degree": "Degree, Jaccard",
    "jaccard-eccentricity": "Eccentricity, Jaccard",
    "jaccard-eigv": "EigV, Jaccard",
    "nli-degree": "Degree, NLI",
    "nli-eccentricity": "Eccentricity, NLI",
    "nli-eigv": "EigV, NLI",
    "semantic-entropy": "semantic entropy",
    "kle-heat": "KLE, heat",
    "kle-matern": "KLE, Matérn",
    "luq": "LUQ",
    "luq-pair": "LUQ-Pair",
    "selfcheck-nli": "SelfCheck, NLI",
    "perplexity": "log-perplexity",
    "p-true": "1 − P(True)",
    "verbalised": "1 − stated confidence",
    "minilm": "MiniLM",
    "smollm2": "SmolLM2, mean state",
    "words": "words alone (TF-IDF)",
    "endpoint": "the user's endpoint",
}
COSTS = {
    OURS: "isotropy: embed 5 answers",
    "luq, untrained base model": "LUQ: sentence pairs, NLI",
    "segment judge": "segment judge (LLM)",
}
SUBSETS = 200  # of answers, at each number of them
MAPS = 6


def titled(axes: Axes, title: str, note: str = "", width: int = 56) -> None:
    """What is seen, and below it, quietly, how."""
    lines = textwrap.wrap(_plain(title), width)
    small = textwrap.wrap(_plain(note), width + 8) if note else []
    axes.set_title("\n".join(lines), fontsize=10, color=INK, loc="left", pad=7 + 11 * len(small))
    if small:
        axes.annotate("\n".join(small), (0, 1), xycoords="axes fraction", xytext=(0, 5), textcoords="offset points",
                      fontsize=8, color=QUIET, va="bottom", linespacing=1.15)  # fmt: skip


def _plain(text: str) -> str:
    return text.replace("$", r"\$")


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


# -- of a user's own answers


def score_against_factuality(
    scores: ArrayLike, factuality: ArrayLike, figures: tuple[Sequence[float], Sequence[float]] | None = None
) -> Figure:
    """Every labelled prompt, the line fitted to them, R² and the rank correlation.

    Parameters
    ----------
    scores, factuality : (n,)
    figures : (estimate, low, high) of Spearman's correlation and of R², as `upheld.isotropy.evaluation.foretold` gives them
    """
    s, f = np.asarray(scores, dtype=float), np.asarray(factuality, dtype=float)
    picture, axes = figure(4.8, 3.7)
    crowded = len(s) > 300
    axes.scatter(s, f, s=9 if crowded else 20, color=BLUE, alpha=0.35 if crowded else 0.7, linewidth=0)
    if np.ptp(s) > 0:
        slope, start = np.polyfit(s, f, 1)
        ends = np.array([s.min(), s.max()])
        axes.plot(ends, start + slope * ends, color=INK, linewidth=1.2)
    way = ""
    note = "line: least squares"
    if figures is not None:
        (rho, low, high), (r2, r2_low, r2_high) = figures
        if high < 0:
            way = ": the more the answers differ, the less of them is true"
        elif low > 0:
            way = ": the more the answers differ, the MORE of them is true"
        else:
            way = ": no certain relation of score and factuality"
        note = (
            f"line: least squares, R² {r2:.2f} [{r2_low:.2f}, {r2_high:.2f}]; rank correlation {_signed(rho)} "
            f"[{_signed(low)}, {_signed(high)}], 95 % bootstrap"
        )
    titled(axes, f"{len(s):,} labelled prompts{way}", note)
    axes.set(xlabel="score (0: answers agree, 1: nothing in common)", ylabel="factuality", ylim=(-0.03, 1.03))
    return picture


def answer_maps(worst: Sequence[Scored]) -> Figure:
    """The answers of up to six prompts on their exact two-dimensional maps, on one scale."""
    shown = list(worst)[:MAPS]
    columns = min(2, len(shown))
    rows = -(-len(shown) // columns)
    picture, panels = figure(5.0, 0.75 + 2.35 * rows, nrows=rows, ncols=columns, squeeze=False)
    planes = [one.result.plane() for one in shown]
    up = max(0.5, max(float(np.abs(at[:, 1]).max()) for at in planes) + 0.12)
    left = min(0.0, *(float(at[:, 0].min()) for at in planes)) - 0.06
    for axes, one, at in zip(panels.ravel(), shown, planes, strict=False):
        _map(axes, one, at, up, left)
    for axes in panels.ravel()[len(shown) :]:
        axes.set_visible(False)
    picture.suptitle(
        textwrap.fill("How the answers to the worst prompts lie to each other", 60),
        x=0.02,
        ha="left",
        fontsize=10,
        color=INK,
    )
    picture.supxlabel(
        textwrap.fill(
            "Across: what the answers share. Up: what divides them most. Square: odd one out; ring: nearest to all. "
            "An answer on the arc is shown in full.", 78,
        ),
        fontsize=8, color=QUIET, x=0.02, ha="left",
    )  # fmt: skip
    return picture


def _map(axes: Axes, one: Scored, at: FloatArray, up: float, left: float) -> None:
    from upheld.isotropy.command.page import map_labels

    turn = np.linspace(-np.arcsin(min(up, 1)), np.arcsin(min(up, 1)), 60)
    axes.plot(np.cos(turn), np.sin(turn), color=FAINT, linewidth=1.2)
    axes.axhline(0, color=FAINT, linewidth=0.8, linestyle=(0, (3, 3)))
    for (a, b), i in zip(at, one.result.answers, strict=True):
        axes.plot([0, a], [0, b], color=FAINT, linewidth=0.8, zorder=1)
        if i == one.odd:
            axes.plot(a, b, "s", color=ORANGE, markersize=6, zorder=3)
        elif i == one.result.medoid:
            axes.plot(a, b, "o", color=BLUE, markersize=6.5, markerfacecolor="white", markeredgewidth=1.6, zorder=3)
        else:
            axes.plot(a, b, "o", color=QUIET, markersize=4, zorder=2)
    for (a, b), label in map_labels(at, [int(i) + 1 for i in one.result.answers]):
        axes.annotate(label, (a, b), xytext=(6, 0), textcoords="offset points", fontsize=8, va="center", color=INK)
    axes.set(xlim=(left, 1.3), ylim=(-up, up), xticks=[], yticks=[], aspect="equal")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_title(
        f"{_shortened(one.item.id, 26)}\nscore {one.score:.2f}" + ("" if np.isnan(one.se) else f" ± {one.se:.2f}"),
        fontsize=8.5, color=INK, loc="left",
    )  # fmt: skip


def score_by_n(worst: Sequence[Scored], seed: int = 0) -> Figure:
    """The score that fewer answers would have given: mean over their subsets, of up to six prompts.

    It changes with the number of answers, which is why scores of different numbers do not compare; 1 - the unbiased purity, dashed,
    has the same mean at every number.
    """
    from upheld.isotropy.adaptive import vectors_with
    from upheld.isotropy.semantic_isotropy import SemanticIsotropy

    picture, axes = figure(4.8, 3.9)
    rng, ours = np.random.default_rng(seed), SemanticIsotropy()
    colours = [BLUE, ORANGE, GREEN, PURPLE, QUIET, INK]
    shown = list(worst)[:MAPS]
    for one, colour in zip(shown, colours, strict=False):
        vectors = vectors_with(one.result.cosines)
        means, numbers = [], range(2, one.result.n + 1)
        for n in numbers:
            subsets = list(combinations(range(one.result.n), n)) if one.result.n <= 10 else []
            if not subsets or len(subsets) > SUBSETS:
                subsets = [tuple(sorted(rng.permutation(one.result.n)[:n].tolist())) for _ in range(SUBSETS)]
            means.append(float(ours.score_samples([vectors[list(subset)] for subset in subsets]).mean()))
        axes.plot(
            list(numbers), means, "o-", color=colour, markersize=4, linewidth=1.4, label=_shortened(one.item.id, 22)
        )
        axes.axhline(1 - one.result.purity_unbiased, color=colour, linewidth=0.9, linestyle=(0, (3, 3)), zorder=0)
    largest = max(one.result.n for one in shown)
    axes.set(xlabel="answers used", ylabel="mean score of that many", xlim=(1.8, largest + 0.2))
    axes.xaxis.set_major_locator(_whole_numbers())
    titled(axes, "Scores of different numbers of answers do not compare",
           "solid: mean score over choices of that many answers; dashed: 1 − unbiased purity, the same at every number")  # fmt: skip
    picture.legend(loc="outside lower left", ncols=2, frameon=False, fontsize=8, handlelength=1.6, columnspacing=1.2)
    return picture


def _whole_numbers() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True)


def _shortened(text: str, longest: int = 24) -> str:
    text = "".join(sign if sign.isprintable() else " " for sign in text)
    return _plain(text if len(text) <= longest else text[: longest - 1] + "…")


# -- of the claims: measurements in long format, one row a block


def _values(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    rows = frame[frame["metric"] == metric]
    if rows.empty:
        raise ValueError(f"{metric} was not measured")
    return rows


def _judged(sets: Iterable[Any]) -> list[str]:
    """Of these data sets those that claims are judged on; all, if there is none of them."""
    names = [str(name) for name in dict.fromkeys(sets)]
    return [name for name in names if name in JUDGED] or names


def interval(values: pd.Series) -> tuple[float, float, float]:
    """Mean of the blocks and the 95 % interval of Student's t; of one block, only itself."""
    from scipy.stats import t

    mean = float(values.mean())
    if len(values) < 2:
        return mean, mean, mean
    half = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half


def _rows(
    axes: Axes, rows: Sequence[tuple[str, pd.Series, str]], *, line: float | None = None, line_label: str = ""
) -> None:
    """A row each: blocks as dots, their mean with its interval above; the threshold as a line."""
    for place, (_, values, colour) in enumerate(rows):
        mean, low, high = interval(values)
        axes.plot(values, np.full(len(values), place + 0.2), ".", color=colour, markersize=4, alpha=0.45)
        axes.plot([low, high], [place - 0.1] * 2, color=colour, linewidth=2, solid_capstyle="butt")
        axes.plot(mean, place - 0.1, "o", color=colour, markersize=5.5)
    if line is not None:
        axes.axvline(line, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
        if line_label:
            axes.annotate(line_label, (line, len(rows) - 0.45), xytext=(3, 0), textcoords="offset points", fontsize=8,
                          color=INK, va="bottom")  # fmt: skip
    axes.set_yticks(range(len(rows)), [label for label, _, _ in rows], fontsize=8.5)
    axes.set_ylim(len(rows) - (0.5 if not line_label else 0.1), -0.6)
    axes.tick_params(axis="y", length=0)


JUDGED = ("biographies", "countries", "SegmentScore")  # the data sets that the authors' claims are judged on
BESIDE_LABELS = 42  # letters that fit beside the labels of rows
BLOCKS_NOTE = "dots: blocks of prompts; mark and bar: their mean with its 95 % interval"


def correlations(frame: pd.DataFrame, *, metric: str = "spearman", what: str = "factuality") -> Figure:
    """Rank correlation of the score with the truth on every data set, block by block."""
    rows = _values(frame[frame["method"] == OURS], metric)
    sets = _judged(rows["data"])
    picture, axes = figure(4.8, 1.75 + 0.42 * len(sets))
    _rows(
        axes,
        [(str(name), rows.loc[rows["data"] == name, "value"], BLUE) for name in sets],
        line=0,
        line_label="no relation",
    )
    axes.set(xlabel=f"rank correlation of score and {what}", xlim=(-1.02, max(0.35, float(rows["value"].max()) + 0.05)))
    titled(axes, f"Left of the line: the more the answers spread, the less {what}", BLOCKS_NOTE, width=BESIDE_LABELS)
    return picture


def race(frame: pd.DataFrame, *, judged: bool = False) -> Figure:
    """R² of every signal on every data set; the best first."""
    rows = _values(frame, "R2")
    sets = _judged(rows["data"]) if judged else list(dict.fromkeys(rows["data"]))
    methods = list(dict.fromkeys(rows["method"]))
    picture, panels = figure(
        4.8, len(sets) * (0.85 + 0.27 * len(methods)) + 0.5, nrows=len(sets), sharex=True, squeeze=False
    )
    for axes, name in zip(panels[:, 0], sets, strict=True):
        here = rows[rows["data"] == name]
        means = here.groupby("method")["value"].mean().sort_values(ascending=False)
        best_first = [
            (NAMES.get(method, method), here.loc[here["method"] == method, "value"], BLUE if method == OURS else QUIET)
            for method in means.index
        ]
        _rows(axes, best_first, line=float(means[OURS]) if OURS in means else None)
        axes.set_xlim(-0.02, 1.0)
        first = f"{str(name)[:1].upper()}{str(name)[1:]}: R² of factuality"
        titled(axes, first, "dashed: mean of the score; " + BLOCKS_NOTE if name == sets[0] else "", width=BESIDE_LABELS)
    panels[-1, 0].set_xlabel("R² (signs are not seen in it; 1/n too high for all alike)")
    return picture


def differences(frame: pd.DataFrame, *, rival: str = "cosine") -> Figure:
    """What the spectrum adds: R² of the score less R² of the mean cosine distance, on the same block."""
    rows = _values(frame, "R2")
    keys = ["data", "seed"]
    ours, theirs = (rows[rows["method"] == method].set_index(keys)["value"] for method in (OURS, rival))
    gain = (ours - theirs).dropna()
    sets = _judged(gain.index.get_level_values("data"))
    picture, axes = figure(4.8, 1.75 + 0.42 * len(sets))
    _rows(axes, [(str(name), gain.xs(name, level="data"), BLUE) for name in sets], line=0, line_label="the same")
    reach = max(0.02, float(gain.abs().max())) * 1.1
    axes.set(xlabel=f"R² of the score − R² of the {NAMES.get(rival, rival)}", xlim=(-reach, reach))
    titled(axes, "Right of the line: the entropy foretells more than the mean", BLOCKS_NOTE, width=BESIDE_LABELS)
    return picture


def by_number(frame: pd.DataFrame) -> Figure:
    """R² against the number of answers, as a share of what all of them give."""
    rows = frame[(frame["method"] == OURS) & frame["metric"].str.fullmatch(r"R2 with \d+ answers|R2 with all answers")]
    if rows.empty:
        raise ValueError("R2 with 5 answers was not measured")
    rows = rows[rows["data"] == rows["data"].iloc[0]]
    everything = float(rows.loc[rows["metric"] == "R2 with all answers", "value"].mean())
    most = int(rows["answers"].max())
    found = {}
    for metric, values in rows.groupby("metric")["value"]:
        number = most if "all" in str(metric) else int(str(metric).split()[2])
        found[number] = interval(values)
    numbers = sorted(found)
    means = [found[n][0] for n in numbers]
    picture, axes = figure(4.8, 3.4)
    axes.fill_between(
        numbers, [found[n][1] for n in numbers], [found[n][2] for n in numbers], color=BLUE, alpha=0.15, linewidth=0
    )
    axes.plot(numbers, means, "o-", color=BLUE, markersize=5, linewidth=1.4)
    axes.axhline(0.8 * everything, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate("four fifths of what all give", (numbers[-1], 0.8 * everything), xytext=(0, -4), textcoords="offset points",
                  fontsize=8.5, ha="right", va="top", color=INK)  # fmt: skip
    axes.axvline(5, color=FAINT, linewidth=1, zorder=0)
    axes.set_xticks(numbers)
    axes.set(xlabel="answers to each prompt", ylabel="R² of factuality", ylim=(0, 1))
    titled(
        axes,
        "How much a handful of answers tells",
        "mean over blocks, band: its 95 % interval; five answers: the grey line",
    )
    return picture


def by_embedder(frame: pd.DataFrame) -> Figure:
    """Rank correlation by embedder."""
    rows = _values(frame[frame["method"] == OURS], "spearman")
    names = sorted(
        dict.fromkeys(rows["embedder"]), key=lambda name: float(rows.loc[rows["embedder"] == name, "value"].mean())
    )
    picture, axes = figure(4.8, 1.75 + 0.42 * len(names))
    coloured = [
        (NAMES.get(name, str(name)), rows.loc[rows["embedder"] == name, "value"], QUIET if name == "words" else BLUE)
        for name in names
    ]
    _rows(axes, coloured, line=0, line_label="no relation")
    axes.set(
        xlabel="rank correlation of score and factuality", xlim=(-1.05, max(0.35, float(rows["value"].max()) + 0.05))
    )
    titled(axes, "Left of the line: with this embedder the score foretells error",
           f"grey: no model of meaning, not judged; {BLOCKS_NOTE}", width=BESIDE_LABELS)  # fmt: skip
    return picture


def cost(frame: pd.DataFrame) -> Figure:
    """Seconds and calls of models for one prompt's five answers, on logarithmic scales."""
    order = {OURS: BLUE, "luq, untrained base model": QUIET, "segment judge": ORANGE}
    picture, panels = figure(4.8, 3.6, nrows=2, squeeze=False)
    for axes, metric, label in zip(
        panels[:, 0], ("seconds", "model calls"), ("seconds on this machine", "calls of a model"), strict=True
    ):
        rows = _values(frame, metric)
        methods = [method for method in order if method in set(rows["method"])]
        _rows(axes, [(COSTS[method], rows.loc[rows["method"] == method, "value"], order[method]) for method in methods])
        if OURS in methods:
            base = float(rows.loc[rows["method"] == OURS, "value"].mean())
            axes.axvline(5 * base, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
        axes.set(xscale="log", xlabel=label)
        lowest, highest = float(rows["value"].min()), float(rows["value"].max())
        axes.set_xlim(lowest / 1.6, highest * 1.6)
        plain_logs(axes.xaxis)
    titled(panels[0, 0], "What it costs to score five answers of 500 words",
           "dashed: five times ours; LUQ's time is that of one pair by the number of pairs", width=BESIDE_LABELS)  # fmt: skip
    return picture


def screening(frame: pd.DataFrame) -> Figure:
    """How many times more of the less factual half is found among the worst 30 % than among 30 % at random."""
    rows = _values(frame, "lift of screening 30 %")
    rows = rows[rows["method"] == OURS]
    sets = _judged(rows["data"])
    picture, axes = figure(4.8, 1.75 + 0.42 * len(sets))
    _rows(
        axes, [(str(name), rows.loc[rows["data"] == name, "value"], BLUE) for name in sets], line=1, line_label="chance"
    )
    axes.set(
        xlabel="less factual prompts found, in multiples of chance", xlim=(min(0.0, float(rows["value"].min())), 2.15)
    )
    titled(axes, "Right of the line: checking the worst 30 % finds more than chance", BLOCKS_NOTE, width=BESIDE_LABELS)
    return picture


def by_length(frame: pd.DataFrame) -> Figure:
    """R² of short and long biographies, on blocks of equal size."""
    rows = _values(frame[frame["method"] == OURS], "R2 of the first 12")
    sets = [name for name in dict.fromkeys(rows["data"]) if str(name).startswith("biographies")]
    rows = rows[rows["data"].isin(sets)] if sets else rows
    sets = sets or list(dict.fromkeys(rows["data"]))
    picture, axes = figure(4.8, 1.75 + 0.42 * len(sets))
    base = float(rows.loc[rows["data"] == sets[0], "value"].mean())
    _rows(axes, [(str(name), rows.loc[rows["data"] == name, "value"], BLUE) for name in sets],
          line=base - 0.05, line_label="the short ones less 0.05")  # fmt: skip
    axes.set(xlabel="R² of factuality, the same number of prompts each", xlim=(-0.02, 1.0))
    titled(axes, "Does the signal fade as answers get longer?", BLOCKS_NOTE, width=BESIDE_LABELS)
    return picture


def shared_falsehood(frame: pd.DataFrame) -> Figure:
    """Where every answer repeats the same falsehood, the score tells nothing."""
    rows = _values(frame[frame["method"] == OURS], "spearman")
    sets = [name for name in ("biographies", "shared falsehoods") if name in set(rows["data"])]
    sets = sets or list(dict.fromkeys(rows["data"]))
    picture, axes = figure(4.8, 2.7)
    axes.axvspan(-0.3, 0.3, color=FAINT, alpha=0.5, linewidth=0, zorder=0)
    coloured = [
        (
            {
                "biographies": "own errors in\neach answer",
                "shared falsehoods": "the same falsehood\nin every answer",
            }.get(str(name), str(name)),
            rows.loc[rows["data"] == name, "value"],
            ORANGE if name == "shared falsehoods" else BLUE,
        )
        for name in sets
    ]
    _rows(axes, coloured, line=0)
    axes.set(xlabel="rank correlation of score and factuality", xlim=(-1.05, 0.75))
    titled(axes, "The blind spot: a falsehood that all answers share",
           f"grey band: within ±0.3 of no relation, which the claim is about; {BLOCKS_NOTE}", width=BESIDE_LABELS)  # fmt: skip
    return picture


def wording(frame: pd.DataFrame) -> Figure:
    """Score of answers that say the same in other words, beside that of answers that differ in what they say."""
    rows = _values(frame[frame["method"] == OURS], "score")
    sets = [name for name in ("wording alone", "biographies") if name in set(rows["data"])] or list(
        dict.fromkeys(rows["data"])
    )
    picture, axes = figure(4.8, 2.3)
    colours = {"wording alone": ORANGE}
    _rows(axes, [(str(name), rows.loc[rows["data"] == name, "value"], colours.get(str(name), BLUE)) for name in sets])
    axes.set(xlabel="mean score of a block", xlim=(0, max(0.6, float(rows["value"].max()) + 0.05)))
    titled(axes, "How much of a score is wording: all facts the same, and not", BLOCKS_NOTE, width=BESIDE_LABELS)
    return picture


def brittleness(frame: pd.DataFrame) -> Figure:
    """How far a re-worded judge moves an answer's factuality, and re-cut windows the score, by length."""
    metrics = {
        "sd of an answer's factuality": ("re-worded judge", ORANGE),
        "sd of the score": ("windows cut elsewhere", BLUE),
    }
    lengths = sorted(frame["attributes"].unique())
    present = [metric for metric in metrics if (frame["metric"] == metric).any()]
    if not present:
        raise ValueError("sd of the score was not measured")
    picture, axes = figure(4.8, 3.2)
    for metric in present:
        label, colour = metrics[metric]
        rows = _values(frame, metric)
        found = {
            n: interval(rows.loc[rows["attributes"] == n, "value"]) for n in lengths if (rows["attributes"] == n).any()
        }
        middle = [mean for mean, _, _ in found.values()]
        errors = [[mean - low for mean, low, _ in found.values()], [high - mean for mean, _, high in found.values()]]
        axes.errorbar(
            list(found), middle, errors, color=colour, marker="o", markersize=5, capsize=3, linewidth=1.3, label=label
        )
    axes.set_xticks(lengths)
    axes.set(xlabel="facts an answer states", ylabel="standard deviation")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8.5)
    titled(
        axes,
        "How steady each signal is when only its wording or cut changes",
        "mean over answers, with its 95 % interval",
    )
    return picture


PICTURES: Mapping[str, Callable[[pd.DataFrame], Figure]] = {
    "isotropy.foretells-falsehood": correlations,
    "isotropy.authors-data": partial(race, judged=True),
    "isotropy.foretells-disagreement": partial(
        correlations, metric="spearman with consistency", what="agreement of the answers"
    ),
    "isotropy.beats-other-signals": partial(race, judged=True),
    "isotropy.beats-entailment": race,
    "isotropy.beats-self-reports": race,
    "isotropy.spectrum-matters": differences,
    "isotropy.few-samples": by_number,
    "isotropy.any-embedder": by_embedder,
    "isotropy.low-cost": cost,
    "isotropy.screens": screening,
    "isotropy.long-form": by_length,
    "isotropy.shared-falsehood": shared_falsehood,
    "isotropy.wording": wording,
    "isotropy.claim-level-is-brittle": brittleness,
}
