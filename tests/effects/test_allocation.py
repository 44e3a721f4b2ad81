from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

MAPPED = """
import ctypes
import numpy as np
from upheld.effects.allocation import keep_freed_memory

class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

counts = ctypes.CDLL(None).mallinfo2
counts.restype = Counts

def blocks_from_the_kernel(megabytes):
    before = counts().hblks
    matrix = np.empty(megabytes * 2**20, dtype=np.uint8)
    return counts().hblks - before

print(blocks_from_the_kernel(16))  # freed, it would keep the next one of its size, but none of 24
keep_freed_memory()
print(blocks_from_the_kernel(24))
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="other C libraries do not count so"
)
def test_large_matrices_no_longer_come_from_the_kernel_one_by_one():
    said = subprocess.run([sys.executable, "-c", MAPPED], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["1", "0"]
