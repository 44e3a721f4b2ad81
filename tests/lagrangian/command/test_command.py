"""``upheld run lagrangian`` as a user meets it: what it prints and writes, that its bounds are bounds, and what it says of bad input."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from pathlib import Path

import highspy
import numpy as np
import pandas as pd
import pytest

from installed import refused
from upheld.catalog import METHODS
from upheld.lagrangian import ContextualMultipliers, CoupledMILP, SGAMultipliers, WarmStartMultipliers
from upheld.lagrangian.command import EXAMPLE, WRITES_A_FOLDER, write_data
from upheld.lagrangian.learners import TIMES_LP
from upheld.lagrangian.saving import load_multipliers, save_multipliers

USUAL = ("--train", "past/*.mps", "--test", "today.mps", "--coupling", "assign_.*")
TESTPROB = """\
NAME          TESTPROB
ROWS
 N  COST
 L  LIM1
 G  LIM2
 E  MYEQN
COLUMNS
    XONE      COST                 1   LIM1                 1
    XONE      LIM2                 1
    YTWO      COST                 4   LIM1                 1
    YTWO      MYEQN               -1
    ZTHREE    COST                 9   LIM2                 1
    ZTHREE    MYEQN                1
RHS
    RHS1      LIM1                 4   LIM2                 1
    RHS1      MYEQN                7
BOUNDS
 UP BND1      XONE                 4
 LO BND1      YTWO                -1
 UP BND1      YTWO                 1
 UP BND1      ZTHREE              20
