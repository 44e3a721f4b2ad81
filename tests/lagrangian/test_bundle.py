"""The cutting-plane model: above u, tight at its points, falling as cuts come; idle cuts go."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.lagrangian.ascent import Box, box_of, evaluator
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


def test_idle_cuts_are_dropped_down_to_three_a_row():
    """Far-off cuts of a parabola are never active again; the model near the top stays what it was."""
    model = CutModel(Box(np.array([-10.0]), np.array([10.0])))

    def parabola(pi):
        return DualEval(float(-(pi[0] ** 2)), -2 * pi, np.empty(0))

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
