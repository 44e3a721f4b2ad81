"""How long the next block should be, from how the last ones fared."""

from __future__ import annotations

MEMORY = 0.2
"""Weight of the newest cycle in the moving average."""

LENGTHEN, SHORTEN = 0.75, 0.35
"""Share of drafts accepted above which a block grows and below which it shrinks; apart, so that it does not flutter."""

SETTLE = 3
"""Cycles after a move in which there is no other."""


class BlockLength:
    """Tiers B, B/2, B/4, ... 2; the moving average of the share accepted moves it by one tier at a time.

    Never above the block the drafter was trained with.

    Examples
    --------
    >>> length = BlockLength(8)
    >>> for _ in range(20):
    ...     length.told(accepted=0, drafted=length.current - 1)
    >>> length.current
    2
    """

    def __init__(self, block_size: int) -> None:
        self.tiers = sorted({max(2, block_size >> halvings) for halvings in range(block_size.bit_length())})
        self._at = len(self.tiers) - 1
        self._average: float | None = None
        self._since_move = 0

    @property
    def current(self) -> int:
        return self.tiers[self._at]

    def told(self, *, accepted: int, drafted: int) -> None:
        """A cycle of `drafted` drafts ended."""
        share = accepted / drafted
        self._average = share if self._average is None else (1 - MEMORY) * self._average + MEMORY * share
        self._since_move += 1
        if self._since_move <= SETTLE:
            return
        move = int(self._average > LENGTHEN) - int(self._average < SHORTEN)
        if move and 0 <= self._at + move < len(self.tiers):
            # The share at another length is not known: start its average afresh, halfway between the two bounds.
            self._at, self._average, self._since_move = self._at + move, (LENGTHEN + SHORTEN) / 2, 0
