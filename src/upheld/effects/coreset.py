"""A few hundred rows that stand for an arm: a hierarchy of compactors of bounded size (section 3).

An item is (x, y, q, t) at a level; it stands for m = 2^level rows. Rows enter level 0. With H levels, level l holds

    cap(l) = max(16, 2 ceil(k c^(H-1-l) / 2)),       c = 2/3,       the top level twice that

items. A full level is halved (`upheld.effects.halving`), and the survivors move up with twice the multiplicity; a new top appears
when the top is full (Karnin, Lang & Liberty 2016: decaying capacities). Once there are more than

    L_keep = ceil(log(k/16) / log(3/2)) + 2

levels, the lowest become a sampler: of each run of 2^h rows one, chosen uniformly, enters with multiplicity 2^h. So an arm never holds
more than 4k + 64 items, and the multiplicities, with the rows of the open run, always sum to the rows seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from upheld.effects.halving import pairs, signs
from upheld.effects.pooling import PoolingModel
from upheld.effects.rows import NO_ID, FloatArray, IntArray

SHRINK = 2 / 3
LEAST_CAPACITY = 16
ITEM_ARRAYS = ("X", "y", "q", "t", "ident", "level")

Features = Callable[[FloatArray, FloatArray], FloatArray]
Model = Callable[[], PoolingModel | None]


def capacity(level: int, top: int, k: int) -> int:
    """cap(level) of a hierarchy whose highest level is `top`."""
    size = max(LEAST_CAPACITY, 2 * math.ceil(k * SHRINK ** (top - level) / 2))
    return 2 * size if level == top else size


def kept_levels(k: int) -> int:
    """L_keep: how many levels are compactors; those below are a sampler."""
    return math.ceil(math.log(k / LEAST_CAPACITY) / -math.log(SHRINK) - 1e-9) + 2


def most_items(k: int) -> int:
    """The bound on stored items of an arm."""
    return 4 * k + 64


@dataclass(frozen=True)
class Policy:
    """How an arm is compressed.

    k : coreset size; outcomes : "pooled", "subset" or "subset-xy"; own_time : whether the time of a survivor stays its own
    (it is a covariate under a time kernel) or becomes the mean of those it stands for.
    """

    k: int
    outcomes: str = "pooled"
    pairing: str = "nearest"
    signing: str = "greedy"
    walk_constant: float = 1.0
    own_time: bool = False


@dataclass
class Run:
    """The sampler's open run: one row chosen so far out of `rows`."""

    x: FloatArray
    y: float = 0.0
    q: float = 0.0
    t: float = 0.0
    ident: int = NO_ID
    rows: int = 0


@dataclass
class Items:
    """N items: x (N, d), outcome y, squared residual q, time t, rows m they stand for, and whether they were never merged."""

    X: FloatArray
    y: FloatArray
    q: FloatArray
    t: FloatArray
    m: FloatArray
    raw: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.y)


def concatenated(parts: list[Items]) -> Items:
    """Items of several coresets together."""
    return Items(*(np.concatenate([getattr(part, item.name) for part in parts]) for item in fields(Items)))


