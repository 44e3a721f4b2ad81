"""Race policies over many runs, and measure their regret with its tails.

In run r, all policies meet the same table of rewards (arm i's j-th reward is a function of seed, run, i and j), so two
policies are compared pair by pair. Three regrets are reported, Delta_i being the gap to the best mean:

    regret            sum_i Delta_i N_i
    regret_threshold  sum_i max(0, min(S, best mean) - mean_i) N_i
    regret_refined    sum_{i below S} Delta_i N_i                          regret_threshold <= regret_refined <= regret

**Early stop.** A run of a policy with a sub-Gaussian certificate is not played on once its future is certain: all
certified arms are satisficing, the arm just played has the highest lower bound, true excess e > 0 and M = n (LCB - S)
with exp(-e M / proxy^2) T max(Delta) < 1/1000, and the radius n r_n grows by at most e/2 a pull. M then drifts upward by
at least e/2 a pull, and falls by M at some time with probability at most exp(-e M / proxy^2): the expected regret left
out is below 1/1000. The remaining pulls are given to that arm. `Results.stopped_at` says where it happened.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from upheld.bandits.environments import REGRETS, Bandit, RewardTable, rewards
from upheld.bandits.policies import REGISTRY, Policy, Rule, RulePolicy, get, names
from upheld.bandits.rule import State, decide, observe, uncertain_runs
from upheld.bandits.streams import DECISIONS, REWARDS, arm_keys, child, run_keys

OMITTED_REGRET = 1e-3
CHUNK = 256  # runs simulated together, which bounds memory
MARKS_PER_DECADE = 20

Spec = str | Rule | type[Policy]


@dataclass(frozen=True)
class Results:
    """Measurements of P policies on I instances in R runs at M marks.

    Attributes
    ----------
    policies, instances : names along the first two axes
    marks : (M,) rounds at which regret was recorded; the last is the horizon
    regret, regret_threshold, regret_refined : (P, I, R, M)
    uncertain_rounds : (P, I, R, M) u (all rounds, for policies without a certificate)
    certified_arm : (P, I, R, M) number of the certified arm with the highest lower bound, -1 if there is none
    pulls : (P, I, R, K) pulls of each arm at the horizon, K the largest number of arms (0 beyond an instance's own)
    stopped_at : (P, I, R) round after which the run's future was certain, 0 if it was played to the end
    last_bad_pull : (P, I, R) last round in which an arm below the threshold was played, 0 if none
    last_arm : (P, I, R) arm played last
    satisficing : instance -> (K,) whether each arm's mean reaches the threshold
    """

    policies: tuple[str, ...]
    instances: tuple[str, ...]
    marks: np.ndarray
    seed: int
    engine: str
    regret: np.ndarray
    regret_threshold: np.ndarray
    regret_refined: np.ndarray
    uncertain_rounds: np.ndarray
    certified_arm: np.ndarray
    pulls: np.ndarray
    stopped_at: np.ndarray
    last_bad_pull: np.ndarray
    last_arm: np.ndarray
    satisficing: Mapping[str, np.ndarray]

    def to_frame(self) -> pd.DataFrame:
        """Long format: instance, policy, run, mark, the three regrets, uncertain_rounds, certified_arm, seed."""
        p, i, r, m = (x.ravel() for x in np.indices(self.regret.shape))
        policies, instances = np.array(self.policies, dtype=object), np.array(self.instances, dtype=object)
        return pd.DataFrame(
            {
                "instance": pd.Categorical(instances[i], categories=list(self.instances)),
                "policy": pd.Categorical(policies[p], categories=list(self.policies)),
                "run": r,
                "mark": self.marks[m],
                **{name: getattr(self, name).ravel() for name in REGRETS},
                "uncertain_rounds": self.uncertain_rounds.ravel(),
                "certified_arm": self.certified_arm.ravel(),
                "seed": self.seed,
            }
        )

    def summary(self, metric: str = "regret_refined") -> pd.DataFrame:
        """At the horizon, per instance and policy: mean, its standard error, median, q90, q99 and CVaR of `metric`.

        ``cvar95`` is the mean of the worst 5 % of runs; ``ends_bad`` the share of runs whose last arm lies below the
        threshold; ``certified`` and ``certified_rightly`` the shares that end with a certificate, and with one of a
        truly satisficing arm; ``stopped_early`` the share whose end was not played out.
        """
        if metric not in REGRETS:
            raise ValueError(f"metric must be one of {', '.join(REGRETS)}, got {metric!r}")
        values = getattr(self, metric)[..., -1]
        rows = []
        for i, instance in enumerate(self.instances):
            good = self.satisficing[instance]
            for p, policy in enumerate(self.policies):
                x = np.sort(values[p, i])
                worst = x[-max(1, round(0.05 * x.size)) :]
                certified = self.certified_arm[p, i, :, -1]
                rows.append(
                    {
                        "instance": instance,
                        "policy": policy,
                        "mean": x.mean(),
                        "se": x.std(ddof=1) / np.sqrt(x.size) if x.size > 1 else np.nan,
                        "median": np.median(x),
                        "q90": np.quantile(x, 0.9),
                        "q99": np.quantile(x, 0.99),
                        "cvar95": worst.mean(),
                        "ends_bad": np.mean(~good[self.last_arm[p, i]]),
                        "certified": np.mean(certified >= 0),
                        "certified_rightly": np.mean((certified >= 0) & good[np.maximum(certified, 0)]),
                        "stopped_early": np.mean(self.stopped_at[p, i] > 0),
                    }
                )
        return pd.DataFrame(rows)


def simulate(
    policies: Sequence[Spec] | Mapping[str, Spec],
    instances: Bandit | Sequence[Bandit],
    horizon: int,
    runs: int,
    marks: str | Sequence[int] = "log",
    n_jobs: int = 1,
    engine: str = "auto",
    seed: int = 0,
    early_stop: bool = True,
) -> Results:
    """Play every policy on every instance, `runs` times.

    Parameters
    ----------
    policies : names (see `policies.names()`), rules (``policies.get("ucb", width=0.5)``) or adapter classes; a mapping
        names them
    instances : bandits, each with its threshold
    horizon : rounds T of a run
    runs : independent repetitions; run r sees the same rewards under every policy
    marks : rounds at which to record: "log" (20 a decade) or an increasing list; the horizon is always recorded
    n_jobs : threads
    engine : "numba" (compiled), "numpy" (vectorised over runs), or "auto": numba if it is installed. Both give the same
        numbers bit for bit. Adapters of other libraries are played step by step in either.
    seed : of reward tables and decisions; the decisions of all policies share their tie-breaking numbers
    early_stop : whether to skip the rest of runs whose future is certain (see the module's docstring)

    Raises
    ------
    TypeError
        If horizon, runs or n_jobs is no whole number.
    ValueError
        On an unknown policy or engine, less than one run or thread, no instance, a horizon below the number of arms, marks
        beyond the horizon, rules for rewards in [0, 1] on other instances, or an adapter beyond its longest horizon.

    Examples
    --------
    >>> from upheld.bandits.environments import GaussianBandit
    >>> easy = GaussianBandit([0.2, 0.8], threshold=0.5, sd=0.1, name="easy")
    >>> results = simulate(["uncertain-ucb", "ucb"], easy, horizon=1000, runs=20, engine="numpy")
    >>> bool((results.regret_refined[0] <= results.regret_refined[1]).all())
    True
    """
    for name, number in (("horizon", horizon), ("runs", runs), ("n_jobs", n_jobs)):
        if not isinstance(number, Integral):
            raise TypeError(f"{name} must be a whole number, got {number!r}")
    if n_jobs < 1:
        raise ValueError(f"n_jobs must be at least 1 thread, got {n_jobs}")
    entrants = _entrants(policies)
    bandits = [instances] if isinstance(instances, Bandit) else list(instances)
    engine = _engine(engine)
    grid = _marks(marks, horizon)
    _check(entrants, bandits, horizon, runs)
    n_arms = max(b.n_arms for b in bandits)
    shape = (len(entrants), len(bandits), runs)
    out: dict[str, np.ndarray] = {name: np.zeros((*shape, grid.size)) for name in REGRETS}
    out |= {name: np.zeros((*shape, grid.size), dtype=np.int64) for name in ("uncertain_rounds", "certified_arm")}
    out |= {name: np.zeros(shape, dtype=np.int64) for name in ("stopped_at", "last_bad_pull", "last_arm")}
    out["pulls"] = np.zeros((*shape, n_arms), dtype=np.int64)

    def play(task: tuple[int, int, int]) -> None:
        p, i, first = task
        rows = np.arange(first, min(first + size, runs))
        spec, bandit = entrants[p][1], bandits[i]
        record = _Record.empty(rows.size, grid.size, bandit.n_arms)
        if isinstance(spec, Rule):
            run_rule = _play_numba if engine == "numba" else _play_numpy
            run_rule(spec, bandit, horizon, grid, seed, rows, early_stop, record)
        else:
            _play_steps(spec, bandit, horizon, grid, seed, rows, record)
        at = (p, i, slice(first, first + rows.size))
        for name, cost in bandit.costs.items():
            # one sum in arm order, so that engines and array layouts cannot differ in rounding
            out[name][at] = sum(record.pulls[..., k] * cost[k] for k in range(bandit.n_arms))
        out["pulls"][at][:, : bandit.n_arms] = record.pulls[:, -1]
        out["uncertain_rounds"][at] = record.clock
        out["certified_arm"][at] = record.certified
        out["stopped_at"][at] = record.stopped
        out["last_bad_pull"][at] = record.last_bad
        out["last_arm"][at] = record.last_arm

    size = CHUNK if n_jobs == 1 else max(1, min(CHUNK, -(-runs // n_jobs)))
    tasks = [(p, i, f) for i in range(len(bandits)) for p in range(len(entrants)) for f in range(0, runs, size)]
    if n_jobs == 1:
        for task in tasks:
            play(task)
    else:
        with ThreadPoolExecutor(n_jobs) as pool:
            list(pool.map(play, tasks))
    return Results(
        policies=tuple(name for name, _ in entrants),
        instances=tuple(b.name for b in bandits),
        marks=grid,
        seed=seed,
        engine=engine,
        satisficing={b.name: ~b.bad for b in bandits},
        **out,
    )


@dataclass
class _Record:
    """What one chunk of runs leaves behind."""

    pulls: np.ndarray
    clock: np.ndarray
    certified: np.ndarray
    stopped: np.ndarray
    last_bad: np.ndarray
    last_arm: np.ndarray

    @classmethod
    def empty(cls, runs: int, marks: int, n_arms: int) -> _Record:
        shapes = ((runs, marks, n_arms), (runs, marks), (runs, marks), (runs,), (runs,), (runs,))
        return cls(*(np.zeros(shape, dtype=np.int64) for shape in shapes))


def _stop_levels(rule: Rule, bandit: Bandit, horizon: int, early_stop: bool) -> tuple[np.ndarray, np.ndarray]:
    """(K,) pulls and evidence M from which a run that plays a certified arm need not be played on."""
    never = np.full(bandit.n_arms, np.inf)
    if not early_stop or rule.certificate != "sub-gaussian":
        return never, never
    excess = bandit.means - bandit.threshold
    stake = max(1.0, horizon * float(bandit.gaps.max()) / OMITTED_REGRET)
    pulls, evidence = never.copy(), never.copy()
    for i in np.flatnonzero(excess > 0):
        evidence[i] = bandit.proxy**2 / excess[i] * np.log(stake) if np.isfinite(excess[i]) else 0.0
        pulls[i] = _pulls_until_slow(rule.effective_sigma(bandit.sigma), bandit.n_arms, excess[i], horizon)
    return pulls, evidence


def _pulls_until_slow(sigma: float, n_arms: int, excess: float, horizon: int) -> float:
    """Least n from which d(n r_n)/dn = sigma (ln(K n^2) + 2) / sqrt(2 n ln(K n^2)) stays at most excess/2.

    Infinite if that is beyond the horizon.
    """

    def slope(n: float) -> float:
        x = np.log(max(n_arms, 2) * n * n)
        return float(sigma * (x + 2) / np.sqrt(2 * n * x))

    low, high = 8, max(8, horizon)  # the slope falls from 8 on
    if slope(high) > excess / 2:
        return np.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if slope(middle) > excess / 2 else (low, middle)
    return float(high)


def _play_numba(
    rule: Rule,
    bandit: Bandit,
    horizon: int,
    marks: np.ndarray,
    seed: int,
    runs: np.ndarray,
    early_stop: bool,
    record: _Record,
) -> None:
    from upheld.bandits._kernels import kernel

    pulls, evidence = _stop_levels(rule, bandit, horizon, early_stop)
    with np.errstate(over="ignore"):
        reward_keys = arm_keys(run_keys(seed, REWARDS, runs), bandit.n_arms)
    kernel(rule, bandit.law)(
        reward_keys,
        run_keys(seed, DECISIONS, runs),
        horizon,
        marks,
        bandit.params,
        bandit.table,
        bandit.threshold,
        rule.effective_sigma(bandit.sigma),
        rule.preferences(bandit.n_arms),
        bandit.bad,
        pulls,
        evidence,
        record.pulls,
        record.clock,
        record.certified,
        record.stopped,
        record.last_bad,
        record.last_arm,
    )


def _play_numpy(
    rule: Rule,
    bandit: Bandit,
    horizon: int,
    marks: np.ndarray,
    seed: int,
    runs: np.ndarray,
    early_stop: bool,
    record: _Record,
) -> None:
    threshold, sigma, prefer = bandit.threshold, rule.effective_sigma(bandit.sigma), rule.preferences(bandit.n_arms)
    stop_pulls, stop_evidence = _stop_levels(rule, bandit, horizon, early_stop)
    with np.errstate(all="ignore"):  # masked cells divide by zero; 64-bit keys wrap
        reward_keys = arm_keys(run_keys(seed, REWARDS, runs), bandit.n_arms)
        decision_keys = run_keys(seed, DECISIONS, runs)
        state = State.empty(rule, runs.size, bandit.n_arms, child(decision_keys, np.uint64(0)))
        pulls = np.zeros((runs.size, bandit.n_arms), dtype=np.int64)
        row = np.arange(runs.size)  # of the record, for each run still played
        mark = 0
        for t in range(1, horizon + 1):
            keys = child(decision_keys, np.uint64(t))
            uncertain = uncertain_runs(rule, state, threshold)
            arm = decide(rule, state, keys, threshold, sigma, prefer)
            at = (np.arange(row.size), arm)
            pulls[at] += 1
            reward = rewards(bandit, reward_keys[at], pulls[at], arm)
            record.last_bad[row[bandit.bad[arm]]] = t
            record.last_arm[row] = arm
            observe(rule, state, arm, reward, uncertain, keys, threshold, sigma)
            if marks[mark] == t:
                _write(record, row, mark, rule, state, pulls, threshold, t)
                mark += 1
            done = _certain(rule, state, arm, uncertain, bandit, stop_pulls, stop_evidence)
            if done.any():
                for later in range(mark, marks.size):
                    rest = pulls[done]
                    rest[np.arange(rest.shape[0]), arm[done]] += marks[later] - t
                    _write(record, row[done], later, rule, state.keep(done), rest, threshold, marks[later])
                record.stopped[row[done]] = t
                state, pulls, row = state.keep(~done), pulls[~done], row[~done]
                reward_keys, decision_keys = reward_keys[~done], decision_keys[~done]
                if not row.size:
                    return


def _write(
    record: _Record, row: np.ndarray, mark: int, rule: Rule, state: State, pulls: np.ndarray, threshold: float, t: int
) -> None:
    record.pulls[row, mark] = pulls
    record.clock[row, mark] = t if rule.phased else state.clock
    certified = (state.n > 0) & (state.lower >= threshold)
    if rule.certificate is None:
        certified[:] = False
    best = np.where(certified, state.lower, -np.inf)
    best = np.where(certified & (best == best.max(axis=1, keepdims=True)), 1, 0).argmax(axis=1)
    record.certified[row, mark] = np.where(certified.any(axis=1), best, -1)


def _certain(
    rule: Rule,
    state: State,
    arm: np.ndarray,
    uncertain: np.ndarray,
    bandit: Bandit,
    stop_pulls: np.ndarray,
    stop_evidence: np.ndarray,
) -> np.ndarray:
    """(R,) whether the early-stop rule holds after this round."""
    if rule.certificate is None:
        return np.full(arm.size, False)
    at = (np.arange(arm.size), arm)
    played, lower = state.n[at], state.lower[at]
    enough = (played >= stop_pulls[arm]) & (played * (lower - bandit.threshold) >= stop_evidence[arm])
    obstacle = (state.lower >= bandit.threshold) & (bandit.bad[None, :] | (state.lower > lower[:, None]))
    return np.asarray(~uncertain & enough & ~obstacle.any(axis=1))


def _play_steps(
    spec: tuple[type[Policy], dict[str, Any]],
    bandit: Bandit,
    horizon: int,
    marks: np.ndarray,
    seed: int,
    runs: np.ndarray,
    record: _Record,
) -> None:
    """Adapters of other libraries, through select and update."""
    cls, parameters = spec
    keys = run_keys(seed, DECISIONS, runs)
    for row, run in enumerate(runs):
        table = RewardTable(bandit, seed, int(run))
        policy = cls(bandit.n_arms, bandit.threshold, random_state=int(keys[row]), **parameters)
        mark = 0
        for t in range(1, horizon + 1):
            arm = int(policy.select())  # type: ignore[call-overload]
            policy.update(arm, table.pull(arm))
            if bandit.bad[arm]:
                record.last_bad[row] = t
            if marks[mark] == t:
                record.pulls[row, mark] = table.pulls
                record.clock[row, mark] = t
                record.certified[row, mark] = -1
                mark += 1
        record.last_arm[row] = arm


def _entrants(policies: Sequence[Spec] | Mapping[str, Spec]) -> list[tuple[str, Any]]:
    if isinstance(policies, (str, Rule, type)):
        policies = [policies]
    pairs = list(policies.items()) if isinstance(policies, Mapping) else [(None, spec) for spec in policies]
    entrants: list[tuple[str, Any]] = []
    for label, spec in pairs:
        if isinstance(spec, str) and spec in REGISTRY:
            cls, preset = REGISTRY[spec]
            play: Any = get(spec) if issubclass(cls, RulePolicy) else (cls, preset)
            entrants.append((label or spec, play))
        elif isinstance(spec, Rule):
            entrants.append((label or spec.name, spec))
        elif isinstance(spec, type) and issubclass(spec, RulePolicy):
            rule = spec.rule()
            entrants.append((label or rule.name, rule))
        elif isinstance(spec, type) and issubclass(spec, Policy):
            entrants.append((label or spec.__name__.lower(), (spec, {})))
        else:
            raise ValueError(f"{spec!r} is not a policy; take a Rule or one of {', '.join(names())}")
    labels = [name for name, _ in entrants]
    if not labels:
        raise ValueError("there is no policy to play; name at least one")
    if twice := next((x for i, x in enumerate(labels) if x in labels[:i]), None):
        raise ValueError(f"two policies are called {twice!r}; pass a mapping that gives them different names")
    return entrants


def _engine(engine: str) -> str:
    installed = importlib.util.find_spec("numba") is not None
    match engine:
        case "auto":
            return "numba" if installed else "numpy"
        case "numpy":
            return engine
        case "numba":
            if not installed:
                raise ModuleNotFoundError(
                    'numba is not installed; pip install "upheld[bandits]", or use engine="numpy"'
                )
            return engine
    raise ValueError(f"engine must be 'auto', 'numba' or 'numpy', got {engine!r}")


def _marks(marks: str | Sequence[int], horizon: int) -> np.ndarray:
    if horizon < 1:
        raise ValueError(f"horizon must be at least 1 round, got {horizon}")
    if isinstance(marks, str):
        if marks != "log":
            raise ValueError(f"marks must be 'log' or a list of rounds, got {marks!r}")
        decades = np.arange(int(MARKS_PER_DECADE * np.log10(horizon)) + 1)
        return np.unique(np.round(horizon * 10.0 ** (-decades / MARKS_PER_DECADE)).astype(np.int64))
    grid = np.asarray(marks, dtype=np.int64)
    if grid.ndim != 1 or (grid < 1).any() or (grid > horizon).any() or (np.diff(grid) <= 0).any():
        raise ValueError(f"marks must be increasing rounds between 1 and the horizon {horizon}, got {list(marks)}")
    return grid if grid.size and grid[-1] == horizon else np.append(grid, horizon)


def _check(entrants: list[tuple[str, Any]], bandits: list[Bandit], horizon: int, runs: int) -> None:
    if not bandits:
        raise ValueError("there is no instance to play; pass at least one bandit")
    if runs < 1:
        raise ValueError(f"runs must be at least 1, got {runs}")
    labels = [b.name for b in bandits]
    if len(set(labels)) < len(labels):
        twice = next(x for i, x in enumerate(labels) if x in labels[:i])
        raise ValueError(f"two instances are called {twice!r}; give them different names")
    for name, spec in entrants:
        for bandit in bandits:
            if isinstance(spec, Rule) and spec.unit_rewards and not bandit.bounded:
                raise ValueError(f"{name} needs rewards in [0, 1], but those of {bandit.name} are not bounded")
            if isinstance(spec, Rule):
                spec.preferences(bandit.n_arms)
        longest = None if isinstance(spec, Rule) else getattr(spec[0], "max_horizon", None)
        if longest is not None and horizon > longest:
            raise ValueError(f"{name} is played step by step for at most {longest} rounds, got {horizon}; shorten it")
