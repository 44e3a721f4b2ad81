"""Levels and indices at numbers worked out apart from the code."""

import numpy as np
import pytest
from scipy.special import rel_entr

from upheld.bandits import index


def test_levels_at_w_8():
    # ln 8 = 2.0794415: 3 ln 8 = 6.2383246; ln(1 + 8 * 4.3240770) = ln 35.592616 = 3.5721383; ln(16 * 4.3240770) = 4.2367875
    assert index.level_safe(np.array([8.0]))[0] == pytest.approx(6.2383246, abs=1e-6)
    assert index.level_asymptotic(np.array([8.0]))[0] == pytest.approx(np.log(35.592616), abs=1e-6)
    assert index.level_empirical(np.array([8.0]))[0] == pytest.approx(np.log(69.185232), abs=1e-6)


@pytest.mark.parametrize("kind", ["asymptotic", "safe", "empirical"])
def test_larger_of_own_and_common_level_is_the_level_of_the_larger_clock(kind):
    """w_i = max(u, n_i): what is kept at a pull made when the clock was u is enough for every later round."""
    level, own = getattr(index, f"level_{kind}"), getattr(index, f"own_{kind}")
    n = np.arange(1.0, 400)
    for u in (1.0, 7.0, 60.0, 399.0):
        for later in (u, u + 1, u + 50):
            kept = np.maximum(level(np.array([later])), own(n, u, 10.0))
            np.testing.assert_array_equal(kept, level(np.maximum(later, n)))


def test_indices():
    one = np.ones(1)
    assert index.index_sub_gaussian(0.3 * one, 8.0 * one, 4.0, 0.5)[0] == pytest.approx(0.8)  # 0.5 sqrt(8/8)
    with np.errstate(all="ignore"):
        q = index.index_kl(0.3 * one, 8.0 * one, 4.0, 0.5)[0]
    assert 8 * (rel_entr(0.3, q) + rel_entr(0.7, 1 - q)) == pytest.approx(4.0)
    assert q > 0.3
    # sqrt(2 * 0.25 * 4 / 8) + 7 * 4 / (3 * 7) = 0.5 + 4/3
    assert index.index_empirical(0.3 * one, 8.0 * one, 0.25 * one, 4.0, 1.0)[0] == pytest.approx(0.3 + 0.5 + 4 / 3)
    assert index.index_empirical(0.3 * one, one, 0 * one, 4.0, 1.0)[0] == np.inf
