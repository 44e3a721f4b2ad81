from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from upheld.hubs import InverseComponentsHubs, JointHubs, hub_table
from upheld.hubs.data import make_hub_networks


def test_kinds_separate_common_from_individual_hubs():
    networks = make_hub_networks(40, 2000, n_common=2, n_individual=1, random_state=2)
    frames = {
        name: pd.DataFrame(X, columns=[f"v{j}" for j in range(40)])
        for name, X in zip(("left", "middle", "right"), networks.Xs, strict=True)
    }
    table = hub_table(JointHubs(3).fit_many(frames)).set_index("variable")
    for j in networks.common:
        assert table.loc[f"v{j}", "kind"] == "common"
    for name, hubs in zip(frames, networks.individual, strict=True):
        assert table.loc[f"v{hubs[0]}", "kind"] == f"individual to {name}"
        own = table.loc[f"v{hubs[0]}", [f"influence_{other}" for other in frames]]
        assert own.idxmax() == f"influence_{name}"
    assert list(table["influence"]) == sorted(table["influence"], reverse=True)
    assert table["rank"].iloc[0] == 1


def test_screened_variables_are_flagged_and_ranked_last_together():
    rng = np.random.default_rng(0)
    hubs = JointHubs(2, screen=6).fit_many([rng.standard_normal((30, 10)) for _ in range(2)])
    table = hub_table(hubs)
    out = table[table["kind"] == "screened out"]
    assert len(out) == 4
    assert (out["influence"] == 0).all()
    assert (out["rank"] == 7).all()


def test_single_network_table_has_no_groups():
    X = np.random.default_rng(0).standard_normal((50, 10))
    table = hub_table(InverseComponentsHubs(2).fit(X))
    assert list(table.columns) == ["variable", "influence", "rank", "selected"]


def test_what_is_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        hub_table(JointHubs())
    with pytest.raises(TypeError, match="takes a fitted JointHubs"):
        hub_table(JointHubs)
