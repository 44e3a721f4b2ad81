"""Work on several items at a time, in threads that a key stroke or a failure ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def abreast(work: Callable[[Item, Event], Result], items: Sequence[Item], n: int) -> Iterator[tuple[int, Result]]:
    """Results as they come, each with its item's place; at most `n` items are worked on at a time.

    After a failure no item is begun, those begun come to their end, and then the failure is raised. `work` is given an
    event that is set by then; it should wait on it rather than sleep.
    """
    stop = Event()
    if n == 1 or len(items) == 1:
        for place, item in enumerate(items):
            yield place, work(item, stop)
        return
    waiting: SimpleQueue[int] = SimpleQueue()
    done: SimpleQueue[tuple[int, Result | None, BaseException | None]] = SimpleQueue()
    for place in range(len(items)):
        waiting.put(place)

    def worker() -> None:
        while not stop.is_set():
            try:
                place = waiting.get_nowait()
            except Empty:
                break
            try:
                done.put((place, work(items[place], stop), None))
            except BaseException as error:  # handed over, and raised there
                stop.set()
                done.put((place, None, error))
        done.put((-1, None, None))

    threads = min(n, len(items))
    failure: BaseException | None = None
    try:
        for _ in range(threads):
            Thread(
                target=worker, daemon=True
            ).start()  # a daemon: an interrupted program does not wait for a slow answer
        while threads:
            place, result, error = done.get()
            if place < 0:
                threads -= 1
            elif error is not None:
                failure = failure or error
            else:
                yield place, result  # type: ignore[misc]
    finally:
        stop.set()
    if failure is not None:
        raise failure
