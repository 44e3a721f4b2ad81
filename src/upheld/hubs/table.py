"""The result as a table, one row a variable."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from upheld.hubs.detector import InverseComponentsHubs, JointHubs, select_by_influence
from upheld.hubs.uncertainty import BootstrapInterval, NullReference, Stability


def hub_table(
    estimator: JointHubs | InverseComponentsHubs,
    *,
    stability: Stability | None = None,
    interval: BootstrapInterval | None = None,
    null: NullReference | Sequence[NullReference] = (),
) -> pd.DataFrame:
    """Variables by decreasing influence, with whatever is known about them.

    Columns: ``variable``, ``influence``, ``rank``, ``selected``; for several groups ``influence_<group>`` (the variable's
    influence in that group's own network) and ``kind``: "common" (selected), "individual to <groups>" (not selected, but
    above mean + 2 sd in those groups' own networks), "screened out", or "none". With the results of
    `upheld.hubs.uncertainty` also ``stability``, ``low`` and ``high``, ``p_value_permutation``, ``p_value_rotation``.

    Raises
    ------
    TypeError
        If `estimator` is none of the two, an instance of one.
    sklearn.exceptions.NotFittedError
        If it was not fitted.

    Examples
    --------
    >>> from upheld.hubs.data import make_hub_networks
    >>> networks = make_hub_networks(60, 600, n_common=2, n_individual=1, shuffle=False, random_state=0)
    >>> table = hub_table(JointHubs(2).fit_many(networks.Xs))
    >>> table[["variable", "rank", "selected", "kind"]].head(5)
      variable  rank  selected             kind
    0       x1     1      True           common
    1       x0     2      True           common
    2      x45     3     False             none
    3      x10     4     False             none
    4       x2     5     False  individual to 0
    """
    if not isinstance(estimator, JointHubs | InverseComponentsHubs):
        raise TypeError(f"hub_table takes a fitted JointHubs or InverseComponentsHubs, got {estimator!r:.80}")
    check_is_fitted(estimator, "influence_")
    p = len(estimator.influence_)
    selected = estimator.get_support()
    columns: dict[str, object] = {
        "variable": getattr(estimator, "feature_names_in_", [f"x{i}" for i in range(p)]),
        "influence": estimator.influence_,
        "rank": pd.Series(-estimator.influence_).rank(method="min").astype(int).to_numpy(),
        "selected": selected,
    }
    if stability is not None:
        columns["stability"] = stability.frequency
    if interval is not None:
        columns["low"], columns["high"] = interval.low, interval.high
    for reference in [null] if isinstance(null, NullReference) else null:
        columns[f"p_value_{reference.kind}"] = reference.p_values
    if isinstance(estimator, JointHubs):
        for label, influence in zip(estimator.groups_, estimator.group_influence_, strict=True):
            columns[f"influence_{label}"] = influence
        columns["kind"] = _kinds(estimator)
    table = pd.DataFrame(columns)
    table.loc[estimator.screened_out_, "rank"] = int((~estimator.screened_out_).sum()) + 1
    return table.sort_values("influence", ascending=False, kind="stable", ignore_index=True)


def _kinds(estimator: JointHubs) -> list[str]:
    ranked = ~estimator.screened_out_
    high = np.zeros(estimator.group_influence_.shape, dtype=bool)
    high[:, ranked] = [select_by_influence(influence[ranked], "2sd") for influence in estimator.group_influence_]
    kinds = []
    for i, selected in enumerate(estimator.get_support()):
        own = [str(label) for label, is_high in zip(estimator.groups_, high[:, i], strict=True) if is_high]
        if selected:
            kinds.append("common")
        elif estimator.screened_out_[i]:
            kinds.append("screened out")
        else:
            kinds.append(f"individual to {', '.join(own)}" if own else "none")
    return kinds
