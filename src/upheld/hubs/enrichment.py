"""Are the hubs of an expression table over-represented in known gene sets? The hypergeometric test, for users with gene symbols.

With N genes measured, M of them in a set and n hubs, of which k are in the set, the p-value is P(X >= k), X hypergeometric; over
sets, false discovery rates after Benjamini and Hochberg (1995).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pandas as pd
from scipy import stats

FEWEST_GENES = 5


def read_gmt(path: Path) -> dict[str, frozenset[str]]:
    """Gene sets of a GMT file: a line a set, tab-separated, name, description, genes.

    Raises
    ------
    ValueError
        If there is no such file or it is no text, a line has fewer than three fields, a set is there twice, or there is none.
    """
    if not path.is_file():
        raise ValueError(f"there is no gene-set file {path}; check the path")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text in UTF-8 ({error.reason}); a GMT file is plain text") from error
    sets: dict[str, frozenset[str]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) < 3:
            raise ValueError(
                f"{path}, line {number}: a gene set is a name, a description and its genes, separated by tabs"
            )
        if fields[0] in sets:
            raise ValueError(f"{path}, line {number}: the gene set {fields[0]!r} is there already; rename one of them")
        sets[fields[0]] = frozenset(filter(None, fields[2:]))
    if not sets:
        raise ValueError(f"{path} holds no gene set; a line a set: name, description, genes, separated by tabs")
    return sets


def enrichment(hubs: Collection[str], measured: Collection[str], sets: Mapping[str, Collection[str]]) -> pd.DataFrame:
    """Gene sets by false discovery rate.

    Parameters
    ----------
    hubs, measured : symbols of the selected genes, and of all genes among which they were selected
    sets : genes by set; sets with fewer than five measured genes are left out

    Raises
    ------
    ValueError
        If no set holds five of the measured genes: the symbols do not match. Or if a hub is not among the measured.

    Examples
    --------
    Three of four hubs lie in a set of five genes out of twenty:

    >>> genes = [f"g{i}" for i in range(20)]
    >>> enrichment(genes[2:6], genes, {"A": genes[:5]})[["set", "hubs", "p_value"]].round(3)
      set  hubs  p_value
    0   A     3    0.032
    """
    universe, chosen = set(measured), set(hubs)
    if strangers := sorted(chosen - universe):
        raise ValueError(
            f"{len(strangers)} hubs, first {strangers[0]!r}, are not among the measured variables; pass all variables "
            "among which they were selected"
        )
    rows = []
    for name, genes in sets.items():
        present = universe & set(genes)
        if len(present) >= FEWEST_GENES:
            found = sorted(chosen & present)
            p = stats.hypergeom.sf(len(found) - 1, len(universe), len(present), len(chosen))
            rows.append(
                {"set": name, "genes": len(present), "hubs": len(found), "p_value": float(p), "which": " ".join(found)}
            )
    if not rows:
        raise ValueError(
            f"no gene set holds {FEWEST_GENES} of the {len(universe)} measured variables; are the columns gene symbols?"
        )
    table = pd.DataFrame(rows)
    table["fdr"] = stats.false_discovery_control(table["p_value"])
    return table.sort_values(["fdr", "p_value"], ignore_index=True)
