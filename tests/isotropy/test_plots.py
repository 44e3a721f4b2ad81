"""Pictures: they show the numbers they are given, at every scale, and come out the same every time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from isotropy_toys import WordEmbedder

from pictures import check_picture, pictured
from upheld.claims import Scale
from upheld.isotropy import plots
from upheld.isotropy.claims import CLAIMS, NLI_RIVALS, OWN_ORDER_2, SELF_REPORTS, TEXT_RIVALS
from upheld.isotropy.command.survey import Reading, scored
from upheld.isotropy.data.responses import Responses
from upheld.report.content import drawn

METHODS = (
    "isotropy",
    OWN_ORDER_2,
    *TEXT_RIVALS,
    *NLI_RIVALS,
    *SELF_REPORTS,
    "luq, untrained base model",
    "segment judge",
)
METRICS = (
    "spearman", "R2", "lift of screening 30 %", "score", "R2 of the first 12", "spearman with consistency", "R2 with 2 answers",
    "R2 with 3 answers", "R2 with 5 answers", "R2 with 8 answers", "R2 with all answers", "seconds", "model calls",
    "sd of an answer's factuality", "sd of the score",
)  # fmt: skip


def measurements(claim, scale: Scale, seeds: int = 6) -> pd.DataFrame:
    """What a claim's experiment might measure: its conditions, every method and metric, a value for each block."""
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            **condition,
            "seed": seed,
            "item": "",
            "method": method,
            "metric": metric,
            "value": float(rng.uniform(0.2, 0.9)),
        }
        for condition in claim.experiment.conditions[scale]
        for seed in range(seeds)
        for method in METHODS
        for metric in METRICS
    )


WITH_PICTURE = pictured(CLAIMS, plots.PICTURES)


@pytest.mark.parametrize(
    ("claim", "scale"),
    [
        (claim, scale)
        for claim in WITH_PICTURE
        for scale in (Scale.SMOKE, Scale.STANDARD)
        if claim.experiment.conditions.get(scale)
    ],
    ids=lambda value: value.id if hasattr(value, "id") else str(value),
)
def test_every_claim_s_picture_is_drawn_from_its_experiment(claim, scale):
    check_picture(plots.PICTURES[claim.id](measurements(claim, scale, seeds=1 if scale is Scale.SMOKE else 6)))


def test_missing_measurements_are_named():
    claim = next(claim for claim in CLAIMS if claim.id == "isotropy.beats-other-signals")
    frame = measurements(claim, Scale.SMOKE)
    with pytest.raises(ValueError, match="R2 was not measured"):
        plots.race(frame[frame["metric"] != "R2"])


def blocks(values: dict[str, list[float]], metric: str = "R2", data: str = "biographies") -> pd.DataFrame:
    return pd.DataFrame(
        {"data": data, "prompts": 24, "answers": 10, "seed": seed, "method": method, "metric": metric, "value": value}
        for method, column in values.items()
        for seed, value in enumerate(column)
    )


def test_interval_is_student_s():
    # scipy's own confidence interval of the mean of 1, 2, 3, 4: 2.5 ± 3.182 * 1.291 / 2
    assert plots.interval(pd.Series([1.0, 2, 3, 4])) == pytest.approx((2.5, 0.4457, 4.5543), abs=1e-4)
    assert plots.interval(pd.Series([0.3])) == (0.3, 0.3, 0.3)


def test_the_race_is_in_order_and_the_line_at_our_mean():
    axes = plots.race(blocks({"lexical": [0.1, 0.3], "isotropy": [0.5, 0.7], "eigenscore": [0.8, 0.9]})).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["EigenScore", "isotropy (ours)", "ROUGE-L"]
    assert 0.6 in [line.get_xdata()[0] for line in axes.get_lines() if line.get_linestyle() != "-"]


