"""The cutting-plane model: above u, tight at its points, falling as cuts come; idle cuts go."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.lagrangian.ascent import Box, Evaluation, box_of, evaluator, mean_evaluator
from upheld.lagrangian.bundle import CUTS_PER_ROW, IDLE_ROUNDS, CutModel
from upheld.lagrangian.oracles import DualEval


def test_the_model_bounds_u_and_only_falls(draw, some_pi):
    rng = np.random.default_rng(0)
    P = draw(0)
    model, evaluate = CutModel(box_of(P, 500.0)), evaluator(P)
    points = [some_pi(P, rng) for _ in range(8)]
    before, M_before = np.full(8, np.inf), np.inf
    for pi in points:
        model.add(pi, evaluate(pi))
        now = np.array([model.value(one) for one in points])
        M, highest, weights = model.maximise()
        slack = 1e-7 * (1 + np.abs(now))
        assert (now <= before + slack).all()
        assert M_before + 1e-7 * (1 + abs(M)) >= M
        assert pytest.approx(model.value(highest), rel=1e-7, abs=1e-7) == M
        assert weights.sum() == pytest.approx(1.0)
        before, M_before = now, M
        assert model.value(pi) == pytest.approx(P.oracle(pi).u, rel=1e-9, abs=1e-9)
    for pi in [some_pi(P, rng) for _ in range(20)]:
        assert model.value(pi) >= P.oracle(pi).u - 1e-8 * (1 + abs(P.oracle(pi).u))


def test_groups_model_the_mean(draw, some_pi):
    """One set of cuts an instance: above the mean of the duals, and no higher than the aggregated cuts."""
    rng = np.random.default_rng(1)
    past = [draw(seed) for seed in range(3)]
    if len({P.n_rows for P in past}) > 1:
        pytest.skip("the seeds give rows of different number")
    box = box_of(past[0], 500.0)
    separate, one, evaluate = CutModel(box, 3), CutModel(box), mean_evaluator(past)
    for _ in range(6):
        pi = some_pi(past[0], rng)
        found = evaluate(pi)
        separate.add(pi, found)
        one.add(pi, Evaluation(found.answer, np.array([found.answer.u]), found.answer.g[None]))
    for _ in range(20):
        pi = some_pi(past[0], rng)
        mean = np.mean([P.oracle(pi).u for P in past])
        slack = 1e-8 * (1 + abs(mean))
        assert mean - slack <= separate.value(pi) <= one.value(pi) + slack
    M = separate.maximise()[0]
    near = separate.nearest(box.clip(np.zeros(past[0].n_rows)), M - 0.1 * abs(M))
    assert near is not None
    assert separate.value(near) >= M - 0.1 * abs(M) - 1e-5 * (1 + abs(M))


def test_idle_cuts_are_dropped_down_to_three_a_row():
    """Far-off cuts of a parabola are never active again; the model near the top stays what it was."""
    model = CutModel(Box(np.array([-10.0]), np.array([10.0])))

    def parabola(pi):
        answer = DualEval(float(-(pi[0] ** 2)), -2 * pi, np.empty(0))
        return Evaluation(answer, np.array([answer.u]), answer.g[None])

    for at in [*np.linspace(-9, 9, 12), -1e-3, 1e-3]:
        model.add(np.array([at]), parabola(np.array([at])))
    top = model.maximise()[0]
    for _ in range(IDLE_ROUNDS - 1):
        model.drop_idle()
        assert model.constants.size == 14
        model.maximise()
    model.drop_idle()
    assert model.constants.size == CUTS_PER_ROW
    assert model.maximise()[0] == pytest.approx(top)
