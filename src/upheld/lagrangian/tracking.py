"""Multipliers that follow a world that drifts: many step sizes at once, weighted by how they would have done (dynamic regret).

Averaged SGA learns one vector for a fixed distribution; when prices or demands move for good, its average lags behind. Here K + 1
copies of projected ascent run with steps that double, and their average by exponential weights is what is played (the improved
"Ader" of Zhang, Lu & Zhou 2018). All share the one supergradient g_t of the instance at the point played, pi_t::

    pi_t = sum_k w_t^k pi_t^k,                         w_t^k ~ w_1^k exp(alpha sum_{r<t} g_r (pi_r^k - pi_r))          (1)
    pi_{t+1}^k = clip(pi_t^k + eta_k g_t),             eta_k = 2^(k - 8) D / (L sqrt(T)),                             (2)
                                                       k = 0 .. K = 8 + ceil(log2(1 + 2 T) / 2)
    alpha = sqrt(2 / T) / (L D),                       w_1^k ~ 1 / ((k + 1) (k + 2))                                  (3)

Against every sequence of comparators in Pi, so also the instances' own optima, with P = sum_t ||pi*_t - pi*_{t-1}||::

    sum_t u(pi*_t, P_t) - u(pi_t, P_t)  <=  3/2 L sqrt(T (D^2 + 2 D P)) + L D sqrt(T / 2) (1 + ln((K + 1)(K + 2)))    (4)

Nothing is assumed about how instances come about. (4) follows from D^2 / (2 eta) + D P / eta + eta T L^2 / 2 for one step eta, of
which some eta_k is at least half the best, and from Hoeffding's lemma for the weights. The eight smallest steps are ours: block
solutions jump, and where little moves they serve best; they cost a logarithm. All copies start at the LP's multipliers, or at 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from upheld.lagrangian.ascent import box_of
from upheld.lagrangian.bounds import SMALLER, dynamic_regret_bound, experts, lipschitz
from upheld.lagrangian.learners import MultiplierLearner
from upheld.lagrangian.oracles import Instance, check_alike, inside


class TrackingMultipliers(MultiplierLearner):
    """Online multipliers under drift: `predict` gives the point for the next instance, which no average of old ones holds back.

    Parameters
    ----------
    pi_max : end of Pi; None takes twice the largest LP multiplier of the first instance (of all of them in `fit`)
    horizon : T, the number of instances to come; `fit` takes it from its list, a stream must give it
    length : ``"seen"`` takes for L the longest supergradient so far, and for 2 L D in (3) the widest spread so far between
        the copies' gains in one instance, which is what pays in practice; ``"theory"`` takes
        2 B sqrt(s), for which (4) is proved
    init : ``"lp-dual"`` (the first instance's), ``"zero"``, or an array
    n_jobs : threads that share the blocks

    Attributes
    ----------
    bound_ : (4) for comparators that never move, over the instances seen; NaN with ``length="seen"``. `regret_bound` for others
    weights_ : (K + 1,) of the steps, from the smallest

    Examples
    --------
    Costs that rise: the last ones seen were high, and so is the multiplier, where the average of all is in the middle.

    >>> from upheld.lagrangian.families import HardFamily
    >>> past = [HardFamily([c]) for c in np.linspace(0.2, 0.8, 400)]
    >>> tracked = TrackingMultipliers(pi_max=1.0).fit(past)
    >>> bool(abs(tracked.multipliers_[0] - 0.8) < 0.1)
    True
    """

    def __init__(
        self,
        *,
        pi_max: float | None = None,
        horizon: int | None = None,
        length: str = "seen",
        init: str | ArrayLike = "lp-dual",
        n_jobs: int = 1,
    ) -> None:
        self.pi_max, self.horizon, self.length, self.init, self.n_jobs = pi_max, horizon, length, init, n_jobs

    _pi: np.ndarray
    _gain: np.ndarray
    _longest: float
    _widest: float
    _horizon: int | None

    def fit(self, instances: Iterable[Instance], y: Any = None) -> Self:
        past = list(instances)
        check_alike(past)
        self._reset()
        self._horizon = self.horizon or len(past)
        for instance in past:
            self._constants(instance)
        for instance in past:
            self._learn(instance)
        return self

    @property
    def multipliers_(self) -> np.ndarray:
        self._check_fitted()
        return np.asarray(self.weights_ @ self._pi)

    @property
    def weights_(self) -> np.ndarray:
        exponent = self._log_prior + self._alpha * self._gain
        weights = np.exp(exponent - exponent.max())
        return np.asarray(weights / weights.sum())

    @property
    def bound_(self) -> float:
        return self.regret_bound(0.0)

    def regret_bound(self, path: float) -> float:
        """(4) for comparators that move by `path` in all, over the horizon; NaN with ``length="seen"``."""
        self._check_fitted()
        if self.length != "theory":
            return float("nan")
        return dynamic_regret_bound(
            len(self.row_names_), int(self._horizon or 0), self.B_, self.pi_max_, path, equations=self._free
        )

    def _reset(self) -> None:
        super()._reset()
        if self.length not in ("seen", "theory"):
            raise ValueError(f'length must be "seen" or "theory", got {self.length!r}')
        if isinstance(self.init, str) and self.init not in ("zero", "lp-dual"):
            raise ValueError(f'init must be "zero", "lp-dual" or an array, got {self.init!r}')
        if self.horizon is not None and self.horizon < 1:
            raise ValueError(f"horizon must be at least 1, got {self.horizon}")
        self._horizon = self.horizon

    def _see(self, instance: Instance) -> None:
        if self.n_seen_ == 0:
            self._begin(instance)
        elif instance.B > self.B_ and self.length == "theory":
            raise ValueError(
                f'this instance has B = {instance.B:g}, the first had {self.B_:g}; with length="theory" it must be known '
                'beforehand: fit a list, or take length="seen"'
            )
        weights = self.weights_
        played = weights @ self._pi
        g = instance.oracle(played, n_jobs=self.n_jobs).g
        gains, T = (self._pi - played) @ g, int(self._horizon or 1)
        self._gain += gains
        self._longest = max(self._longest, float(np.linalg.norm(g)))
        self._widest = max(self._widest, float(np.ptp(gains)))
        if self._widest > 0:
            self._alpha = np.sqrt(8 / T) / self._widest
        if self._longest > 0:
            steps = self._doublings * self._diameter / (self._longest * np.sqrt(T))
            self._pi = self._box.clip(self._pi + steps[:, None] * g)

    def _begin(self, instance: Instance) -> None:
        """All copies at 0, (2) and (3)."""
        if self._horizon is None:
            raise ValueError("a stream must say how many instances will come; give horizon, or fit a list")
        if self.B_ == 0.0:
            self._constants(instance)
        s, self._free = instance.n_rows, bool(instance.equality.any())
        self._box = box_of(instance, self.pi_max_)
        self._diameter = float(np.linalg.norm(self._box.high - self._box.low))
        k = np.arange(experts(self._horizon))
        self._doublings = 2.0 ** (k - SMALLER)
        self._log_prior = -np.log((k + 1) * (k + 2))
        self._gain, self._pi, self._alpha = np.zeros(k.size), np.tile(self._start(instance), (k.size, 1)), 0.0
        self._longest = lipschitz(s, self.B_) if self.length == "theory" else 0.0
        self._widest = 2 * self._longest * self._diameter

    def _start(self, instance: Instance) -> np.ndarray:
        if not isinstance(self.init, str):
            return self._box.clip(inside(self.init, instance))
        if self.init == "zero":
            return np.zeros(instance.n_rows)
        return self._box.clip(instance.linear_model().lp_relaxation()[1])
