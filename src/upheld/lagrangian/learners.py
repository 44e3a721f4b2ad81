"""Multipliers learned from past instances: averaged stochastic gradient ascent, empirical risk minimisation, warm starts.

All learners find one vector pi for every future instance of the distribution, and give it back by `predict`; whatever it is,
u(pi, P) is a valid bound. Le, Nguyen & Nguyen (2026):

**Averaged SGA** (their algorithm 1). pi_1 = 0; for t = 1 .. N, with x_t the minimiser of the subproblem at pi_t for P_t::

    g_t = b_t - A_t x_t,      pi_{t+1} = clip(pi_t + eta g_t, 0, pi_max),      pi_bar = (1/N) sum_{t=1}^{N} pi_t
    eta = pi_max / (2 B sqrt(N)),     E excess <= 2 B pi_max s / sqrt(N)

The iterates averaged are those *before* the update, pi_1 included.

**ERM**: maximise (1/N) sum_i u(pi, P_i) over Pi, here by the level bundle with one cut a pass (with a cut an instance its quadratic
programs take minutes where there are 48 rows).

**Warm start**: phi = (1/N) sum_i pi*(P_i), pi* the maximiser of least norm: a start near the optimum of a new instance, not
itself a good bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from upheld.lagrangian.ascent import Box, Budget, Search, box_of, mean_evaluator
from upheld.lagrangian.benders import benders
from upheld.lagrangian.bernstein import SecondMoment
from upheld.lagrangian.bounds import erm_bound, lipschitz, observed_sga_bound, sga_bound, sga_step, warm_start_bound
from upheld.lagrangian.bundle import CutModel, level_bundle
from upheld.lagrangian.column_generation import dantzig_wolfe
from upheld.lagrangian.minimum_norm import minimum_norm_maximiser
from upheld.lagrangian.oracles import Instance, check_alike, inside

TIMES_LP = 2.0  # pi_max, in largest LP multipliers of the past
ADAGRAD = 0.1  # first step of a row, in pi_max
FIRST_DISTANCE = 1e-2  # of DoG, relative to pi_max sqrt(s)
NOTHING = 1e-300  # divides gradients that were 0 so far; no root of a square that is not 0 is as small


class MultiplierLearner(BaseEstimator):  # type: ignore[misc]
    """What all learners of one vector share.

    Attributes
    ----------
    multipliers_ : (s,) the learned vector
    row_names_ : the coupling rows it belongs to
    B_, pi_max_ : the constants of the theory, over the instances seen
    bound_ : the theorem's bound after `n_seen_` instances (NaN where an option takes the learner out of its reach)
    n_seen_ : instances seen
    """

    pi_max: float | None

    def fit(self, instances: Iterable[Instance], y: Any = None) -> Self:
        """Forget everything, then learn from the list, in its order.

        Raises
        ------
        ValueError
            If the list is empty, or the coupling rows of two instances differ (they are named).
        """
        past = list(instances)
        check_alike(past)
        self._reset()
        for instance in past:
            self._learn(instance)
        return self

    def partial_fit(self, instance: Instance) -> Self:
        """Learn from one more instance."""
        if not hasattr(self, "n_seen_"):
            self._reset()
        if self.n_seen_ > 0:
            check_alike([self._first, instance])
        self._learn(instance)
        return self

    def _learn(self, instance: Instance) -> None:
        """From an instance that is known to have the first one's rows."""
        if self.n_seen_ == 0:
            self.row_names_, self._first = list(instance.row_names), instance
        self._see(instance)
        self.n_seen_ += 1

    def predict(self, instance: Instance) -> np.ndarray:
        """(s,) multipliers for `instance`; its coupling rows must be those learned from."""
        self._check_fitted()
        check_alike([self._first, instance])
        return np.array(self.multipliers_)

    def score(self, instances: Iterable[Instance], y: Any = None) -> float:
        """Mean of u at the predictions (as minimisations): the average certified bound."""
        values = [one.oracle(self.predict(one)).u for one in instances]
        if not values:
            raise ValueError("there is no instance to score on; give at least one")
        return float(np.mean(values))

    def _reset(self) -> None:
        self.n_seen_, self.B_, self._lp_max = 0, 0.0, 0.0

    def _see(self, instance: Instance) -> None:
        raise NotImplementedError

    def _check_fitted(self) -> None:
        if not getattr(self, "n_seen_", 0):
            raise NotFittedError(f"{type(self).__name__} has seen no instance; call fit or partial_fit first")

    def _constants(self, instance: Instance) -> np.ndarray:
        """Brings B_ and pi_max_ up to date with `instance`; its LP multipliers, where they were computed, else zeros."""
        self.B_ = max(self.B_, instance.B)
        if self.pi_max is not None:
            self.pi_max_ = float(self.pi_max)
            return np.zeros(instance.n_rows)
        duals = instance.linear_model().lp_relaxation()[1]
        self._lp_max = max(self._lp_max, float(np.abs(duals).max(initial=0.0)))
        self.pi_max_ = TIMES_LP * self._lp_max if self._lp_max > 0 else 1.0
        return duals


