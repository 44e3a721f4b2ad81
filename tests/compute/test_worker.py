from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys

import compute_toys as toys
import pytest

from upheld.compute.worker import execute


def test_execute_says_when_it_starts_and_returns_the_value_pickled() -> None:
    said = []
    outcome = execute(pickle.dumps((toys.square, (5,))), started=lambda: said.append("started"))
    assert said == ["started"]
    assert pickle.loads(outcome.value) == 25


def test_execute_does_not_start_what_it_cannot_load() -> None:
    said = []
    outcome = execute(b"no pickle", started=lambda: said.append("started"))
    assert said == []
    assert outcome.error == "UnpicklingError"


@pytest.mark.parametrize("platform", ["linux", "elsewhere"])
@pytest.mark.parametrize("already", [False, True])
def test_lifeline_kills_the_whole_group(platform: str, already: bool) -> None:
    """Both ways of holding it, also when the parent died before the worker listened."""
    if platform == "linux" and sys.platform != "linux":
        pytest.skip("signals on pipes are Linux's")
    theirs, ours = os.pipe()
    code = (
        "import subprocess, sys, time; from upheld.compute import worker; "
        "child = subprocess.Popen(['sleep', '60']); print(child.pid, flush=True); sys.stdin.readline(); "
        f"sys.platform = {platform!r}; worker.die_with_parent({theirs}); print('armed', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=[theirs],
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    os.close(theirs)
    child = int(process.stdout.readline())
    if already:
        os.close(ours)
    process.stdin.write("go\n")
    process.stdin.flush()
    if not already:
        assert process.stdout.readline() == "armed\n"
        assert process.poll() is None
        os.close(ours)
    process.communicate(timeout=20)  # returns once the child too has let go of stdout
    assert process.returncode == -signal.SIGKILL
    assert not os.path.exists(f"/proc/{child}/cwd")
