"""Memory that was freed is kept for the next matrix.

The C library of Linux (glibc) gives a freed matrix of some megabytes back to the kernel, which has to find and clear its pages again for
the next one. Measured with batches of 500 rows, d = 10, D = 256, k = 256: a quarter of the time, 20,000 rows a second with projected pairs
where 28,000 are possible. The library stops doing so for blocks up to the largest that it has seen freed, 32 MB at most; so one that nobody
writes to is asked for and freed. Up to 64 MB that were used once then stay with the process; other C libraries do not mind.
"""

from __future__ import annotations

from functools import cache

import numpy as np

LARGEST = 31 * 2**20  # bytes; the limit, with the library's own header, is 2^25


@cache
def keep_freed_memory() -> None:
    """Once in a process."""
    np.empty(LARGEST, dtype=np.uint8)
