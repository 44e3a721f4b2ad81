"""Files of OR-Library and CVRPLIB on the command line: read as the problem they hold, bounded below (or above) known optima."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from installed import refused
from upheld.lagrangian import data
from upheld.lagrangian.families import CVRP, GAP

C515_1 = """\
 17 21 22 18 24 15 20 18 19 18 16 22 24 24 16
 23 16 21 16 17 16 19 25 18 21 17 15 25 17 24
 16 20 16 25 24 16 17 19 19 18 20 16 17 21 24
 19 19 22 22 20 16 19 17 21 19 25 23 25 25 25
 18 19 15 15 21 25 16 16 23 15 22 17 19 22 24
  8 15 14 23  8 16  8 25  9 17 25 15 10  8 24
 15  7 23 22 11 11 12 10 17 16  7 16 10 18 22
 21 20  6 22 24 10 24  9 21 14 11 14 11 19 16
 20 11  8 14  9  5  6 19 19  7  6  6 13  9 18
  8 13 13 13 10 20 25 16 16 17 10 10  5 12 23
 36 34 38 27 33
"""  # the first problem of OR-Library's gap1: 5 agents, 15 jobs, to be maximised
C515_1_OPTIMUM = 336  # published with it


def gap_file(path: Path, problems: list[GAP]) -> None:
    """In OR-Library's format."""
    parts = [str(len(problems))]
    for P in problems:
        rows = [*P.cost.astype(int), *P.weight, P.capacity]
        parts += [f"{P.m} {P.n}", *(" ".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(parts) + "\n")


@pytest.fixture
def library(tmp_path: Path, instances: list[GAP]) -> Path:
    """``gapx.txt`` with seven assignment problems of the same rows; ``cap.txt``; three customers in ``small-k2.vrp``."""
    gap_file(tmp_path / "gapx.txt", instances)
    (tmp_path / "cap1.txt").write_text("2 2\n 10 100\n 10 70\n 4\n 3.5 2\n 5\n 8 9\n")
    (tmp_path / "cap2.txt").write_text("2 2\n capacity 90\n capacity 70\n 4\n 3 2\n 5\n 8 9\n")
    for k, x in enumerate((6, 7, 5), 1):
        (tmp_path / f"n{k}-k2.vrp").write_text(
            "NAME : small\nTYPE : CVRP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EUC_2D\nCAPACITY : 10\nNODE_COORD_SECTION\n"
            f"1 0 0\n2 3 4\n3 {x} 8\n4 0 9\nDEMAND_SECTION\n1 0\n2 4\n3 5\n4 6\nDEPOT_SECTION\n1\n-1\nEOF\n"
        )
    return tmp_path


def run(done) -> dict:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout, parse_constant=pytest.fail)


def test_assignment_problems_of_one_file(library, lagrangian, instances):
    done = lagrangian("--train", "gapx.txt:1-5", "--test", "gapx.txt:6-7", "--compare", "--out", "out", "--json")
    report = run(done)
    assert report["learning"]["instances"] == [f"gapx.txt:{k}" for k in range(1, 6)]
    assert [one["instance"] for one in report["instances"]] == ["gapx.txt:6", "gapx.txt:7"]
    assert report["coupling"] | {"rows": 7} == {
        "found_by": "the format", "rows": 7, "equations": 0, "blocks": 3, "block_rows": 3, "variables": 21,
        "whole_number_variables": 21,
    }  # fmt: skip
    for one, P in zip(report["instances"], instances[5:], strict=True):
        optimum = P.milp().optimum().value
        assert one["lp_bound"] == pytest.approx(P.milp().lp_relaxation()[0])
        assert one["learned_bound"] <= one["bound"] <= optimum + 1e-6
        assert one["plan"] == pytest.approx(optimum)
    plan = pd.read_csv(library / "out" / "plan.csv")
    sixth = plan[plan["instance"] == "gapx_6"]
    assert len(sixth) == 7  # every task once
    cost = sum(instances[5].cost[tuple(int(k) - 1 for k in name.split("_")[1:])] for name in sixth["variable"])
    assert cost == report["instances"][0]["plan"]


def test_the_published_optimum_of_an_or_library_problem(tmp_path, lagrangian):
    """Learned from problems with other profits; bounds lie above 336, the plan attains it."""
    numbers = np.array(C515_1.split(), dtype=int)
    rng = np.random.default_rng(0)
    problems = [np.r_[np.clip(numbers[:75] + rng.integers(-2, 3, 75), 15, 25), numbers[75:]] for _ in range(3)]
    (tmp_path / "gap1.txt").write_text(
        "4\n" + "".join("5 15\n" + " ".join(map(str, one)) + "\n" for one in [*problems, numbers])
    )
    report = run(lagrangian("--train", "gap1.txt:1-3", "--test", "gap1.txt:4", "--maximise", "--json"))
    (one,) = report["instances"]
    assert report["sense"] == "max"
    assert report["coupling"]["equations"] == 15
    assert one["lp_bound"] > C515_1_OPTIMUM
    assert one["learned_bound"] >= one["bound_after_steps"] >= one["bound"] >= C515_1_OPTIMUM - 1e-6
    assert one["plan"] == C515_1_OPTIMUM


