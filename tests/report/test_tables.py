from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd
import pytest
from report_toys import ABSENT, BROKEN, HOSTILE, LATER, RACE, RIVALS, UNMEASURED, VERSIONS

from upheld.claims import AtLeast, Claim, Experiment, Mean, Measurement, Outcome, Scale, Superior, Trial, grid
from upheld.claims.trial import Condition
from upheld.report.results import MethodResults
from upheld.report.tables import cost, experiments, judged, provenance, races, tally

COSTS = ["condition", "seed", "status", "reason", "seconds", "peak_memory", "host", "versions", "finished"]


def nothing(trial: Trial) -> Iterable[Measurement]:
    return ()


def made(
    rows: Sequence[Mapping[str, object]], conditions: Sequence[Condition], *, units: str = "seed", lower: bool = False
) -> tuple[MethodResults, Experiment]:
    """Results of one claim of superiority in f, from rows written down here."""
    experiment = Experiment("m.e", nothing, {Scale.QUICK: conditions}, {Scale.QUICK: 2}, {Scale.QUICK: 1}, units=units)
    claim = Claim("m.c", "wins", None, experiment, Superior("f", "a", ("b",), lower_is_better=lower))
    frame = pd.DataFrame([{"seed": 0, "item": "", "metric": "f", **row} for row in rows])
    costs = pd.DataFrame(columns=COSTS)
    return MethodResults(
        "m", "", "", "", "", Scale.QUICK, "", [claim], [], {"m.e": frame}, {"m.e": costs}, {}
    ), experiment


def test_means_and_units_by_hand() -> None:
    rows = [{"n": n, "seed": seed, "method": method, "value": value}
            for n, method, values in [(100, "a", (1.0, 3.0)), (100, "b", (2.0, 4.0)), (30, "a", (10.0, 10.5)), (30, "b", (0.0, 0.5))]
            for seed, value in enumerate(values)]  # fmt: skip
    results, experiment = made(rows, grid(n=[30, 100]))
    (race,) = races(results, experiment)
    assert race.conditions == ({"n": 30}, {"n": 100})  # the plan's order, not the ledger's
    assert race.methods == ("a", "b")
    assert {key: entry.mean for key, entry in race.entries.items()} == {
        ("a", 0): 10.25,
        ("b", 0): 0.25,
        ("a", 1): 2,
        ("b", 1): 3,
    }
    assert {key for key, entry in race.entries.items() if entry.best} == {("a", 0), ("b", 1)}
    assert race.units() == 2
    # two values 1 and 3: t with one degree of freedom, 2 ± 12.706; the bench may widen it for skewness, never narrow it
    entry = race.entries["a", 1]
    assert entry.low <= 2 - 12.706
    assert entry.high >= 2 + 12.706


def test_lower_is_better_and_ties_are_all_best() -> None:
    rows = [{"method": name, "value": value} for name, value in [("a", 1.0), ("b", 1.0), ("c", 2.0)]]
    results, experiment = made(rows, [{}], lower=True)
    (race,) = races(results, experiment)
    assert [method for (method, _), entry in race.entries.items() if entry.best] == ["a", "b"]
    assert race.better == "lower"


def test_nothing_is_best_where_no_claim_says_which_way() -> None:
    rows = [{"method": name, "metric": "g", "value": value} for name, value in [("a", 1.0), ("b", 2.0)]]
    results, experiment = made(rows, [{}])
    (race,) = races(results, experiment)
    assert race.better == ""
    assert not race.decides
    assert not any(entry.best for entry in race.entries.values())


def test_a_single_method_is_not_best() -> None:
    results, experiment = made([{"method": "a", "value": 1.0}], [{}])
    assert not races(results, experiment)[0].entries["a", 0].best


def test_one_unit_and_infinite_values_have_no_interval() -> None:
    rows = [{"method": "a", "value": 1.0}] + [
        {"method": "b", "seed": seed, "value": value} for seed, value in enumerate((1.0, math.inf))
    ]
    results, experiment = made(rows, [{}], lower=True)
    entries = races(results, experiment)[0].entries
    assert math.isnan(entries["a", 0].low)
    assert entries["b", 0].mean == math.inf
    assert math.isnan(entries["b", 0].high)
    assert entries["b", 0].units == 2


def test_a_condition_that_is_the_sample_is_averaged_over() -> None:
    rows = [
        {"file": file, "n": n, "method": "a", "value": float(value)} for n in (1, 2) for value, file in enumerate("xyz")
    ]
    results, experiment = made(rows, grid(file=list("xyz"), n=[1, 2]), units="file")
    (race,) = races(results, experiment)
    assert race.conditions == ({"n": 1}, {"n": 2})
    assert race.entries["a", 0].mean == 1
    assert race.units() == 3


def test_conditions_with_different_keys_stay_apart() -> None:
    rows = [{"n": 30, "law": None, "method": "a", "value": 1.0}, {"n": 30, "law": "t", "method": "a", "value": 5.0}]
    results, experiment = made(rows, [{"n": 30}, {"n": 30, "law": "t"}])
    (race,) = races(results, experiment)
    assert race.fixed == {"n": 30}
    assert race.conditions == ({}, {"law": "t"})
    assert [race.entries["a", index].mean for index in (0, 1)] == [1, 5]