@dataclass
class ArmCoreset:
    """Items of one arm in arrays of fixed length: what is allocated at the start is all the memory it ever needs.

    n_rows : rows seen; top, base : highest level, and the level at which items enter; discrepancy_sq : sum of the squared
    displacements |u|^2 4^level of the sum of features that halvings and the sampler have caused.
    """

    policy: Policy
    d: int
    X: FloatArray = field(init=False)
    y: FloatArray = field(init=False)
    q: FloatArray = field(init=False)
    t: FloatArray = field(init=False)
    ident: IntArray = field(init=False)
    level: NDArray[np.int8] = field(init=False)
    run: Run = field(init=False)
    size: int = 0
    n_rows: int = 0
    base: int = 0
    top: int = 0
    discrepancy_sq: float = 0.0

    def __post_init__(self) -> None:
        bound = most_items(self.policy.k)
        self.X = np.empty((bound, self.d))
        self.y, self.q, self.t = np.empty(bound), np.empty(bound), np.empty(bound)
        self.ident = np.empty(bound, dtype=np.int64)
        self.level = np.empty(bound, dtype=np.int8)
        self.run = Run(np.zeros(self.d))

    @property
    def nbytes(self) -> int:
        return int(self.run.x.nbytes + sum(getattr(self, name).nbytes for name in ITEM_ARRAYS))

    @property
    def pooled(self) -> bool:
        return self.policy.outcomes == "pooled"

    def add(
        self, X: FloatArray, y: FloatArray, t: FloatArray, ident: IntArray, features: Features, model: Model,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        """Rows X (n, d) in slices of the entry level's free space; `model` is asked for whenever outcomes are merged."""
        at = 0
        while at < len(y):
            free = capacity(self.base, self.top, self.policy.k) - self.count(self.base)
            rows = slice(at, at + free) if self.base == 0 else slice(at, at + free * 2**self.base - self.run.rows)
            batch = X[rows], y[rows], t[rows], ident[rows]
            self.n_rows += len(batch[1])
            if self.base == 0:
                self._store(*batch[:2], np.zeros(len(batch[1])), *batch[2:], 0)
            else:
                self._sample(*batch, features, model, rng)
            at += len(batch[1])
            self._settle(features, model, rng)

    def items(self) -> Items:
        """All items; the open run is one, standing for the rows seen in it."""
        n = self.size
        level = self.level[:n]
        stored = Items(
            self.X[:n].copy(), self.y[:n].copy(), self.q[:n].copy(), self.t[:n].copy(),
            np.ldexp(1.0, level.astype(np.intc)), level == 0,
        )  # fmt: skip
        run = self.run
        if not run.rows:
            return stored
        one = Items(
            run.x[None].copy(), np.array([run.y]), np.array([run.q]), np.array([run.t]), np.array([float(run.rows)]),
            np.array([False]),
        )  # fmt: skip
        return concatenated([stored, one])

    def count(self, level: int) -> int:
        return int(np.count_nonzero(self.level[: self.size] == level))

    def remove(self, ident: int) -> tuple[FloatArray, float, float] | None:
        """Take out the row of that id if it is stored by itself: its x, y and t."""
        found = np.flatnonzero((self.ident[: self.size] == ident) & (self.level[: self.size] == 0))
        if not len(found):
            return None
        row = int(found[0])
        taken = self.X[row].copy(), float(self.y[row]), float(self.t[row])
        self._discard(found[:1])
        self.n_rows -= 1
        return taken

    def absorb(self, other: ArmCoreset, features: Features, model: Model, rng: np.random.Generator) -> None:
        """Levels of another coreset concatenated to these, over-full ones compacted."""
        room = self.size + other.size
        for name in ITEM_ARRAYS:
            mine, theirs = getattr(self, name), getattr(other, name)
            bound = len(mine)
            joint = np.empty((max(room, bound), *mine.shape[1:]), dtype=mine.dtype)
            joint[: self.size], joint[self.size : room] = mine[: self.size], theirs[: other.size]
            setattr(self, name, joint)
        bound = most_items(self.policy.k)
        self.size = room
        self.n_rows += other.n_rows
        self.top = max(self.top, other.top)
        self.discrepancy_sq += other.discrepancy_sq
        highest = max(self.base, other.base)
        for level in range(min(self.base, other.base), highest):
            self._empty(level, highest, features, model, rng)
        self.base = highest
        self._settle(features, model, rng)
        if other.run.rows:
            self._absorb_part(replace(other.run), features, model, rng)
            self._settle(features, model, rng)
        for name in ITEM_ARRAYS:
            setattr(self, name, getattr(self, name)[:bound].copy())

    # The hierarchy

    def _settle(self, features: Features, model: Model, rng: np.random.Generator) -> None:
        """Compact full levels, the lowest first, until none is full."""
        while True:
            counts = np.bincount(self.level[: self.size], minlength=self.top + 1)
            full = [
                level
                for level in range(self.base, self.top + 1)
                if counts[level] >= capacity(level, self.top, self.policy.k)
            ]
            if not full:
                return
            self._compact(full[0], features, model, rng)
            if self.top - self.base + 1 > kept_levels(self.policy.k):
                self._empty(self.base, self.base + 1, features, model, rng)
                self.base += 1

    def _empty(self, level: int, base: int, features: Features, model: Model, rng: np.random.Generator) -> None:
        """Halve a level that falls below the new base; an odd one left over goes through the sampler."""
        self._compact(level, features, model, rng)
        left = np.flatnonzero(self.level[: self.size] == level)
        if not len(left):
            return
        row = int(left[0])
        part = Run(
            self.X[row].copy(), float(self.y[row]), float(self.q[row]), float(self.t[row]), int(self.ident[row]),
            2**level,
        )  # fmt: skip
        if level == 0 and self.pooled:
            x, t = part.x[None], np.array([part.t])
            part.q = float((part.y - _guess(model(), features(x, t), x, t)[0]) ** 2)
        self._discard(left)
        self.base, before = base, self.base
        self._absorb_part(part, features, model, rng)
        self.base = before

    def _compact(self, level: int, features: Features, model: Model, rng: np.random.Generator) -> None:
        """Halve a level: survivors move up, an odd one stays in place."""
        rows = np.flatnonzero(self.level[: self.size] == level)
        if len(rows) < 2:
            return
        phi = features(self.X[rows], self.t[rows])
        fitted = model() if self.policy.outcomes != "subset" else None
        p, q = pairs(phi, self.policy.pairing, rng)
        v = phi[p] - phi[q]
        if self.policy.outcomes == "subset-xy":
            v = np.concatenate([v, self._outcome_differences(rows, phi, p, q, fitted)], axis=1)
        s, length_sq = signs(v, self.policy.signing, rng, self.policy.walk_constant)
        keep, drop = np.where(s > 0, p, q), np.where(s > 0, q, p)
        when = self.t[rows[keep]] if self.policy.own_time else (self.t[rows[keep]] + self.t[rows[drop]]) / 2
        if self.pooled:
            self._pool(rows, keep, drop, phi, when, fitted, level)
        self.t[rows[keep]] = when
        self.level[rows[keep]] += 1
        self.top = max(self.top, level + 1)
        self.discrepancy_sq += length_sq * 4.0**level
        self._discard(rows[drop])

    def _pool(
        self, rows: NDArray[np.intp], keep: NDArray[np.intp], drop: NDArray[np.intp], phi: FloatArray, when: FloatArray,
        fitted: PoolingModel | None, level: int,
    ) -> None:  # fmt: skip
        """Residual pooling of pairs; a survivor's outcome is that of the time it will stand for."""
        residual = self.y[rows] - _guess(fitted, phi, self.X[rows], self.t[rows])
        square = residual**2 if level == 0 else self.q[rows]
        self.y[rows[keep]] = _guess(fitted, phi[keep], self.X[rows[keep]], when) + (residual[keep] + residual[drop]) / 2
        self.q[rows[keep]] = (square[keep] + square[drop]) / 2

    def _outcome_differences(
        self, rows: NDArray[np.intp], phi: FloatArray, p: NDArray[np.intp], q: NDArray[np.intp],
        fitted: PoolingModel | None,
    ) -> FloatArray:  # fmt: skip
        """Differences of (r, r x / sqrt(d)), r the residual in units of its standard deviation."""
        r = self.y[rows] - (fitted(phi, self.X[rows], self.t[rows]) if fitted else self.y[rows].mean())
        r = r / max((fitted.spread if fitted else 0.0) or float(r.std()), np.finfo(float).tiny)
        g = np.column_stack([r, r[:, None] * self.X[rows] / np.sqrt(self.d)])
        differences: FloatArray = g[p] - g[q]
        return differences

    # The sampler

    def _sample(
        self, X: FloatArray, y: FloatArray, t: FloatArray, ident: IntArray, features: Features, model: Model,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        """Rows in runs of 2^base: those that complete the open run, then whole runs, then a new open one."""
        length = 2**self.base
        phi = features(X, t)
        fitted = model() if self.pooled else None
        residual = y - _guess(fitted, phi, X, t)
        head = min((length - self.run.rows) % length, len(y))
        whole = (len(y) - head) // length
        tail = head + whole * length
        if head:
            self._absorb_part(
                self._chosen(slice(0, head), X, y, t, ident, phi, residual, fitted, rng), features, model, rng
            )
        if whole:
            shape = (whole, length)
            pick = np.arange(head, tail, length) + rng.integers(length, size=whole)
            when = t[pick] if self.policy.own_time else t[head:tail].reshape(shape).mean(1)
            out, square = y[pick], np.zeros(whole)
            if self.pooled:
                runs = residual[head:tail].reshape(shape)
                out, square = _guess(fitted, phi[pick], X[pick], when) + runs.mean(1), (runs**2).mean(1)
            moved = length * phi[pick] - phi[head:tail].reshape(*shape, -1).sum(1)
            self.discrepancy_sq += float((moved**2).sum())
            self._store(X[pick], out, square, when, ident[pick], self.base)
        if tail < len(y):
            rest = slice(tail, len(y))
            self._absorb_part(self._chosen(rest, X, y, t, ident, phi, residual, fitted, rng), features, model, rng)

    def _chosen(
        self, rows: slice, X: FloatArray, y: FloatArray, t: FloatArray, ident: IntArray, phi: FloatArray,
        residual: FloatArray, fitted: PoolingModel | None, rng: np.random.Generator,
    ) -> Run:  # fmt: skip
        """One of a few raw rows, standing for all of them."""
        n = len(y[rows])
        pick = rows.start + int(rng.integers(n))
        moved = n * phi[pick] - phi[rows].sum(0)
        self.discrepancy_sq += float(moved @ moved)
        when = float(t[pick] if self.policy.own_time else t[rows].mean())
        out, square = float(y[pick]), 0.0
        if self.pooled:
            one = slice(pick, pick + 1)
            out = float(_guess(fitted, phi[one], X[one], np.array([when]))[0] + residual[rows].mean())
            square = float((residual[rows] ** 2).mean())
        return Run(X[pick].copy(), out, square, when, int(ident[pick]), n)

    def _absorb_part(self, part: Run, features: Features, model: Model, rng: np.random.Generator) -> None:
        """Put a row that stands for `part.rows` rows into the open run; what the run cannot hold opens the next."""
        length = 2**self.base
        while part.rows:
            taken = min(part.rows, length - self.run.rows)
            self._combine(Run(part.x, part.y, part.q, part.t, part.ident, taken), features, model, rng)
            part.rows -= taken
            if self.run.rows == length:
                run = self.run
                self._store(
                    run.x[None], np.array([run.y]), np.array([run.q]), np.array([run.t]), np.array([run.ident]),
                    self.base,
                )  # fmt: skip
                self.run = Run(np.zeros(self.d))

    def _combine(self, part: Run, features: Features, model: Model, rng: np.random.Generator) -> None:
        """The open run and a part become one: either survives with probability proportional to its rows."""
        run = self.run
        total = run.rows + part.rows
        if not run.rows:
            self.run = replace(part, x=part.x.copy())
            return
        share = np.array([run.rows, part.rows]) / total
        X, t = np.stack([run.x, part.x]), np.array([run.t, part.t])
        phi = features(X, t)
        which = int(rng.random() < share[1])
        survivor, other = (part, run) if which else (run, part)
        gap = phi[1] - phi[0]
        self.discrepancy_sq += float(other.rows**2 * (gap @ gap))
        joint = replace(survivor, x=survivor.x.copy(), rows=total)
        if not self.policy.own_time:
            joint.t = float(share @ t)
        if self.pooled:
            fitted = model()
            residual = np.array([run.y, part.y]) - _guess(fitted, phi, X, t)
            one = slice(which, which + 1)
            joint.y = float(_guess(fitted, phi[one], X[one], np.array([joint.t]))[0] + share @ residual)
            joint.q = float(share @ [run.q, part.q])
        self.run = joint

    # The arrays

    def _store(self, X: FloatArray, y: FloatArray, q: FloatArray, t: FloatArray, ident: IntArray, level: int) -> None:
        rows = slice(self.size, self.size + len(y))
        self.X[rows], self.y[rows], self.q[rows], self.t[rows] = X, y, q, t
        self.ident[rows], self.level[rows] = ident, level
        self.size = rows.stop

    def _discard(self, rows: NDArray[np.intp]) -> None:
        """Close the gaps with the last items."""
        keep = self.size - len(rows)
        gone = np.zeros(self.size, dtype=bool)
        gone[rows] = True
        holes = np.flatnonzero(gone[:keep])
        movers = keep + np.flatnonzero(~gone[keep:])
        for name in ITEM_ARRAYS:
            array = getattr(self, name)
            array[holes] = array[movers]
        self.size = keep


def _guess(fitted: PoolingModel | None, phi: FloatArray, X: FloatArray, t: FloatArray) -> FloatArray:
    """f_hat, which is 0 as long as there is no model."""
    return np.zeros(len(t)) if fitted is None else fitted(phi, X, t)
