"""A stream of rows into blocks and estimates: what all balancers here have in common, whatever they keep of an arm.

Rows pass four doors: they are checked (`upheld.effects.rows`), the first `warmup` ones are buffered to fix the coordinates and the
features, then each is encoded, and goes to its arm in the open block. An estimate pools closed blocks and the open one.
"""

from __future__ import annotations

import copy
import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from upheld.effects import rows as door
from upheld.effects.balance import Balance
from upheld.effects.blocks import (
    LEAST_ARM_ROWS,
    MOST_ROWS,
    Arm,
    Block,
    BlockEstimate,
    ClosedBlock,
    block_table,
    estimate_block,
    pooled,
    population_sample,
    thinned,
)
from upheld.effects.drift import ALARM_P, Cusum, Profile, profile, shift_p_values
from upheld.effects.encoding import Encoding
from upheld.effects.estimate import ESTIMANDS, LEAST_ROWS, Contrast, EffectEstimate, Recipe
from upheld.effects.features import FeatureMap, draw_features
from upheld.effects.pending import Pending, WaitingRow
from upheld.effects.rows import NO_ID, Covariates, FloatArray, Label, Rows, joined
from upheld.effects.sequence import fixed_factor, sequence_factor
from upheld.effects.weights import CONSTRAINTS, LOSSES

CHUNK = 2048  # rows whose features are held at once
BUFFER = 64  # rows that learn_one gathers
RECENT_BLOCKS = 4
MOST_LEFT_OUT = 0.1  # share of rows without an effect above which there is none for the whole


