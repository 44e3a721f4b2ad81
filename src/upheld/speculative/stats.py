"""What a decoding run cost and how far its drafts went."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate
from operator import mul

import torch


def clock_of(device: torch.device) -> Callable[[], float]:
    """What decoding is timed by: on one thread the processor's clock, which other programs hardly touch.

    On a GPU the wall's; with several threads too, since their processor seconds would add up.
    """
    return time.process_time if device.type == "cpu" and torch.get_num_threads() == 1 else time.perf_counter


@dataclass
class SpecStats:
    """Of one text, or of several added up.

    Attributes
    ----------
    tokens : tokens written, the stop token among them
    cycles : verifications
    acceptance_lengths : tokens emitted by every full cycle, accepted drafts and the bonus. A cycle that the end of the
        text cut short, or whose block was shortened for it, is not among them
    drafted : drafts of those cycles
    draft_s, verify_s, prefill_s : seconds by `clock_of` the device
    peak_bytes : bytes held beyond plain decoding: drafter, its rows of the head, its context, the block's logits
    """

    tokens: int = 0
    cycles: int = 0
    acceptance_lengths: list[int] = field(default_factory=list)
    drafted: list[int] = field(default_factory=list)
    draft_s: float = 0.0
    verify_s: float = 0.0
    prefill_s: float = 0.0
    peak_bytes: int = 0

    @property
    def tau(self) -> float:
        """Mean tokens a full cycle emits, the bonus counted; NaN before there was one."""
        return sum(self.acceptance_lengths) / len(self.acceptance_lengths) if self.acceptance_lengths else float("nan")

    @property
    def position_acceptance(self) -> list[float]:
        """Entry k - 1: of the cycles that drafted a k-th token and accepted all before it, the share that accepted it too.

        NaN where no cycle came so far.
        """
        shares = []
        for k in range(1, max(self.drafted, default=0) + 1):
            reached = [n for n, d in zip(self.acceptance_lengths, self.drafted, strict=True) if d >= k and n >= k]
            shares.append(sum(n > k for n in reached) / len(reached) if reached else float("nan"))
        return shares

    @property
    def acceptance(self) -> list[float]:
        """`position_acceptance` to predict by: a place that no cycle came to counts as rejected."""
        return [share if share == share else 0.0 for share in self.position_acceptance]

    @classmethod
    def together(cls, several: Iterable[SpecStats | None]) -> SpecStats:
        """All of them added up; where nothing was counted (None), nothing is added."""
        return reduce(cls.add, (one for one in several if one is not None), cls())

    def add(self, other: SpecStats) -> SpecStats:
        """The two together."""
        return SpecStats(
            self.tokens + other.tokens,
            self.cycles + other.cycles,
            self.acceptance_lengths + other.acceptance_lengths,
            self.drafted + other.drafted,
            self.draft_s + other.draft_s,
            self.verify_s + other.verify_s,
            self.prefill_s + other.prefill_s,
            max(self.peak_bytes, other.peak_bytes),
        )


def expected_tau(acceptance: list[float]) -> float:
    """tau of a block whose k-th draft is accepted, given those before it, with the k-th of these probabilities.

    One for the bonus, and the product of the first k for the k-th draft; equal probabilities a over g drafts give
    (1 - a^(g+1)) / (1 - a).

    Examples
    --------
    >>> round(expected_tau([0.8] * 7), 8)
    4.1611392
    """
    standing: list[float] = list(accumulate(acceptance, mul))
    return 1.0 + sum(standing)
