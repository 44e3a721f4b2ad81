from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from upheld.speculative.byteworld import KINDS
from upheld.speculative.claims import CLAIMS
from upheld.speculative.claims.race import CALIBRATED
from upheld.speculative.claims.real import RACED
from upheld.speculative.claims.trained import CHANGES
from upheld.speculative.data import FAMILIES
from upheld.speculative.plots import (
    PICTURES,
    acceptance_by_position,
    acceptance_histogram,
    cost_curves,
    speed_up_forest,
)

sys.path.insert(0, str(Path(__file__).parents[1]))
from pictures import check_picture


def texts(picture):
    return [text.get_text() for axes in picture.axes for text in axes.texts]


def test_histogram_shows_shares_and_their_mean():
    picture = acceptance_histogram([1, 1, 2, 4], 4)
    check_picture(picture)
    axes = picture.axes[0]
    assert [bar.get_height() for bar in axes.patches] == [50, 25, 0, 25]
    assert texts(picture) == ["τ = 2.00"]


@pytest.mark.parametrize("lengths", [[], [5], [0, 1]])
def test_histogram_refuses_what_no_cycle_emits(lengths):
    with pytest.raises(ValueError, match="each of 1 to 4 tokens"):
        acceptance_histogram(lengths, 4)


def test_positions_never_reached_are_left_out():
    picture = acceptance_by_position({"dflash": [0.5, math.nan, math.nan], "eagle": [0.9, 0.8]})
    check_picture(picture)
    assert [next(iter(line.get_ydata())) for line in picture.axes[0].lines] == [50, 90]


def test_no_draft_no_picture():
    with pytest.raises(ValueError, match="no draft was proposed"):
        acceptance_by_position({"plain": []})


def test_cost_of_one_token_is_the_unit():
    picture = cost_curves({2: 1.5, 8: 2.0}, {2: 0.1, 8: 0.2}, 0.05)
    check_picture(picture)
    verify = picture.axes[0].lines[1]
    assert (list(verify.get_xdata()), list(verify.get_ydata())) == ([1, 2, 8], [1, 1.5, 2])
    assert "50 ms" in picture.axes[0].get_ylabel()


def test_forest_draws_intervals_and_the_bound():
    table = pd.DataFrame(
        {"method": ["dflash", "lookup"], "estimate": [1.4, 0.9], "low": [1.2, math.nan], "high": [1.6, math.nan]}
    )
    picture = speed_up_forest(table, bound=4.0)
    check_picture(picture)
    assert texts(picture) == ["0.90", "1.40", "all drafts right"]
    assert [label.get_text() for label in picture.axes[0].get_yticklabels()] == ["lookup", "dflash"]


def test_forest_names_what_its_table_lacks():
    with pytest.raises(ValueError, match="lacks high, low"):
        speed_up_forest(pd.DataFrame({"method": ["a"], "estimate": [1.0]}))


# -- of the claims, from frames like those of their experiments

RNG = np.random.default_rng(0)


def rows(methods, metrics, low, high, seeds=5, **where):
    return [
        {"seed": seed, "item": "", "method": method, "metric": metric, "value": RNG.uniform(low, high), **where}
        for seed in range(seeds)
        for method in methods
        for metric in metrics
    ]


def greedy_rows():
    tiny = rows(("random", "anti-oracle", "oracle"), ("identical",), 1, 1, target="tiny float64")
    return [*tiny, *rows(("DFlash",), ("identical",), 1, 1, target="SmolLM2 float32")]


def cost_rows():
    found = []
    for name, power in (("float32", 0.3), ("bfloat16", 0.15)):
        for k in (1, 2, 4, 8, 16, 32):
            found += rows((name,), (f"c_v({k})",), k**power, 1.1 * k**power)
        for b in (1, 2, 4):
            found += rows((name,), (f"ceiling at batch {b}",), 4 / b**power, 5 / b**power)
    for name, power in (("DFlash", 0.1), ("EAGLE-style", 1.0)):
        for k in (2, 7, 15, 32):
            found += rows((name,), (f"seconds of {k} drafts",), 0.01 * k**power, 0.012 * k**power)
    return found


