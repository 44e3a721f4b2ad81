"""Whom a user would otherwise ask for the average effect in a stream.

Every rival gets the same `Feed`: one pass over the same rows, covariates standardised on the same 500 rows of warm-up, the same seed and
kernel features. It answers with the effect and the bytes it holds. To add one, write such a function and put it into `RIVALS`.

Online weighting and matching (`onlinecml`), online doubly robust estimation on our features (`sklearn`), a reservoir, a tumbling window
and exact moments under the balancing of `StreamingBalancer`, kernel thinning of whole blocks (`goodpoints`), the difference in means; and,
for the price of forgetting, estimators that keep every row (`upheld.effects.references`). Their hyper-parameters, `TUNED`, come from one
random search (`scripts/tune_effects.py`): 20 draws for each rival by its root mean squared error on streams whose seeds no claim uses. Our
own defaults were not searched. On ACIC, online matching, judged by no rule, has the values of its own package. Of the
references, the columns that ebal balances were chosen on those streams; the others' regressions have the strengths of causallib's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context

from upheld.effects.blocks import LEAST_ARM_ROWS
from upheld.effects.estimate import LEAST_ROWS, ArmMean, Recipe, Sample
from upheld.effects.exact import ExactMomentBalancer
from upheld.effects.feed import N_FEATURES, Answer, Feed, Settings
from upheld.effects.references import REFERENCES, batch_aipw, batch_ipw, imported
from upheld.effects.reservoir import ReservoirBalancer
from upheld.effects.rows import FloatArray
from upheld.effects.stream import EffectStream

BLOCK = 2048
SGD_BATCH = 50  # rows that are predicted before they are learned from, together
OUR_RECIPE = Recipe("entropy", "simplex", 0.1, True)

# -- online weighting


def logistic(settings: Settings) -> Any:
    """River's logistic regression."""
    from river import linear_model, optim

    rate = settings["ps_rate"]
    return linear_model.LogisticRegression(optim.SGD(rate), l2=settings["ps_l2"], intercept_lr=rate)


def outcome_model(settings: Settings) -> Any:
    """River's linear regression or Hoeffding tree, for one arm."""
    from river import linear_model, optim, tree

    if settings["outcome"] == "linear":
        rate = settings["rate"]
        return linear_model.LinearRegression(optim.SGD(rate), l2=settings["l2"], intercept_lr=rate)
    return tree.HoeffdingTreeRegressor(grace_period=settings["grace"], delta=settings["delta"], tau=settings["tau"])


def learned(estimator: Any, feed: Feed, *models: Any, uncounted: int = 0) -> Answer:
    """One pass of an estimator of OnlineCML, whose mean leaves out the first rows: its warm-up, or `uncounted` where it has none."""
    means = []
    for x, w, y in zip(feed.rows(), feed.w.tolist(), feed.y.tolist(), strict=True):
        estimator.learn_one(x, w, y)
        means.append(estimator.predict_ate())
    kept = np.array(means[getattr(estimator, "warmup", uncounted) :])
    pseudo = np.diff(np.arange(1, len(kept) + 1) * kept, prepend=0.0)  # running means back to what they are means of
    return Answer(float(estimator.predict_ate()), sum(int(model._raw_memory_usage) for model in models), pseudo)


def clipping(settings: Settings) -> dict[str, Any]:
    return {"clip_min": settings["clip"], "clip_max": 1 - settings["clip"]}


def ipw(feed: Feed, settings: Settings, *, normalize: bool = False) -> Answer:
    """Online inverse propensity weighting."""
    from onlinecml.reweighting import OnlineIPW

    model = logistic(settings)
    estimator = OnlineIPW(model, normalize=normalize, warmup=settings["warmup"], **clipping(settings))
    return learned(estimator, feed, model)


def normalised_ipw(feed: Feed, settings: Settings) -> Answer:
    """The same, weights divided by their running means."""
    return ipw(feed, settings, normalize=True)


def aipw(feed: Feed, settings: Settings) -> Answer:
    """Online doubly robust estimation."""
    from onlinecml.reweighting import OnlineAIPW

    model, treated, control = logistic(settings), outcome_model(settings), outcome_model(settings)
    estimator = OnlineAIPW(model, treated, control, warmup=settings["warmup"], **clipping(settings))
    with quick_copies():
        return learned(estimator, feed, model, treated, control)