ENDATA
"""  # the format's textbook example, in fixed columns, with an end for ZTHREE; by hand: y = -1, z = 6, x = 0 cost 50, and no less
TESTPROB_OPTIMUM = 50.0


def report_of(folder: Path) -> dict:
    return json.loads((folder / "report.json").read_text(), parse_constant=pytest.fail)


def relaxed_by_highs(path: Path, multipliers: dict[str, float]) -> float:
    """min c x + pi (b - A x) over all rows but the priced ones, as one model, by HiGHS alone: nothing of ours but the prices.

    Rows are taken as the file has them: a price on a <= row is one on its negation.
    """
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    assert h.readModel(str(path)) == highspy.HighsStatus.kOk
    lp = h.getLp()
    sign = -1.0 if lp.sense_ == highspy.ObjSense.kMaximize else 1.0
    cost, constant = sign * np.array(lp.col_cost_), sign * lp.offset_
    priced = [list(lp.row_names_).index(name) for name in multipliers]
    for row, price in zip(priced, multipliers.values(), strict=True):
        _, columns, values = h.getRowEntries(row)
        upper_only = not np.isfinite(lp.row_lower_[row])
        flip = -1.0 if upper_only else 1.0
        cost[columns] -= price * flip * values
        constant += price * flip * (lp.row_upper_[row] if upper_only else lp.row_lower_[row])
    for row in priced:
        h.changeRowBounds(row, -np.inf, np.inf)
    h.changeObjectiveSense(highspy.ObjSense.kMinimize)
    for column, value in enumerate(cost):
        h.changeColCost(column, value)
    h.changeObjectiveOffset(constant)
    h.setOptionValue("mip_rel_gap", 0.0)
    h.run()
    assert h.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return sign * h.getInfo().objective_function_value


def optimum_by_highs(path: Path) -> float:
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.readModel(str(path))
    h.run()
    assert h.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return h.getInfo().objective_function_value


# -- what comes out


def test_a_run_prints_a_certified_bound_beside_its_rivals_and_writes_everything(days, lagrangian):
    done = lagrangian(*USUAL, "--compare", "--out", "out", "--seconds", "5")
    assert done.returncode == 0, done.stderr
    report = report_of(days / "out")
    (one,) = report["instances"]
    opt = optimum_by_highs(days / "today.mps")

    # the printed bound is what an independent solution of the relaxation gives, and below the optimum
    assert one["learned_bound"] == pytest.approx(relaxed_by_highs(days / "today.mps", report["multipliers"]), rel=1e-7)
    assert one["learned_bound"] <= one["bound_after_steps"] <= one["bound"] <= opt + 1e-6
    assert one["plan"] == pytest.approx(opt)
    assert one["gap"] == pytest.approx((one["plan"] - one["bound"]) / one["plan"])
    assert one["lp_bound"] <= one["highs_root_bound"] <= opt + 1e-6
    assert "GCG, root node" in done.stdout  # its bound, or why it was not run
    assert (one["gcg_root_bound"] is None) == ("GCG, root node" in one["not_run"])
    assert one["rivals"]["zero"]["first"] <= one["rivals"]["zero"]["best"] <= opt
    assert one["rivals"]["own LP dual"]["first"] >= one["lp_bound"] - 1e-6
    for shown in (f"{one['learned_bound']:.6g}", f"{one['bound']:.6g}", f"{one['highs_root_bound']:.6g}", "from zero"):
        assert shown in done.stdout
    assert "7 coupling rows (assign_1 to assign_7); without them 3 blocks; 21 variables" in done.stdout
    assert re.search(r"B = 3, pi_max = [\d.]+", done.stdout)

    names = {"report.json", "multipliers.json", "bounds.parquet", "prices.csv", "plan.csv", "bounds.png", "bounds.svg"}
    assert {path.name for path in (days / "out").iterdir()} == names
    assert load_multipliers(days / "out" / "multipliers.json") == report["multipliers"]
    bounds = pd.read_parquet(days / "out" / "bounds.parquet")
    assert list(bounds.columns) == [
        "instance", "learner", "start", "step", "u", "g_norm", "upper_bound", "gap", "seconds", "oracle_calls", "exact",
    ]  # fmt: skip
    ours = bounds[bounds["start"] == "learned"]
    assert ours["u"].iloc[0] == pytest.approx(one["learned_bound"])
    assert ours["u"].max() == pytest.approx(one["bound_after_steps"])
    assert (ours["upper_bound"] == one["plan"]).all()
    assert set(bounds["start"]) == {"learned", "zero", "own LP dual"}


def test_the_plan_is_feasible_and_costs_what_is_said(days, lagrangian):
    assert lagrangian(*USUAL, "--out", "out").returncode == 0
    P = CoupledMILP.from_mps(days / "today.mps", "assign_.*")
    plan = pd.read_csv(days / "out" / "plan.csv").set_index("variable")["value"]
    x = np.array([plan.get(name, 0.0) for name in P.column_names])
    assert (P.A @ x >= P.b - 1e-9).all()
    assert (P.C @ x >= P.d - 1e-9).all()
    assert (P.C @ x <= P.d_upper + 1e-9).all()
    assert P.c @ x == pytest.approx(report_of(days / "out")["instances"][0]["plan"])


def test_the_multipliers_are_the_learner_s(days, lagrangian):
    past = [CoupledMILP.from_mps(days / "past" / f"day_{k}.mps", "assign_.*") for k in range(1, 6)]
    duals = [P.lp_relaxation()[1] for P in past]
    end = TIMES_LP * np.max(duals)
    assert lagrangian(*USUAL, "--out", "out", "--seconds", "0").returncode == 0
    theirs = SGAMultipliers(pi_max=end, init=duals[0]).fit(past).multipliers_
    np.testing.assert_allclose(list(report_of(days / "out")["multipliers"].values()), theirs)
    prices = pd.read_csv(days / "out" / "prices.csv")
    np.testing.assert_allclose(prices["mean_lp_multiplier"], np.mean(duals, axis=0))
    np.testing.assert_allclose(prices["sd_lp_multiplier"], np.std(duals, axis=0, ddof=1))

    warm = ("--learner", "warm-start", "--learn-calls", "40", "--steps", "0")
    assert lagrangian(*USUAL, *warm, "--out", "warm", "--seconds", "0").returncode == 0
    theirs = WarmStartMultipliers(pi_max=end, calls=40).fit(past).multipliers_
    np.testing.assert_allclose(list(report_of(days / "warm")["multipliers"].values()), theirs)


@pytest.mark.parametrize("learner", ["sga", "paper", "tracking", "erm", "warm-start", "contextual"])
def test_every_learner_s_bound_holds(days, lagrangian, learner):
    more = {"contextual": ("--epochs", "2"), "erm": ("--learn-calls", "30"), "warm-start": ("--learn-calls", "30")}.get(
        learner, ()
    )
    done = lagrangian(*USUAL, "--learner", learner, "--seconds", "0", "--json", *more)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout, parse_constant=pytest.fail)
    (one,) = report["instances"]
    assert one["learned_bound"] == pytest.approx(relaxed_by_highs(days / "today.mps", report["multipliers"]), rel=1e-7)
    assert one["bound_after_steps"] <= optimum_by_highs(days / "today.mps") + 1e-6
    assert (report["learning"]["theorem_bound"] is not None) == (learner in ("paper", "erm", "warm-start"))
    assert (report["learning"]["theorem_instances_for_1_percent"] is not None) == (learner in ("sga", "paper", "erm"))
    assert ("observed_length" in report["learning"]) == (learner in ("sga", "paper"))
    assert ("chosen" in report["learning"]) == (learner == "contextual")


def test_the_theorem_s_constants_by_hand(days, lagrangian):
    """B: at most three agents take a task; 2 B pi_max s / sqrt(N) for s = 7 rows and N = 5 days."""
    done = lagrangian(*USUAL, "--learner", "paper", "--pi-max", "200", "--seconds", "0", "--json")
    learning = json.loads(done.stdout)["learning"]
    assert (learning["B"], learning["pi_max"], learning["rows"]) == (3, 200, 7)
    assert learning["theorem_bound"] == pytest.approx(2 * 3 * 200 * 7 / 5**0.5)
    assert learning["longest"] == pytest.approx(2 * 3 * 7**0.5)
    assert 0 < learning["observed_length"] <= learning["longest"]
    assert learning["theorem_bound"] / 2 < learning["observed_bound"] <= learning["theorem_bound"]
    lp = np.mean(
        [CoupledMILP.from_mps(days / "past" / f"day_{k}.mps", "assign_.*").lp_relaxation()[0] for k in range(1, 6)]
    )
    assert learning["theorem_instances_for_1_percent"] == np.ceil((2 * 3 * 200 * 7 / (0.01 * lp)) ** 2)


def test_several_new_instances_and_learning_on(days, lagrangian):
    both = (
        "--train",
        "past",
        "--test",
        "today.mps",
        "--test",
        "tomorrow.mps",
        "--coupling",
        "assign_.*",
        "--seconds",
        "0",
    )
    fixed = json.loads(lagrangian(*both, "--json").stdout)
    online = json.loads(lagrangian(*both, "--online", "--json").stdout)
    assert [Path(one["instance"]).name for one in fixed["instances"]] == ["today.mps", "tomorrow.mps"]
    assert fixed["instances"][0]["learned_bound"] == online["instances"][0]["learned_bound"]
    assert fixed["multipliers"] != online["multipliers"]  # those of the last, after today was learned from
    past = [CoupledMILP.from_mps(path, "assign_.*") for path in sorted((days / "past").iterdir())]
    past.append(CoupledMILP.from_mps(days / "today.mps", "assign_.*"))
    duals = [P.lp_relaxation()[1] for P in past[:5]]
    theirs = SGAMultipliers(pi_max=TIMES_LP * np.max(duals), init=duals[0]).fit(past).multipliers_
    np.testing.assert_allclose(list(online["multipliers"].values()), theirs)
    done = lagrangian(*both, "--out", "out", "--compare")
    assert done.returncode == 0, done.stderr
    assert len(pd.read_parquet(days / "out" / "bounds.parquet")["instance"].unique()) == 2


def test_coupling_rows_are_found_and_told(days, lagrangian):
    done = lagrangian("--train", "past", "--test", "today.mps", "--out", "out", "--seconds", "0")
    assert done.returncode == 0, done.stderr
    assert "found by detection: check that they are those you mean" in done.stdout
    coupling = report_of(days / "out")["coupling"]
    assert coupling["found_by"] == "detection"
    assert coupling["blocks"] >= 2
    (one,) = report_of(days / "out")["instances"]
    assert one["bound"] <= optimum_by_highs(days / "today.mps") + 1e-6


def test_the_same_run_gives_the_same_files(days, lagrangian):
    for out in ("a", "b"):
        assert lagrangian(*USUAL, "--out", out, "--seconds", "0", "--jobs", "1" if out == "a" else "2").returncode == 0
    for name in ("multipliers.json", "prices.csv"):
        assert (days / "a" / name).read_bytes() == (days / "b" / name).read_bytes()
    a, b = (pd.read_parquet(days / out / "bounds.parquet").drop(columns="seconds") for out in ("a", "b"))
    pd.testing.assert_frame_equal(a, b)


def test_a_block_gap_keeps_the_bound_certified(days, lagrangian):
    done = lagrangian(*USUAL, "--block-gap", "0.3", "--seconds", "0", "--json")
    (one,) = json.loads(done.stdout)["instances"]
    assert one["bound_after_steps"] <= optimum_by_highs(days / "today.mps") + 1e-6


# -- multipliers on disk


@pytest.mark.parametrize("name", ["prices.json", "prices.npz", "prices.safetensors"])
def test_saved_multipliers_give_the_same_bound_without_the_past(days, lagrangian, name):
    first = lagrangian(*USUAL, "--save", name, "--seconds", "0", "--json")
    assert first.returncode == 0, first.stderr
    again = lagrangian("--multipliers", name, "--test", "today.mps", "--seconds", "0", "--json")
    assert again.returncode == 0, again.stderr
    one, other = (json.loads(done.stdout) for done in (first, again))
    assert one["multipliers"] == other["multipliers"]
    assert one["instances"][0]["learned_bound"] == other["instances"][0]["learned_bound"]
    assert other["learning"] == {"loaded": name}
    assert other["coupling"]["found_by"] == "the multipliers"  # they know their rows


def test_a_saved_network_predicts_the_same(days, lagrangian):
    done = lagrangian(
        *USUAL, "--learner", "contextual", "--epochs", "2", "--save", "net.safetensors", "--seconds", "0", "--json"
    )
    assert done.returncode == 0, done.stderr
    P = CoupledMILP.from_mps(days / "today.mps", "assign_.*")
    np.testing.assert_allclose(
        ContextualMultipliers.load(days / "net.safetensors").predict(P),
        list(json.loads(done.stdout)["multipliers"].values()),
    )
    again = lagrangian(
        "--multipliers", "net.safetensors", "--test", "today.mps", "--coupling", "assign_.*", "--seconds", "0", "--json"
    )
    assert json.loads(again.stdout)["multipliers"] == json.loads(done.stdout)["multipliers"]


def test_multipliers_of_other_rows_are_refused(days, lagrangian):
    save_multipliers(days / "other.json", ["demand_1"], [3.0])
    said = refused(lagrangian("--multipliers", "other.json", "--test", "today.mps", "--coupling", "assign_.*"))
    assert said.startswith(
        "other.json: the rows assign_1, assign_2, assign_3, assign_4, assign_5, ... have no multiplier"
    )


def test_negative_multipliers_are_refused(days, lagrangian):
    save_multipliers(days / "bad.json", [f"assign_{k}" for k in range(1, 8)], [3.0, -1, 3, 3, 3, 3, 3])
    said = refused(lagrangian("--multipliers", "bad.json", "--test", "today.mps", "--coupling", "assign_.*"))
    assert "the multiplier of the inequality row assign_2 is negative" in said


# -- models of other writers


def assignment_by_ortools(profit: np.ndarray, weight: np.ndarray, capacity: np.ndarray):
    """Maximise profit, every task once (equations), agents' capacities (<=): OR-Library's gap1 to gap12 are of this kind."""
    from ortools.linear_solver import pywraplp

    solver = pywraplp.Solver.CreateSolver("SCIP")
    m, n = profit.shape
    x = [[solver.BoolVar(f"x_{i + 1}_{j + 1}") for j in range(n)] for i in range(m)]
    for i in range(m):
        solver.Add(sum(float(weight[i, j]) * x[i][j] for j in range(n)) <= float(capacity[i]), f"agent_{i + 1}")
    for j in range(n):
        solver.Add(sum(x[i][j] for i in range(m)) == 1, f"task_{j + 1}")
    solver.Maximize(sum(float(profit[i, j]) * x[i][j] for i in range(m) for j in range(n)))
    return solver


@pytest.mark.parametrize("ending", ["mps", "lp", "mps.gz"])
def test_models_that_another_solver_wrote_and_solved(tmp_path, lagrangian, ending):
    """OR-Tools writes the files, and SCIP in it the optimum; a maximisation, coupled by equations, so that bounds are upper."""
    rng = np.random.default_rng(3)
    weight, capacity = rng.integers(5, 26, (4, 10)), np.zeros(4)
    capacity = np.floor(0.8 * weight.sum(axis=1) / 4)
    optimum = {}
    for name in ("day_1", "day_2", "day_3", "today"):
        solver = assignment_by_ortools(rng.integers(10, 51, (4, 10)), weight, capacity)
        text = solver.ExportModelAsLpFormat(False) if ending == "lp" else solver.ExportModelAsMpsFormat(False, False)
        (tmp_path / f"{name}.{ending}").write_bytes(
            gzip.compress(text.encode()) if ending.endswith("gz") else text.encode()
        )
        assert solver.Solve() == solver.OPTIMAL
        optimum[name] = solver.Objective().Value()
    done = lagrangian(
        "--train", f"day_*.{ending}", "--test", f"today.{ending}", "--coupling", "task_.*", "--steps", "60", "--compare", "--json"
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    (one,) = report["instances"]
    assert (report["sense"], report["coupling"]["equations"], report["coupling"]["blocks"]) == ("max", 10, 4)
    assert one["learned_bound"] >= one["bound_after_steps"] >= one["bound"] >= optimum["today"] - 1e-6
    assert one["bound"] <= 1.02 * optimum["today"]
    assert one["plan"] == pytest.approx(optimum["today"], rel=0.02)
    assert one["plan"] <= optimum["today"] + 1e-6
    assert one["rivals"]["own LP dual"]["first"] <= one["lp_bound"] + 1e-6
    if ending != "mps.gz":
        assert one["learned_bound"] == pytest.approx(
            relaxed_by_highs(tmp_path / f"today.{ending}", report["multipliers"]), rel=1e-7
        )


def test_the_format_s_textbook_example(tmp_path, lagrangian):
    """Fixed columns, a <=, a >= and an =, a negative lower bound, no whole numbers: the dual reaches the optimum by hand."""
    (tmp_path / "past.mps").write_text(TESTPROB)
    (tmp_path / "today.mps").write_text(TESTPROB.replace("TESTPROB", "TODAY   "))
    done = lagrangian(
        "--train", "past.mps", "--test", "today.mps", "--coupling", "MYEQN|LIM2", "--steps", "50", "--json"
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    (one,) = report["instances"]
    assert one["lp_bound"] == pytest.approx(TESTPROB_OPTIMUM)
    assert one["learned_bound"] <= one["bound_after_steps"] <= TESTPROB_OPTIMUM + 1e-6
    assert one["bound_after_steps"] == pytest.approx(TESTPROB_OPTIMUM, rel=1e-4)
    assert "no variable must be a whole number" in report["remarks"][0]


# -- the embedded days


def test_the_embedded_days_and_their_example(tmp_path):
    """As `upheld data` gives them; the example's words are ours to read, whatever folder it names."""
    assert WRITES_A_FOLDER
    write_data(tmp_path)
    assert len(list((tmp_path / "past").glob("*.mps"))) == 20
    P = CoupledMILP.from_mps(tmp_path / "today.mps", "demand_.*|reserve_.*")
    assert (P.n_rows, P.n_blocks) == (48, 10)
    assert "--coupling 'demand_.*|reserve_.*'" in EXAMPLE
    assert "{file}/past/*.mps" in EXAMPLE


