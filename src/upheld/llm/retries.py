"""When a request is tried again: the one policy of all endpoints."""

from __future__ import annotations

import random
from dataclasses import dataclass

_dice = random.Random()  # its own: the caller's seeded generator is not touched


@dataclass(frozen=True)
class Retries:
    """Exponential back-off with jitter, bounded.

    Tried again: 408, 409, 425, 429, every 5xx, a connection that fails or drops, a time-out. Not tried again: whatever would fail the
    same way (400, 401, 404, a reply that is no answer), an exhausted quota, and what the server says not to repeat.

    Parameters
    ----------
    tries : how often a request is sent in all
    first_s : seconds before the second try; doubled each time, less up to half at random so that clients do not return in step
    longest_s : no wait is longer; a server that asks for more (Retry-After) ends the tries
    """

    tries: int = 6
    first_s: float = 0.5
    longest_s: float = 60.0

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise ValueError(f"tries must be at least 1, got {self.tries}")
        if not 0 <= self.first_s <= self.longest_s:
            raise ValueError(f"0 <= first_s <= longest_s must hold, got {self.first_s} and {self.longest_s}")

    def wait(self, failed: int, asked_s: float | None = None) -> float | None:
        """Seconds to wait after `failed` tries, not less than the server asked for; None: no further try."""
        if failed >= self.tries or (asked_s is not None and asked_s > self.longest_s):
            return None
        backoff = min(self.first_s * 2.0 ** min(failed - 1, 30), self.longest_s) * _dice.uniform(0.5, 1)
        return backoff if asked_s is None else max(backoff, asked_s * _dice.uniform(1, 1.1))
