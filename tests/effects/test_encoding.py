from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld.effects.encoding import Encoding
from upheld.effects.rows import checked_covariates


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.normal(40, 10, n), "town": rng.choice(["Ulm", "Bonn", "Kiel"], n), "one": np.full(n, 3.0),
            "rare": (np.arange(n) % 20 == 0).astype(int), "same": ["a"] * n,
        }
    )  # fmt: skip


def test_numeric_columns_are_centred_at_the_median_and_scaled_by_the_quartiles():
    encoding = Encoding.fit(checked_covariates(pd.DataFrame({"x": [0.0, 1, 2, 3, 4, 5, 6, 7, 100]})))
    assert encoding.location == [4]
    # The quartiles are 2 and 6; the floor, half the standard deviation 30.6, is larger.
    assert encoding.scale == pytest.approx(np.std([0, 1, 2, 3, 4, 5, 6, 7, 100]) / 2)
    normal = Encoding.fit(checked_covariates(np.random.default_rng(0).normal(5, 2, (20_000, 1))))
    assert normal.scale[0] == pytest.approx(2, abs=0.05)


def test_levels_become_indicators_and_constants_go():
    encoding = Encoding.fit(checked_covariates(table()))
    assert encoding.columns == ["age", "rare", "town=Bonn", "town=Kiel", "town=Ulm", "town=(other)"]
    assert encoding.constant == {"one": 3.0, "same": "a"}
    coded = encoding.transform(checked_covariates(table()))
    assert (coded[:, 2:].sum(axis=1) == 1).all()
    assert np.abs(coded[:, 1]).max() < 10, "a rare indicator has a quartile range of 0 and still a scale"


def test_unknown_levels_and_constants_that_move_are_counted():
    encoding = Encoding.fit(checked_covariates(table()))
    later = table(4).assign(town=["Ulm", "Rome", "Rome", "Bonn"], one=[3.0, 3, 4, 5], same=["a", "a", "b", "a"])
    coded = encoding.transform(checked_covariates(later))
    assert coded[:, -1].tolist() == [0, 1, 1, 0]
    assert encoding.n_other == {"town": 2}
    assert encoding.n_moved == {"one": 2, "same": 1}


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_coordinates_go_back_to_columns(seed):
    rows = table(60, seed)
    encoding = Encoding.fit(checked_covariates(rows))
    back = encoding.inverse(encoding.transform(checked_covariates(rows)))
    np.testing.assert_allclose(back["age"], rows["age"])
    assert (back["town"] == rows["town"]).all()


def test_state_is_the_whole_encoding():
    encoding = Encoding.fit(checked_covariates(table()))
    again = Encoding.from_state(encoding.state())
    rows = checked_covariates(table(50, 3))
    np.testing.assert_array_equal(again.transform(rows), encoding.transform(rows))


def test_nothing_varies():
    with pytest.raises(
        ValueError, match="all 2 covariates are constant in the first 30 rows; there is nothing to balance"
    ):
        Encoding.fit(checked_covariates(np.ones((30, 2))))
