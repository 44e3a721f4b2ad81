"""Progress of long work: what is done, what failed, how long it will take."""

from __future__ import annotations

import statistics
import time
from collections import Counter, defaultdict
from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from upheld.claims import Plan, Result
from upheld.claims.preparation import lacking
from upheld.cli.output import progress

QUIET_S = 20.0


class Forecast:
    """Seconds that the trials still to come will take, from the trials that were.

    Trials of one experiment cost alike, but for the first ones, which load and compile; an experiment of which none has
    ended yet is taken to cost like the average of the others.
    How many run at a time is seen from the time that has passed.
    """

    def __init__(self, plan: Plan) -> None:
        self.waiting = Counter(trial.experiment for _, trial in plan.pending)
        self._began = time.monotonic()
        self._seconds: dict[str, list[float]] = defaultdict(list)

    def learn(self, result: Result) -> None:
        self.waiting[result.trial.experiment] -= 1
        self._seconds[result.trial.experiment].append(result.seconds)

    def seconds_left(self) -> float | None:
        """None before anything is known."""
        known = {name: statistics.median(seconds) for name, seconds in self._seconds.items()}
        if not known:
            return None
        typical = sum(known.values()) / len(known)
        work = sum(count * known.get(name, typical) for name, count in self.waiting.items())
        done = sum(map(sum, self._seconds.values()))
        return work * (time.monotonic() - self._began) / done if done > 0 else None


class Display:
    """A bar on a terminal; elsewhere a line now and then."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.forecast = Forecast(plan)
        self.console = progress()
        self.failures: Counter[str] = Counter()
        self.done = 0
        self._said = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"), console=self.console, transient=True,
        )  # fmt: skip

    def __enter__(self) -> Display:
        total = len(self.plan.pending)
        before = f", {self.plan.present:,} are there already" if self.plan.present else ""
        stale = f", {self.plan.stale:,} of older sources are not used" if self.plan.stale else ""
        self._say(f"{self.plan.scale} scale: {total:,} trials to measure{before}{stale}")
        first = Counter(recipe.preparation.name for recipe in lacking(self.plan.pending))
        if first:
            names = ", ".join(name if count == 1 else f"{name} ({count} of them)" for name, count in first.items())
            self._say(f"preparing first, once and for all runs: {names}")
        self._task = self._bar.add_task("preparing" if first else "starting", total=total, left="")
        if total and self.console.is_terminal:
            self._bar.start()
        return self

    def show(self, result: Result) -> None:
        self.done += 1
        self.forecast.learn(result)
        if result.status == "failed":
            self.failures[result.reason] += 1
            if self.failures[result.reason] == 1:
                self._say(f"failed: {result.trial}: {result.reason}")
        left = _clock(self.forecast.seconds_left())
        self._bar.update(self._task, advance=1, description=result.trial.experiment, left=left)
        if not self.console.is_terminal and time.monotonic() - self._said > QUIET_S:
            self._said = time.monotonic()
            self._say(f"{self.done:,} of {len(self.plan.pending):,} trials, {left}")

    def _say(self, line: str) -> None:
        """A line above the bar, as it is: not folded, since elsewhere than on a terminal nobody knows how wide it may be."""
        self.console.print(line, markup=False, soft_wrap=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar.live.is_started:  # one that was not still prints an empty line
            self._bar.stop()
        if kind is KeyboardInterrupt:
            self._say(f"stopped; {self.done:,} results are kept, the same command goes on from there")
        elif sum(self.failures.values()):
            self._say(f"{sum(self.failures.values()):,} trials failed; --retry-failed measures them again")


def _clock(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    return f"about {minutes} min {rest:02d} s left" if minutes else f"about {rest} s left"