@pytest.mark.slow
def test_the_example_runs(tmp_path, lagrangian):
    write_data(tmp_path / "days")
    words = shlex.split(EXAMPLE.format(file="days"))[3:]
    done = lagrangian(*words, "--seconds", "2", "--steps", "3")
    assert done.returncode == 0, done.stderr
    report = report_of(tmp_path / "out")
    (one,) = report["instances"]
    found = relaxed_by_highs(tmp_path / "days" / "today.mps", report["multipliers"])
    assert one["learned_bound"] == pytest.approx(found, rel=1e-6)
    assert one["learned_bound"] > 0.98 * one["lp_bound"]


@pytest.mark.skipif(
    "lagrangian" not in {method.name for method in METHODS}, reason="a process of its own needs it in the catalog"
)
def test_patterns_that_a_shell_expanded_belong_to_their_option(days, upheld):
    past = sorted(str(path.relative_to(days)) for path in (days / "past").iterdir())
    done = upheld(
        "run", "lagrangian", "--train", *past, "--test", "today.mps", "tomorrow.mps", "--coupling", "assign_.*", "--seconds", "0",
        "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["learning"]["instances"] == past
    assert [one["instance"] for one in report["instances"]] == ["today.mps", "tomorrow.mps"]


# -- bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--train", "past"), "there is nothing to bound: name new instances with --test"),
        (("--test", "today.mps"), "there is nothing to learn from: name past instances with --train, or saved multipliers"),
        ((*USUAL, "--multipliers", "m.json"), "--train learns multipliers and --multipliers takes saved ones; give one"),
        ((*USUAL, "--learner", "magic"), "--learner must be one of sga, paper, tracking, erm, warm-start, contextual, got 'magic'"),
        ((*USUAL, "--method", "newton"), "--method must be one of level, kelley, subgradient, volume, got 'newton'"),
        ((*USUAL, "--epochs", "3"), "--epochs goes with --learner contextual"),
        ((*USUAL, "--learn-calls", "3"), "--learn-calls goes with --learner erm or warm-start"),
        ((*USUAL, "--learner", "paper", "--online"), "--learner paper fixes its step by the number of instances beforehand"),
        ((*USUAL, "--seconds", "nan"), "--seconds must be 0 or more, got nan"),
        ((*USUAL, "--block-gap", "-1"), "--block-gap must be 0 or more, got -1"),
        ((*USUAL, "--pi-max", "0"), "--pi-max must be positive, got 0"),
        ((*USUAL, "--save", "x.txt"), "--save x.txt ends in no format for these multipliers; name a file in .json or .npz or"),
        ((*USUAL, "--save", "no/x.json"), "the folder no does not exist; make it first, or name another with --save"),
        ((*USUAL, "--learner", "contextual", "--save", "x.json"), "--save x.json ends in no format for these multipliers"),
        ((*USUAL, "--out", "today.mps/out"), "today.mps is a file, so nothing can be written to today.mps/out"),
        (("--multipliers", "no.json", "--test", "today.mps"), "there is no file no.json"),
        (("--train", "passt/*.mps", "--test", "today.mps"), "there is no file passt/*.mps; --train names .mps or .lp files"),
        (("--train", "past", "--test", "notes.md"), "notes.md is no model by its name; files in .mps, .lp, .mps.gz, .lp.gz are read"),
        (("--train", "past", "--test", "notes.txt"), "notes.txt is neither an OR-Library gap nor a cap file: its 1 words"),
        (("--train", "past", "--test", "empty"), "the folder empty holds no .mps"),
        (("--train", "past", "past/day_1.mps", "--test", "today.mps"), "past/day_1.mps is named twice with --train"),
        (("--train", "past", "--test", "past/day_1.mps"), "past/day_1.mps is in --train and in --test"),
        ((*USUAL[:4], "--coupling", "price_.*"), "the coupling pattern 'price_.*' matches no row; the rows are assign_1"),
        ((*USUAL[:4], "--coupling", "assign_["), "the coupling pattern 'assign_[' is no regular expression"),
        (("--train", "broken.mps", "--test", "today.mps"), "HiGHS cannot read broken.mps as a model"),
        ((*USUAL[:4], "--seed", "-1"), "Invalid value for '--seed'"),
    ],
)  # fmt: skip
def test_bad_input(days, lagrangian, arguments, message):
    for name in ("notes.txt", "notes.md"):
        (days / name).write_text("hello")
    (days / "m.json").write_text("{}")
    (days / "broken.mps").write_text("ROWS\n Q what\n")
    (days / "empty").mkdir()
    before = sorted(days.rglob("*"))
    assert message in refused(lagrangian(*arguments))
    assert sorted(days.rglob("*")) == before


