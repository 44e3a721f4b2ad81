"""Instances to race on, the embedded log, and the users' own files.

Families (threshold S = 1/2, sigma = 1/2, K = 10 unless said):

    small_excess   best at S + excess, the others `gap` below the best: little room above the threshold
    decoy          best at S + 0.3, the nine others just below S, at S - delta
    mix            best at S + 0.1, one arm at S - delta, the rest at S - 0.3
    unrealisable   best at S - delta, the rest at S - 0.3: no arm is good enough
    several        `good` arms at S + 0.1, the rest 0.3 below them: any of them will do
    lower_pair     the K instances {nu, nu'_2, ..., nu'_K} of the lower bound
    published      the settings of Michel, Hajiabolhassan & Ortner (2023), K = 20, Gaussian with standard deviation 1
    digits_router  classifiers as arms, "correct on a random digit" as reward, a required accuracy as threshold
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from upheld.bandits.environments import Bandit, BernoulliBandit, GaussianBandit, with_law

S = 0.5
LOG_ROWS = 20_000
LARGEST = 1e100  # of rewards: the sum of their squares must stay in double precision
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def small_excess(excess: float, *, gap: float = 0.3, n_arms: int = 10, law: str = "gaussian") -> Bandit:
    """Best arm at S + `excess`, the others `gap` below it."""
    best = S + excess
    return with_law(law, [best] + (n_arms - 1) * [best - gap], S, name=f"small-excess {excess:g} {gap:g} {n_arms}")


def decoy(delta: float, *, n_arms: int = 10, law: str = "gaussian") -> Bandit:
    """Best arm at S + 0.3, the others at S - `delta`."""
    return with_law(law, [S + 0.3] + (n_arms - 1) * [S - delta], S, name=f"decoy {delta:g}")


def mix(delta: float, *, n_arms: int = 10, law: str = "gaussian") -> Bandit:
    """Best arm at S + 0.1, one at S - `delta`, the rest at S - 0.3."""
    return with_law(law, [S + 0.1, S - delta] + (n_arms - 2) * [S - 0.3], S, name=f"mix {delta:g}")


def unrealisable(delta: float, *, n_arms: int = 10, law: str = "gaussian") -> Bandit:
    """Best arm at S - `delta`, the rest at S - 0.3."""
    return with_law(law, [S - delta] + (n_arms - 1) * [S - 0.3], S, name=f"unrealisable {delta:g}")


def several(good: int, *, n_arms: int = 10, law: str = "gaussian") -> Bandit:
    """`good` arms at S + 0.1, the rest 0.3 below them."""
    if not 1 <= good <= n_arms:
        raise ValueError(f"good must lie between 1 and the {n_arms} arms, got {good}")
    return with_law(law, good * [S + 0.1] + (n_arms - good) * [S - 0.2], S, name=f"several {good}")


def lower_pair(n_arms: int, gap: float, excess: float, *, sd: float = 0.5) -> list[Bandit]:
    """The K instances of the lower bound, at horizon 4 sd^2 / excess^2: nu, then nu'_i for i = 2 ... K.

    nu has arm 1 at S + `excess` and the others `gap` below it; nu'_i has arm 1 at S - `excess`, the others `gap` below
    S + `excess`, but arm i at S - `excess` + `gap`.
    """
    nu = np.array([S + excess] + (n_arms - 1) * [S + excess - gap])
    instances: list[Bandit] = [GaussianBandit(nu, S, sd=sd, name=f"nu {excess:g}")]
    for i in range(1, n_arms):
        means = nu.copy()
        means[0] = S - excess
        means[i] = S - excess + gap
        instances.append(GaussianBandit(means, S, sd=sd, name=f"nu' {i + 1} {excess:g}"))
    return instances


def published() -> list[Bandit]:
    """Means i/20, sqrt(i/20) (i = 0 ... 19), and one arm at 1 among arms at 0, each with and without a good arm."""
    i = np.arange(20)
    settings = {
        "linear": (i / 20, (0.8, 1.0)),
        "root": (np.sqrt(i / 20), (0.92, 1.1)),
        "single": (np.r_[np.zeros(19), 1.0], (0.5, 1.1)),
    }
    return [
        GaussianBandit(means, threshold, sd=1.0, name=f"{name} {threshold:g}")
        for name, (means, thresholds) in settings.items()
        for threshold in thresholds
    ]


@cache
def digits_correct() -> tuple[tuple[str, ...], np.ndarray]:
    """Names of ten classifiers, and (rows, classifiers) 0/1: which digit of scikit-learn's held-out half each gets right.

    They range from a guess to a strong model, as the models behind a router do: trained on one half of `load_digits`
    (some on few rows or few pixels), judged on the other.
    """
    from sklearn.datasets import load_digits
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.feature_selection import VarianceThreshold
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import BernoulliNB, GaussianNB
    from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    x, y = load_digits(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.5, random_state=0, stratify=y)
    models = {
        "most-frequent": DummyClassifier(),
        "tree-3": DecisionTreeClassifier(max_depth=3, random_state=0),
        "tree-8": DecisionTreeClassifier(max_depth=8, random_state=0),
        "gaussian-nb": GaussianNB(),
        "bernoulli-nb": BernoulliNB(binarize=8.0),
        "nearest-centroid": make_pipeline(VarianceThreshold(), NearestCentroid()),
        "discriminant": LinearDiscriminantAnalysis(),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500)),
        "forest-10": RandomForestClassifier(10, random_state=0),
        "neighbours": KNeighborsClassifier(3),
    }
    correct = np.column_stack([m.fit(x_train, y_train).predict(x_test) == y_test for m in models.values()])
    return tuple(models), correct.astype(float)


def digits_router(threshold: float = 0.9) -> Bandit:
    """Which classifier is accurate enough? Arms are ten classifiers, a pull asks one about a random held-out digit."""
    labels, correct = digits_correct()
    return BernoulliBandit(correct.mean(axis=0), threshold, name=f"digits-router {threshold:g}", labels=labels)


def write_digits_log(path: str | Path, *, rows: int = LOG_ROWS, seed: int = 0) -> pd.DataFrame:
    """Write the embedded log: each row, a classifier chosen uniformly at random answers about a random digit.

    Columns ``arm`` (the classifier) and ``reward`` (1 if it was right), in the format of the users' own logs: CSV, or
    Parquet if `path` ends in ``.parquet``.
    """
    labels, correct = digits_correct()
    rng = np.random.default_rng(seed)
    arm = rng.integers(len(labels), size=rows)
    reward = correct[rng.integers(len(correct), size=rows), arm].astype(int)
    log = pd.DataFrame({"arm": np.asarray(labels)[arm], "reward": reward})
    if Path(path).suffix == ".parquet":
        log.to_parquet(path, index=False)
    else:
        log.to_csv(path, index=False)
    return log


def read_log(
    path: str | Path, *, arm: str = "arm", reward: str = "reward", propensity: str | None = None
) -> pd.DataFrame:
    """A log of choices from CSV or Parquet.

    Parameters
    ----------
    path : file; Parquet if it ends in ``.parquet``
    arm, reward, propensity : names of its columns; `propensity` is the probability with which the row's arm was chosen

    Returns
    -------
    Columns ``arm`` (labels as they are), ``reward`` (float), and ``propensity`` (float) if asked for.

    Raises
    ------
    MissingColumn
        On a missing column; a ValueError.
    ValueError
        On a missing arm, a reward or propensity that is not a finite number, a propensity outside
        (0, 1], or fewer than 2 arms; names the row (the first data row is row 1).
    """
    table = _read_table(path)
    if arm == reward:
        raise ValueError(
            f"column {arm!r} of {path} cannot hold both the arm and its reward; name another for one of them"
        )
    wanted = [arm, reward] + ([propensity] if propensity else [])
    _check_columns(table, wanted, path)
    if table.empty:
        raise ValueError(f"{path} has no rows")
    missing = table[arm].isna().to_numpy()
    if missing.any():
        raise ValueError(f"row {_row(missing)} of {path} has no arm in column {arm!r}; fill it or drop the row")
    _check_printable(table[arm].unique(), path)
    log = pd.DataFrame({"arm": table[arm], "reward": _numbers(table[reward], reward, path)})
    if propensity:
        log["propensity"] = _numbers(table[propensity], propensity, path)
        outside = ((log["propensity"] <= 0) | (log["propensity"] > 1)).to_numpy()
        if outside.any():
            raise ValueError(
                f"row {_row(outside)} of {path} has {propensity} {log['propensity'][outside].iloc[0]:g}; a propensity is "
                "the probability of the logged choice, above 0 and at most 1"
            )
    if log["arm"].nunique() < 2:
        raise ValueError(f"{path} holds a single arm, {log['arm'].iloc[0]!r}; a choice needs at least 2")
    return log


def check_unit_rewards(log: pd.DataFrame, source: str = "the log") -> None:
    """Refuse rewards outside [0, 1], for which sigma = 1/2 would be wrong; names the row."""
    outside = ((log["reward"] < 0) | (log["reward"] > 1)).to_numpy()
    if outside.any():
        raise ValueError(
            f"row {_row(outside)} of {source} has reward {log['reward'][outside].iloc[0]:g}, but sigma = 1/2 is for "
            "rewards in [0, 1]; pass --sigma (for rewards in [a, b]: (b - a)/2)"
        )


def read_means(path: str | Path, *, arm: str = "arm", mean: str = "mean") -> pd.Series:
    """Mean reward of each arm from CSV or Parquet, indexed by arm.

    Raises
    ------
    MissingColumn
        On a missing column; a ValueError.
    ValueError
        On a mean that is not a finite number, a repeated arm, or fewer than 2 arms.
    """
    table = _read_table(path)
    _check_columns(table, (arm, mean), path)
    repeated = table[arm].duplicated().to_numpy()
    if repeated.any():
        raise ValueError(
            f"row {_row(repeated)} of {path} repeats arm {table[arm][repeated].iloc[0]!r}; give one mean an arm"
        )
    if len(table) < 2:
        raise ValueError(f"{path} holds {len(table)} arm; a choice needs at least 2")
    _check_printable(table[arm], path)
    return pd.Series(_numbers(table[mean], mean, path).to_numpy(), index=table[arm].to_numpy(), name="mean")


def _read_table(path: str | Path) -> pd.DataFrame:
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    if path.suffix == ".parquet":
        try:
            return pd.read_parquet(path)
        except (ValueError, OSError) as broken:
            raise ValueError(f"{path} is no Parquet file ({broken}); name one, or a CSV file") from None
    try:
        return pd.read_csv(path)
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path} is empty; it needs a header line and rows") from None
    except pd.errors.ParserError as broken:
        raise ValueError(f"{path} is not a well-formed CSV file: {broken}") from None
    except UnicodeDecodeError as broken:
        raise ValueError(f"{path} is no text in UTF-8 (byte {broken.start}); save it as UTF-8 CSV") from None


class MissingColumn(ValueError):
    """A table lacks a column that was named, or is looked for under its usual name."""


def _check_columns(table: pd.DataFrame, wanted: Sequence[str], path: str | Path) -> None:
    columns = [str(column) for column in table.columns]
    for column in wanted:
        if column not in table.columns:
            near = get_close_matches(column, columns, 1) or get_close_matches(column.lower(), columns, 1)
            guess = f" (did you mean {near[0]!r}?)" if near else ""
            if len(columns) == 1 and (other := next((sign for sign in ";\t|" if sign in columns[0]), None)):
                raise ValueError(f"{path} is separated by {other!r}; save it as CSV, with commas and decimal points")
            raise MissingColumn(f"{path} has no column {column!r}{guess}; it has {', '.join(columns)}")


def _check_printable(arms: Iterable[object], path: str | Path) -> None:
    """Refuse labels that would command the terminal that shows them, and that no SVG can hold."""
    for arm in arms:
        if UNPRINTABLE.search(str(arm)):
            raise ValueError(f"the arm {str(arm)!r} of {path} holds a control character; rename it")


def _numbers(column: pd.Series, name: str, path: str | Path) -> pd.Series:
    numbers = pd.to_numeric(column, errors="coerce").astype(float)
    bad = ~np.isfinite(numbers.to_numpy())
    if bad.any():
        value = column[bad].iloc[0]
        shown = repr(value) if isinstance(value, str) else str(value)
        raise ValueError(
            f"row {_row(bad)} of {path} has {name} {shown}, which is not a finite number; correct it or drop the row"
        )
    extreme = (numbers.abs() > LARGEST).to_numpy()
    if extreme.any():
        raise ValueError(
            f"row {_row(extreme)} of {path} has {name} {numbers[extreme].iloc[0]:g}, too large for sums of squares; "
            "measure it in another unit"
        )
    return numbers


def _row(mask: np.ndarray) -> int:
    """Number of the first marked data row, counted from 1."""
    return int(np.flatnonzero(mask)[0]) + 1