class EffectStream(BaseEstimator):  # type: ignore[misc]
    """Base of `StreamingBalancer`, `ExactMomentBalancer` and `ReservoirBalancer`; subclasses say what is kept of an arm."""

    n_features: int
    kernel: Any
    linear_features: bool
    bandwidth: float | str
    loss: str
    constraints: str
    lam: float | str
    augment: bool
    time: str | None
    time_scale: float | None
    block_size: int | str | None
    half_life: float | None
    warmup: int
    estimand: str
    inference: str
    ci: str
    alpha: float
    tightest_at: float
    pending_limit: int
    pending_timeout: float | None
    random_state: int | None

    feature_map_: FeatureMap | None
    encoding_: Encoding | None
    n_seen_: int
    _like: Any
    _dated: bool | None
    _block: Block

    # What a subclass decides

    def _new_arm(self) -> Arm:
        raise NotImplementedError

    def _check_own_parameters(self) -> None:
        """Refuse parameters that only the subclass has."""

    # Rows in

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        treatment: ArrayLike,
        timestamps: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> Self:
        """Take in rows, in the order of the stream.

        Parameters
        ----------
        X : (n, d) covariates; a DataFrame may hold categorical columns (words, categories), matched by name
        y : (n,) outcomes
        treatment : (n,) arms: whole numbers, truth values or words, at most 20
        timestamps : (n,) numbers or dates; without them a row's time is its number
        sample_weight : (n,) whole numbers of copies
        ids : (n,) names of rows, by which `delete` finds them

        Raises
        ------
        ValueError
            Naming column and row of what cannot be used (`BadRowError` for a missing or infinite value); nothing is taken in then.
        """
        self._begin()
        self._flush()
        X = X if isinstance(X, pd.DataFrame) else np.asarray(X)
        quick = door.numbers_of(X, self._like[0]) if self._numeric_frame(X) else None
        covariates = quick or door.checked_covariates(X, self._like)
        n = len(covariates)
        treatments = door.checked_treatment(treatment, n)
        outcome = door.checked_outcome(y, n)
        time = self._times(timestamps, n)
        ident = np.full(n, NO_ID, dtype=np.int64)
        if ids is not None:
            ident[:] = [door.hashed(one) for one in np.asarray(ids, dtype=object)]
        taken = Rows(covariates, treatments, outcome, time, ident)
        if sample_weight is not None:
            taken = taken[np.repeat(np.arange(n), door.checked_repeats(sample_weight, n))]
            if not self._dated:
                taken.time[:] = self._arrived + np.arange(len(taken))
        self._take(taken)
        self._dated = timestamps is not None
        self._arrived += len(taken)
        return self

    def fit(self, X: Any, y: ArrayLike, *, treatment: ArrayLike, **rows: Any) -> Self:
        """Forget everything, then one pass over the rows; arguments as in `partial_fit`."""
        self._forget()
        return self.partial_fit(X, y, treatment=treatment, **rows)

    def learn_many(self, X: pd.DataFrame, treatment: ArrayLike, y: ArrayLike) -> None:
        """Take in a batch, by River's convention."""
        self.partial_fit(X, y, treatment=treatment)

    def learn_one(
        self,
        x: Mapping[str, float | str],
        treatment: Any,
        y: float | None,
        *,
        id: int | str | None = None,
        timestamp: float | str | pd.Timestamp | None = None,
    ) -> None:
        """Take in one row, by River's convention; rows go on in batches of 64, and before an estimate.

        x : value by column. With ``y=None`` the row waits, under its `id`, for `outcome`.
        """
        self._begin()
        values, self._like = door.checked_values(x, self._like)
        label = treatment if type(treatment) is int else door.checked_treatment([treatment], 1)[0]
        if self._dated is not None and self._dated != (timestamp is not None):
            raise ValueError(self._mixed_times())
        if timestamp is None and self._period is not None:
            raise ValueError(f"block_size={self.block_size!r} is a time; pass timestamp=")
        if not isinstance(id, int | str | None):
            raise TypeError(f"an id must be a whole number or a word, got {type(id).__name__}")
        time = float(self._arrived) if timestamp is None else float(door.checked_time([timestamp], 1)[0])
        self._dated = timestamp is not None
        self._arrived += 1
        row = WaitingRow(values, label, time)
        if y is None:
            if id is None:
                raise ValueError("a row without an outcome needs an id, so that its outcome finds it; pass id=")
            self._pending.wait(id, row)
        else:
            self._gather(row, y, id)

    def outcome(self, id: int | str, y: float) -> None:
        """The outcome of a row that was learnt without it; the row counts from now on, at the time at which it came.

        Raises
        ------
        KeyError
            If no row of that id is waiting: unknown, timed out, or lost to newer rows when the table was full.
        """
        self._begin()
        self._gather(self._pending.take(id), y, id)

    def delete(self, id: int | str) -> None:
        """Take a row back, as if it had never come, while it is still stored by itself.

        Raises
        ------
        KeyError
            If it is not: never seen, merged with others, or in a closed block.
        """
        self._begin()
        self._flush()
        ident = door.hashed(id)
        if self._pending.rows.pop(id, None) is not None:
            return
        if not self._delete_from_warmup(ident) and not self._delete_from_block(ident):
            raise KeyError(
                f"the row with id {id!r} is not stored by itself: it was never seen, or others were merged with it since, or its "
                "block is closed; what is left of it is its share of sums"
            )

    @property
    def pending_(self) -> dict[str, int]:
        """Rows waiting for their outcome, and rows lost to the time-out or to newer ones."""
        self._begin()
        lost = self._pending
        return {"waiting": len(lost.rows), "expired": lost.expired, "crowded_out": lost.crowded_out}

    # Estimates out

    def estimate(self, estimand: str | None = None, since: float | str | pd.Timestamp | None = None) -> EffectEstimate:
        """The average effect over the rows so far, with its interval.

        Parameters
        ----------
        estimand : "ate", "att", "atc" or "recent"; default as constructed. Closed blocks have only the constructed one. "recent" fades
            with `half_life` where there is one, otherwise it is the effect over the last four blocks
        since : leave out blocks that began before that time

        Raises
        ------
        ValueError
            For an unknown estimand, one that closed blocks do not have, or `since` without blocks.
        """
        self._begin()
        self._flush()
        wanted = self._wanted(estimand, since)
        if self.feature_map_ is None:
            return self._provisional(wanted)
        reference = self._reference()
        parts = list(self._closed)
        if self._block.n:
            parts.append(ClosedBlock.of(self._block, self._open_estimate(wanted), reference))
        if since is not None:
            start = float(door.checked_time([since], 1)[0])
            parts = [part for part in parts if part.start >= start]
        if wanted == "recent" and self.half_life is None and self.block_size is not None:
            parts = parts[-RECENT_BLOCKS:]
        return self._pooled(parts, wanted, reference)

    def effect(self, X: Any) -> FloatArray:
        """Effect at given covariates by the outcome models, theta_1 . phi - theta_0 . phi: (n,), or (n, A - 1) with A > 2 arms.

        Raises
        ------
        ValueError
            If no block could be estimated yet.
        """
        self._begin()
        self._flush()
        if self.feature_map_ is None or self.encoding_ is None:
            raise ValueError(f"the first {self.warmup} rows are not complete ({self.n_seen_} so far); give more rows")
        found = self._open_estimate(self.estimand).models() or self._models
        if not found:
            raise ValueError("no arm has an outcome model yet; give more rows of each arm")
        coordinates = self.encoding_.transform(door.checked_covariates(X, self._like), count=False)
        phi = self.feature_map_(coordinates, np.full(len(coordinates), self._block.now))
        effects = np.column_stack([gap_0 + phi @ gap for gap_0, gap in found.values()])
        return effects[:, 0] if effects.shape[1] == 1 else effects

    def balance_table(self) -> pd.DataFrame:
        """Standardised mean differences of each covariate before and after weighting, mean over blocks, by rows."""
        self._begin()
        self._flush()
        if self.feature_map_ is None or self.encoding_ is None:
            return Balance().table([], 0)
        reference = self._reference()
        balance = self._balance
        if self._block.n:
            balance = balance.plus(self._block, self._open_estimate(self.estimand), reference)
        return balance.table(self.encoding_.columns, reference)

    @property
    def blocks_(self) -> pd.DataFrame:
        """Closed blocks: rows, effect, standard error, and p-values of no shift since the block before."""
        self._begin()
        return block_table(self._closed)

    @property
    def memory_bytes_(self) -> int:
        """Bytes of all arrays held: arms, sums, features, closed blocks, and rows that wait."""
        self._begin()
        held = sum(part.outcome.nbytes * (3 + len(part.covariates.names)) for part in self._warm)
        held += 8 * (len(self._buffer) + len(self._pending.rows)) * (3 + len(self._like[0] if self._like else ()))
        if self.feature_map_ is None:
            return held
        held += self.feature_map_.frequencies.nbytes + self._block.nbytes + sum(one.nbytes for one in self._closed)
        held += self._profile.nbytes if self._profile is not None else 0
        held += sum(gap.nbytes for _, gap in self._models.values())
        return held + sum(array.nbytes for array in (*self._balance.before.values(), *self._balance.after.values()))

    @property
    def n_arm_(self) -> dict[Label, int]:
        """Rows seen of each arm."""
        self._begin()
        return dict(sorted(self._seen.items(), key=lambda item: (isinstance(item[0], str), item[0])))

    # Merging

    def merge(self, other: Self) -> Self:
        """Both streams as one, in a new object; also ``a | b``. Neither is changed.

        Counts, sums and the target mean are those of one pass over both; what the coresets hold is equal in distribution.

        Raises
        ------
        ValueError
            If the features or the parameters differ; make workers with `spawn`.
        """
        for side in (self, other):
            side._begin()
            side._flush()
        self._check_mergeable(other)
        first, second = (other, self) if self.feature_map_ is None and other.feature_map_ is not None else (self, other)
        answer = copy.deepcopy(first)
        if second.feature_map_ is None:
            for part in second._warm:
                answer._take(part)
            answer._arrived += second._arrived
            answer._pending.merge(second._pending)
            return answer
        answer._join(second)
        return answer

    def __or__(self, other: Self) -> Self:
        return self.merge(other)

    def spawn(self, n: int) -> list[Self]:
        """n empty balancers with this one's features and randomness of their own: workers on parts of a stream.

        Raises
        ------
        ValueError
            Before the warm-up is complete.
        """
        self._begin()
        self._flush()
        if self.feature_map_ is None or self.encoding_ is None:
            raise ValueError(
                f"the features are fixed after {self.warmup} rows, and {self.n_seen_} have come; give more rows first"
            )
        workers = []
        for number in range(n):
            worker = copy.copy(self)
            worker._forget()
            worker._begin()
            worker._like, worker._dated, worker._seed = self._like, self._dated, self._seed
            worker.encoding_ = replace(self.encoding_, n_other={}, n_moved={})
            worker.feature_map_ = self.feature_map_
            worker._rng = np.random.default_rng([self._seed, 2, self._n_spawned + number])
            worker._block = worker._new_block()
            workers.append(worker)
        self._n_spawned += n
        return workers

    # State

    def _begin(self) -> None:
        if hasattr(self, "n_seen_"):
            return
        self._check_parameters()
        self.feature_map_ = None
        self.encoding_ = None
        self.n_seen_ = 0
        self._arrived = 0  # rows that came, with or without an outcome
        self._seed = int(np.random.SeedSequence().entropy) if self.random_state is None else int(self.random_state)  # type: ignore[arg-type]
        self._rng = np.random.default_rng([self._seed, 1])
        self._n_spawned = 0
        self._like = None
        self._dated = None
        self._warm: list[Rows] = []
        self._buffer: list[tuple[WaitingRow, float, int]] = []
        self._pending = Pending(self.pending_limit, self.pending_timeout)
        self._seen: dict[Label, int] = {}
        self._arms: set[Label] = set()  # those that have reached a block
        self._closed: list[ClosedBlock] = []
        self._profile: Profile | None = None
        self._cusum: dict[Label, Cusum] = {}
        self._balance = Balance()
        self._models: dict[Label, tuple[float, FloatArray]] = {}

    def _forget(self) -> None:
        for name in set(vars(self)) - set(self.get_params()):
            delattr(self, name)

    def _check_parameters(self) -> None:
        choices = {
            "loss": LOSSES, "constraints": CONSTRAINTS, "estimand": ESTIMANDS, "inference": ("sample", "population"),
            "ci": ("fixed", "sequence"), "time": (None, "kernel"),
        }  # fmt: skip
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is unknown; take one of {', '.join(map(repr, allowed))}"
                )
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha must lie strictly between 0 and 1, got {self.alpha}")
        if self.lam != "gcv" and not (isinstance(self.lam, Real) and self.lam > 0):
            raise ValueError(f"lam must be positive or 'gcv', got {self.lam!r}")
        if self.time == "kernel" and not (self.time_scale and self.time_scale > 0):
            raise ValueError("time='kernel' needs time_scale, the length of the stream or of a block, known in advance")
        if self.half_life is not None and not self.half_life > 0:
            raise ValueError(f"half_life must be positive, got {self.half_life}")
        if self.warmup < LEAST_ROWS:
            raise ValueError(
                f"warmup must be at least {LEAST_ROWS} rows to fix scales and bandwidth, got {self.warmup}"
            )
        if isinstance(self.block_size, int) and self.block_size < 2 * LEAST_ROWS:
            raise ValueError(f"block_size must be at least {2 * LEAST_ROWS} rows, got {self.block_size}")
        self._period = _period(self.block_size)
        self._check_own_parameters()

    def _numeric_frame(self, X: Any) -> bool:
        return isinstance(X, np.ndarray) and X.dtype == np.float64 and self._like is not None and not any(self._like[1])

    def _times(self, timestamps: Any, n: int) -> FloatArray:
        if self._dated is not None and self._dated != (timestamps is not None):
            raise ValueError(self._mixed_times())
        if timestamps is not None:
            return door.checked_time(timestamps, n)
        if self._period is not None:
            raise ValueError(f"block_size={self.block_size!r} is a time; pass timestamps")
        return self._arrived + np.arange(n, dtype=float)

    def _mixed_times(self) -> str:
        return (
            "earlier rows had timestamps and these have none; pass timestamps for all rows"
            if self._dated
            else "earlier rows had no timestamps and these have; pass them for all rows or for none"
        )

    def _gather(self, row: WaitingRow, y: float, id: int | str | None) -> None:
        number = door.checked_number(float(y), "the outcome")
        self._buffer.append((row, number, NO_ID if id is None else door.hashed(id)))
        if len(self._buffer) >= BUFFER:
            self._flush()

    def _flush(self) -> None:
        """Rows gathered one by one go on as a batch."""
        if not self._buffer:
            return
        buffer, self._buffer = self._buffer, []
        names, categorical = self._like
        words = np.array(categorical, dtype=bool)
        values = [row.values for row, _, _ in buffer]
        if words.any():
            table = np.array(values, dtype=object)
            covariates = Covariates(names, categorical, table[:, ~words].astype(float), table[:, words])
        else:
            covariates = Covariates(
                names, categorical, np.array(values, dtype=float), np.empty((len(buffer), 0), dtype=object)
            )
        treatment = np.empty(len(buffer), dtype=object)
        treatment[:] = [row.treatment for row, _, _ in buffer]
        self._take(
            Rows(
                covariates, treatment, np.array([y for _, y, _ in buffer]), np.array([row.time for row, _, _ in buffer]),
                np.array([ident for _, _, ident in buffer], dtype=np.int64),
            )
        )  # fmt: skip

    # From rows to blocks

    def _take(self, rows: Rows) -> None:
        if not len(rows):
            return
        labels = set(rows.treatment)
        self._check_labels(labels)
        self._like = rows.covariates.names, rows.covariates.categorical
        self.n_seen_ += len(rows)
        for label in labels:
            self._seen[label] = self._seen.get(label, 0) + int(np.sum(rows.treatment == label))
        if self.feature_map_ is not None:
            self._insert(rows)
            return
        self._warm.append(rows)
        if sum(map(len, self._warm)) >= self.warmup:
            self._fix_features(self.warmup)

    def _check_labels(self, labels: set[Label]) -> None:
        both = labels | self._seen.keys()
        door.check_arm_count(len(both))
        if len({isinstance(label, str) for label in both}) > 1:
            raise ValueError("the treatment holds words and numbers as arms; code it one way")

    def _fix_features(self, n: int) -> None:
        """Fix coordinates and features on the first n rows, then let all buffered ones through."""
        rows, self._warm = joined(self._warm), []
        self.encoding_ = Encoding.fit(rows.covariates[:n])
        if self.encoding_.constant:
            names = ", ".join(self.encoding_.constant)
            warnings.warn(f"constant in the first {n} rows and dropped: {names}", stacklevel=4)
        coordinates = self.encoding_.transform(rows.covariates[:n], count=False)
        kernel_in_time = self.time == "kernel"
        self.feature_map_ = draw_features(
            coordinates, self.n_features, np.random.default_rng([self._seed, 0]), kernel=self.kernel,
            linear=self.linear_features, bandwidth=self.bandwidth,
            time_start=float(rows.time[0]) if kernel_in_time else None,
            time_scale=float(self.time_scale) if kernel_in_time and self.time_scale else None,
        )  # fmt: skip
        self._block = self._new_block()
        self._insert(rows)

    def _new_block(self) -> Block:
        assert self.feature_map_ is not None
        population = population_sample(self.feature_map_.n_coordinates) if self.inference == "population" else None
        return Block(self.feature_map_, self._new_arm, self._gamma, population)

    @property
    def _gamma(self) -> float:
        """Discount of a row within a block in a unit of time; blocks fade as wholes."""
        return 1.0 if self.half_life is None or self.block_size is not None else 2.0 ** (-1 / self.half_life)

    def _insert(self, rows: Rows) -> None:
        assert self.encoding_ is not None
        X = self.encoding_.transform(rows.covariates)
        at = 0
        while at < len(rows):
            ahead = rows[at : at + CHUNK]
            take, closes = self._until_close(ahead)
            part = slice(at, at + take)
            if take:
                self._block.add(
                    X[part], rows.treatment[part], rows.outcome[part], rows.time[part], rows.ident[part], self._rng
                )
                self._arms |= set(rows.treatment[part])
            if closes:
                self._close()
            at += take

    def _until_close(self, rows: Rows) -> tuple[int, bool]:
        """How many of the rows still go into the open block, and whether it closes then; the same whatever the batches."""
        if self.block_size is None:
            return len(rows), False
        n = self._block.n + np.arange(1, len(rows) + 1)
        enough = n >= (self.block_size if isinstance(self.block_size, int) else 1)
        for label in self._arms | set(rows.treatment):
            came = np.cumsum(rows.treatment == label)
            held = self._block.arms[label].sums.n if label in self._block.arms else 0
            enough &= (held + came >= LEAST_ARM_ROWS) | ((came == 0) & (label not in self._arms))
        if self._period:  # closes before the first row of another period
            latest = np.maximum.accumulate(np.append(self._block.now if self._block.n else rows.time[0], rows.time))
            other = np.diff(np.floor(latest / self._period)) > 0
            before = np.append(self._block.n and self._ripe(), enough[:-1])
            closing = np.flatnonzero((other & before) | (n > MOST_ROWS))
            return (int(closing[0]), True) if len(closing) else (len(rows), False)
        closing = np.flatnonzero(enough | (n >= MOST_ROWS))
        return (int(closing[0]) + 1, True) if len(closing) else (len(rows), False)

    def _ripe(self) -> bool:
        return self._block.least_rows(list(self._arms)) >= LEAST_ARM_ROWS

    def _close(self) -> None:
        """Leave the block's effect and diagnostics, and begin the next."""
        block, reference = self._block, self._reference()
        estimate = self._open_estimate(self.estimand)
        closed = ClosedBlock.of(block, estimate, reference)
        self._watch(block, estimate, closed)
        self._balance = self._balance.plus(block, estimate, reference)
        self._models = estimate.models() or self._models
        self._closed = thinned([*self._closed, closed])
        self._block = self._new_block()

    def _watch(self, block: Block, estimate: BlockEstimate, closed: ClosedBlock) -> None:
        """Shift alarms: covariates and assignment against the block before, effects against all before."""
        now = profile(
            {label: one.second_moment() for label, one in estimate.evidence.items()},
            {label: (arm.sums.n, arm.sums.phi) for label, arm in block.arms.items()},
        )
        if self._profile is not None:
            closed.p_covariates, closed.p_assignment = shift_p_values(self._profile, now)
        self._profile = now
        for label, one in estimate.contrasts.items():
            watch = self._cusum.setdefault(label, Cusum())
            if not one.reason and watch.step(one.tau, one.variance, one.weight):
                closed.moved.append(label)

    # From blocks to an estimate

    def _recipe(self) -> Recipe:
        return Recipe(self.loss, self.constraints, self.lam, self.augment)

    def _reference(self) -> Label:
        """The lowest arm seen."""
        return min(self._seen, key=lambda label: (isinstance(label, str), label))

    def _open_estimate(self, estimand: str) -> BlockEstimate:
        return estimate_block(self._block, self._reference(), estimand, self._recipe())

    def _wanted(self, estimand: str | None, since: Any) -> str:
        wanted = self.estimand if estimand is None else estimand
        if wanted not in ESTIMANDS:
            raise ValueError(f"unknown estimand {wanted!r}; take one of {', '.join(ESTIMANDS)}")
        same = {wanted, self.estimand} <= {"ate", "recent"} or wanted == self.estimand
        if self._closed and not same:
            raise ValueError(
                f"closed blocks hold the {self.estimand.upper()} alone; construct with estimand={wanted!r}, or block_size=None"
            )
        if self.block_size is None and since is not None:
            raise ValueError("since= needs blocks, and block_size is None; take estimand='recent' with half_life")
        if self.block_size is None and wanted == "recent" and self.half_life is None:
            raise ValueError("estimand='recent' without blocks needs half_life; pass it, or a block_size")
        return wanted

    def _provisional(self, wanted: str) -> EffectEstimate:
        """Before the warm-up is complete: by a map fitted to the rows so far, without a trace."""
        if self.n_seen_ < 2 * LEAST_ROWS or len(self._seen) < 2:
            return self._nothing(wanted)
        trial = copy.deepcopy(self)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what is constant so far need not stay so
            trial._fix_features(self.n_seen_)
        return trial.estimate(wanted)

    def _nothing(self, wanted: str) -> EffectEstimate:
        reason = "fewer than two arms seen" if len(self._seen) < 2 else "overlap"
        labels = list(self.n_arm_)
        arms = labels[1:] or ["none"]
        reference = labels[0] if labels else "none"
        contrasts = tuple(Contrast(label, reference, np.nan, np.nan, np.nan, np.nan, reason) for label in arms)
        return EffectEstimate(
            wanted, contrasts, {}, {}, {}, np.nan, self.n_seen_, self.n_arm_, self.memory_bytes_, 1 - self.alpha
        )

    def _pooled(self, parts: list[ClosedBlock], wanted: str, reference: Label) -> EffectEstimate:
        """Closed blocks and the open one as one estimate."""
        labels = [label for label in self.n_arm_ if label != reference]
        if not labels or not parts:
            return self._nothing(wanted)
        notes = self._notes(parts)
        contrasts, allowance = [], 0.0
        for label in labels:
            found = pooled(parts, label, self._fading(wanted))
            reason = "" if found.covered >= 1 - MOST_LEFT_OUT else _reason(parts, label)
            if not reason and found.covered < 1:
                notes.append(
                    f"{sum(one.n for one in parts) - found.n} rows are left out of the effect of arm {label!r}: "
                    f"{_reason(parts, label)} in their block"
                )
            tau, se = (np.nan, np.nan) if reason else (found.tau, float(np.sqrt(found.variance)))
            half = se * self._width(found.n)
            contrasts.append(Contrast(label, reference, tau, se, tau - half, tau + half, reason))
            allowance = np.nan if reason else max(allowance, found.allowance)
        return EffectEstimate(
            wanted, tuple(contrasts), *self._diagnostics(parts), allowance, sum(one.n for one in parts),
            self.n_arm_, self.memory_bytes_, 1 - self.alpha, tuple(notes),
        )  # fmt: skip

    def _width(self, n: int) -> float:
        return fixed_factor(self.alpha) if self.ci == "fixed" else sequence_factor(n, self.alpha, self.tightest_at)

    def _fading(self, wanted: str) -> Any:
        """Weight of a block by its age, for a half-life over blocks."""
        if wanted != "recent" or self.half_life is None or self.block_size is None:
            return lambda one: 1.0
        now, half_life = self._block.now if self._block.n else self._closed[-1].end, self.half_life
        return lambda one: 2.0 ** (-(now - (one.start + one.end) / 2) / half_life)

    def _diagnostics(
        self, parts: list[ClosedBlock]
    ) -> tuple[dict[Label, float], dict[Label, float], dict[Label, float]]:
        """mu, effective rows and imbalance of each arm over blocks."""
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.joined(part)
        order = [label for label in self.n_arm_ if label in whole.mean]
        return tuple({label: getattr(whole, name)[label] for label in order} for name in ("mean", "ess", "imbalance"))  # type: ignore[return-value]

    def _notes(self, parts: list[ClosedBlock]) -> list[str]:
        assert self.encoding_ is not None
        notes = [
            f"column {name!r}: {count} rows had a level unknown in the warm-up, counted as other"
            for name, count in self.encoding_.n_other.items()
        ]
        notes += [
            f"column {name!r} was constant in the warm-up and left out, but differs in {count} later rows"
            for name, count in self.encoding_.n_moved.items()
        ]
        lost = self._pending.expired + self._pending.crowded_out
        notes += [f"{lost} rows were lost waiting for their outcomes"] if lost else []
        last = parts[-1] if not self._closed else self._closed[-1]
        if last.p_covariates < ALARM_P:
            notes.append(f"the covariates moved between the last two blocks (p = {last.p_covariates:.1e})")
        if last.p_assignment < ALARM_P:
            notes.append(f"covariates or assignment moved between the last two blocks (p = {last.p_assignment:.1e})")
        notes += [f"the effect of arm {label!r} has moved" for label in last.moved]
        notes += [
            f"the last block was closed at {last.n} rows with {count} of arm {label!r}: that arm has become rare"
            for label, count in last.n_arm.items()
            if self._closed and self.block_size is not None and last.n >= MOST_ROWS and count < LEAST_ARM_ROWS
        ]
        return notes

    # Deletion and merging

    def _delete_from_warmup(self, ident: int) -> bool:
        for number, part in enumerate(self._warm):
            found = np.flatnonzero(part.ident == ident)
            if len(found):
                self._uncount(part.treatment[found[0]])
                self._warm[number] = part[np.delete(np.arange(len(part)), found[0])]
                return True
        return False

    def _delete_from_block(self, ident: int) -> bool:
        if self.feature_map_ is None:
            return False
        label = self._block.remove(ident)
        if label is None:
            return False
        self._uncount(label)
        return True

    def _uncount(self, label: Label) -> None:
        self._seen[label] -= 1
        self.n_seen_ -= 1

    def _check_mergeable(self, other: Self) -> None:
        if type(self) is not type(other):
            raise TypeError(f"a {type(self).__name__} cannot be merged with a {type(other).__name__}")
        mine, theirs = self.get_params(), other.get_params()
        differing = [name for name in mine if name not in ("random_state", "kernel") and mine[name] != theirs[name]]
        if differing:
            name = differing[0]
            raise ValueError(
                f"the sketches differ in {name} ({mine[name]!r} and {theirs[name]!r}); merge sketches of the same parameters"
            )
        if (
            self.feature_map_ is not None
            and other.feature_map_ is not None
            and self.fingerprint() != other.fingerprint()
        ):
            raise ValueError(
                "the sketches balance different features (seed, bandwidth or scaling differ); make workers of one stream with "
                "spawn() after the warm-up"
            )

    def fingerprint(self) -> str:
        """Equal for sketches that can be merged: of coordinates and features, once they are fixed."""
        if self.feature_map_ is None or self.encoding_ is None:
            raise ValueError("there is no fingerprint before the warm-up is complete; give more rows")
        state = self.encoding_.state()
        for name in ("n_other", "n_moved"):
            state.pop(name)
        text = json.dumps(state, sort_keys=True)
        return hashlib.sha256(text.encode() + self.feature_map_.digest()).hexdigest()

    def _join(self, other: Self) -> None:
        assert self.encoding_ is not None
        assert other.encoding_ is not None
        self._check_labels(set(other._seen))
        for label, count in other._seen.items():
            self._seen[label] = self._seen.get(label, 0) + count
        self.n_seen_ += other.n_seen_
        self._arrived += other._arrived
        self._arms |= other._arms
        self.encoding_.merge_counts(other.encoding_)
        self._pending.merge(other._pending)
        theirs = copy.deepcopy(other)
        for side in (self, theirs):  # blocks of different times stay apart where they can be estimated
            if self.block_size is not None and self._block.n and theirs._block.n and side._ripe():
                side._close()
        self._models = self._models or theirs._models
        self._closed = thinned(sorted([*self._closed, *theirs._closed], key=lambda one: one.start))
        self._balance = self._balance.merge(theirs._balance)
        self._block.merge(theirs._block, self._rng)
        if isinstance(self.block_size, int) and self._block.n >= self.block_size and self._ripe():
            self._close()


def _reason(parts: list[ClosedBlock], label: Label) -> str:
    """Why most of the rows without an effect have none."""
    reasons = [one.reason.get(label, "overlap") for one in parts if one.reason.get(label, "overlap")]
    return max(set(reasons), key=reasons.count) if reasons else "overlap"


def _period(block_size: int | str | None) -> float | None:
    """Seconds of a block given as a time, None for one in rows."""
    if not isinstance(block_size, str):
        return None
    try:
        seconds = pd.Timedelta(block_size).total_seconds()
    except ValueError as error:
        raise ValueError(
            f"block_size={block_size!r} is neither a number of rows nor a time such as '1d' or '6h'"
        ) from error
    if not seconds > 0:
        raise ValueError(f"block_size={block_size!r} is no length of time; take one such as '1d'")
    return float(seconds)