def race_rows():
    found = []
    for family in FAMILIES:
        for seed in range(2):
            for temperature in (0.0, 1.0):
                where = {"family": family, "temperature": temperature}
                pace = {"plain": 0.07, "DFlash": RNG.uniform(0.035, 0.06), CALIBRATED: RNG.uniform(0.03, 0.06)}
                if temperature == 0:
                    pace |= {"generate": 0.069, "lookup": RNG.uniform(0.05, 0.08)}
                values = [(name, "seconds a token", value) for name, value in pace.items()]
                if temperature == 0:
                    values += [
                        ("DFlash", "speed-up if every draft were right", 4.3), ("DFlash", "tau", RNG.uniform(1.5, 3)),
                        (CALIBRATED, "tau", RNG.uniform(1.5, 2)), (CALIBRATED, "block", 4.0),
                        ("target", "nats a token", 0.4), ("drafter alone", "nats a token", RNG.uniform(3, 5)),
                    ]  # fmt: skip
                found += [
                    {"seed": seed, "item": f"{family} {seed}", "method": m, "metric": k, "value": v, **where}
                    for m, k, v in values
                ]
    return found


def trained_rows():
    methods = ("DFlash", "no features", "EAGLE-style", "Medusa")
    kinds = [f"modelled speed-up on {kind}" for kind in KINDS]
    places = [f"acceptance of draft {k}" for k in range(1, 8)]
    return [
        *rows(methods, ("tau", "modelled speed-up", *kinds), 1, 3), *rows(methods, places, 0.2, 0.8),
        *rows(methods, ("training steps",), 100, 1000),
    ]  # fmt: skip


def frame(experiment):
    return pd.DataFrame(
        {
            "speculative.greedy": greedy_rows,
            "speculative.greedy-bfloat16": greedy_rows,
            "speculative.sampling": lambda: [
                *rows(("rejection", "match", "end to end"), ("p",), 0, 1),
                *rows(("no residual (wrong on purpose)",), ("p",), 0, 0),
            ],
            "speculative.costs": cost_rows,
            "speculative.weight": lambda: rows(
                ("DFlash",), ("weights over the target's", "added memory over the target's"), 0.06, 0.1, seeds=1
            ),
            "speculative.race": race_rows,
            "speculative.race-bfloat16": lambda: rows(
                ("plain in float32", "plain in bfloat16", "DFlash in bfloat16"), ("seconds a token",), 0.05, 0.1
            ),
            "speculative.first-token": lambda: rows(("rejection", "match"), ("p",), 0, 1, seeds=20),
            "speculative.costs-autoregressive": lambda: [
                row
                for name, power in (("DFlash", 0.1), ("autoregressive", 1.0))
                for k in (2, 7, 15, 32)
                for row in rows((name,), (f"seconds of {k} drafts",), 0.01 * k**power, 0.012 * k**power)
            ],
            "speculative.batches": lambda: [
                row for batch in (1, 4, 32) for row in rows(("DFlash",), ("speed-up",), 0.9, 1.4, batch=batch)
            ],
            "speculative.trained-smollm2": lambda: [
                *rows(("plain", *RACED), ("seconds a token", "tau"), 1, 2),
                *rows(("DFlash alone", "autoregressive alone"), ("nats a token",), 1, 4),
            ],
            "speculative.changed-smollm2": lambda: rows(("DFlash", "five taps", "blocks of 16"), ("tau",), 1, 3),
            "speculative.trained": trained_rows,
            "speculative.trees": lambda: rows(
                ("DFlash", "EAGLE tree 16", "EAGLE tree 60"), ("tau", "modelled speed-up"), 1, 3
            ),
            "speculative.changed": lambda: [
                row for change in CHANGES for row in rows(("as it is", "changed"), ("tau",), 1, 2, change=change)
            ],
        }[experiment]()
    )


def test_every_claim_has_a_picture():
    assert set(PICTURES) == {claim.id for claim in CLAIMS}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_each_is_drawn(claim):
    check_picture(PICTURES[claim.id](frame(claim.experiment.name)))


def test_speed_ups_are_those_of_the_frame():
    table = pd.DataFrame(
        [
            {"seed": 0, "item": f"prose {n}", "method": m, "metric": k, "value": v, "temperature": 0.0}
            for n, ours in ((0, 0.5), (1, 0.125))
            for m, k, v in (
                ("plain", "seconds a token", 1.0), ("DFlash", "seconds a token", ours),
                ("DFlash", "speed-up if every draft were right", 4.5),
            )
        ]
    )  # fmt: skip
    shown = texts(PICTURES["speculative.race"](table))
    assert shown == ["4.00", "every draft right, here: 4.50", "published, GPU: 6.09"]


def test_what_was_not_measured_is_said():
    with pytest.raises(ValueError, match="no tau was measured"):
        PICTURES["speculative.depth"](frame("speculative.race").assign(change=""))
