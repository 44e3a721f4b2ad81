from dataclasses import dataclass

import numpy as np
import pytest

from upheld.hubs.contest import HubCall, NodeMeasure, PenalisedNetworks, contest
from upheld.hubs.data import make_hub_networks
from upheld.hubs.detector import InverseComponentsHubs, JointHubs
from upheld.hubs.metrics import ranking_auc
from upheld.hubs.rivals import (
    RIVALS,
    GraphicalLassoSolver,
    HubGraphicalLassoSolver,
    JointGraphicalLassoSolver,
    average_matrix_influence,
    marginal_strength,
    nodewise_lasso_strength,
    pooled_influence,
    race,
    rival,
    single_network_influence,
    warm_up,
)
from upheld.hubs.tuning import Group, Problem, Sample

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def easy():
    """Plenty of samples and no individual hubs: whoever estimates networks must see these hubs."""
    return make_hub_networks(30, 400, n_common=2, n_individual=0, random_state=5)


@pytest.fixture(scope="module")
def calls(easy):
    names = [each.name for each in RIVALS if each.name != "nodewise-lasso"]
    return race(
        easy.Xs, rivals=names, tunings=("ic", "cv", "oracle"), hubs=easy.is_common, rng=np.random.default_rng(0)
    )


@pytest.mark.slow
def test_names_are_unique_and_every_rival_answers(calls):
    names = [each.name for each in RIVALS]
    assert len(set(names)) == len(names)
    assert {call.detector for call in calls} == set(names) - {"nodewise-lasso"}


@pytest.mark.slow
def test_tuned_rivals_answer_once_a_tuning(calls):
    for each in RIVALS:
        tunings = [call.tuning for call in calls if call.detector == each.name]
        if isinstance(each, PenalisedNetworks):
            assert tunings == ["ic", "cv", "oracle"]
        elif each.name != "nodewise-lasso":
            assert tunings == ["none"]


@pytest.mark.slow
def test_answers_are_complete(calls, easy):
    for call in calls:
        assert call.score.shape == (30,)
        assert np.isfinite(call.score).all()
        assert {rule: mask.shape for rule, mask in call.selected.items()} == {"intersection": (30,), "score": (30,)}
        assert call.seconds > 0
        assert call.seconds_one_fit > 0
        assert call.converged


@pytest.mark.slow
def test_with_plenty_of_samples_every_estimator_ranks_the_hubs_first(calls, easy):
    for call in calls:
        if call.detector not in ("random", "marginal"):
            assert ranking_auc(call.score, easy.is_common) == 1, (call.detector, call.tuning)


@pytest.mark.slow
def test_the_oracle_is_never_worse_than_a_penalty_of_the_first_grid(calls, easy):
    for each in RIVALS:
        aucs = {call.tuning: ranking_auc(call.score, easy.is_common) for call in calls if call.detector == each.name}
        extended = any(call.extended for call in calls if call.detector == each.name)
        if "oracle" in aucs and not extended:
            assert aucs["oracle"] >= max(aucs.values())


def test_average_matrix_is_the_joint_detector_on_equal_groups():
    X = np.random.default_rng(1).standard_normal((60, 25))
    expected = JointHubs().fit_many([X, X]).influence_
    np.testing.assert_allclose(average_matrix_influence([X, X], RNG)[0], expected, atol=1e-6)


def test_per_group_inverse_components_are_the_single_network_detector():
    Xs = [np.random.default_rng(seed).standard_normal((80, 20)) for seed in (2, 3)]
    expected = np.stack([InverseComponentsHubs("ratio", fallback="frac").fit(X).influence_ for X in Xs])
    np.testing.assert_allclose(single_network_influence(Xs, RNG, "frac"), expected, atol=1e-9)


def test_a_null_space_does_not_count_as_a_gap():
    """At n = p one eigenvalue is 0, an infinite ratio above which says nothing: s falls back on floor(sqrt(p)) = 5."""
    X = np.random.default_rng(12).standard_normal((25, 25))
    influence = single_network_influence([X], RNG, "sqrt")[0]
    assert influence.sum() == pytest.approx(5)


