"""Where the multipliers of a run come from: a learner and the past, or a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from upheld.lagrangian.ascent import box_of
from upheld.lagrangian.bounds import lipschitz, sample_size
from upheld.lagrangian.command.options import CONTEXTUAL_ENDING, Options
from upheld.lagrangian.command.reading import Read, explained, named
from upheld.lagrangian.contextual import EPOCHS, ContextualMultipliers
from upheld.lagrangian.drift import DriftAlarm
from upheld.lagrangian.graph import graph_of
from upheld.lagrangian.learners import (
    TIMES_LP,
    ERMMultipliers,
    MultiplierLearner,
    SGAMultipliers,
    WarmStartMultipliers,
)
from upheld.lagrangian.oracles import Instance
from upheld.lagrangian.saving import for_instance, is_contextual, load_multipliers, save_multipliers
from upheld.lagrangian.tracking import TrackingMultipliers

FEWEST_FOR_ALARM = 19  # so that one in twenty can be told
CONFIDENCE = 0.95  # of what is said from the supergradients seen
ENOUGH = 0.01  # of the bound: the accuracy for which the theorem's number of instances is told


@dataclass
class Learned:
    """Multipliers for any instance with these rows.

    Attributes
    ----------
    predict : instance to (s,) multipliers
    learn : one more instance, where that is possible
    duals : (N, s) LP multipliers of the past; none where multipliers were loaded
    alarm : says whether an instance is unlike the past
    account : for the report
    """

    predict: Callable[[Instance], np.ndarray]
    learn: Callable[[Instance], object] | None
    duals: np.ndarray
    alarm: DriftAlarm | None
    account: dict[str, Any]
    learner: MultiplierLearner | None = None


def loaded(path: Path, first: Read) -> Learned:
    """Multipliers from a file; `first` must have their rows."""
    if is_contextual(path):
        network = ContextualMultipliers.load(path)
        with named(first.path):
            network.predict(first.P)
        return Learned(network.predict, None, np.empty((0, first.P.n_rows)), network.alarm_, {"loaded": str(path)})
    held = load_multipliers(path)
    with named(path):
        pi = for_instance(held, first.P)
    if ((pi < 0) & ~first.P.equality).any():
        row = first.P.row_names[int(np.argmax((pi < 0) & ~first.P.equality))]
        raise ValueError(
            f"{path}: the multiplier of the inequality row {row} is negative, which proves nothing; set it to 0 or more"
        )
    return Learned(lambda P: pi, None, np.empty((0, pi.size)), None, {"loaded": str(path)})


def priced_rows(path: Path) -> list[str]:
    """The coupling rows to which the multipliers in a file belong."""
    return ContextualMultipliers.load(path).row_names_ if is_contextual(path) else list(load_multipliers(path))


def learned(past: Sequence[Read], options: Options, told: Callable[[int], None]) -> Learned:
    """Learn from the past; `told` hears how many of 2 N + 1 pieces of work are done.

    Raises
    ------
    ValueError
        If an instance has no LP optimum, a block is infeasible or unbounded, or there are too few instances for the learner.
    """
    begin = time.perf_counter()
    graphs = []
    for done, read in enumerate(past, 1):
        with named(read.path), explained(read.P):
            graphs.append(graph_of(read.M))
        told(done)
    duals = np.array([graph.lp_dual for graph in graphs])
    end = options.pi_max or TIMES_LP * float(np.abs(duals).max(initial=0.0)) or 1.0
    learner = _learner(options, end, past, duals)
    for done, read in enumerate(past, 1):
        with named(read.path):
            learner.partial_fit(read.P)
        told(len(past) + done)
    learner.predict(past[-1].P)  # those that solve when asked
    told(2 * len(past) + 1)
    alarm = DriftAlarm().fit(graphs) if len(past) >= FEWEST_FOR_ALARM else None
    account = _account(learner, options, past, time.perf_counter() - begin)
    return Learned(learner.predict, learner.partial_fit, duals, alarm, account, learner)


def _learner(options: Options, end: float, past: Sequence[Read], duals: np.ndarray) -> MultiplierLearner:
    name, calls = options.learner_name, options.learn_calls or 500
    if name == "sga":
        init = box_of(past[0].P, end).clip(duals[0])
        return SGAMultipliers(pi_max=end, init=init, n_jobs=options.jobs)
    if name == "paper":
        B = max(read.P.B for read in past)
        return SGAMultipliers(
            pi_max=end, init="zero", step="theory", average="uniform", horizon=len(past), B=B, n_jobs=options.jobs
        )
    if name == "tracking":  # as many to come as there were
        init = box_of(past[0].P, end).clip(duals[0])
        return TrackingMultipliers(pi_max=end, horizon=2 * len(past), init=init, n_jobs=options.jobs)
    if name == "erm":
        return ERMMultipliers(pi_max=end, passes=calls, n_jobs=options.jobs)
    if name == "warm-start":
        return WarmStartMultipliers(pi_max=end, calls=calls, n_jobs=options.jobs)
    return ContextualMultipliers(pi_max=end, epochs=options.epochs or EPOCHS, random_state=options.seed)


def _account(learner: MultiplierLearner, options: Options, past: Sequence[Read], seconds: float) -> dict[str, Any]:
    """The constants of the theory, what it proves, and how many instances it would take to prove one per cent."""
    B, s = learner.B_, past[0].P.n_rows
    scale = ENOUGH * abs(float(np.mean([read.M.lp_relaxation()[0] for read in past])))
    account: dict[str, Any] = {
        "learner": options.learner_name, "instances": [read.title for read in past], "rows": s, "B": B, "pi_max": learner.pi_max_,
        "seconds": seconds, "theorem_bound": learner.bound_, "theorem_instances_for_1_percent": None, "one_percent": scale,
    }  # fmt: skip
    method = {"sga": "sga", "paper": "sga", "erm": "erm"}.get(options.learner_name)
    if method is not None and scale > 0:
        account["theorem_instances_for_1_percent"] = sample_size(s, scale, B, learner.pi_max_, method)
    if isinstance(learner, ContextualMultipliers):
        account |= {"chosen": learner.chosen_, "epoch": learner.epoch_, "validation": learner.validation_}
    return account | observed(learner, scale)


def observed(learner: MultiplierLearner | None, one_percent: float) -> dict[str, Any]:
    """What averaged SGA's theorem says with the supergradients seen so far in place of the longest: with 95 % confidence."""
    if not isinstance(learner, SGAMultipliers) or one_percent <= 0:
        return {}
    length, s = learner.observed_length(1 - CONFIDENCE), len(learner.row_names_)
    return {
        "observed_length": length,
        "longest": lipschitz(s, learner.B_),
        "observed_bound": learner.observed_bound(1 - CONFIDENCE),
        "observed_instances_for_1_percent": sample_size(
            s, one_percent, learner.B_, learner.pi_max_, "sga", length=length
        ),
    }


def save(found: Learned, path: Path, read: Read) -> None:
    """The multipliers for `read`; of a network, the network."""
    if isinstance(found.learner, ContextualMultipliers) and path.suffix == CONTEXTUAL_ENDING:
        found.learner.save(path)
    else:
        save_multipliers(path, read.P.row_names, found.predict(read.P))
