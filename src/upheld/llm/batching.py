"""Which texts go through a network together."""

from __future__ import annotations

from collections.abc import Sequence


def batches(lengths: Sequence[int], *, tokens: int, rows: int | None = None) -> list[list[int]]:
    """Texts of like length together, the longest first, so that little is padded and memory runs out at once or never.

    Parameters
    ----------
    lengths : of every text, in tokens
    tokens : bound on rows times longest, padding counted; a text that is longer goes alone
    rows : bound on the number of texts in a batch

    Returns
    -------
    places of the texts, batch by batch

    Examples
    --------
    >>> batches([3, 9, 2, 8], tokens=18)
    [[1, 3], [0, 2]]
    """
    found: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        last = found[-1] if found else []
        room = bool(last) and (len(last) + 1) * lengths[last[0]] <= tokens and (rows is None or len(last) < rows)
        if room:
            last.append(place)
        else:
            found.append([place])
    return found
