"""Claims of hubs that its experiments alone do not try: what needs the user's own files."""

from __future__ import annotations

import pytest

from upheld.claims import NotRun, Scale, Trial
from upheld.hubs.claims import measure_biology

TRIAL = Trial("hubs.biology", {}, 0, Scale.QUICK)


def test_users_hubs_need_the_users_files(monkeypatch):
    for name in ("DATA", "GROUPS", "GMT"):
        monkeypatch.delenv(f"UPHELD_HUBS_{name}", raising=False)
    with pytest.raises(NotRun, match="set UPHELD_HUBS_DATA, UPHELD_HUBS_GROUPS"):
        list(measure_biology(TRIAL))


def test_users_hubs(monkeypatch, tmp_path):
    from upheld.hubs import JointHubs
    from upheld.hubs.data import make_hub_networks

    networks = make_hub_networks(40, 80, n_common=3, n_individual=0, random_state=0)
    X, groups = networks.stacked()
    lines = [",".join(["group", *(f"S{j}" for j in range(40))])]
    lines += [",".join([f"k{k}", *map(str, x)]) for k, x in zip(groups, X, strict=True)]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    hubs = [f"S{j}" for j in JointHubs().fit(X, groups=groups).hubs_]
    assert len(hubs) >= 2
    others = [f"S{j}" for j in range(40) if f"S{j}" not in hubs]
    planted = [*hubs, *others[: max(5 - len(hubs), 0)]]
    (tmp_path / "sets.gmt").write_text(
        "planted\t\t" + "\t".join(planted) + "\nempty of hubs\t\t" + "\t".join(others[-8:])
    )
    for name, value in {"DATA": tmp_path / "x.csv", "GROUPS": "group", "GMT": tmp_path / "sets.gmt"}.items():
        monkeypatch.setenv(f"UPHELD_HUBS_{name}", str(value))
    assert [(one.metric, one.value) for one in measure_biology(TRIAL)] == [("enriched gene sets", 1.0)]