class SGAMultipliers(MultiplierLearner):
    """Averaged stochastic gradient ascent on the dual: one oracle call an instance, O(s) memory.

    Parameters
    ----------
    pi_max : end of Pi; None takes twice the largest LP multiplier of the instances seen so far
    init : ``"lp-dual"`` (the first instance's), ``"zero"``, or an array
    step : ``"adagrad"`` (a step a row, by the gradients seen), ``"dog"`` (Ivgi, Hinder & Carmon 2023: no parameter), or
        ``"theory"`` (the paper's constant step)
    average : ``"tail"`` (the last half to three quarters of the iterates) or ``"uniform"`` (all of them)
    epochs : passes over the list in `fit`; more than one is not covered by the theorem
    horizon, B : for ``step="theory"``: the number of instances to come and the bound on rows. `fit` takes both from its list;
        a stream needs them, and `pi_max`, beforehand
    scale : factor on the step

    The paper's algorithm is ``SGAMultipliers(init="zero", step="theory", average="uniform")``; the defaults are better in
    practice, and `bound_` is NaN for them.

    Examples
    --------
    >>> from upheld.lagrangian.families import HardFamily
    >>> past = [HardFamily([c]) for c in (0.75, 0.25, 0.75, 0.25)]
    >>> paper = SGAMultipliers(pi_max=1.0, init="zero", step="theory", average="uniform").fit(past)
    >>> float(paper.multipliers_[0]), paper.bound_                  # iterates 0, .125, .25, .375
    (0.1875, 1.0)
    """

    def __init__(
        self,
        *,
        pi_max: float | None = None,
        init: str | ArrayLike = "lp-dual",
        step: str = "adagrad",
        average: str = "tail",
        epochs: int = 1,
        horizon: int | None = None,
        B: float | None = None,
        scale: float = 1.0,
        n_jobs: int = 1,
    ) -> None:
        self.pi_max, self.init, self.step, self.average = pi_max, init, step, average
        self.epochs, self.horizon, self.B, self.scale, self.n_jobs = epochs, horizon, B, scale, n_jobs

    def fit(self, instances: Iterable[Instance], y: Any = None) -> Self:
        past = list(instances)
        check_alike(past)
        self._reset()
        if self.step == "theory":
            self._from_list(past)
        for _ in range(self.epochs):
            for instance in past:
                self._learn(instance)
        return self

    _box: Box
    _pi: np.ndarray
    _sum: np.ndarray
    _count: int
    _tail: TailAverage
    _moment: SecondMoment

    @property
    def multipliers_(self) -> np.ndarray:
        """The average of the iterates."""
        self._check_fitted()
        return np.asarray(self._sum / self._count) if self.average == "uniform" else self._tail.mean()

    @property
    def bound_(self) -> float:
        """2 B pi_max s / sqrt(N), where the theorem holds, else NaN."""
        self._check_fitted()
        published = self.step == "theory" and self.average == "uniform" and self.epochs == 1 and self.scale == 1
        if not published or (isinstance(self.init, str) and self.init != "zero") or self.n_seen_ != self._horizon:
            return float("nan")
        if not isinstance(self.init, str) and np.any(self.init):
            return float("nan")
        return sga_bound(len(self.row_names_), self.n_seen_, self.B_, self.pi_max_)

    def observed_length(self, delta: float = 0.05) -> float:
        """G: root mean square of the supergradients, bounded from those seen with probability 1 - delta (empirical Bernstein).

        For `sample_size`, and for ``B=G / (2 sqrt(s))``, with which the theory's step is the best for such supergradients.
        """
        self._check_fitted()
        return self._moment.root(lipschitz(len(self.row_names_), self.B_), delta)

    def observed_bound(self, delta: float = 0.05) -> float:
        """`bound_` with the supergradients' observed length in place of the longest; with probability 1 - delta over these.

        NaN where the theorem does not hold.
        """
        if np.isnan(self.bound_):
            return float("nan")
        s = len(self.row_names_)
        return observed_sga_bound(s, self.n_seen_, self.pi_max_, self._eta, self.observed_length(delta))

    def _reset(self) -> None:
        super()._reset()
        if self.step not in ("theory", "adagrad", "dog"):
            raise ValueError(f'step must be "theory", "adagrad" or "dog", got {self.step!r}')
        if self.average not in ("uniform", "tail"):
            raise ValueError(f'average must be "uniform" or "tail", got {self.average!r}')
        if isinstance(self.init, str) and self.init not in ("zero", "lp-dual"):
            raise ValueError(f'init must be "zero", "lp-dual" or an array, got {self.init!r}')
        if self.epochs < 1:
            raise ValueError(f"epochs must be at least 1, got {self.epochs}")
        self._horizon, self._fixed_B, self._fixed_end = self.horizon, self.B, self.pi_max

    def _from_list(self, past: Sequence[Instance]) -> None:
        """What the theory's step must know beforehand."""
        self._horizon = self._horizon or len(past) * self.epochs
        if self._fixed_B is None:
            self._fixed_B = max(one.B for one in past)
        if self._fixed_end is None:
            duals = [one.linear_model().lp_relaxation()[1] for one in past]
            self._fixed_end = TIMES_LP * float(np.abs(duals).max()) or 1.0

    def _see(self, instance: Instance) -> None:
        first = self.n_seen_ == 0
        if first or self.step != "theory":  # the theory's constants are known beforehand
            duals = self._learned_constants(instance)
            if first or self.pi_max_ != self._box.high[0]:
                self._box = box_of(instance, self.pi_max_)
        if first:
            self._begin(self._box.clip(self._start(instance, duals)))
        pi = self._pi
        if self.average == "uniform":
            self._sum += pi  # before the update: the average starts with pi_1
            self._count += 1
        else:
            self._tail.add(pi)
        g = instance.oracle(pi, n_jobs=self.n_jobs).g
        self._moment.add(float(g @ g))
        along = self._step_along(g)
        self._pi = self._box.clip(pi + (along if self.scale == 1 else self.scale * along))

    def _begin(self, pi: np.ndarray) -> None:
        """At pi_1, having seen nothing."""
        self._pi, self._origin, self._farthest = pi, pi.copy(), 0.0
        self._squares, self._moment = np.zeros(pi.size), SecondMoment()
        self._sum, self._count, self._tail = np.zeros(pi.size), 0, TailAverage(pi.size)
        self._eta = sga_step(int(self._horizon or 1), self.B_, self.pi_max_) if self.step == "theory" else np.nan

    def _learned_constants(self, instance: Instance) -> np.ndarray:
        if self.step != "theory":
            return self._constants(instance)
        lacking = [
            name
            for name, value in (("horizon", self._horizon), ("B", self._fixed_B), ("pi_max", self._fixed_end))
            if value is None
        ]
        if lacking:
            raise ValueError(
                f'step="theory" must know {" and ".join(lacking)} before the first instance of a stream; give '
                f'{"them" if len(lacking) > 1 else "it"}, or take step="adagrad"'
            )
        self.B_, self.pi_max_ = float(self._fixed_B or 0.0), float(self._fixed_end or 0.0)
        wanted = self.n_seen_ == 0 and isinstance(self.init, str) and self.init == "lp-dual"
        return instance.linear_model().lp_relaxation()[1] if wanted else np.zeros(instance.n_rows)

    def _start(self, instance: Instance, duals: np.ndarray) -> np.ndarray:
        if not isinstance(self.init, str):
            return inside(self.init, instance)
        if self.init == "zero":
            return np.zeros(instance.n_rows)
        return duals if duals.any() else instance.linear_model().lp_relaxation()[1]

    def _step_along(self, g: np.ndarray) -> np.ndarray:
        if self.step == "theory":
            return self._eta * g
        self._squares += g * g
        if self.step == "adagrad":
            seen = np.maximum(np.sqrt(self._squares), NOTHING)
            return np.asarray(ADAGRAD * self.pi_max_ * g / seen)
        self._farthest = max(self._farthest, float(np.linalg.norm(self._pi - self._origin)))
        travelled = max(self._farthest, FIRST_DISTANCE * self.pi_max_ * np.sqrt(g.size))
        return np.asarray(travelled * g / np.sqrt(max(float(self._squares.sum()), NOTHING)))


