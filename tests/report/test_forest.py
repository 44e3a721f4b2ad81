from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from upheld.claims import Finding, Outcome
from upheld.report.forest import in_words, outcomes, panels, svg

INF = math.inf


def finding(
    label: str,
    estimate: float,
    low: float,
    high: float,
    region: tuple[float, float] = (0.0, INF),
    outcome: Outcome = Outcome.UPHELD,
    quantity: str = "f",
) -> Finding:
    _, *conditions = [label] if label.startswith("(") else label.split(", ")
    return Finding(label, estimate, low, high, region, outcome, 12, "", quantity, tuple(conditions))


def test_the_side_of_the_claim_is_shaded_up_to_the_edge() -> None:
    (panel,) = panels([finding("f: a − b", 0.3, 0.1, 0.5), finding("f: a − c", -0.2, -0.5, 0.1)])
    assert panel.side is not None
    border, edge = panel.side
    assert edge == 100
    assert panel.borders == (border,)
    ours, theirs = panel.rows
    assert ours.low is not None
    assert theirs.at is not None
    assert border < ours.low
    assert theirs.at < border
    assert panel.wanted == "above 0"


def test_positions_are_linear_in_the_values() -> None:
    (panel,) = panels(
        [
            finding(f"f: a − {name}", value, value - 0.1, value + 0.1)
            for name, value in [("b", 1.0), ("c", 2.0), ("d", 3.0)]
        ]
    )
    first, second, third = (row.at for row in panel.rows)
    assert first is not None
    assert second is not None
    assert third is not None
    assert second - first == pytest.approx(third - second, abs=0.02)


@given(st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(0, 1e9), st.floats(0, 1e9)), min_size=1, max_size=20))
def test_everything_drawn_is_on_the_axis_in_order(triples: list[tuple[float, float, float]]) -> None:
    for panel in panels([finding("f: a − b", at, at - down, at + up) for at, down, up in triples]):
        for row in panel.rows:
            assert row.low is not None
            assert row.at is not None
            assert row.high is not None
            assert 0 <= row.low <= row.at <= row.high <= 100
        positions = [at for at, _ in panel.ticks]
        assert all(0 <= at <= 100 for at in positions)
        assert len(positions) == len(set(positions))


def test_an_interval_that_dwarfs_the_others_runs_off_the_axis() -> None:
    near = [finding(f"f: a − {name}", 0.1, 0.05, 0.15) for name in "bcd"]
    (panel,) = panels([*near, finding("f: a − e", 0.2, -50, 60), finding("f: a − g", 0.1, -INF, INF)])
    assert [(row.goes_on_left, row.goes_on_right) for row in panel.rows] == [(False, False)] * 3 + [(True, True)] * 2
    assert panel.rows[0].high is not None
    assert panel.rows[0].low is not None
    assert panel.rows[0].high - panel.rows[0].low > 5  # still to be seen


def test_what_is_measured_in_other_units_gets_its_own_axis() -> None:
    found = panels([
        finding("f: a − b", 0.1, 0, 0.2), finding("seconds: a ÷ b", 40, 30, 50, (-INF, 100)), finding("f: a − c", 0.1, 0, 0.2),
        finding("f: a − d", 0.1, 0, 0.2, (0.05, INF)),
    ])  # fmt: skip
    assert [[row.finding.label for row in panel.rows] for panel in found] == [
        ["f: a − b", "f: a − c"],
        ["seconds: a ÷ b"],
        ["f: a − d"],
    ]


def test_ratios_over_two_decades_are_drawn_on_a_logarithmic_axis() -> None:
    ratios = [
        finding(f"seconds: a ÷ {name}", value, value / 1.5, value * 1.5, (-INF, 1.0))
        for name, value in [("b", 0.01), ("c", 0.1), ("d", 1.0)]
    ]
    (panel,) = panels(ratios)
    assert panel.logarithmic
    first, second, third = (row.at for row in panel.rows)
    assert first is not None
    assert second is not None
    assert third is not None
    assert second - first == pytest.approx(third - second, abs=0.02)
    assert "1" in [text for _, text in panel.ticks]
    assert panel.side == (0.0, panel.borders[0])


