"""How estimands are called: what a reader sees, and what the report sorts them by."""

from __future__ import annotations

import pandas as pd
import pytest

from upheld.claims import (
    AtLeast,
    Difference,
    GeometricRatio,
    Mean,
    Measurements,
    NeverViolated,
    Quantile,
    QuantileRatio,
    Ratio,
    Share,
    Slope,
    Superior,
)

N30 = {"n": 30}


@pytest.mark.parametrize(
    ("of", "label", "quantity", "conditions"),
    [
        (Mean("f", "jic", N30), "mean f of jic, n = 30", "mean f", ("n = 30",)),
        (Mean("gap, relative", "a, tuned"), "mean gap, relative of a, tuned", "mean gap, relative", ()),
        (Share("covered", "ours", {"n": 30, "law": "t"}),
         "share of covered of ours, n = 30, law = t", "share of covered", ("n = 30", "law = t")),
        (Quantile("regret", "ucb", {"delta": 0.1}, q=0.99),
         "99% quantile of regret of ucb, delta = 0.1", "99% quantile of regret", ("delta = 0.1",)),
        (Slope("f", "jic", x="n"), "slope of log f in log n of jic", "slope of log f in log n", ()),
        (Slope("f", "jic", x="n", log_x=False, log_y=False), "slope of f in n of jic", "slope of f in n", ()),
        (Difference(Mean("f", "jic", N30), Mean("f", "glasso", N30)), "f: jic − glasso, n = 30", "f", ("n = 30",)),
        (GeometricRatio("seconds, one fit", "jic", "glasso", N30),
         "seconds, one fit: jic ÷ glasso, n = 30", "seconds, one fit", ("n = 30",)),
        (Ratio(Mean("f", "a", N30), Mean("f", "a", {"n": 60})), "(mean f of a, n = 30) ÷ (mean f of a, n = 60)", "mean f ÷ mean f", ()),
        (QuantileRatio(Quantile("f", "a", N30, q=0.5), Quantile("f", "b", N30, q=0.5)),
         "(50% quantile of f of a, n = 30) ÷ (50% quantile of f of b, n = 30)",
         "50% quantile of f ÷ 50% quantile of f", ()),
    ],
)  # fmt: skip
def test_names(of, label, quantity, conditions):
    assert (str(of), of.quantity(), of.conditions()) == (label, quantity, conditions)


def test_findings_bear_them():
    data = Measurements(
        pd.DataFrame(
            [
                {"n": n, "seed": seed, "item": "", "method": method, "metric": "gap, relative", "value": seed + n + level}
                for n in (30, 60) for seed in range(6) for method, level in (("a", 2.0), ("b", 1.0))
            ]
        )
    )  # fmt: skip
    rules = {
        Superior("gap, relative", "a", ("b",), per=("n",)): "gap, relative",
        AtLeast(Mean("gap, relative", "a"), 0.0, per=("n",)): "mean gap, relative",
    }
    for rule, quantity in rules.items():
        found = rule.judge(data).findings
        assert {one.quantity for one in found} == {quantity}
        assert [one.conditions for one in found] == [("n = 30",), ("n = 60",)]
    [worst] = NeverViolated("gap, relative", "a", at_least=0.0, where=N30).judge(data).findings
    assert (worst.quantity, worst.conditions) == ("worst gap, relative", ("n = 30",))


@pytest.mark.parametrize("kind", [Difference, Ratio])
@pytest.mark.parametrize("of", [GeometricRatio("f", "a", "b"), Share("covered", "a"), Quantile("f", "a", q=0.5)])
def test_contrasts_are_of_functions_of_means(kind, of):
    """A geometric ratio is such a function in logarithms, so its contrast would be another thing than its name says."""
    for sides in ((of, Mean("f", "b")), (Mean("f", "b"), of)):
        with pytest.raises(
            TypeError, match=f"a {kind.__name__} cannot be taken of .*, a {type(of).__name__}; it can of a Mean"
        ):
            kind(*sides)
