"""The streaming balancer: exact feature means, and a coreset of each arm's rows, balanced on demand."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd

from upheld.effects import sketch
from upheld.effects.arms import CoresetArm
from upheld.effects.coreset import LEAST_CAPACITY, Policy
from upheld.effects.estimate import Sample
from upheld.effects.halving import PAIRINGS, SIGNINGS
from upheld.effects.merging import MergeableStream
from upheld.effects.threads import on_one_thread

MOST_CAPACITY = 1_000_000  # memory is set aside for all that an arm may hold
OUTCOMES = ("pooled", "subset", "subset-xy")


class StreamingBalancer(MergeableStream):
    """Average treatment effects of an endless stream of observational rows, in bounded memory.

    Parameters
    ----------
    coreset_size : k; an arm holds at most 4k + 64 items. Below about 200, pooling leaves a bias of 0.1 to 0.3 standard deviations
    n_features : D, random features of the kernel, even; 0 balances the covariates' means alone
    kernel : "gaussian", "laplace", "matern32", or a fitted transformer of the coordinates
    linear_features : whether the covariates themselves are balanced too
    bandwidth : of the kernel in standardised units, or "median" of the warm-up's distances
    loss, constraints : of the weights, see `upheld.effects.weights`
    lam : noise variance over the squared norm of the outcome function, or "gcv"
    augment : whether the imbalance that is left is corrected by a ridge regression of the outcomes
    outcomes : "pooled" averages residuals when rows are merged; "subset" keeps the survivors' outcomes (the paper's compression);
        "subset-xy" makes the halving look at outcomes too
    pairing : "nearest", "projection" (a quarter faster) or "random"; signing : "greedy" or "walk" with `walk_constant`
    ridge : penalty of the outcome model whose residuals are pooled, or "gcv"
    time : "kernel" balances the time of a row as a covariate; `time_scale` is the length of the stream, or of a block
    block_size : rows of a block, a length of time such as "1d", or None for one coreset pair over the whole stream
    half_life : of rows in units of time, for ``estimate("recent")``; where outcomes drift, with blocks or a time kernel, since one
        coreset over all times pools residuals of an outcome model that has no time
    warmup : rows on which scales and bandwidth are fixed
    estimand : "ate", "att", "atc" (the target is the treated or the reference arm), "recent"
    inference : "sample", the effect over the rows seen, or "population", with the spread of the effect over rows
    cross_fit : outcome models from the other half of the rows, at twice the memory
    ci : "fixed" for one look, "sequence" for looking as often as one likes, tightest at `tightest_at` rows
    alpha : the interval misses with this probability
    pending_limit, pending_timeout : rows that wait for their outcomes at most, and how long (None: for ever)
    random_state : seed

    Attributes
    ----------
    n_seen_, n_arm_ : rows seen, in all and by arm; feature_map_, encoding_ : fixed by the warm-up, None before
    memory_bytes_ : bytes held; blocks_ : table of closed blocks; discrepancy_sq_ : by arm, sum of the squared displacements of feature
    sums through compression in the open block; pending_ : rows waiting for outcomes

    Notes
    -----
    Effects are causal under assumptions no data can show: `upheld.effects.estimate.ASSUMPTIONS`. Source: *Streaming Covariate
    Balancing via Discrepancy-Based Feature Coresets* (ICML 2026), of which only the abstract is public: this is a reconstruction.
    Residual pooling, blocks, the time kernel and confidence sequences are ours; `as_described` goes without them.

    Intervals count chance, not bias: regularised weights, a finite class and pooled residuals leave some in every block, of one sign, which
    does not average out. Measured over 97 blocks of 2,048 rows (`DriftStream` none, smooth, of no claim's seeds): +0.059 +- 0.009 beside a
    block's standard error of 0.077 with 10 covariates, -0.033 +- 0.007 beside 0.069 with 6. 95 % intervals held the effect over one block
    in 80 and 93 % of cases, over four in 67 and 83 %, over all 97 in none. Without compression (k = 1,024) it is +0.036 and -0.012; exact
    moments leave -0.011 and -0.060; lam=0.01 with ridge=0.1 +0.006 and -0.038: no fixed choice removes it everywhere. So no effect is
    known better than to half a block's standard error, however long the stream; from eight blocks on a warning says so. Longer blocks want
    larger coresets: 16,384 rows leave +0.084 and -0.050 at k = 256, +0.013 and -0.030 at k = 1,024.

    Examples
    --------
    >>> from upheld.effects import StreamingBalancer
    >>> from upheld.effects.data import DriftStream
    >>> stream = DriftStream(6000, 6, "assignment", seed=0)
    >>> naive = stream.y[stream.w == 1].mean() - stream.y[stream.w == 0].mean()
    >>> balancer = StreamingBalancer(random_state=0)
    >>> for at in range(0, 6000, 500):
    ...     rows = slice(at, at + 500)
    ...     _ = balancer.partial_fit(stream.X[rows], stream.y[rows], treatment=stream.w[rows])
    >>> estimate = balancer.estimate()
    >>> abs(naive - stream.effect) > 0.5, abs(estimate.ate - stream.effect) < 0.1
    (True, True)
    """

    def __init__(
        self,
        coreset_size: int = 256,
        n_features: int = 256,
        kernel: Any = "gaussian",
        linear_features: bool = True,
        bandwidth: float | str = "median",
        loss: str = "entropy",
        constraints: str = "simplex",
        lam: float | str = 0.1,
        augment: bool = True,
        outcomes: str = "pooled",
        pairing: str = "nearest",
        signing: str = "greedy",
        walk_constant: float = 1.0,
        ridge: float | str = 0.3,
        time: str | None = None,
        time_scale: float | None = None,
        block_size: int | str | None = 2048,
        half_life: float | None = None,
        warmup: int = 500,
        estimand: str = "ate",
        inference: str = "sample",
        cross_fit: bool = False,
        ci: str = "fixed",
        alpha: float = 0.05,
        tightest_at: float = 10_000,
        pending_limit: int = 10_000,
        pending_timeout: float | None = None,
        random_state: int | None = None,
    ) -> None:
        self.coreset_size = coreset_size
        self.n_features = n_features
        self.kernel = kernel
        self.linear_features = linear_features
        self.bandwidth = bandwidth
        self.loss = loss
        self.constraints = constraints
        self.lam = lam
        self.augment = augment
        self.outcomes = outcomes
        self.pairing = pairing
        self.signing = signing
        self.walk_constant = walk_constant
        self.ridge = ridge
        self.time = time
        self.time_scale = time_scale
        self.block_size = block_size
        self.half_life = half_life
        self.warmup = warmup
        self.estimand = estimand
        self.inference = inference
        self.cross_fit = cross_fit
        self.ci = ci
        self.alpha = alpha
        self.tightest_at = tightest_at
        self.pending_limit = pending_limit
        self.pending_timeout = pending_timeout
        self.random_state = random_state

    @classmethod
    def as_described(cls, **parameters: Any) -> Self:
        """The plain reading of the paper's abstract: one coreset pair, outcomes of survivors, direct weights, no outcome model."""
        described: dict[str, Any] = {
            "block_size": None, "outcomes": "subset", "augment": False, "loss": "quadratic", "constraints": "simplex",
        }  # fmt: skip
        return cls(**(described | parameters))

    def _check_own_parameters(self) -> None:
        for name, allowed in (("outcomes", OUTCOMES), ("pairing", PAIRINGS), ("signing", SIGNINGS)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r} is unknown; take one of {', '.join(allowed)}")
        if not isinstance(self.coreset_size, Integral):
            raise TypeError(f"coreset_size must be a whole number, got {self.coreset_size!r}")
        if self.coreset_size < LEAST_CAPACITY:
            raise ValueError(f"coreset_size must be at least {LEAST_CAPACITY}, got {self.coreset_size}")
        if self.coreset_size > MOST_CAPACITY:
            raise ValueError(f"coreset_size must be at most {MOST_CAPACITY:,}, got {self.coreset_size:,}")

    def _new_arm(self) -> CoresetArm:
        assert self.feature_map_ is not None
        policy = Policy(
            self.coreset_size, self.outcomes, self.pairing, self.signing, self.walk_constant, self.time == "kernel"
        )
        return CoresetArm(self.feature_map_, policy, self.ridge, 1 + self.cross_fit, self._gamma)

    @property
    def discrepancy_sq_(self) -> dict[Any, float]:
        """Sum of |u|^2 4^level over the compactions of each arm in the open block."""
        self._begin()
        self._flush()
        return (
            {} if self.feature_map_ is None else {label: arm.discrepancy_sq for label, arm in self._arms_held().items()}
        )

    @property
    def n_items_(self) -> dict[Any, int]:
        """Items held of each arm in the open block, at most 4k + 64 (twice that with cross-fitting)."""
        self._begin()
        self._flush()
        return {} if self.feature_map_ is None else {label: arm.n_items for label, arm in self._arms_held().items()}

    @on_one_thread
    def coreset(self) -> pd.DataFrame:
        """The open block as a small weighted table for any batch tool: covariates, arm, outcome, multiplicity, weight.

        Weights are those of the present estimate, summing to one in each arm; NaN where there is none.
        """
        self._begin()
        self._flush()
        if self.feature_map_ is None or self.encoding_ is None:
            raise ValueError(f"the first {self.warmup} rows are not complete ({self.n_seen_} so far); give more rows")
        estimate = self._open_estimate(self.estimand)
        weights = {}
        for label, one in estimate.contrasts.items():
            weights[label], weights[self._reference()] = one.treated.weights, one.base.weights
        parts = []
        for label in self._block.labels:
            sample = estimate.evidence[label]
            assert isinstance(sample, Sample)
            table = self.encoding_.inverse(sample.X)
            weight = weights.get(label, np.empty(0))
            table["arm"], table["outcome"], table["multiplicity"] = label, sample.y, sample.mass
            table["weight"] = weight if len(weight) else np.nan
            parts.append(table)
        return pd.concat(parts, ignore_index=True)

    def to_bytes(self) -> bytes:
        """The whole state, to go on from later or elsewhere: an npz archive with a JSON header, without pickle.

        Raises
        ------
        TypeError
            If the kernel is a transformer, whose state cannot be written without pickle.
        """
        self._begin()
        self._flush()
        return sketch.write(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote.

        Raises
        ------
        ValueError
            If the data are damaged, not a sketch, or of a newer version.
        """
        return sketch.read(cls, data)

    def _arms_held(self) -> dict[Any, CoresetArm]:
        return {label: arm for label in self._block.labels if isinstance(arm := self._block.arms[label], CoresetArm)}
