from __future__ import annotations

import numpy as np
import pytest

from upheld.hubs.inverse_components import identified_influence, n_components_by_ratio


def test_a8_ratio_rule_on_a_hand_made_spectrum():
    # Ratios 1.11, 9, 1.11, 1.06, 1.06: 9 > 1.5 x 1.11, at index 2.
    reciprocals = np.array([100, 90, 10, 9, 8.5, 8, 7.9, 7.8, 7.7, 7.6, 7.5, 7.4])
    assert n_components_by_ratio(1 / reciprocals) == 2
    assert n_components_by_ratio(1 / reciprocals[::-1]) == 2


def test_without_an_outstanding_ratio_the_fallback_decides():
    flat = 1 / np.linspace(2, 1, 50)
    assert n_components_by_ratio(flat, "sqrt") == 7
    assert n_components_by_ratio(flat, "frac") == 10


@pytest.mark.parametrize(("jump", "s"), [(1.45, 4), (1.55, 2)])
def test_the_largest_ratio_must_be_one_and_a_half_times_the_second(jump, s):
    """20 eigenvalues that grow by 1.1, but by 1.1 x jump from the second to the third; floor(sqrt(20)) = 4."""
    growth = np.full(19, 1.1)
    growth[1] *= jump
    assert n_components_by_ratio(np.cumprod([1.0, *growth])) == s


def test_ratios_beyond_the_first_half_do_not_count():
    # p = 10: only 4 ratios are looked at; the jump is the sixth.
    values = np.array([1, 1.1, 1.2, 1.3, 1.4, 1.5, 90, 91, 92, 93])
    assert n_components_by_ratio(values, "sqrt") == 3


def test_negative_eigenvalues_are_lifted_by_the_ridge():
    # -0.1 and 0.1 become 0.1 and 0.3 (ratio 3); the next ratios are 4.2/0.3 = 14 and close to 1.
    values = np.array([-0.1, 0.1, 4.0, 4.1, 4.2, 4.3, 4.4, 4.5, 4.6, 4.7])
    assert n_components_by_ratio(values) == 2


def test_unknown_fallback():
    with pytest.raises(ValueError, match="'sqrt' or 'frac', got 'cube'"):
        n_components_by_ratio([1.0, 2.0], "cube")


def test_influence_of_a_diagonal_matrix_is_on_its_smallest_entries():
    S = np.diag([5.0, 1.0, 4.0, 0.5])
    np.testing.assert_allclose(identified_influence(S, 2), [0, 1, 0, 1], atol=1e-12)


@pytest.mark.parametrize("p", [6, 400])
def test_tied_bottom_is_taken_whole(p):
    values = np.arange(p, dtype=float)
    values[:3] = 0.0  # three ties for s = 1
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((p, p)))[0]
    S = (rotation * values) @ rotation.T
    expected = np.sum(rotation[:, :3] ** 2, axis=1) / 3
    np.testing.assert_allclose(identified_influence(S, 1), expected, atol=1e-8)
