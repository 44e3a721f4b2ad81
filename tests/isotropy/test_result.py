"""Results: the map, JSON, and what refuses to be compared."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

from upheld.isotropy import IsotropyWarning, SemanticIsotropy, check_comparable


@pytest.fixture
def result():
    return SemanticIsotropy().explain(np.random.default_rng(0).uniform(size=(5, 8)))


def test_the_map_holds_the_inner_products_of_answers_that_lie_in_a_plane():
    angles = np.array([0.1, 0.5, 1.4])
    result = SemanticIsotropy().explain(np.c_[np.cos(angles), np.sin(angles)])
    np.testing.assert_allclose(result.plane() @ result.plane().T, result.cosines, atol=1e-12)


def test_the_map_is_the_best_one_in_two_dimensions(result):
    """Eckart and Young: its error in K is that of the eigenvalues left out."""
    plane, values = result.plane(), np.linalg.eigvalsh(result.cosines)
    assert np.sum((plane @ plane.T - result.cosines) ** 2) == pytest.approx(np.sum(values[:-2] ** 2))
    assert np.sum(plane**2, axis=0) == pytest.approx(values[-1:-3:-1])
    assert (plane[np.abs(plane).argmax(axis=0), [0, 1]] > 0).all()


def test_two_answers_have_a_map():
    assert SemanticIsotropy().explain(np.eye(2)).plane().shape == (2, 2)


def test_json_holds_all_of_it(result):
    held = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert held["trust"] == pytest.approx(1 - held["score"])
    assert np.array(held["cosines"]).shape == (5, 5)
    assert held["truncated_share"] is None  # vectors: not known
    assert held["medoid"] == result.medoid


def test_what_is_no_number_is_null_in_json():
    held = json.loads(json.dumps(SemanticIsotropy().explain(np.ones((2, 3))).to_dict(), allow_nan=False))
    assert (held["se"], held["influence"], held["vmf_kappa"]) == (None, [None, None], None)


@pytest.mark.parametrize(
    ("setting", "other"),
    [
        ("template", "excerpt"),
        ("embedder_id", "minilm"),
        ("long_text", "truncate"),
        ("jitter", 1e-3),
        ("normalized", False),
    ],
)
def test_scores_of_different_settings_do_not_compare(result, setting, other):
    with pytest.raises(ValueError, match=f"result 1 has {setting} {other!r} and result 0 has .*do not compare"):
        check_comparable([result, replace(result, **{setting: other})])


def test_another_number_of_answers_is_a_warning(result):
    with pytest.warns(IsotropyWarning, match="rest on 4 to 5 answers"):
        check_comparable([result, replace(result, n=4)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_comparable([result, result])
        check_comparable([])