def _changed(days: Path, edit) -> None:
    """``today.mps`` with its text changed."""
    path = days / "today.mps"
    text = path.read_text()
    changed = edit(text)
    assert changed != text
    path.write_text(changed)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda t: t.replace("assign_3", "assign_33"),
            "today.mps: its coupling rows are not those of past/day_1.mps: it lacks assign_3",
        ),
        (
            lambda t: t.replace(" G  assign_2", " E  assign_2"),
            "today.mps: the coupling row assign_2 is of another kind",
        ),
        (lambda t: re.sub(r"(RHS_V\s+assign_1\s+)1", r"\g<1>9", t), "today.mps: the LP relaxation has no optimum"),
        (
            lambda t: re.sub(r"(x_1_1\s+Obj\s+)\S+", r"\1nan", t),
            "section COLUMNS: 'nan' for x_1_1 in row Obj is not finite; write a number there",
        ),
        (
            lambda t: re.sub(r"(RHS_V\s+assign_1\s+)1", r"\g<1>1,5", t),
            "section RHS: '1,5' for row assign_1 is no number; write a number there, as 1.5 or 2e3",
        ),
    ],
    ids=["other rows", "another kind", "infeasible", "not a number", "a comma"],
)
def test_a_new_instance_that_does_not_fit_is_named(days, lagrangian, edit, message):
    _changed(days, edit)
    said = refused(lagrangian(*USUAL, "--out", "out", "--save", "x.json"))
    assert message in said
    assert not (days / "out").exists()
    assert not (days / "x.json").exists()