class TailAverage:
    """Mean of the iterates from the last power of two at most half their number on, in O(s) memory.

    Examples
    --------
    >>> tail = TailAverage(1)
    >>> for t in range(1, 9):
    ...     tail.add(np.array([float(t)]))
    >>> tail.mean().tolist()                        # of 5, 6, 7, 8
    [6.5]
    """

    def __init__(self, s: int) -> None:
        self._seen, self._next = 0, 1
        self._blocks = [np.zeros(s), np.zeros(s)]  # sums over the last full block and the one being filled
        self._counts = [0, 0]

    def add(self, pi: np.ndarray) -> None:
        if self._counts[1] == self._next:  # the block is full
            self._blocks, self._counts = [self._blocks[1], np.zeros(pi.size)], [self._counts[1], 0]
            self._next = self._seen
        self._blocks[1] += pi
        self._counts[1] += 1
        self._seen += 1

    def mean(self) -> np.ndarray:
        if self._counts[1] == self._next:
            return np.asarray(self._blocks[1] / self._counts[1])
        return np.asarray((self._blocks[0] + self._blocks[1]) / sum(self._counts))


class ERMMultipliers(MultiplierLearner):
    """Maximises the mean dual of all instances seen; keeps them.

    Parameters
    ----------
    pi_max : end of Pi; None takes twice the largest LP multiplier of the instances seen
    passes : most evaluations of all instances
    tolerance : relative gap at which the bundle stops
    n_jobs : threads that share the instances; the result does not depend on it

    Attributes
    ----------
    value_ : mean u over the past at `multipliers_`
    upper_ : proven upper bound on the largest mean

    Examples
    --------
    >>> from upheld.lagrangian.families import HardFamily
    >>> ERMMultipliers(pi_max=1.0).fit([HardFamily([c]) for c in (0.75, 0.75, 0.25)]).multipliers_.round(4).tolist()
    [0.75]
    """

    def __init__(
        self, *, pi_max: float | None = None, passes: int = 500, tolerance: float = 1e-6, n_jobs: int = 1
    ) -> None:
        self.pi_max, self.passes, self.tolerance, self.n_jobs = pi_max, passes, tolerance, n_jobs

    @property
    def multipliers_(self) -> np.ndarray:
        return self._solution()[0]

    @property
    def value_(self) -> float:
        return self._solution()[1]

    @property
    def upper_(self) -> float:
        return self._solution()[2]

    @property
    def bound_(self) -> float:
        """109.42 B pi_max s^1.5 / sqrt(N)."""
        self._check_fitted()
        free = bool(self._first.equality.any())
        return erm_bound(len(self.row_names_), self.n_seen_, self.B_, self.pi_max_, equations=free)

    def _reset(self) -> None:
        super()._reset()
        self._past: list[Instance] = []
        self._solved: tuple[np.ndarray, float, float] | None = None

    def _see(self, instance: Instance) -> None:
        self._constants(instance)
        self._past.append(instance)
        self._solved = None

    def _solution(self) -> tuple[np.ndarray, float, float]:
        """Solved when asked for, so that a stream costs no more than the list."""
        self._check_fitted()
        if self._solved is None:
            box = box_of(self._first, self.pi_max_)
            search = Search(mean_evaluator(self._past, self.n_jobs), Budget(calls=self.passes))
            found = level_bundle(search, box.clip(np.zeros(self._first.n_rows)), CutModel(box), self.tolerance)
            self._solved = (found.pi, found.u, found.upper)
        return self._solved