def test_integers_stay_integers_beside_missing_keys() -> None:
    frame_turns_them_to_floats = [
        {"n": 30.0, "k": math.nan, "method": "a", "value": 1.0},
        {"n": math.nan, "k": 2.0, "method": "a", "value": 1.0},
    ]
    results, experiment = made(frame_turns_them_to_floats, [{"n": 30}, {"k": 2}])
    (race,) = races(results, experiment)
    assert [list(map(str, one.values())) for one in race.conditions] == [["30"], ["2"]]


def test_the_toy_race(results: Sequence[MethodResults]) -> None:
    tables = races(results[0], RACE)
    assert [race.metric for race in tables if race.decides] == ["error", "coverage", "seconds", "excess over the bound"]
    error = tables[0]
    assert error.better == "lower"
    assert set(error.methods) == {"mom", *RIVALS}
    assert len(error.conditions) == 10
    assert not error.conditions_as_rows
    assert tables[3].conditions_as_rows  # one method under ten conditions
    assert error.units() is None
    assert error.units(0) == 12
    assert error.units(9) == 11  # one seed was lost at n = 3000


def test_figures_of_a_column_share_their_decimals() -> None:
    rows = [
        {"method": name, "seed": seed, "value": base + step}
        for name, base in [("a", 0.5), ("b", 0.25)]
        for seed, step in enumerate((0.0, 0.01, 0.02))
    ]
    results, experiment = made(rows, [{}])
    (race,) = races(results, experiment)
    texts = [text for method in "ab" for text in race.figures(method, 0)]
    assert {len(text.split(".")[1]) for text in texts} == {3}


# -- costs


def test_every_lost_trial_is_named(results: Sequence[MethodResults]) -> None:
    broken = cost(results[0], BROKEN)
    assert (broken.wanted, broken.done, broken.failed, broken.missing) == (16, 12, 4, 0)
    (loss,) = broken.losses
    assert (loss.condition, loss.seeds, loss.count, loss.status) == ({"p": 400}, "1, 3, 5, 7", 4, "failed")
    assert loss.reason == f"MemoryError: cannot allocate {HOSTILE}"


def test_absent_unmeasured_and_unplanned_are_told_apart(results: Sequence[MethodResults]) -> None:
    absent, unmeasured, later = (cost(results[0], one) for one in (ABSENT, UNMEASURED, LATER))
    assert (absent.not_run, absent.done) == (5, 0)
    assert math.isnan(absent.total_seconds)
    assert (unmeasured.missing, unmeasured.losses[0].seeds, unmeasured.losses[0].status) == (6, "0–5", "missing")
    assert (later.wanted, later.losses) == (0, ())


def test_seconds_and_memory(results: Sequence[MethodResults]) -> None:
    rows = results[0].costs[RACE.name]
    found = cost(results[0], RACE)
    assert found.total_seconds == pytest.approx(sum(rows["seconds"]))
    assert found.peak_memory == 180_000_000 + 11_000_000  # the last seed's, see the toys
    assert (found.conditions, found.repeats) == (10, 12)


def test_unknown_memory_is_not_zero() -> None:
    results, experiment = made([{"method": "a", "value": 1.0}], [{}])
    rows = [["{}", 0, "done", "", 1.0, 0, "", "{}", "2026-01-01T00:00:00+00:00"]]
    found = cost(dataclasses.replace(results, costs={"m.e": pd.DataFrame(rows, columns=COSTS)}), experiment)
    assert math.isnan(found.peak_memory)
    assert (found.done, found.missing) == (1, 1)


def test_provenance_keeps_every_version() -> None:
    results, _ = made([{"method": "a", "value": 1.0}], [{}])
    rows = [["{}", 0, "done", "", 1.0, 1, "b", '{"numpy": "2.4.1"}', "2026-01-02T00:00:00+00:00"],
            ["{}", 1, "done", "", 1.0, 1, "a", '{"numpy": "2.4.2"}', "2026-01-01T09:00:00+00:00"]]  # fmt: skip
    found = provenance([dataclasses.replace(results, costs={"m.e": pd.DataFrame(rows, columns=COSTS)})])
    assert found.hosts == ("a", "b")
    assert found.dates == "2026-01-01 to 2026-01-02"
    assert found.versions == {"numpy": "2.4.1, 2.4.2"}


def test_provenance_of_nothing() -> None:
    results, _ = made([{"method": "a", "value": 1.0}], [{}])
    assert provenance([results]).dates == ""


def test_provenance_of_the_toys(results: Sequence[MethodResults]) -> None:
    assert provenance(results).versions == VERSIONS


# -- the tally


def test_authors_claims_and_our_checks_are_counted_apart(results: Sequence[MethodResults]) -> None:
    authors, ours = (tally(judged(results[0], ours=ours)) for ours in (False, True))
    assert authors.total == 10
    assert ours.total == 4
    assert authors.counts[Outcome.NOT_RUN] == 2
    assert ours.counts[Outcome.REPORTED] == 1


def test_experiments_are_listed_once(results: Sequence[MethodResults]) -> None:
    names = [one.name for one in experiments(results[0])]
    assert len(names) == len(set(names)) == 6


def test_metrics_inside_composed_rules_are_found() -> None:
    results, experiment = made([{"method": "a", "metric": "depth", "value": 1.0}], [{}])
    claim = Claim("m.d", "deep", None, experiment, AtLeast(Mean("depth", "a"), 0.5))
    assert races(dataclasses.replace(results, claims=[claim]), experiment)[0].decides
