"""What is left when the host itself is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from upheld.sandbox import protections

HOST = """
import os, sys, threading, time
from upheld.sandbox import Sandbox

def die():
    while not os.path.exists(sys.argv[1] + "/beat"): time.sleep(0.05)
    os.kill(os.getpid(), 9)

threading.Thread(target=die).start()
with Sandbox() as sandbox:
    sandbox.run("import time\\nwhile True:\\n    open('beat', 'w').write(str(time.time()))\\n    time.sleep(0.05)", write=[sys.argv[1]])
"""


@pytest.mark.skipif(not protections().strong, reason="this machine cannot confine a program strongly")
def test_a_program_ends_with_a_host_that_is_killed(tmp_path: Path) -> None:
    (scratch := tmp_path / "scratch").mkdir()
    (work := tmp_path / "work").mkdir()
    environment = os.environ | {"TMPDIR": str(scratch)}
    host = subprocess.run([sys.executable, "-c", HOST, str(work)], check=False, env=environment)
    assert host.returncode == -9
    for _ in range(100):  # the kernel may take its time on a busy machine
        last = (work / "beat").read_text()
        time.sleep(0.4)
        if (work / "beat").read_text() == last and not any(scratch.iterdir()):
            return
    pytest.fail("the program or its folder outlives its host")