def test_pooling_ignores_location_and_scale_of_the_groups():
    Xs = [np.random.default_rng(seed).standard_normal((40, 12)) for seed in (4, 5)]
    moved = [Xs[0], 100 + 7 * Xs[1]]
    np.testing.assert_allclose(pooled_influence(moved, RNG), pooled_influence(Xs, RNG), atol=1e-9)


def test_nodewise_lasso_sees_a_star():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((200, 8))
    X[:, 0] = X[:, 1:].sum(axis=1) + 0.5 * rng.standard_normal(200)
    assert nodewise_lasso_strength([X], rng)[0].argmax() == 0


def test_marginal_strength_is_the_norm_of_the_other_correlations():
    X = np.random.default_rng(7).standard_normal((20, 3))
    R = np.corrcoef(X, rowvar=False)
    assert marginal_strength([X], RNG)[0, 0] == pytest.approx(np.hypot(R[0, 1], R[0, 2]))


@pytest.mark.parametrize("penalty", ["group", "fused"])
def test_joint_lasso_is_the_optimum_of_a_general_convex_solver(penalty):
    import cvxpy as cp

    warm_up()
    Xs = [np.random.default_rng(seed).standard_normal((20, 5)) for seed in (8, 9, 10)]
    S = np.stack([np.corrcoef(X, rowvar=False) for X in Xs])
    l1, ratio, off = 0.15, 0.5, 1 - np.eye(5)
    Thetas = [cp.Variable((5, 5), PSD=True) for _ in S]
    cost = sum(
        cp.trace(A @ T) - cp.log_det(T) + l1 * cp.sum(cp.abs(cp.multiply(off, T)))
        for A, T in zip(S, Thetas, strict=True)
    )
    if penalty == "fused":
        ties = sum(cp.sum(cp.abs(cp.multiply(off, Thetas[k + 1] - Thetas[k]))) for k in range(2))
    else:
        ties = sum(cp.norm(cp.hstack([T[i, j] for T in Thetas])) for i in range(5) for j in range(5) if i != j)
    cp.Problem(cp.Minimize(cost + ratio * l1 * ties)).solve(cp.SCS, eps=1e-8, max_iters=50000)

    fit = JointGraphicalLassoSolver(penalty).solve(Sample(S, np.full(3, 20)), (l1, ratio), None)
    np.testing.assert_allclose(fit.Thetas, [T.value for T in Thetas], atol=0.02)


def test_the_first_grids():
    """All relative to the largest correlation, here 0.8 in one of three groups."""
    S = np.stack([np.eye(4)] * 3)
    S[1, 0, 2] = S[1, 2, 0] = -0.8
    S[0, 0, 2] = S[0, 2, 0] = 0.3
    joint, one = Sample(S, np.full(3, 30)), Sample(S[1:2], np.array([30]))

    def axes(solver, sample):
        lattice = solver.lattice(sample)
        return [
            sorted({round(lattice[index][axis], 6) for index in lattice.indices()}) for axis in range(len(lattice.size))
        ]

    (lasso,) = axes(GraphicalLassoSolver(), one)
    assert lasso == pytest.approx(np.geomspace(0.05 * 0.8, 0.8, 10), abs=1e-6)
    for penalty in ("group", "fused"):
        l1, ratio = axes(JointGraphicalLassoSolver(penalty), joint)
        assert l1 == pytest.approx(np.geomspace(0.08 * 0.8, 0.5 * 0.8, 4), abs=1e-6)
        assert ratio == pytest.approx([0.3, 1])
    l1, ratio = axes(HubGraphicalLassoSolver(), one)
    assert l1 == pytest.approx([0.2 * 0.8, 0.4 * 0.8])
    assert ratio == pytest.approx([1, np.sqrt(10), 10], abs=1e-6)
    gammas = [each.solver.gamma for each in RIVALS if isinstance(each, PenalisedNetworks)]
    assert gammas == [0, 0.1, 0.1, 0, 0]


