"""The network: the LP start at epoch 0, no order shows, the dual's own gradient, the guard, seeds, files, refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from upheld.lagrangian import CoupledMILP, data
from upheld.lagrangian.ascent import box_of
from upheld.lagrangian.contextual import ContextualMultipliers, _uphill
from upheld.lagrangian.families import GAP, HardFamily
from upheld.lagrangian.graph import Graph, graph_of
from upheld.lagrangian.hard_family import draw as draw_hard

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def gaps(count: int, seed: int = 0) -> list[GAP]:
    return list(itertools.islice(data.gap_stream("D", 3, 7, np.random.default_rng(seed)), count))


@pytest.fixture(scope="module")
def trained() -> ContextualMultipliers:
    torch.set_num_threads(1)
    return ContextualMultipliers(epochs=15).fit(gaps(24))


class Misleading(HardFamily):
    """A hard instance whose LP says next to nothing."""

    def linear_model(self) -> CoupledMILP:
        return HardFamily(np.full(self.c.size, 0.01)).linear_model()


# at the start


def test_epoch_0_is_the_instances_own_lp_multipliers_to_the_last_digit():
    *past, today = gaps(9)
    untrained = ContextualMultipliers(epochs=0).fit(past)
    own = today.milp().lp_relaxation()[1]
    assert untrained.epoch_ == 0
    assert untrained.predict_by_network(today).tolist() == np.minimum(own, untrained.pi_max_).tolist()


def test_the_hard_family_needs_no_training():
    """pi*(P) = c is the LP's own answer there, so that no epoch can be better."""
    past = draw_hard(np.array([0, 1, 1, 0]), 12, 0.5, np.random.default_rng(0))
    learned = ContextualMultipliers(pi_max=1.0, epochs=3).fit(past)
    assert (learned.chosen_, learned.epoch_) == ("network", 0)
    assert learned.predict(past[0]) == pytest.approx(past[0].c)


# what is learned


def test_training_climbs_the_dual():
    past = gaps(24)
    before, after = ContextualMultipliers(epochs=0).fit(past), ContextualMultipliers(epochs=15).fit(past)
    climbed = [P.oracle(after.predict_by_network(P)).u - P.oracle(before.predict_by_network(P)).u for P in past]
    assert after.epoch_ > 0
    assert np.mean(climbed) > 1.0


def test_what_is_propagated_back_is_the_slope_of_u():
    P, rng = gaps(1)[0], np.random.default_rng(3)
    box = box_of(P, 300.0)
    for _ in range(20):
        pi, along = rng.uniform(20, 200, 7), rng.standard_normal(7)
        g = _uphill([P], [box], pi)
        slope = (P.oracle(pi + 1e-6 * along).u - P.oracle(pi - 1e-6 * along).u) / 2e-6
        assert g @ along == pytest.approx(slope, abs=1e-4)


def test_nothing_pushes_out_of_the_box():
    P = HardFamily([0.25, 0.25])  # at pi = 0 the slope is +1/2, at 1 it is -1/2
    assert _uphill([P], [box_of(P, 1.0)], np.array([-0.5, 1.5])).tolist() == [0.5, -0.5]
    assert _uphill([P], [box_of(P, 0.2)], np.array([0.3, 0.3])).tolist() == [0.0, 0.0]


def test_renumbering_rows_and_columns_renumbers_the_answer(trained):
    rng = np.random.default_rng(5)
    P = gaps(30)[-1]
    box, graph = box_of(P, trained.pi_max_), graph_of(P)
    coupling, columns = rng.permutation(7), rng.permutation(len(graph.columns))
    rows = np.r_[coupling, 7 + rng.permutation(len(graph.rows) - 7)]
    edges = rng.permutation(graph.weight.size)
    other = Graph(
        graph.rows[rows], graph.columns[columns], np.argsort(rows)[graph.edge_row[edges]],
        np.argsort(columns)[graph.edge_column[edges]], graph.weight[edges], graph.lp_dual[coupling],
    )  # fmt: skip
    ours, theirs = trained._multipliers([graph], [box])[0], trained._multipliers([other], [box])[0]
    assert trained.epoch_ > 0
    assert abs(ours - graph.lp_dual).max() > 0.1
    assert theirs == pytest.approx(ours[coupling], rel=1e-4)


