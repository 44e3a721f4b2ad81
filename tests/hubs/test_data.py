from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld.hubs.data import load_khan, make_hub_networks, write_khan


def degrees(Theta):
    return np.sum(Theta != 0, axis=0) - 1


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([2.0, 5.0]), st.booleans())
def test_shared_parts_are_shared_and_the_smallest_eigenvalue_is_as_asked(seed, smallest, shuffle):
    networks = make_hub_networks(
        40, 5, n_common=3, n_individual=2, min_eigenvalue=smallest, shuffle=shuffle, random_state=seed
    )
    assert min(np.linalg.eigvalsh(Theta)[0] for Theta in networks.Thetas) == pytest.approx(smallest)
    first = networks.Thetas[0]
    own = np.concatenate(networks.individual)
    others = np.setdiff1d(np.arange(40), own)
    for Theta in networks.Thetas[1:]:
        np.testing.assert_array_equal(np.diag(Theta), np.diag(first))
        np.testing.assert_array_equal(Theta[networks.common], first[networks.common])
        np.testing.assert_array_equal(Theta[np.ix_(others, others)], first[np.ix_(others, others)])
    weights = np.abs(first[(first != 0) & ~np.eye(40, dtype=bool)])
    assert weights.min() >= 4
    assert weights.max() <= 5
    assert sorted([*networks.common, *own]) == sorted({*networks.common, *own})


def test_individual_hubs_meet_only_common_hubs_outside_their_group():
    networks = make_hub_networks(50, 5, random_state=3, n_individual=3)
    for k, Theta in enumerate(networks.Thetas):
        for other, hubs in enumerate(networks.individual):
            for hub in hubs:
                neighbours = set(np.flatnonzero(Theta[hub])) - {hub}
                if other == k:
                    assert len(neighbours) > 15
                else:
                    assert neighbours <= set(networks.common) | set(networks.individual[k])


def test_edge_frequencies_follow_the_probabilities():
    """Hub rows at a fixed 0.5, background at 0.05, over 200 draws; tolerance of four standard errors."""
    hub, background = [], []
    for seed in range(200):
        networks = make_hub_networks(
            30, 0, n_groups=2, n_common=2, n_individual=0, p_common=0.5, p_background=0.05, random_state=seed
        )
        plain = np.setdiff1d(np.arange(30), networks.common)
        edges = networks.Thetas[0] != 0
        hub.append(edges[np.ix_(networks.common, plain)].mean())
        background.append(edges[np.ix_(plain, plain)][np.triu_indices(28, 1)].mean())
    assert np.mean(hub) == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(200 * 56))
    assert np.mean(background) == pytest.approx(0.05, abs=4 * 0.22 / np.sqrt(200 * 378))


def test_near_common_hubs_lead_in_all_groups_but_the_last():
    networks = make_hub_networks(
        60, 5, n_groups=4, n_common=3, n_individual=0, n_near_common=5, p_individual=0.6, random_state=0
    )
    for Theta in networks.Thetas[:-1]:
        np.testing.assert_array_equal(Theta, networks.Thetas[0])
        assert degrees(Theta)[networks.near_common].min() > 20
    assert degrees(networks.Thetas[-1])[networks.near_common].max() < 15


def test_samples_have_the_networks_covariance():
    networks = make_hub_networks(10, 0, n_groups=2, n_common=1, n_individual=1, random_state=0)
    X = networks.sample(200_000, random_state=1)[1]
    np.testing.assert_allclose(np.cov(X.T), networks.covariances()[1], atol=0.01)
    np.testing.assert_allclose(np.diag(networks.correlations()[0]), 1)


def test_only_active_variables_have_edges_and_seeds_repeat():
    networks = make_hub_networks(30, 4, n_common=2, n_individual=1, n_active=12, weights="gaussian", random_state=5)
    assert np.sum(degrees(networks.Thetas[0]) > 0) <= 12
    again = make_hub_networks(30, 4, n_common=2, n_individual=1, n_active=12, weights="gaussian", random_state=5)
    np.testing.assert_array_equal(networks.Xs[2], again.Xs[2])
    assert [len(X) for X in make_hub_networks(30, [3, 4, 5], random_state=0).Xs] == [3, 4, 5]


def test_positions_are_shuffled_by_default():
    first = {tuple(make_hub_networks(40, 0, n_individual=1, random_state=seed).common) for seed in range(5)}
    assert len(first) == 5
    assert tuple(make_hub_networks(40, 0, n_individual=1, shuffle=False).common) == (0, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_variables": 10}, "need at least 20 active variables and at most n_variables=10, got 10"),
        ({"p_common": (0.7, 0.4)}, r"p_common must be a probability .* got \(0.7, 0.4\)"),
        ({"p_background": 1.5}, "p_background must be a probability"),
        ({"n_samples": [3, 4]}, "2 numbers for 3 groups"),
        ({"weights": "cauchy"}, "'uniform' or 'gaussian', got 'cauchy'"),
    ],
)
def test_impossible_designs_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_hub_networks(**{"n_variables": 100, "n_samples": 5, **options})


def test_khan_is_whole():
    X, subtype = load_khan()
    assert X.shape == (83, 2308)
    assert subtype.value_counts().to_dict() == {"EWS": 29, "RMS": 25, "NB": 18, "BL": 11}
    assert not X.isna().any(axis=None)
    # First value of the source's training file, and the extremes of the table.
    assert X.iloc[0, 0] == pytest.approx(0.773344, abs=1e-6)
    assert X.to_numpy().min() == pytest.approx(-5.991465, abs=1e-6)
    assert X.to_numpy().max() == pytest.approx(3.486154, abs=1e-6)


def test_khan_preset_has_the_largest_within_class_variances():
    X, subtype = load_khan()
    top, _ = load_khan(top=30)
    pooled = sum((len(part) - 1) * part.var(ddof=1) for _, part in X.groupby(subtype)) / 79
    assert set(top.columns) == set(pooled.nlargest(30).index)
    assert list(top.columns) == sorted(top.columns)
    with pytest.raises(ValueError, match="between 2 and the number of genes 2308, got 1"):
        load_khan(top=1)


def test_written_table_reads_back(tmp_path):
    from upheld.hubs.data import load_table

    write_khan(tmp_path / "khan.csv", top=20)
    X, subtype = load_table(tmp_path / "khan.csv", groups="subtype", index="sample")
    expected, labels = load_khan(top=20)
    pd.testing.assert_frame_equal(X, expected)
    pd.testing.assert_series_equal(subtype, labels)