def test_sites_and_customers(library, lagrangian):
    """By hand: site 2 alone serves both, 70 + 2 + 9 = 81; site 1 would cost 100."""
    report = run(lagrangian("--train", "cap2.txt", "--test", "cap1.txt", "--capacity", "9", "--json"))
    (one,) = report["instances"]
    assert one["plan"] == pytest.approx(81)
    assert one["learned_bound"] <= one["bound"] <= 81 + 1e-6
    assert report["coupling"]["rows"] == ["demand_1", "demand_2"]


def test_routes(library, lagrangian):
    """By hand: the near ones on one tour, 5 + 5 + 5 km out and back 20, the third alone, 18."""
    report = run(lagrangian("--train", "n2-k2.vrp", "n3-k2.vrp", "--test", "n1-k2.vrp", "--out", "out", "--json"))
    (one,) = report["instances"]
    assert one["learned_bound"] <= one["bound"] <= 38 + 1e-6
    assert one["plan"] == pytest.approx(38)
    arcs = set(pd.read_csv(library / "out" / "plan.csv")["variable"])
    there, back = {"arc_0_1", "arc_1_2", "arc_2_0"}, {"arc_0_2", "arc_2_1", "arc_1_0"}
    assert arcs - {"arc_0_3", "arc_3_0"} in (there, back)
    assert isinstance(data.read_cvrp(library / "n1-k2.vrp", 2), CVRP)


def test_folders_of_such_files(library, lagrangian):
    (library / "routes").mkdir()
    for name in ("n2-k2.vrp", "n3-k2.vrp"):
        (library / name).rename(library / "routes" / name)
    report = run(lagrangian("--train", "routes", "--test", "n1-k2.vrp", "--vehicles", "3", "--seconds", "0", "--json"))
    assert report["coupling"]["blocks"] == 3
    assert len(report["learning"]["instances"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gapx.txt:1-5", "gapx.txt:6", "--coupling", "assign_.*"), "say themselves which rows couple; leave --coupling out"),
        (("gapx.txt:1-5", "gapx.txt:6", "--block-gap", ".1"), "problems are solved exactly; leave --block-gap out"),
        (("gapx.txt:1-5", "gapx.txt:8"), "gapx.txt: it holds 7 instances, so that there is no number 8; name fewer"),
        (("gapx.txt:1-5", "gapx.txt:5-6"), "gapx.txt:5-6 is in --train and in --test"),
        (("gapx.txt:1-5", "gapx.txt"), "gapx.txt is in --train and in --test"),
        (("gapx.txt:0-5", "gapx.txt:6"), "gapx.txt:0-5 names no instance; count from 1, as in gapx.txt:1-4"),
        (("gapx.txt:1-5", "cap1.txt"), "cap1.txt: its coupling rows are not those of gapx.txt:1: it lacks assign_1"),
        (("cap1.txt", "cap2.txt"), "cap2.txt leaves the capacity of its sites open; give --capacity"),
        (("gapx.txt:1-5", "gapx.txt:6", "--capacity", "8"), "--capacity goes with OR-Library's cap files; leave it out"),
        (("gapx.txt:1-5", "gapx.txt:6", "--vehicles", "8"), "--vehicles goes with CVRPLIB's .vrp files; leave it out"),
        (("cap1.txt", "cap2.txt", "--capacity", "9", "--maximise"), "--maximise goes with OR-Library's gap files"),
        (("cap1.txt", "cap2.txt", "--capacity", "-9"), "--capacity must be positive, got -9"),
        (("n1-k2.vrp", "plain.vrp"), "plain.vrp does not say how many vehicles there are; give --vehicles"),
        (("n1-k2.vrp", "bad-k2.vrp"), "bad-k2.vrp is no CVRPLIB file that vrplib can read"),
        (("gapx.txt:1-5", "words.txt"), "words.txt holds a word that is no number after the first 3 numbers"),
        (("gapx.txt:1-5", "short.txt"), "short.txt is neither an OR-Library gap nor a cap file: its 6 words"),
    ],
)  # fmt: skip
def test_bad_files(library, lagrangian, arguments, message):
    (library / "n2-k2.vrp").rename(library / "plain.vrp")
    (library / "bad-k2.vrp").write_text("NAME : bad\nDIMENSION : 3\n")
    (library / "words.txt").write_text("1\n 1 1\n seven\n 3\n 3\n")
    (library / "short.txt").write_text("1\n 2 3\n 1 2 3\n")
    train, test, *more = arguments
    assert message in refused(lagrangian("--train", train, "--test", test, *more))
