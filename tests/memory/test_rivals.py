"""Rivals: no weaker than their own packages, tuned by the objective they share."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from upheld.memory import rivals
from upheld.memory.data import corrupt

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(60, 20))


def test_attention_s_weights_are_on_the_simplex_and_solve_their_problem():
    scores = torch.randn(5, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    for weigh in (rivals.softmax, rivals.sparsemax, rivals.entmax15):
        weights = weigh(scores)
        assert torch.allclose(weights.sum(-1), torch.ones(5, dtype=torch.float64))
        assert (weights >= 0).all()
    # sparsemax is the projection onto the simplex: no other point of it is nearer
    p = rivals.sparsemax(scores)
    for seed in range(50):
        q = torch.softmax(torch.randn(5, 9, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 4, -1)
        assert (((p - scores) ** 2).sum(-1) <= ((q - scores) ** 2).sum(-1) + 1e-12).all()
    # entmax 1.5: where it is positive, sqrt(p) - z/2 is one constant
    p = rivals.entmax15(scores)
    gaps = p.sqrt() - scores / 2
    for row, weight in zip(gaps, p, strict=True):
        assert float(row[weight > 0].std(unbiased=False)) < 1e-9


def test_they_are_the_package_s():
    import entmax

    scores = torch.randn(5, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    assert torch.allclose(rivals.sparsemax(scores), entmax.sparsemax(scores, dim=-1))
    assert torch.allclose(rivals.entmax15(scores), entmax.entmax15(scores, dim=-1), atol=1e-7)


def test_the_pairwise_network_recalls_few_and_loses_many():
    rng = np.random.default_rng(0)
    signs = rng.choice(np.array([-1, 1], dtype=np.int8), (3, 100))
    cues = np.where(rng.random(signs.shape) < 0.1, -signs, signs)
    assert np.array_equal(rivals.pairwise_recall(signs, cues, rng=rng), signs)
    many = rng.choice(np.array([-1, 1], dtype=np.int8), (60, 100))
    assert (rivals.pairwise_recall(many, many, rng=rng) * many).mean() < 0.9


def folds(rows):
    rng = np.random.default_rng(1)
    return rivals.folds(rows, lambda x: corrupt(x, rng=rng, noise=0.1))


@pytest.mark.parametrize("name", rivals.WAYS | rivals.BESIDE)
def test_every_way_recalls_clean_cues_once_tuned(name, rows):
    if name == rivals.HNSW:
        pytest.importorskip("faiss", reason="the extra faiss")
    value = rivals.tuned(name, rows, folds(rows))
    cues = rows + 0.05 * np.random.default_rng(1).normal(size=rows.shape)
    found = rivals.answered(name, rivals.Task(rows, cues, np.arange(len(rows))), value)
    assert (found == np.arange(len(rows))).mean() > 0.9
    assert len(rivals.candidates(name, rows)) == (1 if name == rivals.NEIGHBOUR else 30)


@pytest.mark.parametrize("name", [rivals.CUTOFF, rivals.SHIFT, rivals.HNSW])
def test_a_tuned_cut_off_refuses_foreigners(name, rows):
    if name == rivals.HNSW:
        pytest.importorskip("faiss", reason="the extra faiss")
    value = rivals.tuned(name, rows, folds(rows))
    foreign = np.random.default_rng(2).normal(size=(40, 20))
    found = rivals.answered(name, rivals.Task(rows, foreign, np.full(40, -1)), value)
    assert (found == -1).mean() > 0.9


@pytest.mark.parametrize("name", rivals.WAYS | rivals.BESIDE)
def test_many_values_at_once_answer_as_each_alone(name, rows):
    if name == rivals.HNSW:
        pytest.importorskip("faiss", reason="the extra faiss")
    task, values = folds(rows)[0], rivals.candidates(name, rows)[::5]
    together = (rivals.WAYS | rivals.BESIDE)[name](task, values)
    assert together.shape == (len(values), len(task.cues))
    for value, found in zip(values, together, strict=True):
        assert np.array_equal(rivals.answered(name, task, value), found)


@pytest.mark.parametrize("bandwidth", [0.8, 2.0, 3.0, 4.0, 6.0])
def test_mean_shift_is_scikit_learn_s(bandwidth):
    from sklearn.cluster import MeanShift

    rng = np.random.default_rng(0)
    rows = np.vstack([centre + rng.normal(size=(25, 8)) for centre in 4 * rng.normal(size=(4, 8))])
    theirs = MeanShift(bandwidth=bandwidth, cluster_all=False).fit(rows)
    assert np.allclose(rivals.mean_shift_centres(rows, bandwidth), theirs.cluster_centers_, atol=1e-10)
    cues = rows + rng.normal(size=rows.shape)
    found = rivals.answered(rivals.SHIFT, rivals.Task(rows, cues, np.arange(len(rows))), bandwidth)
    distance = np.linalg.norm(cues[:, None] - theirs.cluster_centers_, axis=-1)
    own = theirs.cluster_centers_[distance.argmin(1)]
    expected = np.linalg.norm(own[:, None] - rows, axis=-1).argmin(1)
    assert np.array_equal(found, np.where(distance.min(1) <= bandwidth, expected, -1))
    assert np.array_equal(theirs.predict(cues), distance.argmin(1))


def test_a_search_in_a_graph_finds_the_nearest(rows):
    pytest.importorskip("faiss", reason="the extra faiss")
    cues = np.random.default_rng(1).normal(size=(50, 20))
    task = rivals.Task(rows, cues, np.full(50, -1))
    expected = np.linalg.norm(cues[:, None] - rows, axis=-1).argmin(1)
    assert (rivals.answered(rivals.HNSW, task, 1e3) == expected).mean() > 0.95


def test_hnsw_is_raced_where_faiss_is(monkeypatch):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "faiss" else found(name))
    assert rivals.HNSW not in rivals.raced()
    assert {rivals.SHIFT, rivals.CUTOFF} < set(rivals.raced())


def test_the_pairwise_network_ends_where_the_package_s_does():
    network_of = pytest.importorskip(
        "hopfieldnetwork", reason="under the GPL: not among what the tests install"
    ).HopfieldNetwork
    rng = np.random.default_rng(0)
    signs = rng.choice(np.array([-1, 1], dtype=np.int8), (4, 80))
    cues = np.where(rng.random(signs.shape) < 0.1, -signs, signs).astype(np.int8)
    network = network_of(80)
    for row in signs:
        network.train_pattern(row)
    for cue, ours in zip(cues, rivals.pairwise_recall(signs, cues, rng=rng), strict=True):
        network.set_initial_neurons_state(cue.copy())
        network.update_neurons(iterations=50, mode="async")
        assert np.array_equal(network.S, ours)