def test_a_block_without_a_bound_names_its_variable(tmp_path, lagrangian):
    text = TESTPROB.replace(" UP BND1      XONE                 4\n", "")
    for name in ("past.mps", "today.mps"):
        (tmp_path / name).write_text(text)
    save_multipliers(tmp_path / "m.json", ["MYEQN", "LIM2", "LIM1"], [0.0, 5.0, 0.0])
    said = refused(lagrangian("--multipliers", "m.json", "--test", "today.mps", "--coupling", "MYEQN|LIM."))
    assert "today.mps: the subproblem of block" in said
    assert "lacks an upper bound; bound it in the model" in said


TWO_BLOCKS = """\
Minimize
 obj: x + y {cost}
Subject To
 link: x + y >= 1
 b1: x + w >= {need}
 b2: y + z >= 1
Bounds
 x <= 1
 w <= 1
 y <= 1
End
"""


@pytest.mark.parametrize(
    ("cost", "need", "message"),
    [
        ("- z", 1, "is unbounded at these multipliers: variable z lacks an upper bound"),
        ("+ z", 5, "(variables x, w) has no feasible point; its own rows and bounds contradict each other"),
    ],
    ids=["unbounded", "infeasible"],
)
@pytest.mark.parametrize("wrong", ["past.lp", "today.lp"])
def test_a_block_that_leaves_the_whole_without_an_optimum_is_named(tmp_path, lagrangian, cost, need, message, wrong):
    for name in ("past.lp", "today.lp"):
        text = TWO_BLOCKS.format(cost=cost, need=need) if name == wrong else TWO_BLOCKS.format(cost="+ z", need=1)
        (tmp_path / name).write_text(text)
    said = refused(lagrangian("--train", "past.lp", "--test", "today.lp", "--coupling", "link"))
    assert said.startswith(f"{wrong}: ")
    assert message in said