@contextmanager
def quick_copies() -> Iterator[None]:
    """River's running means and variances are copied attribute by attribute, with the same numbers as a result.

    A tree copies 70,000 of them on 8,000 rows, and `copy` finds out each time how; attributes that are set one by one, and not by way of
    ``__dict__``, are also faster to read ever after. Together that is a third of its time.
    """
    from river import stats

    new = object.__new__

    def mean(self: Any, memo: dict[int, Any]) -> Any:
        twin: Any = new(stats.Mean)
        twin.n, twin._mean = self.n, self._mean
        return twin

    def variance(self: Any, memo: dict[int, Any]) -> Any:
        twin: Any = new(stats.Var)
        twin.ddof, twin.mean, twin._S = self.ddof, mean(self.mean, memo), self._S
        return twin

    stats.Mean.__deepcopy__, stats.Var.__deepcopy__ = mean, variance  # type: ignore[attr-defined]
    try:
        yield
    finally:
        del stats.Mean.__deepcopy__, stats.Var.__deepcopy__  # type: ignore[attr-defined]


def cbps(feed: Feed, settings: Settings) -> Answer:
    """Online covariate balancing propensity scores."""
    from onlinecml.reweighting import OnlineCBPS

    model = logistic(settings)
    return learned(OnlineCBPS(model, **clipping(settings)), feed, model)


def overlap_weights(feed: Feed, settings: Settings) -> Answer:
    """Online overlap weights, whose estimand is another: for comparison only."""
    from onlinecml.propensity import OnlinePropensityScore
    from onlinecml.reweighting import OnlineOverlapWeights

    model = logistic(settings)
    return learned(OnlineOverlapWeights(OnlinePropensityScore(model, **clipping(settings))), feed, model)


def matching(feed: Feed, settings: Settings) -> Answer:
    """Online matching: each row with the k nearest of the other arm's last `buffer` rows."""
    from onlinecml.matching import OnlineMatching

    alone = int((feed.w != feed.w[0]).argmax())  # rows with nobody to be matched with
    found = learned(OnlineMatching(settings["k"], settings["buffer"]), feed, uncounted=alone)
    held = sum(min(settings["buffer"], int(np.sum(feed.w == arm))) for arm in (0, 1))
    return replace(found, nbytes=held * 8 * (feed.d + 1))


def kernel_aipw(feed: Feed, settings: Settings) -> Answer:
    """Doubly robust estimation by stochastic gradients on our features, predicted before learned from."""
    with config_context(assume_finite=True, skip_parameter_validation=True):  # features are finite by their making
        pseudo, nbytes = kernel_pseudo_outcomes(feed, settings)
    kept = pseudo[settings["warmup"] :]
    return Answer(float(kept.mean()), nbytes, kept)


def kernel_pseudo_outcomes(feed: Feed, settings: Settings) -> tuple[FloatArray, int]:
    """(n,) mu_1 - mu_0 + w (y - mu_1) / p - (1 - w)(y - mu_0) / (1 - p), and the bytes of the models."""
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    propensity = SGDClassifier(
        loss="log_loss", learning_rate="constant", eta0=settings["ps_rate"], alpha=settings["ps_l2"],
        random_state=feed.seed,
    )  # fmt: skip
    outcome = [
        SGDRegressor(learning_rate=settings["schedule"], eta0=settings["rate"], alpha=settings["l2"], random_state=arm)
        for arm in (0, 1)
    ]
    w, y, clip = feed.w, feed.y, settings["clip"]
    pseudo = np.empty(len(y))
    for at in range(0, len(y), SGD_BATCH):
        rows = slice(at, at + SGD_BATCH)
        X, arm, out = feed.phi(rows), w[rows], y[rows]
        p = np.clip(propensity.predict_proba(X)[:, 1], clip, 1 - clip) if at else np.full(len(out), 0.5)
        m = [one.predict(X) if hasattr(one, "coef_") else np.zeros(len(out)) for one in outcome]
        pseudo[rows] = m[1] - m[0] + np.where(arm == 1, (out - m[1]) / p, -(out - m[0]) / (1 - p))
        propensity.partial_fit(X, arm, classes=None if at else [0, 1])
        for label, one in enumerate(outcome):
            if (arm == label).any():
                one.partial_fit(X[arm == label], out[arm == label])
    coefs = sum(one.coef_.nbytes + one.intercept_.nbytes for one in (propensity, *outcome) if hasattr(one, "coef_"))
    return pseudo, coefs + feed.features.frequencies.nbytes