def test_equations_get_multipliers_of_either_sign_within_the_box():
    past = []
    for P in gaps(6):
        M = P.milp()
        M.equality = np.ones(7, dtype=bool)
        past.append(M)
    learned = ContextualMultipliers(pi_max=5.0, epochs=1).fit(past)
    assert (abs(learned.predict(past[0])) <= 5.0).all()


# the guard


def test_never_worse_on_the_held_out_instances(trained):
    values = trained.validation_
    assert set(values) == {"network", "own LP dual", "SGA", "mean LP dual"}
    assert values[trained.chosen_] >= values["own LP dual"]
    assert values[trained.chosen_] == max(values.values())


def test_a_network_that_is_led_astray_is_not_used():
    v = np.array([0, 1, 1, 0, 1])
    past = [Misleading(P.c) for P in draw_hard(v, 200, 0.9, np.random.default_rng(0))]
    learned = ContextualMultipliers(pi_max=1.0, epochs=0).fit(past)
    assert learned.chosen_ == "SGA"
    assert learned.predict(past[0]).tolist() == learned.predict(past[1]).tolist()
    assert learned.score(past) > np.mean([P.oracle(learned.predict_by_network(P)).u for P in past]) + 0.3


# streams, seeds, files


def test_a_stream_is_the_list_and_a_seed_is_a_result():
    *past, today = gaps(9)
    model = ContextualMultipliers(epochs=2, random_state=3)
    listed, again, stream = clone(model).fit(past), clone(model).fit(past), clone(model)
    for P in past:
        stream.partial_fit(P)
    assert listed.predict_by_network(today).tolist() == again.predict_by_network(today).tolist()
    assert listed.predict_by_network(today).tolist() == stream.predict_by_network(today).tolist()
    assert stream.n_seen_ == 8


def test_training_leaves_the_users_random_state_alone():
    torch.manual_seed(7)
    before = torch.rand(1).item()
    torch.manual_seed(7)
    ContextualMultipliers(epochs=1).fit(gaps(5))
    assert torch.rand(1).item() == before


def test_a_saved_learner_predicts_as_before(tmp_path, trained):
    path = tmp_path / "net.safetensors"
    trained.save(path)
    again = ContextualMultipliers.load(path)
    for P in gaps(27)[-3:]:
        assert again.predict(P).tolist() == trained.predict(P).tolist()
        assert again.alarm_.p_value(P) == trained.alarm_.p_value(P)
    assert again.validation_ == trained.validation_
    assert again.get_params() == trained.get_params()
    assert (again.n_seen_, again.B_, again.pi_max_) == (trained.n_seen_, trained.B_, trained.pi_max_)
    with pytest.raises(ValueError, match="a loaded learner holds no past instances"):
        again.partial_fit(gaps(1)[0])


def test_a_saved_constant_is_kept(tmp_path):
    past = [Misleading(P.c) for P in draw_hard(np.array([0, 1]), 60, 0.9, np.random.default_rng(0))]
    learned = ContextualMultipliers(pi_max=1.0, epochs=0).fit(past)
    assert learned.chosen_ != "network"
    learned.save(tmp_path / "c.safetensors")
    assert (
        ContextualMultipliers.load(tmp_path / "c.safetensors").predict(past[0]).tolist()
        == learned.predict(past[0]).tolist()
    )


# refusals


def test_a_file_of_something_else_is_refused(tmp_path):
    from safetensors.numpy import save_file

    (tmp_path / "text.safetensors").write_text("no tensors here")
    with pytest.raises(ValueError, match=r"is no \.safetensors file"):
        ContextualMultipliers.load(tmp_path / "text.safetensors")
    save_file({"a": np.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="holds no contextual multipliers of format 1"):
        ContextualMultipliers.load(tmp_path / "other.safetensors")


def test_too_few_instances_and_foreign_rows_are_refused(trained):
    with pytest.raises(ValueError, match=r"3 instances cannot be split .* give at least 4"):
        ContextualMultipliers().fit(gaps(3))
    with pytest.raises(ValueError, match="are not those learned from"):
        trained.predict(data.gap("D", 3, 8, np.random.default_rng(0)))
    with pytest.raises(NotFittedError, match="ContextualMultipliers has seen no instance"):
        ContextualMultipliers().predict(gaps(1)[0])


def test_nothing_is_proved_of_a_network(trained):
    assert np.isnan(trained.bound_)
