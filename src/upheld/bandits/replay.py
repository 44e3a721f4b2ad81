"""What would another policy have earned on a log of choices? Rejection sampling (Li, Chu, Langford & Wang 2011).

The log's arms must have been drawn at random, independently of the rewards. A policy walks along the rows; where its
choice equals the logged arm, it learns the reward and moves on, elsewhere the row is skipped. With uniform choices the
rows it accepts are distributed as if it had played live; with known propensities p_row a match is accepted with
probability p_min / p_row, which makes them uniform again. What is left, the *effective horizon*, is about a K-th of the
log; below 30 accepted rows an arm nothing is ranked.

For a log that was not randomised there is only the bootstrap: `ReplayBandit` draws rewards of each arm from those logged
for it, and `simulate` plays on that. It answers another question (rewards as logged, whoever got them) and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from upheld.bandits.environments import ReplayBandit, regret_per_pull
from upheld.bandits.policies import REGISTRY, RulePolicy, get, make, names
from upheld.bandits.policy import Policy
from upheld.bandits.rule import Rule, State, decide, observe, uncertain_runs
from upheld.bandits.streams import DECISIONS, child, run_keys

UNIFORMITY_LEVEL = 1e-6
ROWS_AN_ARM = 30
MARKS_PER_DECADE = 20
CELLS = 20_000_000  # rows of the log times runs walked together, which bounds memory


@dataclass(frozen=True)
class ReplayResults:
    """Outcome of replaying a log.

    Attributes
    ----------
    runs : one row a policy and run: ``policy``, ``run``, ``horizon`` (accepted rows), ``mean_reward``, the three regrets
        at ``horizon`` and the same ``_common`` at `common_horizon`, ``certified_arm``, ``certified_at`` (accepted row of
        the first certificate still held at the end, 0 if none)
    marked : the same regrets on the way, as `Results.to_frame` gives them (without instance and seed): ``policy``,
        ``run``, ``mark`` (accepted rows, log-spaced up to `common_horizon`), the three regrets, ``uncertain_rounds``,
        ``certified_arm`` (position in `means`, -1 for none)
    means : (K,) mean reward of each arm over the whole log, by label; regrets are measured with these estimates
    common_horizon : accepted rows that every run of every policy reached
    threshold : S
    """

    runs: pd.DataFrame
    marked: pd.DataFrame
    means: pd.Series
    common_horizon: int
    threshold: float

    def ranking(self) -> pd.DataFrame:
        """Policies by mean refined regret at the common horizon.

        Raises
        ------
        ValueError
            If some run accepted fewer than 30 rows an arm.
        """
        needed = ROWS_AN_ARM * len(self.means)
        if self.common_horizon < needed:
            raise ValueError(
                f"the effective horizon is {self.common_horizon} accepted rows, below {ROWS_AN_ARM} for each of the "
                f"{len(self.means)} arms ({needed}); policies are not ranked on so little: pass a longer log"
            )
        columns = ["mean_reward", "regret_common", "regret_threshold_common", "regret_refined_common"]
        table = self.runs.groupby("policy", sort=False)[columns].mean()
        table["q99_refined"] = self.runs.groupby("policy")["regret_refined_common"].quantile(0.99)
        return table.sort_values("regret_refined_common")


def check_uniform(log: pd.DataFrame) -> float:
    """P-value of the chi-square test that the logged arms were chosen uniformly.

    Raises
    ------
    ValueError
        If it is below 1e-6; names the counts and the two ways out.
    """
    counts = log["arm"].value_counts()
    p_value = float(stats.chisquare(counts).pvalue)
    if p_value < UNIFORMITY_LEVEL:
        shown = ", ".join(f"{arm}: {n}" for arm, n in counts.items())
        raise ValueError(
            f"the logged arms were not chosen uniformly (counts {shown}; p = {p_value:.1g}); pass --propensity with the "
            "column that holds the probability of each choice, or --bootstrap to resample the rewards of each arm"
        )
    return p_value


@dataclass(frozen=True)
class Log:
    """A log as numbers: what a replay walks along.

    Attributes
    ----------
    labels : (K,) arms, sorted
    code, reward : (N,) position of the arm in `labels`, reward
    weight : (N,) one over the propensity, 1 if the choices were uniform
    """

    labels: list[Any]
    code: np.ndarray
    reward: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, log: pd.DataFrame) -> Log:
        """From the columns of `data.read_log`."""
        labels = sorted(log["arm"].unique().tolist(), key=str)
        code = pd.Categorical(log["arm"], categories=labels).codes.astype(np.int64)
        weight = 1 / log["propensity"].to_numpy(dtype=float) if "propensity" in log.columns else np.ones(len(log))
        return cls(labels, code, log["reward"].to_numpy(dtype=float), weight)

    def means(self) -> pd.Series:
        """Mean reward of each arm, rows weighted by `weight`."""
        total = np.bincount(self.code, self.weight, len(self.labels))
        mean = np.bincount(self.code, self.weight * self.reward, len(self.labels)) / total
        return pd.Series(mean, index=pd.Index(self.labels, dtype=object), name="mean")

    def open_rows(self, key: int) -> np.ndarray:
        """Rows in the order of one run, without those that its acceptance with probability p_min / p_row leaves out."""
        rng = np.random.default_rng(key)
        order = rng.permutation(self.code.size)
        return np.asarray(order[rng.random(order.size) < (self.weight / self.weight.max())[order]])


def replay(
    log: pd.DataFrame,
    policies: Sequence[str] | Mapping[str, str],
    threshold: float,
    *,
    sigma: float = 0.5,
    runs: int = 20,
    horizon: int | None = None,
    seed: int = 0,
    replayed: Callable[[str], None] | None = None,
) -> ReplayResults:
    """Replay a randomised log under each policy; run r shuffles the rows in the same way for all of them.

    Parameters
    ----------
    log : columns ``arm``, ``reward`` and, if the choices were not uniform, ``propensity`` (see `data.read_log`)
    policies : names, or label -> name
    threshold : S
    sigma : sub-Gaussian constant that policies are told
    runs : shuffles
    horizon : accepted rows after which a run ends; None replays the log to its end
    seed : of shuffles, acceptance and policies
    replayed : told each policy's label when it is done

    Raises
    ------
    ValueError
        On an unknown policy, one that needs rewards in [0, 1] where others are logged, or choices that were not uniform
        without propensities.
    """
    if "propensity" not in log.columns:
        check_uniform(log)
    pairs = dict(policies) if isinstance(policies, Mapping) else {name: name for name in policies}
    for name in pairs.values():
        _check_policy(name, log["reward"])
    for what, number in (("runs", runs), ("horizon", horizon)):
        if number is not None and number < 1:
            raise ValueError(f"{what} must be at least 1, got {number}")
    rows = Log.of(log)
    keys = [int(key) for key in run_keys(seed, DECISIONS, np.arange(runs))]
    traces: dict[str, _Trace] = {}
    for label, name in pairs.items():
        traces[label] = _trace(name, rows, keys, threshold, sigma, len(log) if horizon is None else horizon)
        if replayed is not None:
            replayed(label)
    common = int(min(trace.length.min() for trace in traces.values()))
    decades = np.geomspace(1, max(common, 1), int(MARKS_PER_DECADE * np.log10(max(common, 1))) + 2)
    marks = np.unique(np.round(decades).astype(np.int64))
    costs = regret_per_pull(rows.means().to_numpy(), threshold)
    return ReplayResults(
        pd.concat([_ends(label, trace, rows, costs, common) for label, trace in traces.items()], ignore_index=True),
        pd.concat([_marked(label, trace, costs, marks) for label, trace in traces.items()], ignore_index=True),
        rows.means(),
        common,
        threshold,
    )


def bootstrap_bandit(log: pd.DataFrame, threshold: float, *, sigma: float | None = None) -> ReplayBandit:
    """The arms of `log`, with rewards to be resampled, for `simulate`; its name says that it is a bootstrap."""
    groups: dict[Any, Any] = {
        arm: group.to_numpy(dtype=float) for arm, group in log.groupby("arm", sort=True)["reward"]
    }
    return ReplayBandit(groups, threshold, sigma=sigma, name="bootstrap of the log")


def walk(policy: Policy, rows: Log, order: np.ndarray) -> Iterator[tuple[int, float]]:
    """Let `policy` play along the rows in `order`: yields arm and reward of each row that it accepts and has learned."""
    position = {label: i for i, label in enumerate(rows.labels)}
    rows_of = [np.flatnonzero(rows.code[order] == i) for i in range(len(rows.labels))]
    at = 0
    while True:
        arm = position[policy.select()]
        pointer = int(np.searchsorted(rows_of[arm], at))
        if pointer == rows_of[arm].size:
            return
        row = int(rows_of[arm][pointer])
        reward = float(rows.reward[order[row]])
        policy.update(rows.labels[arm], reward)
        at = row + 1
        yield arm, reward


def takes_sigma(name: str) -> bool:
    """Whether the policy called `name` is to be told the rewards' sigma, and does not bring its own."""
    cls, preset = REGISTRY[name]
    if "sigma" in preset:
        return False
    return not issubclass(cls, RulePolicy) or cls.rule(**preset).sigma is None


