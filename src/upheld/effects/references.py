"""The price of forgetting: batch estimators that keep every row, under the same signature as the rivals.

`causallib` (inverse weighting, doubly robust), `ebal` (entropy balancing; Hainmueller 2012), `econml` (LinearDRLearner) and `doubleml`
(interactive regression), each as its package has it. The last three come with an extra of their own: nobody needs them to follow a stream.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from upheld.effects.feed import Answer, Feed, Settings
from upheld.effects.rows import FloatArray

FOLDS = 5
LOOSEST_SUM = 1e-3  # of an arm's weights from 1, beyond which entropy balancing has not converged


def imported(module: str, extra: str) -> Any:
    """A module of an optional package.

    Raises
    ------
    ImportError
        In one sentence, with the extra that brings the package.
    """
    package = module.split(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{package} cannot be imported ({error}); install it with pip install "upheld[{extra}]"'
        ) from error


def reference(module: str) -> Any:
    return imported(module, OWN_EXTRA)


# -- causallib


def batch_ipw(feed: Feed, settings: Settings) -> Answer:
    """causallib's inverse propensity weighting on all rows."""
    from causallib.estimation import IPW
    from sklearn.linear_model import LogisticRegression

    X, a, y = pandas_rows(feed.coordinates, feed)
    estimator = IPW(LogisticRegression(max_iter=2000), clip_min=0.01, clip_max=0.99).fit(X, a)
    return batch_answer(estimator.estimate_population_outcome(X, a, y), feed)


def batch_aipw(feed: Feed, settings: Settings) -> Answer:
    """causallib's doubly robust estimator on our features of all rows."""
    from causallib.estimation import AIPW, IPW, StratifiedStandardization
    from sklearn.linear_model import LogisticRegression, Ridge

    X, a, y = pandas_rows(feed.phi(), feed)
    weights = IPW(LogisticRegression(max_iter=2000), clip_min=0.01, clip_max=0.99)
    estimator = AIPW(StratifiedStandardization(Ridge(0.1)), weights)
    estimator.fit(X, a, y)
    return batch_answer(estimator.estimate_population_outcome(X, a, y), feed)


def pandas_rows(X: FloatArray, feed: Feed) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    names = [f"x{j + 1}" for j in range(X.shape[1])]
    return pd.DataFrame(X, columns=names), pd.Series(feed.w), pd.Series(feed.y)


def batch_answer(outcomes: pd.Series, feed: Feed) -> Answer:
    return keeping_all(float(outcomes[1] - outcomes[0]), feed)


def keeping_all(effect: float, feed: Feed) -> Answer:
    """With the bytes of x, w and y of all rows."""
    return Answer(effect, 8 * len(feed.y) * (feed.d + 2))


# -- packages of the extra


def entropy_balancing(feed: Feed, settings: Settings) -> Answer:
    """ebal's entropy balancing of both arms to the mean of all rows; NaN where its weights do not balance.

    Raises
    ------
    ImportError
        If ebal is not installed.
    """
    ebal = reference("ebal")
    X = balanced_on(feed, settings["basis"])
    try:
        found = ebal.ebal_bin(effect="ATE", PCA=settings["pca"], print_level=-1).ebalance(feed.w, X, feed.y)
    except (ValueError, np.linalg.LinAlgError):  # collinear columns, or a step out of the numbers
        return keeping_all(np.nan, feed)
    sums = [
        found["w"][feed.w == arm].sum() for arm in (0, 1)
    ]  # 1 is one of the moments; "converged" tells of one arm alone
    balanced = found["converged"] and np.allclose(sums, 1, atol=LOOSEST_SUM)
    return keeping_all(float(found["wls"].params[1]) if balanced else np.nan, feed)


def balanced_on(feed: Feed, basis: str) -> FloatArray:
    """Columns whose means are balanced."""
    x = feed.coordinates
    if basis == "features":
        return feed.phi()
    return np.hstack([x, x**2]) if basis == "squares" else x


def dr_learner(feed: Feed, settings: Settings) -> Answer:
    """econml's linear doubly robust learner: effects linear in x, logistic and ridge regression on our features within, five folds.

    Raises
    ------
    ImportError
        If econml is not installed.
    """
    econml = reference("econml.dr")
    assignment, outcome = nuisances(settings)
    learner = econml.LinearDRLearner(
        model_propensity=assignment, model_regression=outcome, cv=FOLDS, random_state=feed.seed
    )
    x = feed.coordinates
    with quietly():
        learner.fit(feed.y, feed.w, X=x, W=feed.phi())
    return keeping_all(float(learner.ate(x)), feed)


def interactive_regression(feed: Feed, settings: Settings) -> Answer:
    """doubleml's interactive regression model: cross-fitted scores, logistic and ridge regression on our features, five folds.

    Raises
    ------
    ImportError
        If doubleml is not installed.
    """
    from sklearn.model_selection import StratifiedKFold

    doubleml = reference("doubleml")
    assignment, outcome = nuisances(settings)
    phi = feed.phi()
    with quietly():
        data = doubleml.DoubleMLData.from_arrays(phi, feed.y, feed.w)
        model = doubleml.DoubleMLIRM(data, outcome, assignment, draw_sample_splitting=False)
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=feed.seed)  # its own draw is of NumPy's global state
        model.set_sample_splitting([list(folds.split(phi, feed.w))])
        model.fit()
    return keeping_all(float(model.coef[0]), feed)


def nuisances(settings: Settings) -> tuple[Any, Any]:
    """Models of assignment and outcome."""
    from sklearn.linear_model import LogisticRegression, Ridge

    return LogisticRegression(C=settings["c"], max_iter=2000), Ridge(settings["ridge"])


@contextmanager
def quietly() -> Iterator[None]:
    """Both packages announce their own future, and scikit-learn's, at every call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def lacking(modules: Iterable[str], extra: str) -> str:
    """Why optional packages cannot be had here, in one sentence; nothing when they all can."""
    for module in modules:
        try:
            imported(module, extra)
        except ImportError as error:
            return str(error)
    return ""


Reference = Callable[[Feed, Settings], Answer]

OWN_EXTRA = "effects-references"
OWN_MODULES = ("ebal", "econml.dr", "doubleml")
REFERENCES: dict[str, Reference] = {
    "all rows, ebal": entropy_balancing,
    "all rows, econml": dr_learner,
    "all rows, doubleml": interactive_regression,
}
