"""The runner against trials that do what trials should not."""

from __future__ import annotations

import importlib
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from upheld.claims import (
    AtMost,
    Claim,
    Experiment,
    Ledger,
    Mean,
    Measurement,
    Outcome,
    Preparation,
    Result,
    Scale,
    fingerprint,
    grid,
    judge,
    plan,
    run,
)
from upheld.claims.runner import Measured
from upheld.compute import LocalPool, RayCluster
from upheld.compute import Outcome as Ended

TOY = '''
"""Trials that misbehave."""

import ctypes
import os
import time
from pathlib import Path

import numpy as np

from upheld.claims import Measurement, NotRun


def noted(trial, folder="runs"):
    """Leave a trace of every time that a trial is run."""
    place = Path(os.environ["TOY_TRACES"]) / folder
    place.mkdir(exist_ok=True)
    with open(place / f"{trial.condition['does']}-{trial.seed}", "a") as file:
        file.write(f"{os.getpid()} {time.monotonic()} ")


def misbehave(trial):
    noted(trial)
    does = trial.condition["does"]
    yield Measurement("toy", "error", float(trial.rng().normal()))
    yield Measurement("toy", "error", float(trial.rng("second").normal()), item="second")
    if does == "raise" and trial.seed == 1:
        raise KeyError("what is missing")
    if does == "surrogate":
        raise OSError("no file \\udcff")
    if does == "segfault":
        ctypes.string_at(0)
    if does == "hang":
        time.sleep(60)
    if does == "kill":
        os.kill(os.getpid(), 9)
    if does == "exit":
        os._exit(0)
    if does == "not run":
        raise NotRun("there is no GPU")
    if does == "nan":
        yield Measurement("toy", "error", float("nan"))
    if does == "stranger":
        yield ("toy", "error", 0.5)


def nothing(trial):
    return ()


def train(folder, seed):
    place = Path(os.environ["TOY_TRACES"]) / "builds"
    place.mkdir(exist_ok=True)
    with open(place / str(seed), "a") as file:
        file.write(f"{os.getpid()} ")
    (folder / "half").write_text("x")
    if seed == 1:
        raise RuntimeError("loss is NaN")
    if seed == 2:
        raise NotRun("the corpus is only to be had from its authors")
    if seed == 3 and not os.environ.get("TOY_WHOLE"):
        os.kill(os.getpid(), 9)
    (folder / "model").write_text(str(seed))


def with_model(trial):
    from toyrun.recipes import MODEL

    yield Measurement("toy", "model", float((MODEL(seed=trial.seed).folder() / "model").read_text()))


def lonely(trial):
    noted(trial)
    time.sleep(0.05)
    noted(trial)
    yield Measurement("toy", "error", 1.0)


def threads(trial):
    yield Measurement("toy", "threads", float(os.environ["OMP_NUM_THREADS"]))
    yield Measurement("toy", "entropy", float(hash("a text") % 1000))
'''
RECIPES = """
from toyrun.trials import train
from upheld.claims import Preparation

MODEL = Preparation("toyrun.model", train, timeout_s=30)
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The toy package on the search path; the folder where its trials leave traces."""
    package = tmp_path / "site" / "toyrun"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "trials.py").write_text(TOY)
    (package / "recipes.py").write_text(RECIPES)
    (tmp_path / "traces").mkdir()
    monkeypatch.setenv("TOY_TRACES", str(tmp_path / "traces"))
    monkeypatch.setenv("UPHELD_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield tmp_path
    for name in ("toyrun", "toyrun.trials", "toyrun.recipes"):
        importlib.sys.modules.pop(name, None)
    fingerprint.cache_clear()


def trials():
    return importlib.import_module("toyrun.trials")


def model() -> Preparation:
    return importlib.import_module("toyrun.recipes").MODEL


def experiment(
    *, does=("well",), repeats=3, timeout_s=20.0, measure="misbehave", name="toyrun.race", **further
) -> Experiment:
    return Experiment(
        name, getattr(trials(), measure), {Scale.QUICK: grid(does=list(does))}, {Scale.QUICK: repeats},
        {Scale.QUICK: timeout_s}, **further,
    )  # fmt: skip


def carry_out(
    one: Experiment, folder: Path, *, workers: int = 1, name: str = "ledger", retry_failed: bool = False, compute=None
):
    """Every result, and what the ledger then holds."""
    with Ledger(folder / name) as book:
        todo = plan([one], Scale.QUICK, book, retry_failed=retry_failed)
        results = list(run(todo, book, compute or LocalPool(workers)))
        sources = fingerprint(one.method)
        return results, book.measurements(one.name, Scale.QUICK, sources), book.costs(one.name, Scale.QUICK, sources)


def traces(folder: Path, kind: str = "runs") -> dict[str, int]:
    """How often each trial was run."""
    place = folder / "traces" / kind
    return (
        {path.name: len(path.read_text().split()) // (2 if kind == "runs" else 1) for path in place.iterdir()}
        if place.exists()
        else {}
    )


REASONS = {
    "raise": r"KeyError: 'what is missing' \(toyrun/trials.py:\d+\)",
    "surrogate": r"OSError: no file \\udcff",
    "segfault": "killed by signal 11",
    "kill": "killed by signal 9",
    "exit": "ended with exit code 0",
    "nan": "ValueError: toy: error is NaN; a trial that cannot measure should say why by raising",
    "stranger": r"TypeError: a trial yields Measurement\(method, metric, value\), this one yielded \('toy', 'error', 0.5\)",
    "hang": "ran out of time after 2 s",
}


@pytest.mark.slow
def test_each_failure_is_that_trials_alone_and_says_why(toy):
    one = experiment(does=("well", *REASONS), repeats=2, timeout_s=2.0)
    results, frame, costs = carry_out(one, toy, workers=2)
    assert len(results) == 2 * (1 + len(REASONS))
    status = costs.assign(does=costs["condition"].str.extract('"does":"(.*)"')).set_index(["does", "seed"])
    assert set(frame["does"]) == {"well", "raise"}
    assert status.loc["well", "status"].tolist() == ["done", "done"]
    assert status.loc[("raise", 0), "status"] == "done"
    for does, reason in REASONS.items():
        row = status.loc[(does, 1)]
        assert row["status"] == "failed", does
        assert pd.Series([row["reason"]]).str.contains(reason).all(), (does, row["reason"])
    # What a failed trial had measured before it failed is not kept: half a trial is no measurement.
    assert len(frame) == 3 * 2


def test_not_run_is_neither_measured_nor_failed_and_is_tried_again(toy):
    one = experiment(does=["not run"], repeats=2)
    for _ in range(2):
        results, frame, _ = carry_out(one, toy)
        assert [(result.status, result.reason) for result in results] == [("not run", "there is no GPU")] * 2
        assert frame.empty
    assert traces(toy) == {"not run-0": 2, "not run-1": 2}
    with Ledger(toy / "ledger") as book:
        verdict = judge(Claim("toyrun.c", "s", None, one, AtMost(Mean("error", "toy"), 1.0)), Scale.QUICK, book)
    assert (verdict.outcome, verdict.note) == (Outcome.NOT_RUN, "there is no GPU")


def test_nothing_measured_is_a_failure(toy):
    [result] = carry_out(experiment(measure="nothing", repeats=1), toy)[0]
    assert result.status == "failed"
    assert "nothing was measured; a trial that cannot measure should say why by raising NotRun" in result.reason


@pytest.mark.parametrize(("failing", "outcome"), [(2, Outcome.UPHELD), (3, Outcome.INCONCLUSIVE)])
def test_more_than_a_tenth_of_failures_decides_nothing(toy, failing, outcome):
    one = experiment(does=["well", "better"], repeats=10)
    with Ledger(toy / "ledger") as book:
        for number, trial in enumerate(one.trials(Scale.QUICK)):
            measured = Result(trial, "done", [Measurement("toy", "error", float(trial.seed))])
            book.record(
                measured if number >= failing else Result(trial, "failed", reason="it broke"), fingerprint("toyrun")
            )
        verdict = judge(Claim("toyrun.c", "s", None, one, AtMost(Mean("error", "toy"), 99.0)), Scale.QUICK, book)
    assert verdict.outcome is outcome
    assert verdict.reasons == {"it broke": failing}
    if outcome is Outcome.INCONCLUSIVE:
        assert "3 of 20 trials failed or are missing, more than 10%" in verdict.note


@pytest.mark.slow
def test_nothing_is_measured_twice(toy):
    one = experiment(does=["well", "raise"], repeats=3)
    first = carry_out(one, toy)[0]
    assert len(first) == 6
    assert carry_out(one, toy)[0] == []
    assert set(traces(toy).values()) == {1}
    more = experiment(does=["well", "raise"], repeats=4)
    assert sorted(result.trial.seed for result in carry_out(more, toy)[0]) == [3, 3]
    assert set(traces(toy).values()) == {1}
    [again] = carry_out(more, toy, retry_failed=True)[0]
    assert (again.trial.condition["does"], again.trial.seed, again.status) == ("raise", 1, "failed")
    assert traces(toy)["raise-1"] == 2


def test_a_run_that_is_closed_goes_on_where_it_was(toy):
    one = experiment(repeats=8)
    with Ledger(toy / "ledger") as book:
        going = run(plan([one], Scale.QUICK, book), book, LocalPool(2))
        kept = [next(going) for _ in range(3)]
        going.close()
        assert len(book.statuses(one.name, Scale.QUICK, fingerprint("toyrun"))) == 3
    rest = carry_out(one, toy)[0]
    assert sorted(result.trial.seed for result in (*kept, *rest)) == list(range(8))


def test_trials_that_are_wanted_no_more_are_not_judged(toy):
    """Conditions and repeats leave the fingerprint alone, so what they once asked for is still in the ledger."""
    wide = experiment(does=["well", "better"], repeats=10)
    carry_out(wide, toy)
    narrow = experiment(does=["well"], repeats=6)
    with Ledger(toy / "ledger") as book:
        verdict = judge(Claim("toyrun.c", "s", None, narrow, AtMost(Mean("error", "toy"), 9.0)), Scale.QUICK, book)
        values = book.measurements(wide.name, Scale.QUICK, fingerprint("toyrun"))
    wanted = values[(values["does"] == "well") & (values["seed"] < 6)]
    assert verdict.trials.wanted == verdict.trials.done == 6
    assert verdict.findings[0].units == 6
    assert verdict.findings[0].estimate == pytest.approx(wanted["value"].mean())


def test_a_changed_source_makes_results_stale(toy):
    one = experiment(repeats=2)
    carry_out(one, toy)
    path = toy / "site" / "toyrun" / "trials.py"
    path.write_text(path.read_text() + "\nCONSTANT = 1\n")
    fingerprint.cache_clear()
    with Ledger(toy / "ledger") as book:
        todo = plan([one], Scale.QUICK, book)
    assert (len(todo.pending), todo.present, todo.stale) == (2, 0, 2)


def test_sources_that_change_during_the_run_are_noticed(toy):
    """Workers that start later would run other sources than those whose hash the result bears."""
    one = experiment(repeats=2)
    fingerprint("toyrun")
    path = toy / "site" / "toyrun" / "trials.py"
    path.write_text(path.read_text() + "\nCONSTANT = 1\n")
    results = carry_out(one, toy)[0]
    assert [(result.status, result.reason) for result in results] == [
        ("not run", "the sources of toyrun were changed during the run; run it again")
    ] * 2


def test_two_experiments_of_one_name_are_refused(toy):
    with (
        Ledger(toy / "ledger") as book,
        pytest.raises(ValueError, match=r"2 experiments have the name 'toyrun\.race'; rename"),
    ):
        plan([experiment(), experiment(does=["other"])], Scale.QUICK, book)


def test_a_name_without_a_package_is_refused(toy):
    with Ledger(toy / "ledger") as book, pytest.raises(ValueError, match="no method 'nosuch'"):
        plan([experiment(name="nosuch.race")], Scale.QUICK, book)


# -- the same, wherever and however many


def same(first, second) -> None:
    """Bit for bit."""
    pd.testing.assert_frame_equal(first[1], second[1], check_exact=True)
    columns = ["condition", "seed", "status", "reason"]
    pd.testing.assert_frame_equal(first[2][columns], second[2][columns])


def test_one_worker_and_two_leave_the_same_ledger(toy):
    one = experiment(does=["well", "raise", "not run"], repeats=6)
    same(carry_out(one, toy, workers=1, name="one"), carry_out(one, toy, workers=2, name="two"))


@pytest.mark.slow
def test_ray_leaves_the_same_ledger(toy):
    pytest.importorskip("ray")
    one = experiment(does=["well", "raise", "segfault", "hang", "not run"], repeats=2, timeout_s=2.0)
    here = carry_out(one, toy, workers=2, name="local")
    there = carry_out(one, toy, name="ray", compute=RayCluster("auto", 2))
    same(here, there)


def test_workers_have_one_thread_and_one_order_of_sets(toy):
    frame = carry_out(experiment(measure="threads", repeats=4), toy, workers=2)[1]
    assert set(frame.loc[frame["metric"] == "threads", "value"]) == {1.0}
    assert frame.loc[frame["metric"] == "entropy", "value"].nunique() == 1


def test_costs_are_recorded(toy):
    costs = carry_out(experiment(measure="lonely", repeats=1), toy)[2]
    assert costs["seconds"].iloc[0] >= 0.05
    assert costs["peak_memory"].iloc[0] > 2**20
    assert '"numpy"' in costs["versions"].iloc[0]
    assert costs["host"].iloc[0]


@pytest.mark.slow
def test_alone_is_alone(toy):
    together = experiment(measure="lonely", repeats=3)
    alone = experiment(measure="lonely", name="toyrun.alone", does=["alone"], repeats=2, alone=True)
    with Ledger(toy / "ledger") as book:
        results = list(run(plan([alone, together], Scale.QUICK, book), book, LocalPool(2)))
    assert [result.trial.experiment for result in results] == ["toyrun.race"] * 3 + ["toyrun.alone"] * 2
    spans, workers = {}, {}
    for path in (toy / "traces" / "runs").iterdir():
        workers[path.name], begun, _, ended = map(float, path.read_text().split())
        spans[path.name] = (begun, ended)
    assert len({worker for name, worker in workers.items() if name.startswith("alone")}) == 1
    for name, (begun, ended) in spans.items():
        if name.startswith("alone"):
            assert not [other for other, (b, e) in spans.items() if other != name and b < ended and begun < e]


# -- what trials stand on


def with_model(repeats: int, seeds=None) -> Experiment:
    return experiment(
        measure="with_model", does=["a", "b"], repeats=repeats,
        prepare=lambda trial: [model()(seed=trial.seed if seeds is None else seeds[trial.seed])],
    )  # fmt: skip


@pytest.mark.slow
def test_a_preparation_is_built_once(toy):
    results, frame, _ = carry_out(with_model(1), toy, workers=2)
    assert [result.status for result in results] == ["done"] * 2
    assert set(frame["value"]) == {0.0}
    assert traces(toy, "builds") == {"0": 1}
    carry_out(with_model(1), toy, name="another ledger")
    assert traces(toy, "builds") == {"0": 1}


@pytest.mark.slow
def test_failed_killed_and_impossible_preparations(toy, monkeypatch):
    results, _, _ = carry_out(with_model(4), toy, workers=2)
    found = {result.trial.seed: (result.status, result.reason) for result in results}
    assert Counter(result.trial.seed for result in results) == dict.fromkeys(range(4), 2)
    assert found[0] == ("done", "")
    assert found[1][0] == found[3][0] == "failed"
    assert found[1][1].startswith("preparing toyrun.model(seed=1) failed: RuntimeError: loss is NaN (toyrun/trials.py:")
    assert found[3][1].startswith("preparing toyrun.model(seed=3) failed: killed by signal 9")
    assert found[2] == ("not run", "the corpus is only to be had from its authors")
    assert traces(toy, "builds") == {"0": 1, "1": 1, "2": 1, "3": 1}
    assert [path.name for path in finished(toy)] == ["model"]

    monkeypatch.setenv("TOY_WHOLE", "1")
    again = carry_out(with_model(4), toy, retry_failed=True)[0]
    assert Counter(result.status for result in again) == {"failed": 2, "not run": 2, "done": 2}
    assert traces(toy, "builds") == {"0": 1, "1": 2, "2": 2, "3": 2}
    assert not list((toy / "cache").rglob("*.unfinished"))
    assert len(finished(toy)) == 2


def finished(folder: Path) -> list[Path]:
    """What finished builds hold, without what is being built and without locks."""
    place = folder / "cache" / "toyrun.model"
    return [
        path
        for built in place.iterdir()
        if built.is_dir() and not built.suffix
        for path in built.iterdir()
        if path.name != "half"
    ]


def test_an_error_in_saying_what_to_prepare_is_that_trials_failure(toy):
    results, _, _ = carry_out(with_model(2, seeds={0: 0}), toy)
    assert [result.status for result in results if result.trial.seed == 0] == ["done"] * 2
    reasons = [result.reason for result in results if result.trial.seed == 1]
    assert reasons == ["what to prepare cannot be told: KeyError: 1"] * 2


def test_a_changed_source_builds_anew(toy):
    before = model()(seed=0).folder()
    path = toy / "site" / "toyrun" / "trials.py"
    path.write_text(path.read_text() + "\nCONSTANT = 1\n")
    fingerprint.cache_clear()
    assert model()(seed=0).path != before
    assert not model()(seed=0).ready


@pytest.mark.slow
def test_two_processes_do_not_build_twice(toy):
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            model()(seed=0).folder()
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 3
    assert traces(toy, "builds") == {"0": 1}


def test_a_builder_killed_in_the_middle_leaves_nothing_that_looks_finished(toy, monkeypatch):
    child = os.fork()
    if child == 0:
        model()(seed=3).folder()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not model()(seed=3).ready
    monkeypatch.setenv("TOY_WHOLE", "1")
    began = time.monotonic()
    assert (model()(seed=3).folder() / "model").read_text() == "3"
    assert time.monotonic() - began < 10  # the lock of the dead is not waited for
    assert not list((toy / "cache").rglob("*.unfinished"))


def test_within_a_seed_the_longest_come_first_as_soon_as_that_is_known(tmp_path):
    class Inline:
        """One job at a time, drawn when the last one has ended; "long" takes 9 seconds, "short" 1."""

        def run(self, jobs, workers=None):
            for job in jobs:
                size = job.args[1].condition["size"]
                drawn.append((job.args[1].seed, size))
                value = Measured((Measurement("toy", "error", 0.0),), "", {})
                yield Ended(job.key, "done", value, seconds={"short": 1.0, "long": 9.0}[size])

    drawn: list[tuple[int, str]] = []
    two = Experiment(
        "hubs.order", print, {Scale.QUICK: [{"size": "short"}, {"size": "long"}]}, {Scale.QUICK: 2}, {Scale.QUICK: 1.0}
    )
    with Ledger(tmp_path / "ledger.sqlite") as book:
        results = list(run(plan([two], Scale.QUICK, book), book, Inline()))
    assert drawn == [(0, "short"), (0, "long"), (1, "long"), (1, "short")]
    assert [(one.trial.seed, one.trial.condition["size"]) for one in results] == drawn