def test_strongest_penalty_of_the_graphical_lassos_leaves_no_edge():
    X = np.random.default_rng(11).standard_normal((25, 12))
    for weighted in (False, True):
        problem = Problem([Group.of(X, np.random.default_rng(0))], GraphicalLassoSolver(weighted=weighted))
        estimates = problem.path.estimates_tried_first()
        densities = [estimate.density for estimate in estimates]
        assert densities[0] == 0
        assert densities[1] > 0
        assert densities[-1] > 0.4


@pytest.mark.slow
def test_rivals_do_not_depend_on_who_else_runs(easy):
    together = race(easy.Xs, rivals=["random", "graphical-lasso"], tunings=("cv",), rng=np.random.default_rng(3))
    alone = race(easy.Xs, rivals=["graphical-lasso"], tunings=("cv",), rng=np.random.default_rng(3))
    np.testing.assert_array_equal(together[1].score, alone[0].score)
    assert together[1].penalties == alone[0].penalties


@pytest.mark.slow
def test_nothing_is_left_to_compile_after_warming_up(easy):
    from gglasso.solver import ggl_helper

    warm_up()
    before = [
        len(function.signatures) for function in (ggl_helper.prox_p, ggl_helper.prox_mat_1norm, ggl_helper.phiplus)
    ]
    names = [each.name for each in RIVALS if isinstance(each, PenalisedNetworks)]
    race(easy.Xs[:2], rivals=names, tunings=("ic", "cv"), rng=np.random.default_rng(0))
    after = [
        len(function.signatures) for function in (ggl_helper.prox_p, ggl_helper.prox_mat_1norm, ggl_helper.phiplus)
    ]
    assert before == after
    assert min(before) > 0


def test_a_new_rival_is_one_object(easy):
    @dataclass(frozen=True)
    class Alphabetical:
        name: str = "alphabetical"
        title: str = "First variables first"

        def detect(self, Xs, tunings, hubs, rng):
            score = -np.arange(Xs[0].shape[1], dtype=float)
            none = np.zeros(len(score), dtype=bool)
            return [HubCall(self.name, "none", score, {"intersection": none, "score": none}, 0.0, 0.0)]

    measure = NodeMeasure("variance", "Variance", lambda Xs, rng: np.stack([X.var(axis=0) for X in Xs]))
    answers = contest([Alphabetical(), measure], easy.Xs, rng=np.random.default_rng(0))
    assert [answer.detector for answer in answers] == ["alphabetical", "variance"]


@pytest.mark.parametrize(
    ("Xs", "message"),
    [
        ([np.ones((9, 3))], "at least two groups, got 1"),
        ([RNG.random((9, 3)), RNG.random((9, 4))], r"group 1 has shape \(9, 4\), group 0 \(9, 3\)"),
        ([RNG.random((9, 3)), RNG.random((5, 3))], "group 1 has 5 samples; cross-validation in three folds needs 6"),
        ([RNG.random((9, 3)), np.full((9, 3), np.nan)], "group 1 holds nan in row 0, column 0"),
        ([np.ones((9, 3)), RNG.random((9, 3))], "column 0 is constant in group 0"),
    ],
)
def test_bad_groups_are_named(Xs, message):
    with pytest.raises(ValueError, match=message):
        race(Xs, rivals=["random"], rng=np.random.default_rng(0))


def test_oracle_needs_the_truth(easy):
    with pytest.raises(ValueError, match="the 'oracle' tuning needs the true hubs"):
        race(easy.Xs, rivals=["random"], tunings=("oracle",), rng=np.random.default_rng(0))


def test_unknown_rival_lists_those_there_are():
    with pytest.raises(ValueError, match="there is no rival 'lasso'; there are average-ipc, ipc-sqrt"):
        rival("lasso")