def test_differences_are_paired_by_block():
    axes = plots.differences(blocks({"isotropy": [0.5, 0.9], "cosine": [0.4, 0.9]})).axes[0]
    (dots,) = [line for line in axes.get_lines() if line.get_marker() == "."]
    np.testing.assert_allclose(dots.get_xdata(), [0.1, 0.0])


def test_fewer_answers_stand_at_their_number():
    metrics = {"R2 with 2 answers": 0.3, "R2 with 5 answers": 0.5, "R2 with all answers": 0.6}
    frame = pd.concat([blocks({"isotropy": [value] * 2}, metric) for metric, value in metrics.items()])
    axes = plots.by_number(frame).axes[0]
    (means,) = [line for line in axes.get_lines() if line.get_marker() == "o"]
    assert dict(zip(means.get_xdata(), means.get_ydata(), strict=True)) == pytest.approx({2: 0.3, 5: 0.5, 10: 0.6})
    assert any(np.allclose(line.get_ydata(), 0.48) for line in axes.get_lines())  # four fifths of 0.6


# -- of a user's answers


def worst(n: int = 7):
    items = [Responses(f"q{k} $x$", "", [f"red a{k}", f"red b{k}", "red", f"blue c{k} d{k}"]) for k in range(n)]
    return list(scored(((item, None) for item in items), Reading(WordEmbedder())))


def test_score_and_factuality_show_every_prompt_and_the_fitted_line():
    scores, factuality = np.array([0.1, 0.4, 0.5, 0.9]), np.array([0.9, 0.6, 0.5, 0.1])
    axes = plots.score_against_factuality(scores, factuality, ((-1.0, -1, -1), (1.0, 1, 1))).axes[0]
    np.testing.assert_allclose(axes.collections[0].get_offsets(), np.column_stack([scores, factuality]))
    np.testing.assert_allclose(axes.get_lines()[0].get_xydata(), [[0.1, 0.9], [0.9, 0.1]])
    assert "the more the answers differ, the less of them is true" in " ".join(axes.get_title(loc="left").split())
    assert "R² 1.00" in axes.texts[0].get_text()


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        ((-0.5, -0.8, -0.1), "the less of them is true"),
        ((0.5, 0.1, 0.8), "the MORE of them is true"),
        ((-0.1, -0.3, 0.1), "no certain relation"),
    ],
)
def test_the_title_says_no_more_than_the_interval(interval, said):
    axes = plots.score_against_factuality([0.1, 0.5, 0.9], [0.7, 0.5, 0.2], (interval, (0.5, 0.1, 0.8))).axes[0]
    assert said in " ".join(axes.get_title(loc="left").split())
    drawn(plots.score_against_factuality([0.5, 0.5], [0.2, 0.7]), "svg")


def test_maps_hold_every_answer_of_six_prompts():
    picture = plots.answer_maps(worst())
    panels = [axes for axes in picture.axes if axes.get_visible()]
    assert len(panels) == 6
    for axes in panels:
        points = [line for line in axes.get_lines() if line.get_marker() in ("o", "s")]
        assert len(points) == 4
        assert sum(line.get_marker() == "s" for line in points) == 1
    drawn(picture, "png")
    drawn(plots.answer_maps(worst(1)), "png")


def test_score_by_number_ends_at_the_score_of_all_answers():
    found = worst(2)
    axes = plots.score_by_n(found).axes[0]
    curves = [line for line in axes.get_lines() if line.get_marker() == "o"]
    for line, one in zip(curves, found, strict=True):
        assert list(line.get_xdata()) == [2, 3, 4]
        assert line.get_ydata()[-1] == pytest.approx(one.score)
    flat = [line.get_ydata()[0] for line in axes.get_lines() if line.get_linestyle() == "--"]
    assert flat == pytest.approx([1 - one.result.purity_unbiased for one in found])


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_same_bytes_every_time(ending):
    first, second = (drawn(plots.answer_maps(worst(3)), ending) for _ in range(2))
    assert first == second
