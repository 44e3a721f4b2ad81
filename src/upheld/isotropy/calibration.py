"""From a score to an expected factuality, and to a threshold with a guarantee, by means of labelled prompts.

Labelled prompts (t_i, y_i), i = 1..n: scores t_i (high = less trustworthy), factuality y_i in [0, 1]. A random part of
them fits the map, the rest, m prompts, says how far it errs (split-conformal prediction; Vovk, Gammerman & Shafer 2005;
Lei et al. 2018)::

    f = argmin sum_i (y_i - g(t_i))^2  over decreasing g                       isotonic regression               (1)
    r_j = |y_j - f(t_j)|,   q = the k-th smallest r_j,   k = ceil((m + 1)(1 - alpha))                            (2)
    P(y in [f(t) - q, f(t) + q]) >= 1 - alpha     for a new prompt exchangeable with the calibration prompts     (3)

k exceeds m, and no finite q exists, unless m >= 1/alpha - 1. The threshold (conformal risk control; Angelopoulos et al.
2024, theorem 1, for the monotone loss L_i(t) = [t_i <= t and y_i < min_factuality]) uses all n prompts::

    R(t) = (1/n) sum_i L_i(t),    t* = max{t : (n R(t) + 1)/(n + 1) <= risk}                                     (4)
    P(t_new <= t* and y_new < min_factuality) <= risk                                                            (5)

(5) bounds the share of ALL prompts that are accepted though poor, not their share among the accepted ones; it is an
average over calibration sets, as (3) is. Both fail when prompts, sampler or embedder of the use differ from those of
the calibration, and when the prompts they are checked on took part in it.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.validation import check_is_fitted

from upheld.storage import whole_file

FloatArray = NDArray[np.float64]
Identifier = str | int

SCHEMA = "upheld.isotropy.calibrator/1"


@dataclass(frozen=True)
class ScoreSetting:
    """What a score depends on besides the answers; scores of two settings are never compared.

    Parameters
    ----------
    embedder_id : names model, weights and pooling
    template, long_text, jitter, normalized : how the answers were read and scored, see `IsotropyResult`
    n : answers a prompt
    """

    embedder_id: str
    template: str | None
    n: int
    long_text: str = "window"
    jitter: float = 0.0
    normalized: bool = True

    @classmethod
    def of(cls, results: Sequence[Any]) -> ScoreSetting:
        """The one setting of all `results`, each with the attributes of an `IsotropyResult`."""
        names = [field.name for field in fields(cls)]
        found = list(dict.fromkeys(cls(**{name: getattr(one, name) for name in names}) for one in results))
        if len(found) > 1:
            raise ValueError(
                f"the results come from {len(found)} settings, among them {found[0]} and {found[1]}; give one"
            )
        return found[0]


class FactualityInterval(NamedTuple):
    """(n,) expected factuality with the ends of its interval, all in [0, 1]."""

    expected: FloatArray
    lower: FloatArray
    upper: FloatArray


class TrustCalibrator(BaseEstimator):  # type: ignore[misc]
    """Expected factuality of a score with an interval (1)-(3), and the score up to which prompts may be accepted (4).

    Parameters
    ----------
    alpha : the interval misses the true factuality of at most this share of prompts
    holdout : share of the labelled prompts kept for the residuals of (2); the others fit (1)
    random_state : seed of that split

    Attributes
    ----------
    n_ : labelled prompts; held_out_ : (n_,) mask of those that gave residuals
    half_width_ : q of (2)
    setting_ : `ScoreSetting` of the scores, or None if they came as plain numbers without one
    ids_ : ids of the calibration prompts as text, or None

    Notes
    -----
    About 50 labelled prompts are enough for alpha = 0.1. The labels must not come from the answers that a threshold is
    later judged on: give `ids` to `fit` and to `predict`, and a prompt that occurs in both is refused.

    Examples
    --------
    >>> import numpy as np
    >>> from upheld.isotropy.calibration import TrustCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=200)
    >>> factuality = np.clip(1 - scores + rng.normal(0, 0.1, 200), 0, 1)
    >>> calibrator = TrustCalibrator(random_state=0).fit(scores, factuality)
    >>> expected, lower, upper = calibrator.predict([0.2, 0.8])
    >>> bool(expected[0] > expected[1]), bool((lower <= expected).all()), bool((expected <= upper).all())
    (True, True, True)
    >>> 0 < calibrator.threshold(min_factuality=0.5, risk=0.1) < 1
    True
    """

    def __init__(self, alpha: float = 0.1, *, holdout: float = 0.5, random_state: int | None = None) -> None:
        self.alpha = alpha
        self.holdout = holdout
        self.random_state = random_state

    def fit(
        self,
        scores: ArrayLike | Sequence[Any],
        factuality: ArrayLike,
        ids: Iterable[Identifier] | None = None,
        *,
        setting: ScoreSetting | None = None,
    ) -> TrustCalibrator:
        """Learn from labelled prompts.

        Parameters
        ----------
        scores : (n,) finite scores, high = less trustworthy, or `IsotropyResult`s, which bring their setting
        factuality : (n,) share of true statements of every prompt, in [0, 1]
        ids : (n,) distinct ids of the prompts, to be refused later as evaluation prompts
        setting : of plain numbers

        Raises
        ------
        ValueError
            If lengths differ, a value is not finite or a factuality outside [0, 1], an id occurs twice, the settings of
            the results differ, or there are too few prompts for `alpha`.
        """
        _check_share("alpha", self.alpha)
        _check_share("holdout", self.holdout)
        values, found = _scores_and_setting(scores, setting)
        labels = _checked_factuality(factuality, len(values))
        names = None if ids is None else _checked_ids(ids, len(values))
        if names is not None and len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(
                f"the id {twice!r} occurs more than once among the calibration prompts; give each prompt once"
            )
        held_out = self._split(len(values))
        return self._fit_parts(values, labels, names, found, held_out)

    def _split(self, n: int) -> NDArray[np.bool_]:
        """Mask of the m = ceil(holdout n) prompts that give residuals, at random."""
        m = min(math.ceil(self.holdout * n), n - 1)
        needed = n_needed(self.alpha)
        if m < needed:
            total = max(math.floor((needed - 1) / self.holdout) + 1, needed + 1)
            raise ValueError(
                f"alpha = {self.alpha:g} needs {needed} residuals, but {n} labelled prompts at holdout = {self.holdout:g} "
                f"leave {m}; give at least {total} prompts or take a larger alpha"
            )
        held_out = np.zeros(n, dtype=bool)
        held_out[np.random.default_rng(self.random_state).permutation(n)[:m]] = True
        return held_out

    def _fit_parts(
        self,
        scores: FloatArray,
        factuality: FloatArray,
        ids: list[str] | None,
        setting: ScoreSetting | None,
        held_out: NDArray[np.bool_],
    ) -> TrustCalibrator:
        """Equations (1) and (2) on a split that is given."""
        isotonic = IsotonicRegression(y_min=0.0, y_max=1.0, increasing=False, out_of_bounds="clip")
        isotonic.fit(scores[~held_out], factuality[~held_out])
        residuals = np.abs(factuality[held_out] - isotonic.predict(scores[held_out]))
        self.half_width_ = conformal_quantile(residuals, self.alpha)
        self.isotonic_ = isotonic
        self.scores_, self.factuality_, self.held_out_ = scores, factuality, held_out
        self.ids_, self.setting_, self.n_ = ids, setting, len(scores)
        return self

    def predict(
        self,
        scores: ArrayLike | Sequence[Any],
        ids: Iterable[Identifier] | None = None,
        *,
        setting: ScoreSetting | None = None,
    ) -> FactualityInterval:
        """Expected factuality with its interval (3), cut to [0, 1].

        Raises
        ------
        ValueError
            If an id took part in the calibration, or the scores are of another setting than the calibration's or do not
            say of which.
        """
        check_is_fitted(self)
        values, found = _scores_and_setting(scores, setting)
        self._check_setting(found)
        if ids is not None:
            self._check_disjoint(_checked_ids(ids, len(values)))
        expected = self.isotonic_.predict(values)
        lower, upper = (np.clip(expected + sign * self.half_width_, 0.0, 1.0) for sign in (-1, 1))
        return FactualityInterval(expected, lower, upper)

    def _check_setting(self, found: ScoreSetting | None) -> None:
        if found == self.setting_:
            return
        if found is None:
            raise ValueError(
                f"the calibration is for {self.setting_}; give IsotropyResults, or say setting= of the scores"
            )
        if self.setting_ is None:
            raise ValueError(
                f"the calibration does not say of which setting it is, the scores are of {found}; fit it anew"
            )
        raise ValueError(
            f"the scores are of {found}, the calibration of {self.setting_}; such scores cannot be compared"
        )

    def _check_disjoint(self, names: list[str]) -> None:
        if self.ids_ is None:
            raise ValueError("the calibration has no ids, so that none can be refused; fit it with ids")
        if shared := sorted(set(names) & set(self.ids_)):
            raise ValueError(
                f"{len(shared)} of {len(names)} prompts took part in the calibration, among them {shared[0]!r}; "
                "evaluate on other prompts"
            )

    def threshold(self, *, min_factuality: float, risk: float) -> float:
        """Equation (4): accept prompts with a score up to it, and (5) holds.

        Parameters
        ----------
        min_factuality : a prompt below it is poor
        risk : largest share of all prompts that may be accepted though poor

        Returns
        -------
        The largest such score: the last number before that of the first poor prompt too many; inf where even
        accepting every prompt keeps the risk; -inf, with a warning, where n < 1/risk - 1 calibration prompts cannot
        vouch for so small a risk.
        """
        check_is_fitted(self)
        _check_share("risk", risk)
        if not 0 <= min_factuality <= 1:
            raise ValueError(f"min_factuality must lie in [0, 1], got {min_factuality}")
        tolerated = n_tolerated(risk, self.n_) - 1
        if tolerated < 0:
            warnings.warn(
                f"risk = {risk:g} needs at least {n_needed(risk)} calibration prompts, there are {self.n_}: "
                "no score can be accepted",
                stacklevel=2,
            )
            return -math.inf
        poor = np.sort(self.scores_[self.factuality_ < min_factuality])
        return float(np.nextafter(poor[tolerated], -math.inf)) if len(poor) > tolerated else math.inf

    def save(self, path: str | Path) -> None:
        """Write it as JSON, calibration prompts included, since the threshold is found among them."""
        check_is_fitted(self)
        document = {
            "schema": SCHEMA,
            "alpha": self.alpha,
            "holdout": self.holdout,
            "random_state": None if self.random_state is None else int(self.random_state),
            "setting": None if self.setting_ is None else asdict(self.setting_),
            "ids": self.ids_,
            "scores": self.scores_.tolist(),
            "factuality": self.factuality_.tolist(),
            "held_out": self.held_out_.tolist(),
        }
        with whole_file(Path(path)) as file:
            file.write(json.dumps(document, allow_nan=False, indent=1))

    @classmethod
    def load(cls, path: str | Path) -> TrustCalibrator:
        """Read what `save` wrote.

        Raises
        ------
        ValueError
            If the file is none of these, or of another version.
        """
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
            if document["schema"] != SCHEMA:
                raise ValueError(f"its schema is {document['schema']!r}, not {SCHEMA!r}")
            return cls._from_document(document)
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path} is no saved calibration ({error}); save one with TrustCalibrator.save") from error

    @classmethod
    def _from_document(cls, document: dict[str, Any]) -> TrustCalibrator:
        alpha, holdout = (float(document[name]) for name in ("alpha", "holdout"))
        _check_share("alpha", alpha)
        _check_share("holdout", holdout)
        scores, _ = _scores_and_setting(document["scores"], None)
        factuality = _checked_factuality(document["factuality"], len(scores))
        ids = None if document["ids"] is None else _checked_ids(document["ids"], len(scores))
        setting = None if document["setting"] is None else ScoreSetting(**document["setting"])
        held_out = np.array(document["held_out"])
        if held_out.shape != scores.shape or held_out.dtype != bool or held_out.all():
            raise ValueError("its held_out is no mask of its scores")
        calibrator = cls(alpha, holdout=holdout, random_state=document["random_state"])
        return calibrator._fit_parts(scores, factuality, ids, setting, held_out)


def n_tolerated(level: float, n: int) -> int:
    """Largest k with k/(n + 1) <= `level`, exact where both sides are the same decimal number."""
    return int(np.searchsorted(np.arange(1, n + 2) / (n + 1), level, side="right"))


def n_needed(level: float) -> int:
    """Smallest n with 1/(n + 1) <= `level`: calibration prompts below which `level` cannot be vouched for."""
    n = max(math.ceil(1 / level) - 2, 1)
    while n_tolerated(level, n) < 1:
        n += 1
    return n


def conformal_quantile(residuals: ArrayLike, alpha: float) -> float:
    """Equation (2): the ceil((m + 1)(1 - alpha))-th smallest of m `residuals`.

    Raises
    ------
    ValueError
        If m < 1/alpha - 1.

    Examples
    --------
    >>> conformal_quantile(range(1, 10), alpha=0.1)
    9.0
    """
    ordered = np.sort(np.asarray(residuals, dtype=float))
    misses = n_tolerated(alpha, len(ordered))
    if misses < 1:
        raise ValueError(f"alpha = {alpha:g} needs {n_needed(alpha)} residuals, got {len(ordered)}; label more prompts")
    return float(ordered[len(ordered) - misses])


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value}")


def _scores_and_setting(
    scores: ArrayLike | Sequence[Any], setting: ScoreSetting | None
) -> tuple[FloatArray, ScoreSetting | None]:
    """Plain numbers with the setting that was said, or those of results with their own."""
    items = list(scores) if isinstance(scores, Sequence) else []
    if items and all(hasattr(item, "embedder_id") for item in items):
        own = ScoreSetting.of(items)
        if setting not in (None, own):
            raise ValueError(f"the results are of {own}, not of {setting}; leave setting= out")
        scores, setting = [item.score for item in items], own
    values = np.asarray(scores, dtype=float)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"scores must be a list of at least one number, got an array of shape {values.shape}")
    _check_finite("score", values)
    return values, setting


def _checked_factuality(factuality: ArrayLike, n: int) -> FloatArray:
    labels = np.asarray(factuality, dtype=float)
    if labels.shape != (n,):
        raise ValueError(f"factuality has shape {labels.shape}, but there are {n} scores; give one number a prompt")
    _check_finite("factuality", labels)
    outside = np.flatnonzero((labels < 0) | (labels > 1))
    if len(outside):
        first = outside[0]
        raise ValueError(f"factuality of prompt {first} is {labels[first]:g}; it is a share and lies in [0, 1]")
    return labels


def _check_finite(name: str, values: FloatArray) -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(
            f"{name} of prompt {bad[0]} is {values[bad[0]]} ({len(bad)} in all are not finite); leave it out"
        )


def _checked_ids(ids: Iterable[Identifier], n: int) -> list[str]:
    """As text, so that an id read from JSON or CSV is the same as one that was typed."""
    names = [str(one) for one in ids]
    if len(names) != n:
        raise ValueError(f"there are {len(names)} ids for {n} scores; give one a prompt")
    return names