def test_a_model_without_an_end_of_its_rows_is_refused(tmp_path, lagrangian):
    """Nothing bounds ZTHREE: there is no B, and at most multipliers no bound either."""
    for name in ("past.mps", "today.mps"):
        (tmp_path / name).write_text(TESTPROB.replace(" UP BND1      ZTHREE              20\n", ""))
    said = refused(lagrangian("--train", "past.mps", "--test", "today.mps", "--coupling", "MYEQN|LIM2"))
    assert said == "past.mps: coupling row LIM2 is not bounded over the blocks, so no B exists; bound its variables"


def test_too_few_instances_for_a_network(days, lagrangian):
    said = refused(
        lagrangian(
            "--train", "past/day_1.mps", "--test", "today.mps", "--coupling", "assign_.*", "--learner", "contextual"
        )
    )
    assert "1 instances cannot be split" in said


def test_an_instance_unlike_the_past_is_told(tmp_path, lagrangian, instances):
    from upheld.lagrangian import data

    base = instances[0]
    rng = np.random.default_rng(0)
    past = [
        type(base)(np.round(base.cost * rng.uniform(0.9, 1.1, base.cost.shape)), base.weight, base.capacity)
        for _ in range(20)
    ]
    usual = type(base)(np.round(base.cost * rng.uniform(0.95, 1.05, base.cost.shape)), base.weight, base.capacity)
    data.write_instances(tmp_path / "past", past, [f"d{k:02d}" for k in range(20)])
    data.write_instances(tmp_path, [type(base)(50 * base.cost, base.weight, base.capacity), usual], ["dear", "usual"])
    done = lagrangian(
        "--train",
        "past",
        "--test",
        "dear.mps",
        "--test",
        "usual.mps",
        "--coupling",
        "assign_.*",
        "--seconds",
        "0",
        "--json",
    )
    report = json.loads(done.stdout)
    dear, normal = report["instances"]
    assert dear["p_value_of_drift"] == pytest.approx(1 / 21)
    assert normal["p_value_of_drift"] > 1 / 21
    assert any(remark.startswith("dear is unlike the past") for remark in report["remarks"])