# -- the same balancing on something else than a coreset


def streamed(balancer: EffectStream, feed: Feed) -> Answer:
    """One pass of one of our balancers."""
    balancer.partial_fit(feed.X, feed.y, treatment=feed.w)
    return Answer(balancer.estimate().ate, balancer.memory_bytes_)


def reservoir(feed: Feed, settings: Settings) -> Answer:
    """A uniform sample of each arm over the whole stream, as many rows as the budget holds, under our balancing."""
    return streamed(ReservoirBalancer(reservoir_rows(feed), block_size=None, random_state=feed.seed), feed)


def small_reservoir(feed: Feed, settings: Settings) -> Answer:
    """A uniform sample of as many rows as a coreset has items, balanced as the paper describes."""
    return streamed(
        ReservoirBalancer(
            feed.items, block_size=None, augment=False, loss="quadratic", constraints="simplex", random_state=feed.seed
        ),
        feed,
    )


def reservoir_rows(feed: Feed) -> int:
    """Rows an arm may hold so that two arms fit the budget; a row has x, y, its time and its id."""
    fixed = feed.features.frequencies.nbytes + 2 * _bytes_of_sums(feed.d, N_FEATURES + feed.d) + _slack(feed)
    return max(LEAST_ROWS, (feed.budget - fixed) // (2 * 8 * (feed.d + 3)))


def _bytes_of_sums(d: int, D: int) -> int:
    """Exact sums of an arm, and its share of those over all rows."""
    return 8 * (2 * D + 2 * d)


def _slack(feed: Feed) -> int:
    """Diagnostics that all our balancers hold: balance table, drift profile, last models, closed blocks."""
    return 8 * (8 * (N_FEATURES + feed.d) + 24 * feed.d + 64 * (1 + len(feed.y) // BLOCK))


def window(feed: Feed, settings: Settings) -> Answer:
    """Raw rows of a tumbling window, as many as the budget holds, under our balancing."""
    return tumbling(feed, window_rows(feed), least_arm=0)


def window_rows(feed: Feed) -> int:
    """A row has x, w and y."""
    fixed = feed.features.frequencies.nbytes + 8 * (N_FEATURES + feed.d)
    return max(LEAST_ROWS, (feed.budget - fixed) // (8 * (feed.d + 2)))


def whole_blocks(feed: Feed, settings: Settings) -> Answer:
    """Raw rows of the very blocks that `StreamingBalancer` forms, under our balancing."""
    return tumbling(feed, BLOCK, least_arm=LEAST_ARM_ROWS)


def thinned_blocks(feed: Feed, settings: Settings) -> Answer:
    """The same blocks, of each arm the rows that goodpoints' kernel thinning keeps, as many as a coreset has items.

    Raises
    ------
    ImportError
        If goodpoints is not installed.
    """
    imported(THINNING_MODULE, THINNING_EXTRA)
    bandwidth, seed = feed.features.bandwidth, feed.seed
    return tumbling(feed, BLOCK, LEAST_ARM_ROWS, lambda X: thinned(X, feed.items, bandwidth, seed))


THINNING_EXTRA, THINNING_MODULE = "effects-thinning", "goodpoints.compress"
BIN = 64  # rows that are compressed together first: a power of four, as it must be
OVERSAMPLING = 2  # a bin leaves 2^g sqrt(rows): half of them


def thinned(X: FloatArray, most: int, bandwidth: float, seed: int) -> NDArray[np.int64]:
    """Which rows Compress++ keeps (Shetty et al. 2022): kernel halving within bins, then kernel thinning down to `most` at the most.

    The package's own function goes down to the root of a power of four, 32 of 1,024 rows; its two parts are called one by one, to
    stop where a coreset does.
    """
    if len(X) <= max(most, BIN):
        return np.arange(len(X))
    compress, kernels = imported(THINNING_MODULE, THINNING_EXTRA), imported("goodpoints.compressc", THINNING_EXTRA)
    thinning = imported("goodpoints.kt", THINNING_EXTRA)
    X, squared = np.ascontiguousarray(X), np.array([2 * bandwidth**2])  # its kernel is exp(-|x - y|^2 / squared)
    halved = compress.compress_kt(X, b"gaussian", squared, g=OVERSAMPLING, num_bins=len(X) // BIN, seed=seed)
    rounds = max(0, math.ceil(math.log2(len(halved) / most)))
    K = np.empty((len(halved), len(halved)))
    kernels.compute_K(X, halved, b"gaussian", squared, K)
    return np.asarray(halved[thinning.thin_K(K, K, rounds, seed=seed, unique=True)], dtype=np.int64)


Keep = Callable[[FloatArray], NDArray[np.int64]]  # the coordinates of an arm's rows -> which of them are kept


def every_row(X: FloatArray) -> NDArray[np.int64]:
    return np.arange(len(X))


def tumbling(feed: Feed, size: int, least_arm: int, keep: Keep = every_row) -> Answer:
    """Windows of `size` rows and at least `least_arm` of each arm, balanced by themselves, then averaged by their rows."""
    effects: list[float] = []
    counts: list[int] = []
    start, longest = 0, 0
    while start < len(feed.y):
        stop = window_end(feed.w, start, size, least_arm)
        effects.append(balanced_effect(feed, slice(start, stop), keep))
        counts.append(stop - start)
        longest = max(longest, stop - start)
        start = stop
    known = np.isfinite(effects)
    covered = float(np.sum(np.array(counts)[known])) / len(feed.y)
    effect = float(np.average(np.array(effects)[known], weights=np.array(counts)[known])) if covered >= 0.9 else np.nan
    fixed = feed.features.frequencies.nbytes + 8 * (N_FEATURES + feed.d)
    return Answer(effect, longest * 8 * (feed.d + 2) + fixed)


def window_end(w: NDArray[np.int64], start: int, size: int, least_arm: int) -> int:
    """The row after the window's last."""
    treated = np.cumsum(w[start:])
    control = np.arange(1, len(treated) + 1) - treated
    ripe = (np.arange(1, len(treated) + 1) >= size) & (np.minimum(treated, control) >= least_arm)
    return start + int(ripe.argmax()) + 1 if ripe.any() else len(w)


def balanced_effect(feed: Feed, rows: slice, keep: Keep) -> float:
    """The effect over some rows, from those that are kept of each arm."""
    X, y, w, phi = feed.coordinates[rows], feed.y[rows], feed.w[rows], feed.phi(rows)
    target = phi.mean(axis=0)
    means = [arm_mean(X[w == arm], phi[w == arm], y[w == arm], target, keep(X[w == arm])) for arm in (0, 1)]
    return means[1].mean - means[0].mean


def arm_mean(X: FloatArray, phi: FloatArray, y: FloatArray, target: FloatArray, kept: NDArray[np.int64]) -> ArmMean:
    """Mean outcome of the target from rows of one arm, those kept standing for all."""
    n, one = max(len(y), 1), np.ones(len(kept))
    return Sample(
        len(y), float(y.sum()) / n, X.sum(axis=0) / n, phi.sum(axis=0) / n, X[kept], phi[kept], y[kept],
        one * n / max(len(kept), 1), one, None, np.zeros(len(kept), dtype=np.intp), 0.0,
    ).mean_at(target, OUR_RECIPE, float(OUR_RECIPE.lam))  # fmt: skip


def exact_moments(feed: Feed, settings: Settings) -> Answer:
    """Exact second moments of our features, in blocks."""
    return streamed(ExactMomentBalancer(N_FEATURES, random_state=feed.seed), feed)


def small_exact_moments(feed: Feed, settings: Settings) -> Answer:
    """Exact second moments of as many features as the budget holds, in blocks."""
    return streamed(ExactMomentBalancer(moment_features(feed), random_state=feed.seed), feed)


def moment_features(feed: Feed) -> int:
    """The largest even number of random features whose moments of two arms, 8 D^2 bytes each, fit the budget."""
    room = feed.budget - _slack(feed) - 16 * feed.d
    D = math.isqrt(max(room, 0) // 16)
    while 16 * D * D + 8 * 8 * D + 4 * D * feed.d > room and D > 0:
        D -= 1
    return max(0, 2 * ((D - feed.d) // 2))


# -- with nothing at all


def difference_in_means(feed: Feed, settings: Settings) -> Answer:
    return Answer(float(feed.y[feed.w == 1].mean() - feed.y[feed.w == 0].mean()), 32)


TUNED: dict[str, dict[str, Settings]] = {
    "drift": {
        "online ipw": {"ps_rate": 0.0246, "ps_l2": 0.000282, "clip": 0.014, "warmup": 0},
        "online normalised ipw": {"ps_rate": 0.00106, "ps_l2": 0.0, "clip": 0.00595, "warmup": 500},
        "online cbps": {"ps_rate": 0.0246, "ps_l2": 0.000282, "clip": 0.014, "warmup": 0},
        "online overlap weights": {"ps_rate": 0.00106, "ps_l2": 0.0, "clip": 0.00595, "warmup": 500},
        "online aipw": {
            "ps_rate": 0.00755,
            "ps_l2": 0.0,
            "clip": 0.0155,
            "warmup": 0,
            "outcome": "linear",
            "rate": 0.00253,
            "l2": 0.0,
        },
        "online aipw on features": {
            "ps_rate": 0.265,
            "ps_l2": 0.000133,
            "clip": 0.0219,
            "warmup": 0,
            "rate": 0.00415,
            "l2": 7.69e-06,
            "schedule": "invscaling",
        },
        "online aipw, tree": {
            "ps_rate": 0.0241,
            "ps_l2": 0.0,
            "clip": 0.00804,
            "warmup": 500,
            "outcome": "tree",
            "grace": 25,
            "delta": 1.16e-06,
            "tau": 0.125,
        },
        "online matching": {"k": 1, "buffer": 543},
        "all rows, ebal": {"basis": "features", "pca": True},
        "all rows, econml": {"c": 1.0, "ridge": 0.1},
        "all rows, doubleml": {"c": 1.0, "ridge": 0.1},
    },
    "acic": {
        "online ipw": {"ps_rate": 0.00514, "ps_l2": 0.0, "clip": 0.0628, "warmup": 500},
        "online normalised ipw": {"ps_rate": 0.00023, "ps_l2": 0.0, "clip": 0.0367, "warmup": 500},
        "online cbps": {"ps_rate": 0.00514, "ps_l2": 0.0, "clip": 0.0628, "warmup": 500},
        "online overlap weights": {"ps_rate": 0.000101, "ps_l2": 7.88e-05, "clip": 0.0105, "warmup": 500},
        "online aipw": {
            "ps_rate": 0.00363,
            "ps_l2": 0.0,
            "clip": 0.0145,
            "warmup": 0,
            "outcome": "linear",
            "rate": 1.16e-05,
            "l2": 0.00135,
        },
        "online aipw on features": {
            "ps_rate": 0.148,
            "ps_l2": 0.00835,
            "clip": 0.00598,
            "warmup": 500,
            "rate": 0.00971,
            "l2": 0.000783,
            "schedule": "invscaling",
        },
        "online matching": {"k": 1, "buffer": 200},
        "all rows, ebal": {"basis": "squares", "pca": True},
        "all rows, econml": {"c": 1.0, "ridge": 0.1},
        "all rows, doubleml": {"c": 1.0, "ridge": 0.1},
    },
}

Rival = Callable[[Feed, Settings], Answer]

RIVALS: dict[str, Rival] = {
    "online ipw": ipw,
    "online normalised ipw": normalised_ipw,
    "online aipw": aipw,
    "online aipw, tree": aipw,
    "online cbps": cbps,
    "online overlap weights": overlap_weights,
    "online aipw on features": kernel_aipw,
    "reservoir": reservoir,
    "small reservoir": small_reservoir,
    "window": window,
    "window, whole blocks": whole_blocks,
    "exact moments, equal memory": small_exact_moments,
    "exact moments, equal features": exact_moments,
    "difference in means": difference_in_means,
    "all rows, ipw": batch_ipw,
    "all rows, aipw": batch_aipw,
}
THINNED: dict[str, Rival] = {"compress++, whole blocks": thinned_blocks}  # of a package that has to be compiled
SLOW: dict[str, Rival] = {"online matching": matching}  # hundreds of distances a row: raced at full scale alone
EVERYBODY: dict[str, Rival] = RIVALS | SLOW | THINNED | REFERENCES
SMALL_ONLINE = ("online ipw", "online normalised ipw", "online aipw", "online cbps", "online aipw on features")
ONLINE = (*SMALL_ONLINE, "online aipw, tree")
MEMORY_MATCHED = (
    *SMALL_ONLINE, "reservoir", "small reservoir", "window", "window, whole blocks", "exact moments, equal memory",
    "difference in means",
)  # fmt: skip


def answer(name: str, feed: Feed) -> Answer:
    """What a rival says of a stream, at its tuned settings."""
    return EVERYBODY[name](feed, feed.settings.get(name, {}))