def test_the_border_is_always_labelled() -> None:
    (panel,) = panels([finding("f: a − b", 0.1, 0.05, 0.15, (0.0371, INF))])
    assert "0.0371" in [text for _, text in panel.ticks]


def test_without_an_estimate_nothing_is_drawn() -> None:
    (panel,) = panels([finding("f: a − b", INF, -INF, INF)])
    assert panel.rows[0].at is None
    assert panel.ticks == ()


def test_a_figure_without_a_rule_has_no_shaded_side() -> None:
    (panel,) = panels([finding("mean f of a", 0.1, 0.0, 0.2, (-INF, INF), Outcome.REPORTED)])
    assert panel.side is None
    assert panel.borders == ()
    assert panel.wanted == ""


def test_conditions_shared_by_all_are_said_once() -> None:
    (panel,) = panels([finding("f: a − b, n = 30, law = t", 1, 0, 2), finding("f: a − b, n = 60, law = t", 1, 0, 2)])
    assert panel.shared == "law = t"
    assert [row.label for row in panel.rows] == ["f: a − b, n = 30", "f: a − b, n = 60"]


def test_composed_labels_are_left_whole() -> None:
    label = "(mean f of a, n = 30) ÷ (mean f of a, n = 60)"
    (panel,) = panels([finding(label, 1, 0.5, 2), finding(label, 2, 1.5, 3)])
    assert [row.label for row in panel.rows] == [label, label]


def test_a_name_with_a_comma_is_no_condition() -> None:
    label = "mean excess, relative of SGA, n = "
    both = [
        replace(finding(label, 1, 0.5, 2), label=f"{label}{n}", conditions=(f"n = {n}",))
        for n in (30, 60)
    ]  # fmt: skip
    (panel,) = panels(both)
    assert panel.shared == ""
    assert [row.label for row in panel.rows] == [one.label for one in both]


def test_other_quantities_have_an_axis_of_their_own() -> None:
    found = panels([finding("f: a − b", 1, 0, 2), finding("g: a − b", 1, 0, 2, quantity="g")])
    assert [[row.label for row in panel.rows] for panel in found] == [["f: a − b"], ["g: a − b"]]


def test_regions_in_words() -> None:
    assert [in_words(region) for region in [(0.0, INF), (-INF, -0.4), (-0.05, 0.05), (-INF, INF)]] == [
        "above 0", "below −0.4", "between −0.05 and 0.05", "",
    ]  # fmt: skip


def test_outcomes_are_counted() -> None:
    found = [finding("f", 1, 0, 2)] * 3 + [finding("f", 1, 0, 2, outcome=Outcome.NOT_UPHELD)]
    assert [(word, n) for _, word, n in outcomes(found)] == [("upheld", 3), ("not upheld", 1)]


# -- a method's own figure


def figure() -> Figure:
    made = Figure(figsize=(6, 3))
    axes = made.subplots()
    axes.plot([0, 1], [0, 1], marker="o")
    axes.set_title("<script>alert(1)</script> --> <b>")
    return made


def test_a_figure_is_the_same_bytes_every_time() -> None:
    assert svg(figure(), "claim-a") == svg(figure(), "claim-a")


def test_a_figure_brings_no_style_no_script_and_no_shared_identifier() -> None:
    first, second = svg(figure(), "claim-a"), svg(figure(), "claim-b")
    assert first.startswith("<svg ")
    for forbidden in ("<script", "<style", "<!--", "<?xml", "<metadata", "<!DOCTYPE"):
        assert forbidden not in first
    ids = [set(re.findall(r'\sid="([^"]+)"', text)) for text in (first, second)]
    assert ids[0]
    assert not ids[0] & ids[1]
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', first))
    assert used
    assert {a or b for a, b in used} <= ids[0]


def test_a_figure_keeps_its_size_and_can_shrink() -> None:
    text = svg(figure(), "claim-a")
    assert re.search(r'style="[^"]*width:\d+px;min-width:\d+px', text)
    assert not re.search(r'<svg[^>]*\sheight="', text)
