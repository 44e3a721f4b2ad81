"""What is computed and what became of it."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol


@dataclass(frozen=True)
class Job:
    """One call, made in a worker process with a time limit of its own.

    Parameters
    ----------
    key : names the job in its outcome; never leaves this process
    call : a function of a module that workers can import; not a lambda, an inner function or one of `__main__`
    args : its arguments; they are pickled
    timeout_s : seconds the call may take, counted from when function and arguments are loaded in the worker
    """

    key: Hashable
    call: Callable[..., Any]
    args: tuple[Any, ...]
    timeout_s: float

    def __post_init__(self) -> None:
        if not self.timeout_s > 0:
            raise ValueError(f"timeout_s of job {self.key!r} must be above 0, got {self.timeout_s}")


@dataclass(frozen=True)
class Outcome:
    """What became of one job.

    Attributes
    ----------
    key : the job's key
    status : "done" or "failed"
    value : what the call returned; None if it failed
    reason : why it failed, on one line, with file and line if it raised; empty if it is done
    error : the class name of the exception; None if none was raised (time limit, crash, kill)
    traceback : the exception's traceback or, for a crash or a time limit, where Python stood; then the last lines that
        the job printed. Empty if it is done.
    seconds : wall time of the call, without loading it or sending its value
    peak_memory : bytes; the most that the whole worker process held resident while this job ran, its imports included
        (Linux; elsewhere the most since the worker started). 0 where a crash left nobody to ask.
    host : the machine it ran on
    """

    key: Hashable
    status: Literal["done", "failed"]
    value: Any
    reason: str = ""
    error: str | None = None
    traceback: str = ""
    seconds: float = 0.0
    peak_memory: int = 0
    host: str = ""


class Compute(Protocol):
    """A place where jobs run."""

    def run(self, jobs: Iterable[Job], workers: int | None = None) -> Iterator[Outcome]:
        """Run `jobs`, yield each one's outcome as it ends, in any order.

        A job is drawn from `jobs` only when a worker is free for it. Closing the iterator stops whatever still runs; an
        exception that `jobs` raises does so too, and propagates.

        Parameters
        ----------
        workers : most jobs at a time in this call, if that is fewer than the place has; a worker's limits stay what they
            are

        Raises
        ------
        ValueError
            If workers is not positive.
        """
        ...


def seal(job: Job) -> bytes | Outcome:
    """The job's call as bytes for a worker; or its outcome, since what cannot be pickled is this one job's failure."""
    try:
        if getattr(job.call, "__module__", None) == "__main__":
            raise pickle.PicklingError("it is defined in the script that is being run; move it to a module of its own")
        return pickle.dumps((job.call, job.args), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        name = getattr(job.call, "__qualname__", repr(job.call))
        return failed(
            job.key, f"the call of {name} cannot be sent to a worker: {one_line(error)}", type(error).__name__
        )


def unseal(sealed: Outcome) -> Outcome:
    """The outcome, its value no longer pickled."""
    try:
        return replace(sealed, value=pickle.loads(sealed.value)) if sealed.status == "done" else sealed
    except Exception as error:
        return failed(sealed.key, f"the result cannot be unpickled: {one_line(error)}", type(error).__name__)


def failed(key: Hashable, reason: str, error: str | None = None) -> Outcome:
    """A failure that was met in this process."""
    return Outcome(key, "failed", None, reason, error, host=socket.gethostname())


def one_line(error: BaseException) -> str:
    """Class and message of an exception, on one line."""
    try:
        message = " ".join(str(error).split())
    except Exception:
        message = "(its message cannot be printed)"
    return f"{type(error).__name__}: {message}"[:500] if message else type(error).__name__
