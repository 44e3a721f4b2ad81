"""Simulated error rates of the intervals in `upheld.claims.intervals`, beside the alternatives, as Markdown tables.

    python benchmarks/error_rates.py > error-rates.md

An error of the lower end is an experiment in which it lies above the truth ("ours is better", with no difference). The
target is the level, 2.5 % unless a table says otherwise; with 2,000 experiments a rate of 2.5 % has a standard error of
0.35. Takes about two minutes on one core.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from upheld.claims import functionals as fn
from upheld.claims import intervals as iv

Array = NDArray[np.float64]
Law = Callable[[np.random.Generator, tuple[int, ...]], Array]

EXPERIMENTS = 2_000
ALPHA = 0.025
SIZES = (5, 6, 8, 12, 20, 50, 100, 200)
MEAN = fn.contrast([1.0])

SCORE_GRID = np.arange(21) / 20
SCORE_SHARES = np.diff(stats.beta.cdf(np.clip(np.r_[-1, SCORE_GRID[:-1] + 1 / 40, 2], 0, 1), 6, 1.5))
SCORE_MEAN = float(SCORE_GRID @ SCORE_SHARES)


def _score(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    return rng.choice(SCORE_GRID, p=SCORE_SHARES, size=size)


def _mixture(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    return rng.standard_normal(size) + 1.0 - 10.0 * (rng.random(size) < 0.1)


# Laws of a paired difference whose mean is exactly 0; "left" has its long tail below.
LAWS: dict[str, Law] = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "t, 3 df": lambda rng, size: rng.standard_t(3, size),
    "t, 1.5 df": lambda rng, size: rng.standard_t(1.5, size),
    "three values, tied": lambda rng, size: rng.choice([-0.02, 0.0, 0.02], p=[0.25, 0.5, 0.25], size=size),
    "score in steps of 0.05, left": lambda rng, size: _score(rng, size) - SCORE_MEAN,
    "score in steps of 0.05, right": lambda rng, size: SCORE_MEAN - _score(rng, size),
    "exponential, left": lambda rng, size: 1 - rng.exponential(size=size),
    "exponential, right": lambda rng, size: rng.exponential(size=size) - 1,
    "lognormal, left": lambda rng, size: np.exp(0.5) - rng.lognormal(size=size),
    "lognormal, right": lambda rng, size: rng.lognormal(size=size) - np.exp(0.5),
    "one in ten loses 10 sd, left": _mixture,
    "one in ten gains 10 sd, right": lambda rng, size: -_mixture(rng, size),
}


def rng_of(*names: object) -> np.random.Generator:
    """One stream for each cell of each table, whatever else is simulated."""
    return np.random.default_rng(zlib.crc32(repr(names).encode()))


def percent(errors: Array | NDArray[np.bool_]) -> str:
    return f"{100 * np.mean(errors):.1f}"


def table(title: str, head: Iterable[object], rows: Iterable[Iterable[object]]) -> None:
    head = [str(h) for h in head]
    print(f"\n### {title}\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")


# --- the candidates: one-sided p-values of "the mean is above 0", x is (experiments, n) ---------------------------------

BOOTSTRAPS = 2_000


def moments(x: Array) -> tuple[Array, Array, Array]:
    """t statistic, population skewness, standard deviation, of each experiment."""
    n = x.shape[1]
    centred = x - x.mean(1, keepdims=True)
    sd = x.std(1, ddof=1)
    sd = np.where(sd > 1e-12 * np.abs(x).max(1), sd, 0.0)
    safe = np.where(sd > 0, sd, np.inf)
    t = np.where(sd > 0, x.mean(1) / safe * np.sqrt(n), np.sign(x.mean(1)) * 1e9)
    return t, (centred**3).mean(1) / (safe * np.sqrt(1 - 1 / n)) ** 3, sd


def student(x: Array) -> Array:
    return np.asarray(stats.t.sf(moments(x)[0], x.shape[1] - 1))


def johnson(x: Array) -> Array:
    """Johnson (1978), JASA 73, 536-544."""
    t, skew, sd = moments(x)
    t = np.where(sd > 0, t, 0)
    return np.where(
        sd > 0, stats.t.sf(t + skew * (1 + 2 * t**2) / (6 * np.sqrt(x.shape[1])), x.shape[1] - 1), student(x)
    )


def resampled(x: Array) -> tuple[Array, Array]:
    """Means and their t statistics of bootstrap samples, both about the sample mean, (BOOTSTRAPS, experiments)."""
    n = x.shape[1]
    counts = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=BOOTSTRAPS).astype(float)
    centred = (x - x.mean(1, keepdims=True)).T
    means = counts @ centred / n
    variance = np.maximum(counts @ centred**2 / n - means**2, 1e-30)
    return means, means / np.sqrt(variance / (n - 1))


def bootstraps(x: Array) -> dict[str, Array]:
    """Percentile, BCa (Efron 1987), bootstrap-t (Hall 1988)."""
    n = x.shape[1]
    t, skew, sd = moments(x)
    parts: dict[str, list[Array]] = {"percentile bootstrap": [], "BCa bootstrap": [], "bootstrap-t": []}
    for block in np.array_split(np.arange(len(x)), max(1, len(x) // 250)):
        means, ts = resampled(x[block])
        share = (np.sum(means <= -x[block].mean(1), 0) + 1) / (BOOTSTRAPS + 1)
        z0 = stats.norm.ppf((np.sum(means < 0, 0) + np.sum(means == 0, 0) / 2 + 1) / (BOOTSTRAPS + 2))
        a = skew[block] / (6 * np.sqrt(n))
        z = stats.norm.ppf(np.clip(share, 1e-4, 1 - 1e-4)) - z0
        parts["percentile bootstrap"].append(share)
        parts["BCa bootstrap"].append(stats.norm.cdf(z / (1 + a * z) - z0))
        parts["bootstrap-t"].append((np.sum(ts >= t[block], 0) + 1) / (BOOTSTRAPS + 1))
    return {name: np.where(sd > 0, np.concatenate(p), student(x)) for name, p in parts.items()}


def sign_flips(x: Array) -> Array:
    n = x.shape[1]
    if n <= 11:
        signs = 1 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)
    else:
        signs = np.random.default_rng(0).choice([-1, 1], size=(BOOTSTRAPS, n))
        signs[0] = 1
    sums = x.sum(1)
    slack = 1e-9 * np.abs(x).sum(1)
    blocks = np.array_split(np.arange(len(x)), max(1, len(x) // 250))
    return np.concatenate([np.mean(signs @ x[b].T >= sums[b] - slack[b], 0) for b in blocks])


def chosen(x: Array) -> Array:
    return np.asarray(iv.studentise(x[..., None], MEAN).p_above(0.0))


def candidates(x: Array) -> dict[str, Array]:
    found = {"t": student(x), "Johnson's t": johnson(x), **bootstraps(x), "sign flips": sign_flips(x)}
    found["wider of t and bootstrap-t"] = np.maximum(found["t"], found["bootstrap-t"])
    found["**chosen**"] = chosen(x)
    return found


# --- the tables --------------------------------------------------------------------------------------------------------


def error_of_the_chosen() -> None:
    def rows() -> Iterable[list[str]]:
        for name, law in LAWS.items():
            rates = []
            for n in SIZES:
                x = law(rng_of(name, n), (EXPERIMENTS, n))
                rates.append(f"{percent(chosen(x) <= ALPHA)} ({percent(student(x) <= ALPHA)})")
            yield [name, *rates]

    table(
        "Mean paired difference: % of experiments without a difference in which low > 0 (Student's t)",
        ["law", *(f"n={n}" for n in SIZES)],
        rows(),
    )


def comparison() -> None:
    sizes = (5, 8, 12, 20, 50)
    for title, names in {
        "exponential, left": ["exponential, left"],
        "lognormal, left": ["lognormal, left"],
        "score in steps of 0.05, left": ["score in steps of 0.05, left"],
        "normal": ["normal"],
    }.items():
        found = {n: candidates(LAWS[names[0]](rng_of(names[0], n), (EXPERIMENTS, n))) for n in sizes}
        rows = [[m, *(percent(found[n][m] <= ALPHA) for n in sizes)] for m in found[sizes[0]]]
        table(f"All candidates, {title}: % with low > 0", ["interval", *(f"n={n}" for n in sizes)], rows)


def power() -> None:
    cases = [(5, 2.0), (5, 3.0), (5, 5.0), (6, 2.0), (8, 1.0), (8, 2.0), (12, 1.0), (20, 0.75), (50, 0.45), (200, 0.2)]
    found = {(n, d): candidates(rng_of("power", n).standard_normal((EXPERIMENTS, n)) + d) for n, d in cases}
    theory = [percent(np.array(stats.nct.sf(stats.t.isf(ALPHA, n - 1), n - 1, d * np.sqrt(n)))) for n, d in cases]
    rows = [["t, by the noncentral t law", *theory]]
    rows += [[m, *(percent(found[case][m] <= ALPHA) for case in cases)] for m in found[cases[0]]]
    table(
        "Power under normality: % with low > 0 when the mean is d standard deviations",
        ["interval", *(f"n={n}, d={d:g}" for n, d in cases)],
        rows,
    )


def width() -> None:
    def rows() -> Iterable[list[str]]:
        for name in ("normal", "score in steps of 0.05, left", "exponential, left", "lognormal, left"):
            cells = []
            for n in SIZES:
                s = iv.studentise(LAWS[name](rng_of(name, n), (EXPERIMENTS, n))[..., None], MEAN)
                t_width = 2 * stats.t.isf(ALPHA, n - 1) * s.se
                ok = s.se > 0
                cells.append(f"{np.median((s.high(ALPHA) - s.low(ALPHA))[ok] / t_width[ok]):.2f}")
            yield [name, *cells]

    table("Median width over that of Student's t", ["law", *(f"n={n}" for n in SIZES)], rows())


def small_levels() -> None:
    experiments = 20_000

    def rows() -> Iterable[list[str]]:
        for name in ("normal", "t, 3 df", "score in steps of 0.05, left", "exponential, left"):
            for level in (0.005, 0.0005):
                cells = []
                for n in SIZES:
                    x = LAWS[name](rng_of("small", name, n), (experiments, n))
                    cells.append(f"{100 * np.mean(chosen(x) <= level):.2f} ({100 * np.mean(student(x) <= level):.2f})")
                yield [name, f"{100 * level:g} %", *cells]

    table("At the levels that Holm asks for (Student's t)", ["law", "level", *(f"n={n}" for n in SIZES)], rows())


NOISES: dict[str, Law] = {
    "lognormal, sigma 0.5": lambda rng, size: np.exp(0.5 * rng.standard_normal(size)),
    "lognormal, sigma 1": lambda rng, size: np.exp(rng.standard_normal(size)),
    "Pareto, index 3": lambda rng, size: 1 + rng.pareto(3, size),
    "gamma, shape 2": lambda rng, size: rng.gamma(2, 1, size),
}


def curved() -> None:
    x = np.array([100.0, 200.0, 400.0, 800.0])
    slope = fn.slope_weights(np.log(x))
    estimands = {
        "log-log slope, 4 cells": (fn.log_contrast(slope), x**1.5, 1.5),
        "log ratio of 2 means": (fn.log_contrast([1, -1]), np.ones(2), 0.0),
        "ratio of 2 means": (fn.ratio(fn.contrast([1, 0]), fn.contrast([0, 1])), np.ones(2), 1.0),
        "difference of 2 log-log slopes": (fn.log_contrast(np.r_[slope, -slope]), np.r_[x**1.5, x**1.5], 0.0),
        "ratio of 2 log-log slopes": (
            fn.ratio(fn.log_contrast(np.r_[slope, 0 * x]), fn.log_contrast(np.r_[0 * x, slope])),
            np.r_[x**1.5, x**1.5],
            1.0,
        ),
    }

    def rows() -> Iterable[list[str]]:
        for title, (estimand, scale, truth) in estimands.items():
            for name, law in NOISES.items():
                cells = []
                for n in (5, 10, 20, 50):
                    y = law(rng_of(title, name, n), (EXPERIMENTS, n, len(scale))) * scale
                    s = iv.studentise(y, estimand)
                    cells.append(f"{percent(s.low(ALPHA) > truth)}, {percent(s.high(ALPHA) < truth)}")
                yield [title, name, *cells]

    table(
        "Curved functions of means under multiplicative noise: % low > truth, % high < truth",
        ["estimand", "noise", *(f"n={n}" for n in (5, 10, 20, 50))],
        rows(),
    )


def equivalence() -> None:
    def rows() -> Iterable[list[str]]:
        for name in ("normal", "t, 3 df", "score in steps of 0.05, left", "exponential, left", "lognormal, left"):
            cells = []
            for n in SIZES:
                x = LAWS[name](rng_of(name, n), (EXPERIMENTS, n))
                margin = x.std()
                for side in (-margin, margin):
                    s = iv.studentise((x + side)[..., None], MEAN)
                    cells.append(np.mean((s.low(ALPHA) > -margin) & (s.high(ALPHA) < margin)))
            pairs = np.reshape(cells, (-1, 2))
            yield [name, *(f"{100 * a:.1f}, {100 * b:.1f}" for a, b in pairs)]

    table(
        "Equivalence: % declared equivalent when the mean is at -margin, at +margin (margin = 1 sd)",
        ["law", *(f"n={n}" for n in SIZES)],
        rows(),
    )


def shares() -> None:
    def worst(n: int, wilson: bool) -> float:
        # exact: the greatest error of the lower end over a fine grid of true shares
        p = np.linspace(0.0005, 0.9995, 1999)
        k = np.arange(n + 1)
        if wilson:
            z = stats.norm.isf(ALPHA)
            low = (k + z**2 / 2 - z * np.sqrt(k * (n - k) / n + z**2 / 4)) / (n + z**2)
        else:
            low = np.array([iv.share_interval(np.arange(n) < hits).low for hits in k])
        return float(np.max(np.sum(stats.binom.pmf(k, n, p[:, None]) * (low > p[:, None] + 1e-12), 1)))

    rows = [
        [name, *(percent(np.array(worst(n, wilson))) for n in SIZES)]
        for name, wilson in (("Clopper-Pearson (chosen)", False), ("Wilson", True))
    ]
    table(
        "Shares: greatest % of low > truth over all true shares (exact)", ["interval", *(f"n={n}" for n in SIZES)], rows
    )


def quantiles() -> None:
    laws = {
        "normal": stats.norm(),
        "exponential": stats.expon(),
        "lognormal": stats.lognorm(1),
        "Student, 2 df": stats.t(2),
    }

    def rows() -> Iterable[list[str]]:
        for name, law in laws.items():
            cells = []
            for n, q in QUANTILES:
                x = np.sort(law.rvs((EXPERIMENTS, n), random_state=rng_of("quantile", name, n, q)), axis=1)
                found = [iv.quantile_interval(row, q) for row in x]
                truth = law.ppf(q)
                infinite = " (+inf)" if not np.isfinite(found[0].high) else ""
                low, high = (np.array([getattr(f, end) for f in found]) for end in ("low", "high"))
                cells.append(f"{percent(low > truth)}, {percent(high < truth)}{infinite}")
            yield [name, *cells]

    table(
        "One quantile, order statistics: % low > truth, % high < truth",
        ["law", *(f"q={q}, n={n}" for n, q in QUANTILES)],
        rows(),
    )


QUANTILES = ((6, 0.5), (10, 0.5), (20, 0.5), (100, 0.5), (100, 0.9), (100, 0.99), (400, 0.99))


def crossed() -> None:
    shapes = ((5, 8), (5, 20), (5, 40), (10, 10), (20, 20))
    shares_of = {
        "rows, columns, entries alike": (1, 1, 1),
        "rows": (1, 0, 0.2),
        "columns": (0, 1, 0.2),
        "little rows": (0.1, 1, 1),
        "little columns": (1, 0.1, 1),
        "entries only": (0, 0, 1),
    }

    def rows() -> Iterable[list[str]]:
        for name in ("normal", "exponential, left"):
            draw = LAWS[name]
            for title, (r, c, e) in shares_of.items():
                cells = []
                for s, i in shapes:
                    rng = rng_of("crossed", name, title, s, i)
                    y = (
                        r**0.5 * draw(rng, (EXPERIMENTS, s, 1))
                        + c**0.5 * draw(rng, (EXPERIMENTS, 1, i))
                        + e**0.5 * draw(rng, (EXPERIMENTS, s, i))
                    )
                    found = iv.studentise_crossed(y[..., None], MEAN)
                    naive = student(y.reshape(EXPERIMENTS, -1)) <= ALPHA
                    cells.append(f"{percent(found.p_above(0.0) <= ALPHA)} ({percent(naive)})")
                yield [name, title, *cells]

    table(
        "Crossed units: % with low > 0 (t over all S x I entries as if independent)",
        ["law", "what varies", *(f"{s} x {i}" for s, i in shapes)],
        rows(),
    )


def family() -> None:
    rivals, rho = 5, 0.5

    def rows() -> Iterable[list[str]]:
        for name in ("normal", "t, 3 df", "score in steps of 0.05, left", "exponential, left"):
            cells = []
            for n in SIZES:
                rng = rng_of("family", name, n)
                # ours minus each rival: ours is shared, so that the differences are correlated
                x = rho**0.5 * LAWS[name](rng, (EXPERIMENTS, n, 1)) + (1 - rho) ** 0.5 * LAWS[name](
                    rng, (EXPERIMENTS, n, rivals)
                )
                p = np.stack([chosen(x[..., j]) for j in range(rivals)], 1)
                adjusted = np.array([iv.holm(row) for row in p])
                cells.append(f"{percent(np.any(adjusted <= ALPHA, 1))} ({percent(np.any(p <= ALPHA, 1))})")
            yield [name, *cells]

    table(
        "Five correlated rivals, none worse: % of experiments with any low > 0 at Holm's levels (without Holm)",
        ["law", *(f"n={n}" for n in SIZES)],
        rows(),
    )


def main() -> None:
    for show in (
        error_of_the_chosen,
        small_levels,
        width,
        power,
        comparison,
        curved,
        equivalence,
        shares,
        quantiles,
        crossed,
        family,
    ):
        show()


if __name__ == "__main__":
    main()
