"""The compiled engine: a rule's own formulas, joined to one loop and compiled by numba.

There is no second copy of any policy here. The kernel is a closure over the rule's formulas, one compilation a rule and
reward law; it is cached on disk, under a key that contains the text of the modules the formulas come from.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.extending import overload, register_jitable

from upheld.bandits import elementwise
from upheld.bandits.elementwise import ELEMENTWISE
from upheld.bandits.environments import REWARD_LAWS
from upheld.bandits.rule import Rule
from upheld.bandits.streams import ARMS, COIN, TIE, child, uniform

_compilable: set[Callable[..., Any]] = set()
_kernels: dict[tuple[Any, ...], Callable[..., None]] = {}


@overload(elementwise.choose)
def _choose(condition: Any, yes: Any, no: Any) -> Any:
    def scalar(condition: Any, yes: Any, no: Any) -> Any:
        return yes if condition else no

    return scalar


@overload(elementwise.branch)
def _branch(condition: Any, yes: Any, no: Any, x: Any) -> Any:
    def scalar(condition: Any, yes: Any, no: Any, x: Any) -> Any:
        if condition:
            return yes(x)
        return no(x)

    return scalar


@overload(elementwise.split)
def _split(x: Any) -> Any:
    def scalar(x: Any) -> Any:
        return math.frexp(x)

    return scalar


@overload(elementwise.finished)
def _finished(done: Any) -> Any:
    def scalar(done: Any) -> Any:
        return done

    return scalar


def kernel(rule: Rule, law: int) -> Callable[..., None]:
    """The compiled loop for `rule` under one of the `REWARD_LAWS`."""
    formulas = (rule.rank, rule.level, rule.own, rule.lower, rule.draw, rule.begin, rule.transition, REWARD_LAWS[law])
    certifies = rule.certificate is not None
    key = (*formulas, rule.counts, rule.shares_samples, certifies)
    if key not in _kernels:
        for formula in (*ELEMENTWISE, *formulas):
            if formula not in _compilable:
                register_jitable(formula)
                _compilable.add(formula)
        _kernels[key] = _build(
            *formulas,
            counts_all=rule.counts == "all",
            shares=rule.shares_samples,
            certifies=certifies,
            phased=rule.phased,
            random=rule.random,
            stamp=_stamp(formulas),
        )
    return _kernels[key]


def _stamp(formulas: tuple[Callable[..., Any], ...]) -> int:
    """Hash of the source files of all formulas, so that an edited formula is compiled anew."""
    files = sorted({formula.__code__.co_filename for formula in (*ELEMENTWISE, *formulas)})
    digest = hashlib.sha256()
    for file in files:
        path = Path(file)
        digest.update(path.read_bytes() if path.is_file() else file.encode())
    for formula in formulas:
        digest.update(formula.__code__.co_code)
    return int.from_bytes(digest.digest()[:7], "little")


def _build(
    rank: Any,
    level_of: Any,
    own_of: Any,
    lower_of: Any,
    draw_of: Any,
    begin: Any,
    transition: Any,
    reward_of: Any,
    *,
    counts_all: bool,
    shares: bool,
    certifies: bool,
    phased: bool,
    random: bool,
    stamp: int,
) -> Callable[..., None]:
    @numba.njit(cache=True, nogil=True)
    def play(
        reward_keys: Any,  # (R, K) key of each arm's rewards
        decision_keys: Any,  # (R,)
        horizon: Any,
        marks: Any,  # (M,) rounds at which to record
        params: Any,
        table: Any,
        threshold: Any,
        sigma: Any,
        prefer: Any,  # (K,)
        bad: Any,  # (K,) mean below the threshold
        stop_pulls: Any,  # (K,) pulls and evidence n (LCB - S) from which the rest of the run is certain
        stop_evidence: Any,
        pulls_at: Any,  # results: (R, M, K)
        clock_at: Any,  # (R, M)
        certified_at: Any,  # (R, M)
        stopped: Any,  # (R,) round after which the run was not played on, or 0
        last_bad: Any,  # (R,) last round in which an arm below the threshold was played
        last_arm: Any,  # (R,)
    ) -> Any:
        runs, n_arms = reward_keys.shape
        arms = float(n_arms)
        n, mean, m2 = np.empty(n_arms), np.empty(n_arms), np.empty(n_arms)
        if shares:
            index_n, index_mean, index_m2 = n, mean, m2
        else:
            index_n, index_mean, index_m2 = np.empty(n_arms), np.empty(n_arms), np.empty(n_arms)
        variance, lower, own = np.empty(n_arms), np.empty(n_arms), np.empty(n_arms)
        tiers, scores = np.empty(n_arms), np.empty(n_arms)
        for r in range(runs):
            pulls = np.zeros(n_arms, dtype=np.int64)
            registers = begin(uniform(child(decision_keys[r], np.uint64(0)), COIN))
            afresh = True
            clock = 0.0
            mark = 0
            for t in range(1, horizon + 1):
                if afresh:
                    for i in range(n_arms):
                        n[i] = mean[i] = m2[i] = index_n[i] = index_mean[i] = index_m2[i] = 0.0
                        variance[i] = own[i] = 0.0
                        lower[i] = -np.inf
                    clock = 0.0
                    afresh = False
                round_key = child(decision_keys[r], np.uint64(t))
                uncertain = True
                if phased and registers[0] >= 0.0:
                    arm = int(registers[0])
                elif clock < arms:  # play each arm once; nothing is certified until then
                    arm = int(clock)
                else:
                    level = level_of(clock + 1.0)
                    best_tier, best, ties, arm = -1.0, -np.inf, 0, 0
                    for i in range(n_arms):
                        draw = 0.0
                        if random:
                            draw = draw_of(child(round_key, ARMS + np.uint64(i)), index_mean[i], index_n[i], sigma)
                        tier, score = rank(
                            index_mean[i],
                            index_n[i],
                            variance[i],
                            lower[i],
                            own[i],
                            level,
                            draw,
                            prefer[i],
                            threshold,
                            sigma,
                        )
                        tiers[i], scores[i] = tier, score
                        if tier > best_tier or (tier == best_tier and score > best):
                            best_tier, best, ties, arm = tier, score, 1, i
                        elif tier == best_tier and score == best:
                            ties += 1
                    if ties > 1:
                        pick = int(np.floor(uniform(round_key, TIE) * ties))
                        for i in range(n_arms):
                            if tiers[i] == best_tier and scores[i] == best:
                                if pick == 0:
                                    arm = i
                                    break
                                pick -= 1
                    uncertain = counts_all or best_tier < 0.5

                pulls[arm] += 1
                u = uniform(reward_keys[r, arm], np.uint64(pulls[arm]))
                x = reward_of(u, params[0, arm], params[1, arm], params[2, arm], table)
                if bad[arm]:
                    last_bad[r] = t

                if not (phased and registers[0] >= 0.0):
                    n[arm] += 1.0
                    deviation = x - mean[arm]
                    mean[arm] += deviation / n[arm]
                    m2[arm] += deviation * (x - mean[arm])
                    spread = m2[arm] / (n[arm] - 1.0) if n[arm] > 1.0 else 0.0
                    lower[arm] = lower_of(mean[arm], spread, n[arm], arms, sigma)
                    if shares:
                        variance[arm] = spread
                    elif uncertain:
                        index_n[arm] += 1.0
                        deviation = x - index_mean[arm]
                        index_mean[arm] += deviation / index_n[arm]
                        index_m2[arm] += deviation * (x - index_mean[arm])
                        variance[arm] = index_m2[arm] / (index_n[arm] - 1.0) if index_n[arm] > 1.0 else 0.0
                    own[arm] = own_of(index_n[arm], clock, arms)
                if uncertain:
                    clock += 1.0
                if phased:
                    registers = transition(registers, float(arm), x, uniform(round_key, COIN), threshold, sigma)
                    afresh = registers[1] > 0.0

                done = False
                if certifies and not uncertain and n[arm] >= stop_pulls[arm]:
                    done = n[arm] * (lower[arm] - threshold) >= stop_evidence[arm]
                    for i in range(n_arms):
                        if lower[i] >= threshold and (bad[i] or lower[i] > lower[arm]):
                            done = False
                while mark < marks.size and (done or marks[mark] == t):
                    pulls_at[r, mark] = pulls
                    pulls_at[r, mark, arm] += marks[mark] - t
                    clock_at[r, mark] = int(clock) if not phased else t
                    certified_at[r, mark] = -1
                    if certifies:
                        best = -np.inf
                        for i in range(n_arms):
                            if n[i] > 0.0 and lower[i] >= threshold and (certified_at[r, mark] < 0 or lower[i] > best):
                                best = lower[i]
                                certified_at[r, mark] = i
                    mark += 1
                last_arm[r] = arm
                if done:
                    stopped[r] = t
                    break
        return stamp

    return play
