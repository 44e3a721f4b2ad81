"""The interface between a contest of hub detectors and those who enter it.

A detector answers with one `HubCall` for each way its penalty is chosen (*tuning*):

- ``"ic"``: the information criterion its own package or authors use;
- ``"cv"``: three-fold cross-validated Gaussian log-likelihood;
- ``"oracle"``: the best that any penalty of its first grid could do, which takes the truth;
- ``"none"``: it has nothing to tune.

Each call holds a score per variable and a selection by each *rule* of :mod:`upheld.hubs.selection`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from upheld.hubs.metrics import hub_recovery, ranking_auc
from upheld.hubs.selection import above_two_sd, common_score, degrees, intersection, strengths
from upheld.hubs.threads import few_threads
from upheld.hubs.tuning import Group, Index, Networks, Problem, Solver

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Tuning = Literal["ic", "cv", "oracle", "none"]
Rule = Literal["intersection", "score"]

MIN_SAMPLES_TO_TUNE = 6
"""Two samples for each of three folds."""


@dataclass(frozen=True)
class HubCall:
    """What one detector, tuned one way, says about every variable.

    Attributes
    ----------
    detector, tuning : who, and how the penalty was chosen
    score : (p,) higher for a likelier common hub
    selected : for each rule, the (p,) mask of the variables called common hubs
    seconds : with tuning, without compilation
    seconds_one_fit : one fit of all groups at one penalty from a cold start; `seconds` where nothing is tuned
    penalties : the penalties chosen, one entry for each problem that was tuned by itself
    extended : number of these problems whose best penalty lay at an edge of the first grid, which was then extended
    at_edge : number of them for which it still does
    converged : every solver met its tolerance at the chosen penalties
    """

    detector: str
    tuning: Tuning
    score: FloatArray
    selected: Mapping[Rule, BoolArray]
    seconds: float
    seconds_one_fit: float
    penalties: tuple[tuple[float, ...], ...] = ()
    extended: int = 0
    at_edge: int = 0
    converged: bool = True


class Detector(Protocol):
    """Anything that can enter: a name for tables, a title for people, and an answer.

    `detect` gets K arrays (n_k, p) that were checked, the tunings asked for, the (p,) mask of the true common hubs where
    "oracle" is among them, and a generator that is seeded alike for every detector.
    """

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    def detect(
        self, Xs: Sequence[FloatArray], tunings: Sequence[Tuning], hubs: BoolArray | None, rng: np.random.Generator
    ) -> list[HubCall]: ...


def contest(
    detectors: Sequence[Detector],
    Xs: Sequence[ArrayLike],
    *,
    tunings: Sequence[Tuning] = ("ic", "cv"),
    hubs: ArrayLike | None = None,
    rng: np.random.Generator,
) -> list[HubCall]:
    """Ask every detector for the common hubs of the same groups.

    Parameters
    ----------
    detectors : whom to ask
    Xs : K >= 2 arrays (n_k, p), the same variables in the same order
    tunings : how penalties are chosen; a detector without a penalty answers once, with "none"
    hubs : (p,) mask of the true common hubs, for "oracle" alone
    rng : splits the folds, alike for all detectors, and feeds those that draw at random

    Raises
    ------
    ValueError
        If there are fewer than two groups, they differ in their variables, a group has fewer than six samples, a value
        is not finite, or a variable is constant in a group; or if "oracle" is asked for without `hubs`.
    """
    groups = _checked(Xs)
    truth = None if hubs is None else np.asarray(hubs, dtype=bool)
    if "oracle" in tunings and truth is None:
        raise ValueError("the 'oracle' tuning needs the true hubs; pass hubs=, or leave 'oracle' out of tunings")
    seed = int(rng.integers(2**62))
    with few_threads(groups[0].shape[1]):
        answers = [detector.detect(groups, tunings, truth, np.random.default_rng(seed)) for detector in detectors]
    return [call for calls in answers for call in calls]


@dataclass(frozen=True)
class NodeMeasure:
    """A detector that goes straight to a number per node: `measure(Xs, rng)` gives (K, p), or (1, p) over all groups."""

    name: str
    title: str
    measure: Callable[[Sequence[FloatArray], np.random.Generator], FloatArray]

    def detect(
        self, Xs: Sequence[FloatArray], tunings: Sequence[Tuning], hubs: BoolArray | None, rng: np.random.Generator
    ) -> list[HubCall]:
        start = time.perf_counter()
        values = self.measure(Xs, rng)
        seconds = time.perf_counter() - start
        score = common_score(values)
        selected: dict[Rule, BoolArray] = {"intersection": intersection(values), "score": above_two_sd(score)}
        return [HubCall(self.name, "none", score, selected, seconds, seconds)]


@dataclass(frozen=True)
class PenalisedNetworks:
    """A detector that estimates the networks and counts degrees: `joint`ly, or one network at a time."""

    name: str
    title: str
    solver: Solver
    joint: bool = False

    def detect(
        self, Xs: Sequence[FloatArray], tunings: Sequence[Tuning], hubs: BoolArray | None, rng: np.random.Generator
    ) -> list[HubCall]:
        groups = [Group.of(X, rng) for X in Xs]
        problems = [Problem(part, self.solver) for part in ([groups] if self.joint else [[group] for group in groups])]
        one_fit = seconds_of(lambda: [problem.path.cold_fit() for problem in problems])
        whole_path = seconds_of(lambda: [problem.path.estimates_tried_first() for problem in problems])
        return [
            self._best(problems, hubs, whole_path, one_fit)
            if tuning == "oracle" and hubs is not None
            else self._tuned(problems, tuning, whole_path, one_fit)
            for tuning in tunings
        ]

    def _tuned(self, problems: Sequence[Problem], tuning: Tuning, whole_path: float, one_fit: float) -> HubCall:
        start = time.perf_counter()
        choices = [problem.choose(tuning) for problem in problems]
        networks = _estimates(problems, [choice.index for choice in choices])
        answer = _selections(networks)
        return HubCall(
            self.name,
            tuning,
            common_score(strengths(networks.sparse)),
            answer,
            whole_path + time.perf_counter() - start,
            one_fit,
            penalties=tuple(problem.path.lattice[c.index] for problem, c in zip(problems, choices, strict=True)),
            extended=sum(choice.extended for choice in choices),
            at_edge=sum(choice.at_edge for choice in choices),
            converged=networks.converged,
        )

    def _best(self, problems: Sequence[Problem], hubs: BoolArray, whole_path: float, one_fit: float) -> HubCall:
        """The same relative penalty in all groups: the best selection by each rule, and the best ranking, of the grid."""
        candidates = [_estimates(problems, [index] * len(problems)) for index in problems[0].path.lattice.indices()]
        selections = [_selections(networks) for networks in candidates]
        rules: tuple[Rule, ...] = ("intersection", "score")
        best = {
            rule: max((s[rule] for s in selections), key=lambda mask: hub_recovery(mask, hubs).f_score)
            for rule in rules
        }
        scores = [common_score(strengths(networks.sparse)) for networks in candidates]
        score = max(scores, key=lambda values: ranking_auc(values, hubs))
        return HubCall(self.name, "oracle", score, best, whole_path, one_fit)


def _selections(networks: Networks) -> dict[Rule, BoolArray]:
    return {
        "intersection": intersection(degrees(networks.sparse)),
        "score": above_two_sd(common_score(strengths(networks.sparse))),
    }


def _estimates(problems: Sequence[Problem], indices: Sequence[Index]) -> Networks:
    """The networks of all groups, each problem at its own penalty."""
    parts = [problem.path[index] for problem, index in zip(problems, indices, strict=True)]
    return Networks(
        np.concatenate([part.sparse for part in parts]),
        np.concatenate([part.Thetas for part in parts]),
        np.concatenate([part.n_parameters for part in parts]),
        all(part.converged for part in parts),
    )


def seconds_of(work: Callable[[], object]) -> float:
    """Wall-clock."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _checked(Xs: Sequence[ArrayLike]) -> list[FloatArray]:
    groups = [np.asarray(X, dtype=float) for X in Xs]
    if len(groups) < 2:
        raise ValueError(f"common hubs need at least two groups, got {len(groups)}")
    for k, X in enumerate(groups):
        if X.ndim != 2 or X.shape[1] != groups[0].shape[-1]:
            raise ValueError(f"group {k} has shape {X.shape}, group 0 {groups[0].shape}; give (n_k, p) with the same p")
        if len(X) < MIN_SAMPLES_TO_TUNE:
            raise ValueError(
                f"group {k} has {len(X)} samples; cross-validation in three folds needs {MIN_SAMPLES_TO_TUNE}"
            )
        if not np.isfinite(X).all():
            i, j = np.argwhere(~np.isfinite(X))[0]
            raise ValueError(f"group {k} holds {X[i, j]} in row {i}, column {j}; drop or impute such values first")
        if (flat := np.ptp(X, axis=0) == 0).any():
            raise ValueError(f"column {int(np.argmax(flat))} is constant in group {k}; drop it from all groups")
    return groups
