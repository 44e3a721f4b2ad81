from __future__ import annotations

import numpy as np
import pytest

from upheld.hubs import JointHubs, screening
from upheld.hubs.screening import default_size, matrix_statistic, row_statistic, screen_variables


def test_statistic_is_the_weakest_of_the_groups_strongest_links():
    S = np.array(
        [
            [[1.0, 0.5, 0.1], [0.5, 1.0, -0.8], [0.1, -0.8, 1.0]],
            [[1.0, 0.2, 0.3], [0.2, 1.0, 0.4], [0.3, 0.4, 1.0]],
        ]
    )
    np.testing.assert_allclose(matrix_statistic(S, "max"), [0.3, 0.4, 0.4])
    np.testing.assert_allclose(matrix_statistic(S, "l1"), [0.5, 0.6, 0.7])
    np.testing.assert_allclose(matrix_statistic(S, "l2"), np.sqrt([0.13, 0.20, 0.25]))


@pytest.mark.parametrize("norm", ["max", "l1", "l2"])
@pytest.mark.parametrize("kind", ["correlation", "covariance", "spearman"])
def test_blocks_give_what_the_whole_matrices_give(monkeypatch, kind, norm):
    from upheld.hubs.covariance import COVARIANCES

    monkeypatch.setattr(screening, "BLOCK", 7)
    rng = np.random.default_rng(0)
    Xs = [rng.standard_normal((15, 20)) * np.arange(1, 21) for _ in range(2)]
    whole = matrix_statistic(np.array([COVARIANCES[kind](X) for X in Xs]), norm)
    np.testing.assert_allclose(row_statistic(Xs, kind, norm), whole)
    np.testing.assert_allclose(row_statistic(Xs, COVARIANCES[kind], norm), whole)


def test_kept_variables_are_sorted_and_ties_go_to_the_first():
    np.testing.assert_array_equal(screen_variables(np.array([0.1, 0.9, 0.5, 0.9, 0.5]), 3), [1, 2, 3])


def test_default_size_leaves_a_fifth():
    assert default_size(79) == 63


def test_unknown_norm():
    with pytest.raises(ValueError, match="'max', 'l1' or 'l2', got 'l3'"):
        matrix_statistic(np.eye(2)[None], "l3")


def test_many_more_variables_than_samples_fit_in_memory_linear_in_p():
    """4,000 variables, 60 samples: the (p, p) matrices would take 128 MB each; screening must stay far below one."""
    import tracemalloc

    rng = np.random.default_rng(0)
    Xs = [rng.standard_normal((30, 4000)) for _ in range(2)]
    tracemalloc.start()
    JointHubs(screen="auto").fit_many(Xs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64e6
