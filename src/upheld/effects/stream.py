"""Blocks and estimates: what all balancers here have in common, whatever they keep of an arm.

Rows that have passed the intake are encoded and go to their arm in the open block. An estimate pools closed blocks and the open one.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pandas as pd

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
from upheld.effects.estimate import ESTIMANDS, LEAST_ROWS, Contrast, EffectEstimate, Recipe
from upheld.effects.intake import Intake
from upheld.effects.rows import FloatArray, Label, Rows
from upheld.effects.sensitivity import Bounds, Sensitivity
from upheld.effects.sequence import fixed_factor, sequence_factor
from upheld.effects.threads import on_one_thread

CHUNK = 2048  # rows whose features are held at once
RECENT_BLOCKS = 4
MANY_BLOCKS = 8  # from here on the interval is narrower than what a block may leave of bias
MOST_LEFT_OUT = 0.1  # share of rows without an effect above which there is none for the whole


class EffectStream(Intake):
    """Rows to blocks to estimates; subclasses say what is kept of an arm."""

    _block: Block

    def _new_arm(self) -> Arm:
        raise NotImplementedError

    # Estimates out

    @on_one_thread
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

    @on_one_thread
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

    @on_one_thread
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

    @on_one_thread
    def sensitivity(self) -> tuple[Sensitivity, ...]:
        """How strong a confounder that was not measured would have to be to change each arm's effect over the rows so far.

        Raises
        ------
        ValueError
            Before the warm-up is complete.
        """
        estimate = self.estimate()
        if self.feature_map_ is None:
            raise ValueError(f"the first {self.warmup} rows are not complete ({self.n_seen_} so far); give more rows")
        bounds = self._bounds
        if self._block.n:
            bounds = bounds.plus(self._block, self._open_estimate(self.estimand), self._reference(), self.augment)
        return tuple(bounds.sensitivity(contrast) for contrast in estimate.contrasts)

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
        held += sum(gap.nbytes for _, gap in self._models.values()) + self._bounds.nbytes
        return held + sum(array.nbytes for array in (*self._balance.before.values(), *self._balance.after.values()))

    # From rows to blocks

    def _begin_blocks(self) -> None:
        self._closed: list[ClosedBlock] = []
        self._profile: Profile | None = None
        self._cusum: dict[Label, Cusum] = {}
        self._balance = Balance()
        self._bounds = Bounds()
        self._models: dict[Label, tuple[float, FloatArray]] = {}

    def _open_block(self) -> None:
        self._block = self._new_block()

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
        self._bounds = self._bounds.plus(block, estimate, reference, self.augment)
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

    def _delete_from_block(self, ident: int) -> bool:
        if self.feature_map_ is None:
            return False
        label = self._block.remove(ident)
        if label is None:
            return False
        self._uncount(label)
        return True

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
        notes += _long(parts)
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


def _long(parts: list[ClosedBlock]) -> list[str]:
    """What the interval of many blocks does not say; measured in `StreamingBalancer`."""
    if len(parts) < MANY_BLOCKS:
        return []
    variances = [variance for one in parts for variance in one.variance.values() if np.isfinite(variance)]
    typical = float(np.sqrt(np.mean(variances))) if variances else np.nan
    return [
        f"the interval has no term for the bias that balancing within a block leaves, which does not average out over {len(parts)} of "
        f"them: in trials it was half a block's standard error, which is {typical / 2:.2g} here"
    ]


def _reason(parts: list[ClosedBlock], label: Label) -> str:
    """Why most of the rows without an effect have none."""
    reasons = [one.reason.get(label, "overlap") for one in parts if one.reason.get(label, "overlap")]
    return max(dict.fromkeys(reasons), key=reasons.count) if reasons else "overlap"
