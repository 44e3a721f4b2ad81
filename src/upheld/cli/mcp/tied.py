"""``python -m upheld.cli.mcp.tied FD run hubs ...``: a command that ends, with all it started, when whoever called it is gone.

The caller holds the other end of the pipe FD; however the caller dies, the kernel closes it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from upheld.cli import main

GRACE_S = 5.0
"""Between the request to end, which lets a command take away what is half-written, and the kill."""


def _end_with(lifeline: int) -> None:
    while os.read(lifeline, 1):
        pass
    os.killpg(0, signal.SIGTERM)
    time.sleep(GRACE_S)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    lifeline = int(sys.argv[1])
    os.set_inheritable(lifeline, False)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    main(sys.argv[2:])
