"""Gene sets: against numbers worked out by hand, and scipy's Fisher test."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from upheld.hubs.enrichment import enrichment, read_gmt

GENES = [f"g{i}" for i in range(20)]


def test_by_hand():
    # 20 genes, 5 in the set, 4 hubs, 3 of them in the set: (C(5,3) C(15,1) + C(5,4)) / C(20,4) = 155 / 4845.
    table = enrichment(GENES[2:6], GENES, {"A": GENES[:5]})
    assert table["p_value"][0] == pytest.approx(155 / 4845, rel=1e-12)
    assert (table["set"][0], table["genes"][0], table["hubs"][0], table["which"][0]) == ("A", 5, 3, "g2 g3 g4")


def test_false_discovery_rates_by_hand():
    # The p-values of 3, 1 and 0 of 4 hubs in a set of 5: 155/4845, 1 - C(15,4)/C(20,4) = 1 - 1365/4845, and 1. The rates of
    # Benjamini and Hochberg: 3 p_1, 3/2 p_2 capped by the next one, p_3.
    sets = {"none": GENES[10:15], "one": [GENES[5], *GENES[15:19]], "three": GENES[:5]}
    table = enrichment(GENES[2:6], GENES, sets)
    assert list(table["set"]) == ["three", "one", "none"]
    assert table["p_value"].to_numpy() == pytest.approx([155 / 4845, 1 - 1365 / 4845, 1])
    assert table["fdr"].to_numpy() == pytest.approx([3 * 155 / 4845, 1, 1])


@given(st.sets(st.sampled_from(GENES), min_size=1), st.sets(st.sampled_from(GENES), min_size=5))
def test_is_fishers_exact_test(hubs, genes):
    a = len(hubs & genes)
    counts = [[a, len(hubs) - a], [len(genes) - a, 20 - len(hubs) - len(genes) + a]]
    expected = stats.fisher_exact(counts, alternative="greater").pvalue
    assert enrichment(hubs, GENES, {"A": genes})["p_value"][0] == pytest.approx(expected, rel=1e-9)


def test_hubs_at_random_are_rarely_enriched():
    rng = np.random.default_rng(0)
    below = [
        enrichment(rng.choice(GENES, 6, replace=False), GENES, {"A": GENES[:8]})["p_value"][0] <= 0.05
        for _ in range(2000)
    ]
    assert np.mean(below) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)


def test_genes_that_were_not_measured_do_not_count():
    table = enrichment(GENES[2:6], GENES, {"A": [*GENES[:5], "elsewhere", "nowhere"]})
    assert table["genes"][0] == 5
    assert table["p_value"][0] == pytest.approx(155 / 4845)


def test_a_gene_named_twice_counts_once():
    table = enrichment([*GENES[2:6], "g2"], [*GENES, "g2"], {"A": [*GENES[:5], "g2"]})
    assert table["p_value"][0] == pytest.approx(155 / 4845)


def test_no_hub_is_no_evidence():
    assert enrichment([], GENES, {"A": GENES[:5]})["p_value"][0] == 1


def test_hubs_outside_the_measured_are_refused():
    with pytest.raises(ValueError, match=r"1 hubs, first 'other', are not among the measured variables"):
        enrichment(["other", "g1"], GENES, {"A": GENES[:5]})


def test_small_sets_are_left_out():
    assert list(enrichment(GENES[:2], GENES, {"small": GENES[:4], "A": GENES[:5]})["set"]) == ["A"]


def test_symbols_that_do_not_match():
    with pytest.raises(
        ValueError, match=r"no gene set holds 5 of the 20 measured variables; are the columns gene symbols\?"
    ):
        enrichment(GENES[:2], GENES, {"A": ["TP53", "MYC"]})


def test_reads_gmt(tmp_path):
    file = tmp_path / "sets.gmt"
    file.write_text("A\thttp://a\tTP53\tMYC\t\nB\t\tEWSR1\n\n")
    assert read_gmt(file) == {"A": {"TP53", "MYC"}, "B": {"EWSR1"}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"A\tno genes\n", "sets.gmt, line 1: a gene set is a name, a description and its genes, separated by tabs"),
        (b"A\tx\tTP53\nA\ty\tMYC\n", "sets.gmt, line 2: the gene set 'A' is there already"),
        (b"\xff\xfe", "sets.gmt is no text in UTF-8"),
        (b"", "sets.gmt holds no gene set"),
    ],
)
def test_bad_gmt(tmp_path, content, message):
    (tmp_path / "sets.gmt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_gmt(tmp_path / "sets.gmt")


def test_missing_gmt(tmp_path):
    with pytest.raises(ValueError, match="there is no gene-set file"):
        read_gmt(tmp_path / "sets.gmt")
