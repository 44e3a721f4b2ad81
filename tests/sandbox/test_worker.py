"""What is left when the host itself is killed."""

from __future__ import annotations

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
    host = subprocess.run([sys.executable, "-c", HOST, str(tmp_path)], check=False)
    assert host.returncode == -9
    for _ in range(100):  # the kernel may take its time on a busy machine
        last = (tmp_path / "beat").read_text()
        time.sleep(0.4)
        if (tmp_path / "beat").read_text() == last:
            return
    pytest.fail("the program goes on without its host")