def _check_policy(name: str, reward: pd.Series) -> None:
    if name not in REGISTRY:
        raise ValueError(f"no policy is called {name!r}; there are {', '.join(names())}")
    if issubclass(REGISTRY[name][0], RulePolicy) and get(name).unit_rewards and not reward.between(0, 1).all():
        raise ValueError(f"{name} needs rewards in [0, 1], and the log has others; leave it out, or rescale rewards")


@dataclass
class _Trace:
    """What R runs of a policy did at each accepted row; -1 beyond a run's end, and for "no arm is certified"."""

    arm: np.ndarray  # (R, T)
    certified: np.ndarray  # (R, T) arm with the highest lower bound among the certified ones
    clock: np.ndarray  # (R, T)
    length: np.ndarray  # (R,) accepted rows
    reward: np.ndarray  # (R,) their sum


def _trace(name: str, rows: Log, keys: list[int], threshold: float, sigma: float, horizon: int) -> _Trace:
    extra = {"sigma": sigma} if takes_sigma(name) else {}
    if not issubclass(REGISTRY[name][0], RulePolicy):
        return _trace_by_steps(name, rows, keys, threshold, extra, horizon)
    size = max(1, CELLS // rows.code.size)
    parts = [
        _trace_rule(get(name, **extra), rows, keys[first : first + size], threshold, horizon)
        for first in range(0, len(keys), size)
    ]
    longest = max(part.arm.shape[1] for part in parts)
    padded = {
        field: np.concatenate(
            [
                np.pad(a, ((0, 0), (0, longest - a.shape[1])), constant_values=-1)
                for a in (getattr(p, field) for p in parts)
            ]
        )
        for field in ("arm", "certified", "clock")
    }
    return _Trace(
        **padded,
        length=np.concatenate([part.length for part in parts]),
        reward=np.concatenate([part.reward for part in parts]),
    )


def _trace_by_steps(
    name: str, rows: Log, keys: list[int], threshold: float, extra: dict[str, Any], horizon: int
) -> _Trace:
    """Adapters of other libraries, through select and update."""
    steps: list[tuple[np.ndarray, ...]] = []
    length, total = np.zeros(len(keys), dtype=np.int64), np.zeros(len(keys))
    for run, key in enumerate(keys):
        policy = make(name, rows.labels, threshold, random_state=key, **extra)
        for t, (arm, reward) in enumerate(walk(policy, rows, rows.open_rows(key)), start=1):
            steps.append(tuple(np.array([x]) for x in (run, t - 1, arm, -1, t)))
            length[run], total[run] = t, total[run] + reward
            if t == horizon:
                break
    return _assembled(steps, length, total)


def _trace_rule(rule: Rule, rows: Log, keys: list[int], threshold: float, horizon: int) -> _Trace:
    """All runs of a rule together: each looks up the next row of its arm, and plays on from there."""
    n_runs, n_arms, n_rows = len(keys), len(rows.labels), rows.code.size
    orders = [rows.open_rows(key) for key in keys]
    reward = np.zeros((n_runs, n_rows))
    places = []  # (run, arm, place in the run's order) as one sorted number each
    for r, order in enumerate(orders):
        reward[r, : order.size] = rows.reward[order]
        places.append(np.sort((r * n_arms + rows.code[order]) * n_rows + np.arange(order.size)))
    ahead = np.concatenate([*places, [n_runs * n_arms * n_rows]])
    prefer = rule.preferences(n_arms)
    sigma = rule.effective_sigma(0.5)
    steps: list[tuple[np.ndarray, ...]] = []
    length, total = np.zeros(n_runs, dtype=np.int64), np.zeros(n_runs)
    run, at = np.arange(n_runs), np.zeros(n_runs, dtype=np.int64)
    with np.errstate(all="ignore"):  # masked cells divide by zero; 64-bit keys wrap
        decision_keys = np.concatenate([run_keys(key, DECISIONS, np.array([0])) for key in keys])
        state = State.empty(rule, n_runs, n_arms, child(decision_keys, np.uint64(0)))
        for t in range(1, horizon + 1):
            round_keys = child(decision_keys[run], np.uint64(t))
            arm = decide(rule, state, round_keys, threshold, sigma, prefer)
            cell = run * n_arms + arm
            found = ahead[np.searchsorted(ahead, cell * n_rows + at)]
            left = found // n_rows == cell
            if not left.all():
                run, arm, found, round_keys, state = (
                    run[left],
                    arm[left],
                    found[left],
                    round_keys[left],
                    state.keep(left),
                )
                if not run.size:
                    break
            at = found % n_rows + 1
            gained = reward[run, at - 1]
            uncertain = uncertain_runs(rule, state, threshold)
            observe(rule, state, arm, gained, uncertain, round_keys, threshold, sigma)
            length[run], total[run] = t, total[run] + gained
            clock = np.full(run.size, t) if rule.phased else state.clock.astype(np.int64)
            steps.append((run, np.full(run.size, t - 1), arm, _best_certified(rule, state, threshold), clock))
    return _assembled(steps, length, total)


def _best_certified(rule: Rule, state: State, threshold: float) -> np.ndarray:
    if rule.certificate is None:
        return np.full(state.clock.size, -1)
    lower = np.where((state.n > 0) & (state.lower >= threshold), state.lower, -np.inf)
    return np.where(np.isneginf(lower).all(axis=1), -1, lower.argmax(axis=1))


def _assembled(steps: list[tuple[np.ndarray, ...]], length: np.ndarray, total: np.ndarray) -> _Trace:
    shape = (length.size, int(length.max(initial=0)))
    arm, certified, clock = (np.full(shape, -1, dtype=np.int32) for _ in range(3))
    if steps:
        run, step, *values = (np.concatenate(column) for column in zip(*steps, strict=True))
        for array, value in zip((arm, certified, clock), values, strict=True):
            array[run, step] = value
    return _Trace(arm, certified, clock, length, total)


def _ends(label: str, trace: _Trace, rows: Log, costs: dict[str, np.ndarray], common: int) -> pd.DataFrame:
    """The `runs` of `ReplayResults`."""
    n_runs, steps = trace.arm.shape
    within = np.arange(steps)[None, :] < trace.length[:, None]
    held = np.where(within, trace.certified, 0) >= 0  # beyond the end nothing is lost
    last_without = np.where(held, 0, np.arange(1, steps + 1)[None, :]).max(axis=1, initial=0)
    certified = (trace.length > 0) & (last_without < trace.length)
    final = trace.certified[np.arange(n_runs), trace.length - 1] if steps else np.full(n_runs, -1)
    table = {
        "policy": label,
        "run": np.arange(n_runs),
        "horizon": trace.length,
        "mean_reward": np.where(trace.length > 0, trace.reward / np.maximum(trace.length, 1), np.nan),
    }
    for name, cost in costs.items():
        paid = np.where(within, cost[trace.arm], 0.0)
        table[name] = paid.sum(axis=1)
        table[f"{name}_common"] = paid[:, :common].sum(axis=1)
    table["certified_arm"] = pd.Series(
        [rows.labels[arm] if yes else None for arm, yes in zip(final, certified, strict=True)], dtype=object
    )
    table["certified_at"] = np.where(certified, last_without + 1, 0)
    return pd.DataFrame(table)


def _marked(label: str, trace: _Trace, costs: dict[str, np.ndarray], marks: np.ndarray) -> pd.DataFrame:
    """The `marked` of `ReplayResults`."""
    marks = marks[marks <= trace.arm.shape[1]]
    run, mark = (x.ravel() for x in np.meshgrid(np.arange(trace.arm.shape[0]), marks, indexing="ij"))
    regrets = {
        name: cost[trace.arm[:, : marks.max(initial=0)]].cumsum(axis=1)[:, marks - 1].ravel()
        for name, cost in costs.items()
    }
    return pd.DataFrame(
        {
            "policy": label,
            "run": run,
            "mark": mark,
            **regrets,
            "uncertain_rounds": trace.clock[run, mark - 1].astype(np.int64),
            "certified_arm": trace.certified[run, mark - 1].astype(np.int64),
        }
    )
