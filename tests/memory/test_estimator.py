"""The scikit-learn estimator: recall, refusal, coverage, margins, and what scikit-learn itself checks."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from upheld.memory.data import corrupt, effective_dimension, load_cancer, load_digits, load_sentences, on_sphere
from upheld.memory.estimator import AssociativeMemory, recall_less_wrong
from upheld.memory.support import nearest
from upheld.memory.theory import alpha_th


@pytest.fixture(scope="module")
def store():
    return np.random.default_rng(0).normal(size=(300, 48))


@pytest.fixture(scope="module")
def memory(store):
    return AssociativeMemory(random_state=0).fit(store)


@parametrize_with_checks(
    [AssociativeMemory(beta=1.0, normalize=False), AssociativeMemory(kernel="lse", beta=1.0, normalize=False)]
)
def test_scikit_learn_s_own_checks(estimator, check):
    if "one_sample" in check.func.__name__ or "1sample" in check.func.__name__:
        pytest.skip("a memory needs two patterns")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_recalls_what_is_stored_and_refuses_the_rest(store, memory):
    rng = np.random.default_rng(1)
    assert (memory.predict(corrupt(store, rng=rng, noise=0.2)) == np.arange(300)).mean() > 0.95
    assert (memory.predict(rng.normal(size=(200, 48))) == -1).mean() > 0.98
    recalled = memory.transform(corrupt(store[:5], rng=rng, noise=0.1))
    assert np.allclose(recalled, on_sphere(store[:5]), atol=1e-6)
    assert np.isfinite(memory.score_samples(store)).all()
    assert np.isneginf(memory.score_samples(rng.normal(size=(5, 48)))).all()


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("kernel", ["lse", "lsr"])
def test_rows_with_gaps_are_completed(store, kernel, normalize):
    memory = AssociativeMemory(kernel, normalize=normalize, random_state=0).fit(store)
    mask = np.random.default_rng(2).random((20, 48)) < 0.6
    wanted = on_sphere(store[:20]) if normalize else store[:20]
    filled = memory.complete(np.where(mask, store[:20], np.nan), mask)
    assert np.abs(filled - wanted).mean() < (0.02 if kernel == "lsr" else 0.15)  # softmax blends
    assert np.array_equal(nearest(filled, memory.patterns_), np.arange(20))
    with pytest.raises(ValueError, match="each row needs a known component"):
        memory.complete(store[:2], np.zeros(48, dtype=bool))


def test_separation_makes_every_pattern_its_own_fixed_point():
    X = load_digits()[0][:300]
    memory = AssociativeMemory(beta="separation").fit(X)
    assert np.allclose(memory.transform(X), on_sphere(X))
    assert memory.emergent_minima().empty
    assert len(AssociativeMemory(beta=memory.beta_ / 4).fit(X).emergent_minima()) > 0


def test_calibrated_coverage_holds_on_further_cues(store, memory):
    rng = np.random.default_rng(3)
    kept = []
    for _ in range(20):
        rows = rng.integers(300, size=200)
        memory.calibrate(corrupt(store[rows], rng=rng, noise=0.4), rows, coverage=0.9)
        again = rng.integers(300, size=200)
        cues = on_sphere(corrupt(store[again], rng=rng, noise=0.4))
        kept.append((np.linalg.norm(cues - memory.patterns_[again], axis=1) < memory.radius_).mean())
    assert np.mean(kept) == pytest.approx(0.9, abs=0.02)
    with pytest.raises(ValueError, match="5 cues cannot promise 95%; give 19"):
        memory.calibrate(store[:5], np.arange(5))
    memory.fit(store)


def test_load_and_margin(store, memory):
    assert memory.effective_dimension_ == pytest.approx(48, rel=0.1)
    assert memory.load_ == pytest.approx(math.log(300) / memory.effective_dimension_)
    assert memory.margin_ == pytest.approx(float(alpha_th(48 * memory.beta_)) - memory.load_)
    assert memory.margin(5.0) == pytest.approx(-memory.load_)  # such a cue lies outside the support
    assert (
        AssociativeMemory("lse", beta=1.0).fit(store).margin(2.0)
        < AssociativeMemory("lse", beta=1.0).fit(store).margin_
    )
    boundary = memory.margin_ + memory.load_
    assert memory.sufficient_dimension() == pytest.approx(math.log(300) / boundary)


def test_patterns_are_added_and_forgotten(store):
    memory = AssociativeMemory(beta=0.05).partial_fit(store[:200]).partial_fit(store[200:])
    assert np.allclose(memory.patterns_, on_sphere(store))
    memory.delete([0, 1])
    assert memory.predict(store[2:4]).tolist() == [0, 1]
    with pytest.raises(ValueError, match="1 patterns would be left"):
        memory.delete(np.arange(297))


@pytest.mark.parametrize("on_empty", ["abstain", "nearest"])
def test_faiss_finds_the_same_fixed_points(store, on_empty):
    rng = np.random.default_rng(4)
    cues = np.vstack([corrupt(store, rng=rng, noise=0.3), rng.normal(size=(50, 48))])
    both = [
        AssociativeMemory(beta=0.05, backend=one, on_empty=on_empty).fit(store).recall(cues)
        for one in ("torch", "faiss")
    ]
    assert np.allclose(both[0].x, both[1].x, atol=1e-4)
    assert np.array_equal(both[0].empty, both[1].empty)


def test_duplicates_are_counted(store):
    with pytest.warns(UserWarning, match="2 of 302 patterns are duplicates"):
        AssociativeMemory(beta=0.05).fit(np.vstack([store, store[:2]]))


def test_objective():
    truth = np.array([0, 1, -1, -1])
    assert recall_less_wrong(truth, truth) == 1
    assert recall_less_wrong(np.array([0, 0, 5, -1]), truth) == pytest.approx(0.5 - 0.5)


def test_effective_dimension():
    rng = np.random.default_rng(0)
    assert effective_dimension(rng.normal(size=(50, 400))) == pytest.approx(400, rel=0.1)
    assert effective_dimension(np.outer(rng.normal(size=50), np.ones(7))) == pytest.approx(1, abs=0.1)
    with pytest.raises(ValueError, match="all rows are equal"):
        effective_dimension(np.ones((4, 3)))


def test_embedded_tables():
    assert load_digits()[0].shape == (1797, 64)
    assert load_cancer()[0].shape == (569, 30)
    sentences = load_sentences()
    assert len(set(sentences)) == len(sentences) > 100
    hidden = corrupt(np.arange(40.0).reshape(4, 10), rng=np.random.default_rng(0), occlusion=0.3)
    assert ((hidden == np.arange(40.0).reshape(4, 10).mean(0)).sum(1) >= 3).all()


@pytest.mark.parametrize(("arguments", "message"), [
    ({"kernel": "rbf"}, "kernel must be 'lse' or 'lsr', got 'rbf'"),
    ({"beta": "best"}, "beta must be a number above 0, 'auto' or 'separation'"),
    ({"beta": -1.0}, "beta must be above 0, got -1.0"),
    ({"kernel": "lse", "beta": "separation"}, "beta='separation' sets the radius of LSR's support"),
    ({"kernel": "lse", "backend": "faiss"}, "backend='faiss' searches LSR's support"),
    ({"on_empty": "ignore"}, "on_empty must be"),
])  # fmt: skip
def test_bad_parameters_are_called_by_their_name(arguments, message, store):
    with pytest.raises(ValueError, match=message):
        AssociativeMemory(**arguments).fit(store)


@pytest.mark.parametrize("method", ["predict", "recall", "score_samples", "transform"])
def test_nothing_is_recalled_before_something_is_stored(method, store):
    with pytest.raises(NotFittedError):
        getattr(AssociativeMemory(), method)(store)


def test_bad_rows_are_called_by_their_name(store, memory):
    with pytest.raises(ValueError, match="row 3 is zero and has no direction"):
        AssociativeMemory(beta=1.0).fit(np.vstack([store[:3], np.zeros(48)]))
    with pytest.raises(ValueError, match="NaN"):
        AssociativeMemory(beta=1.0).fit(np.full((3, 4), np.nan))
    with pytest.raises(ValueError, match="48 features"):
        memory.predict(store[:, :5])