class WarmStartMultipliers(MultiplierLearner):
    """The mean of the past optima pi*(P_i).

    Parameters
    ----------
    pi_max : end of Pi; None takes twice the largest LP multiplier of the instances seen so far
    target : ``"min-norm"``, the maximiser of least norm; ``"dantzig-wolfe"``, the master problem's duals, one of the maximisers;
        ``"benders"``, those of the cut of Benders' solution (on models with two stages); or ``"lp-dual"``, the LP multipliers:
        cheaper, and near them
    calls : most oracle calls an instance for ``"min-norm"``: as many for u*, and again for the least norm

    Attributes
    ----------
    targets_ : (n_seen_, s) pi*(P_i)

    Examples
    --------
    >>> from upheld.lagrangian.families import HardFamily
    >>> WarmStartMultipliers(pi_max=1.0).fit([HardFamily([0.25]), HardFamily([0.75])]).multipliers_.round(4).tolist()
    [0.5]
    """

    def __init__(
        self, *, pi_max: float | None = None, target: str = "min-norm", calls: int = 500, n_jobs: int = 1
    ) -> None:
        self.pi_max, self.target, self.calls, self.n_jobs = pi_max, target, calls, n_jobs

    @property
    def targets_(self) -> np.ndarray:
        self._check_fitted()
        return np.array(self._targets)

    @property
    def multipliers_(self) -> np.ndarray:
        return np.asarray(self.targets_.mean(axis=0))

    @property
    def bound_(self) -> float:
        """s pi_max^2 / (4 N), on the squared distance to E pi*(P)."""
        self._check_fitted()
        free = bool(self._first.equality.any())
        return warm_start_bound(len(self.row_names_), self.n_seen_, self.pi_max_, equations=free)

    def _reset(self) -> None:
        super()._reset()
        if self.target not in ("min-norm", "dantzig-wolfe", "benders", "lp-dual"):
            raise ValueError(f'target must be "min-norm", "dantzig-wolfe", "benders" or "lp-dual", got {self.target!r}')
        self._targets: list[np.ndarray] = []

    def _see(self, instance: Instance) -> None:
        duals = self._constants(instance)
        box = box_of(instance, self.pi_max_)
        if self.target == "lp-dual":
            duals = duals if self.pi_max is None else instance.linear_model().lp_relaxation()[1]
            self._targets.append(box.clip(duals))
            return
        if self.target == "benders":
            self._targets.append(box.clip(benders(instance.linear_model()).pi))
            return
        if self.target == "dantzig-wolfe":
            found = dantzig_wolfe(instance, None, Budget(calls=self.calls), pi_max=self.pi_max_, n_jobs=self.n_jobs)
            self._targets.append(found.pi)
            return
        self._targets.append(minimum_norm_maximiser(instance, box, Budget(calls=self.calls), self.n_jobs).pi)
