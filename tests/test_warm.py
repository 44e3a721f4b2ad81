"""A forked command is what a command with an interpreter of its own is, or it is not forked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import warm
from installed import Command, alive
from installed import warm as the_warm

SEEN = """
import json, os, random, signal, sys, threading, warnings
import numpy
seen = {
    "arguments": sys.argv, "folder": os.getcwd(), "path": sys.path, "variables": dict(os.environ), "flags": str(sys.flags),
    "name": [__name__, __spec__.name, __file__, sys.modules["__main__"].__dict__ is globals()],
    "streams": [
        [one.name, one.encoding, one.errors, one.line_buffering, one.isatty()] for one in (sys.stdin, sys.stdout, sys.stderr)],
    "read": sys.stdin.read(), "umask": os.umask(0), "threads": threading.active_count(),
    "signals": [str(signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD)],
    "open": sorted(one for one in map(int, os.listdir("/proc/self/fd")) if os.path.exists(f"/proc/self/fd/{one}")),
    "drawn": [random.random(), numpy.random.random()],
}
print(json.dumps(seen))
"""
ENDS = {
    "a code": "import sys; print('out'); print('error', file=sys.stderr); sys.exit(3)",
    "a word": "import sys; sys.exit('no good')",
    "a fault": "raise ValueError('no good')",
    "Ctrl-C": "raise KeyboardInterrupt",
    "SIGKILL": "import os; print('not flushed'); os.kill(os.getpid(), 9)",
    "a request": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "at once": "import os; print('not flushed'); os._exit(5)",
    "at exit": "import atexit; atexit.register(print, 'bye'); print('hi')",
    "a thread": "import threading, time; threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start(); print('early')",
    "letters": r"print('a\r\nb\rc'); print('\u20ac')",
    "descriptors": "import os; os.write(1, b'out'); os.write(2, b'error'); os.system('echo a child of its own')",
}


@pytest.fixture
def both(tmp_path: Path):
    """A program, run as a module of the folder, forked and in an interpreter of its own."""
    variables = Command(tmp_path, tmp_path).variables(UPHELD_SEEN="seen")

    def run(program: str) -> tuple[subprocess.CompletedProcess[str], subprocess.CompletedProcess[str]]:
        (tmp_path / "program.py").write_text(program)
        line = [sys.executable, "-m", "program", "a", "b c"]
        own = subprocess.run(line, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60)
        return the_warm().run("program", line[3:], tmp_path, variables), own

    return run


def test_a_program_sees_what_it_would_see(both):
    forked, own = (json.loads(done.stdout) for done in both(SEEN))
    drawn = forked.pop("drawn"), own.pop("drawn")
    assert forked == own
    assert own["variables"]["UPHELD_SEEN"] == "seen"
    again = json.loads(both(SEEN)[0].stdout)["drawn"]
    assert len({*drawn[0], *drawn[1], *again}) == 6, "no two draw the same"


@pytest.mark.parametrize("program", ENDS.values(), ids=ENDS)
def test_it_ends_as_it_would_end(both, program):
    forked, own = both(program)
    assert (forked.returncode, forked.stdout) == (own.returncode, own.stdout)
    assert forked.stderr.splitlines()[-1:] == own.stderr.splitlines()[-1:]


def test_nothing_is_left_of_one_call_in_the_next(both):
    both(
        "import os, sys, upheld.cli, warnings; os.environ['LEFT'] = '1'; warnings.simplefilter('error'); sys.path.append('left')"
    )
    forked, own = (json.loads(done.stdout) for done in both(SEEN))
    del forked["drawn"], own["drawn"]
    assert forked == own


def test_what_a_library_reads_when_it_is_imported_takes_an_interpreter_of_its_own(tmp_path):
    variables = Command(tmp_path, tmp_path).variables()
    assert the_warm().can(variables)
    assert the_warm().can(variables | {"UPHELD_CACHE": "x", "BRITTLE_FAILS": "1"})
    for name in ("PYTHONIOENCODING", "OMP_NUM_THREADS", "HF_HOME", "COLUMNS"):
        assert not the_warm().can(variables | {name: "2"})
    (tmp_path / "sitecustomize.py").write_text("")
    assert not the_warm().can(variables)


@pytest.mark.parametrize(
    ("loaded", "said"), [("this", "said while importing:\nThe Zen of Python"), ("upheld", "upheld is each child's own")]
)
def test_what_would_be_missed_is_told(monkeypatch, tmp_path, loaded, said):
    monkeypatch.setitem(warm.IMPORTS, "mine", (loaded,))
    started = warm.Warm(os.environ)
    with pytest.raises(RuntimeError, match=said):
        started.run("upheld.cli", ["run", "mine"], tmp_path, os.environ)
    assert started.ended


def test_a_call_that_takes_too_long_is_killed(monkeypatch, tmp_path):
    monkeypatch.setitem(warm.IMPORTS, "mine", ())
    started = warm.Warm(os.environ)
    (tmp_path / "slow.py").write_text("import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)")
    with pytest.raises(subprocess.TimeoutExpired):
        started.run("slow", ["run", "mine"], tmp_path, dict(os.environ) | {"PYTHONPATH": str(tmp_path)}, timeout=2)
    slow = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if not alive(slow):
            return
        time.sleep(0.05)
    pytest.fail("it lives on")
