"""Rows in: the doors that a row passes before it reaches its arm, whatever is kept of it.

Rows are checked (`upheld.effects.rows`), one by one or in batches; those without an outcome wait for it; the first `warmup` ones are
buffered to fix coordinates and features; then each goes on, in order.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Real
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from upheld.effects import rows as door
from upheld.effects.allocation import keep_freed_memory
from upheld.effects.encoding import Encoding
from upheld.effects.estimate import ESTIMANDS, LEAST_ROWS
from upheld.effects.features import FeatureMap, draw_features
from upheld.effects.pending import Pending, WaitingRow
from upheld.effects.rows import NO_ID, Covariates, FloatArray, Label, Rows, joined
from upheld.effects.threads import on_one_thread
from upheld.effects.weights import CONSTRAINTS, LOSSES

BUFFER = 64  # rows that learn_one gathers


class Intake(BaseEstimator):  # type: ignore[misc]
    """Checks, the warm-up, late outcomes and deletion; subclasses insert rows into blocks."""

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

    # What subclasses decide

    def _insert(self, rows: Rows) -> None:
        """Take in rows after the warm-up."""
        raise NotImplementedError

    def _delete_from_block(self, ident: int) -> bool:
        """Whether a row after the warm-up could be taken back."""
        raise NotImplementedError

    def _begin_blocks(self) -> None:
        """Set up what follows the intake."""
        raise NotImplementedError

    def _open_block(self) -> None:
        """Begin the first block, now that the features are fixed."""
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

    @property
    def n_arm_(self) -> dict[Label, int]:
        """Rows seen of each arm."""
        self._begin()
        return dict(sorted(self._seen.items(), key=lambda item: (isinstance(item[0], str), item[0])))

    # State

    def _begin(self) -> None:
        if hasattr(self, "n_seen_"):
            return
        self._check_parameters()
        keep_freed_memory()
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
        self._begin_blocks()

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

    # The doors

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

    @on_one_thread
    def _take(self, rows: Rows) -> None:
        if not len(rows):
            return
        labels = set(rows.treatment)
        self._check_labels(labels)
        self._like = rows.covariates.names, rows.covariates.categorical
        self.n_seen_ += len(rows)
        for label in sorted(labels):
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
            warnings.warn(f"constant in the first {n} rows and dropped: {names}", stacklevel=5)
        coordinates = self.encoding_.transform(rows.covariates[:n], count=False)
        kernel_in_time = self.time == "kernel"
        self.feature_map_ = draw_features(
            coordinates, self.n_features, np.random.default_rng([self._seed, 0]), kernel=self.kernel,
            linear=self.linear_features, bandwidth=self.bandwidth,
            time_start=float(rows.time[0]) if kernel_in_time else None,
            time_scale=float(self.time_scale) if kernel_in_time and self.time_scale else None,
        )  # fmt: skip
        self._open_block()
        self._insert(rows)

    def _delete_from_warmup(self, ident: int) -> bool:
        for number, part in enumerate(self._warm):
            found = np.flatnonzero(part.ident == ident)
            if len(found):
                self._uncount(part.treatment[found[0]])
                self._warm[number] = part[np.delete(np.arange(len(part)), found[0])]
                return True
        return False

    def _uncount(self, label: Label) -> None:
        self._seen[label] -= 1
        self.n_seen_ -= 1


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
