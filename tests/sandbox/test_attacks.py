"""Programs that mean harm: each fails with a reason, and the host is as it was."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from upheld.sandbox import Limits, Sandbox, SandboxRefused, protections
from upheld.sandbox.result import MECHANISMS

pytestmark = pytest.mark.skipif(not protections().strong, reason="this machine cannot confine a program strongly")

MIB = 2**20
TIGHT = Limits(
    seconds=3,
    total_seconds=20,
    cpu_seconds=3,
    memory=400 * MIB,
    output=20_000,
    file=MIB,
    folders=3 * MIB,
    value=100_000,
)
WALLS = {"all": (), "namespaces": ("landlock",), "landlock": ("namespaces",)}


@pytest.fixture(scope="module", params=WALLS)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """With everything the machine has, and with either of the two walls alone."""
    without = WALLS[request.param]
    if not protections(without).strong:
        pytest.skip(f"no strong confinement without {', '.join(without)} here")
    with Sandbox(limits=TIGHT, without=without) as box:
        yield box


def fails(sandbox: Sandbox, program: str, *words: str, **options: object) -> str:
    """What the one call of ``f`` is told to have failed of."""
    [outcome] = sandbox.call(program, "f", [[]], **options).outcomes  # type: ignore[arg-type]
    assert not outcome.ok, f"it gave {outcome.value!r}"
    assert outcome.error is not None
    assert not words or any(word in outcome.error for word in words), outcome.error
    return outcome.error


def works(sandbox: Sandbox, program: str, **options: object) -> object:
    return sandbox.call(program, "f", [[]], **options).values()[0]  # type: ignore[arg-type]


# -- files


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/etc/hostname", "~/.bashrc", "/proc/1/environ", "/var/log", "/dev/sda"]
)
def test_files_of_the_host_are_out_of_reach(sandbox: Sandbox, path: str) -> None:
    full = os.path.expanduser(path)
    fails(
        sandbox,
        f"import os\ndef f(): return os.listdir({full!r}) if os.path.isdir({full!r}) else open({full!r}).read()\n",
    )


def test_neither_are_those_of_whoever_runs_it(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("sk-planted")
    fails(sandbox, f"def f(): return open({str(tmp_path / 'secret')!r}).read()")
    fails(sandbox, f"import os\ndef f(): return os.listdir({str(tmp_path)!r})")
    # Python itself may lie in the home folder; then the way to it can be walked, and nothing beside it is seen.
    home = sandbox.call("import os\ndef f(path): return os.listdir(path)", "f", [[str(Path.home())]]).outcomes[0]
    assert not home.ok or len(home.value) <= 1  # type: ignore[arg-type]


def test_nothing_outside_is_written_or_removed(sandbox: Sandbox, tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "kept").write_text("as it was")
    for way in (
        f"open({str(outside / 'new')!r}, 'w')",
        f"open({str(outside / 'kept')!r}, 'w')",
        f"os.remove({str(outside / 'kept')!r})",
        f"os.rename({str(outside / 'kept')!r}, 'mine')",
        f"os.link({str(outside / 'kept')!r}, 'mine')",
        f"os.chmod({str(outside / 'kept')!r}, 0)",
        "open('../out/new', 'w')",
        f"(os.symlink({str(outside)!r}, 'door'), open('door/new', 'w'))",
        f"(os.symlink({str(outside / 'kept')!r}, 'leaf'), open('leaf').read())",
    ):
        fails(sandbox, f"import os\ndef f(): return str({way})\n", write=[inside])
    assert [path.name for path in outside.iterdir()] == ["kept"]
    assert (outside / "kept").read_text() == "as it was"
    assert (outside / "kept").stat().st_mode & 0o777 == 0o644


def test_a_folder_to_read_is_not_written(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("here")
    assert works(sandbox, "def f(): return open('data').read()", read=[tmp_path]) == "here"
    fails(sandbox, "def f(): open('data', 'w')", "Permission", "Read-only", read=[tmp_path])
    fails(sandbox, "def f(): open('more', 'w')", "Permission", "Read-only", read=[tmp_path])
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_libraries_of_the_host_cannot_be_changed(sandbox: Sandbox) -> None:
    import numpy

    fails(sandbox, f"def f(): open({numpy.__file__!r}, 'a').write('#')", "Permission", "Read-only")
    fails(sandbox, f"import os\ndef f(): os.remove({numpy.__file__!r})")
    assert Path(numpy.__file__).is_file()


def test_disk_is_not_filled(sandbox: Sandbox, tmp_path: Path) -> None:
    fails(sandbox, "def f(): open('big', 'wb').write(bytes(9_000_000))", "File too large", "SIGXFSZ", write=[tmp_path])
    error = fails(sandbox, """
import time
def f():
    for n in range(10_000):
        open(f"part{n}", "wb").write(bytes(500_000))
        time.sleep(0.01)
""", "Limits.folders", write=[tmp_path])  # fmt: skip
    assert "3,145,728 are allowed" in error


# -- network


@pytest.mark.parametrize(
    "way",
    [
        "socket.create_connection(('127.0.0.1', PORT), 2)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))",
        "socket.socket(socket.AF_INET6, socket.SOCK_STREAM).connect(('::1', PORT))",
        "socket.socket(socket.AF_UNIX).connect(NAME)",
        "socket.socket(socket.AF_INET).bind(('127.0.0.1', 0))",
        "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "socket.getaddrinfo('localhost', PORT)[0] and socket.create_connection(('localhost', PORT), 2)",
    ],
)
def test_no_connection_is_opened(sandbox: Sandbox, way: str) -> None:
    name = f"\0upheld-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(name)
        local.listen()
        server.settimeout(0.05)
        local.settimeout(0.05)
        program = f"import socket\nPORT, NAME = {server.getsockname()[1]}, {name!r}\ndef f(): return str({way})\n"
        fails(sandbox, program)
        for listening in (server, local):
            with pytest.raises(TimeoutError):
                listening.accept()


# -- processes


def test_a_fork_bomb_is_one_process(sandbox: Sandbox) -> None:
    before = len(psutil.pids())
    fails(sandbox, "import os\ndef f():\n    while True: os.fork()\n")
    assert len(psutil.pids()) < before + 20


@pytest.mark.parametrize(
    "way",
    ["subprocess.run(['/bin/ls'])", "os.system('true')", "os.execv('/bin/true', ['true'])", "os.posix_spawn('/bin/true', ['true'], {})",
     "multiprocessing.get_context('fork').Process(target=print).start()"],
)  # fmt: skip
def test_no_other_program_is_started(sandbox: Sandbox, way: str) -> None:
    program = f"""
import os, subprocess, multiprocessing
def f():
    code = {way}
    assert code in (0, None), code
    return str(code)
"""
    fails(sandbox, program)


def test_no_daemon_is_left_behind(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.call("""
import os, time
def f():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for n in range(100):
                open("alive", "a").write("x")
                time.sleep(0.02)
        os._exit(0)
""", "f", [[]], write=[tmp_path])  # fmt: skip
    assert not (tmp_path / "alive").exists()


@pytest.mark.parametrize("target", ["os.getppid()", "-1", "HOST", "1"])
def test_nobody_is_killed(sandbox: Sandbox, target: str) -> None:
    sandbox.call(f"import os\nHOST = {os.getpid()}\ndef f(): os.kill({target}, 9)\n", "f", [[]])
    assert works(sandbox, "def f(): return 'the sandbox still answers'") == "the sandbox still answers"


def test_other_processes_are_neither_seen_nor_traced_nor_limited(sandbox: Sandbox) -> None:
    here = os.getpid()
    fails(sandbox, f"def f(): return open('/proc/{here}/cmdline').read()\n")
    fails(sandbox, f"import resource\ndef f(): resource.prlimit({here}, resource.RLIMIT_NOFILE, (1, 1))\n")
    fails(sandbox, f"""
import ctypes
def f():
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.ptrace(16, {here}, 0, 0) == 0, ctypes.get_errno()
""")  # fmt: skip
    assert psutil.Process().num_fds() > 1


# -- time, memory, output


def test_an_endless_loop_ends(sandbox: Sandbox) -> None:
    fails(sandbox, "def f():\n    while True: pass\n", "timed out", "CPU time")


def test_sleep_and_ignored_signals_end(sandbox: Sandbox) -> None:
    fails(sandbox, """
import signal, time
def f():
    for number in range(1, 32):
        try: signal.signal(number, signal.SIG_IGN)
        except OSError: pass
    while True:
        try: time.sleep(100)
        except BaseException: pass
""", "timed out")  # fmt: skip


def test_memory_is_bounded(sandbox: Sandbox) -> None:
    fails(sandbox, "def f(): return len(bytearray(2_000_000_000))\n", "MemoryError")
    patient = replace(TIGHT, seconds=60, total_seconds=120, cpu_seconds=60)  # a busy machine fills memory slowly
    for piece in (100, 10_000_000):  # with small pieces, hardly any is left to say so
        program = f"def f():\n    held = []\n    while True: held.append(bytearray({piece}))\n"
        fails(sandbox, program, "MemoryError", limits=patient)


def test_output_and_values_are_bounded(sandbox: Sandbox) -> None:
    fails(sandbox, "def f():\n    while True: print('x' * 1000)\n", "Limits.output")
    fails(sandbox, "def f(): return 'x' * 200_000\n", "Limits.value")
    fails(sandbox, "def f():\n    a = []\n    for _ in range(100_000): a = [a]\n    return a\n", "JSON", "Recursion")


# -- what the host might be tricked into


def test_environment_and_open_files_of_the_host_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPHELD_PLANTED_KEY", "sk-planted")
    secret = tmp_path / "secret"
    secret.write_text("sk-planted")
    with secret.open() as held, Sandbox(limits=TIGHT) as box:
        os.set_inheritable(held.fileno(), True)
        seen = works(box, """
import os
def f():
    found = dict(os.environ)
    for place in range(256):
        try: found[str(place)] = os.read(place, 100).decode() if place != 3 and place > 2 else ""
        except OSError: pass
    for path in ("/proc/self/environ", "/proc/self/cmdline"):
        try: found[path] = open(path).read()
        except OSError: pass
    return found
""")  # fmt: skip
    assert "planted" not in str(seen)
    assert not set(seen) & {"PATH", "HOME", "UPHELD_PLANTED_KEY"}  # nor the warm interpreter's own


def test_no_call_sees_another(sandbox: Sandbox) -> None:
    program = """
import builtins, sys, json
def f():
    seen = getattr(builtins, "mark", None), getattr(json, "mark", None), "planted" in sys.modules
    builtins.mark = json.mark = 1
    json.dumps = lambda *_, **__: '{"done": 0, "value": "forged"}'
    sys.modules["planted"] = sys
    return list(seen)
"""
    for _ in range(3):
        [outcome] = sandbox.call(program, "f", [[]]).outcomes
        assert outcome.value in ([None, None, False], "forged")  # it may lie about itself, never about the next
    assert works(sandbox, "import json\ndef f(): return json.loads(json.dumps([1]))\n") == [1]


@pytest.mark.parametrize(
    "sent",
    ["b'garbage that is no frame at all'", "b'\\xff\\xff\\xff\\xff'", "b'\\x00\\x00\\x00\\x04true'",
     "b'\\x00\\x00\\x00\\x16{\"done\": 7, \"value\": 1}'", "b'\\x00\\x00\\x00\\x21{\"ask\": \"system\", \"arguments\": []}'"],
)  # fmt: skip
def test_forged_answers_are_told_from_real_ones(sandbox: Sandbox, sent: str) -> None:
    fails(sandbox, f"import os, time\ndef f():\n    os.write(3, {sent})\n    time.sleep(1)\n    os._exit(0)\n")
    assert works(sandbox, "def f(): return 1") == 1


def test_pickles_stay_bytes_and_planted_modules_are_not_imported(sandbox: Sandbox, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    fails(sandbox, f"""
import pickle
class Bomb:
    def __reduce__(self): return (open, ({str(marker)!r}, "w"))
def f(): return pickle.dumps(Bomb())
""", "no form in JSON")  # fmt: skip
    folder = tmp_path / "work"
    folder.mkdir()
    text = f"open({str(marker)!r}, 'w')"
    for name in ("json", "upheld", "numpy", "sitecustomize"):
        works(sandbox, f"def f(): open({name + '.py'!r}, 'w').write({text!r})", write=[folder])
    assert works(sandbox, "import json\ndef f(): return json.loads('[1]')", write=[folder]) == [1]
    assert not marker.exists()
    assert str(folder) not in sys.path


def test_system_calls_that_no_program_needs_are_refused(sandbox: Sandbox) -> None:
    for number in (
        165,
        166,
        161,
        169,
        175,
        101,
        321,
    ):  # mount, umount2, chroot, reboot, init_module, ptrace, bpf (x86-64)
        if os.uname().machine != "x86_64":
            pytest.skip("numbers are those of x86-64")
        fails(sandbox, f"""
import ctypes
def f():
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.syscall({number}, 0, 0, 0, 0, 0) >= 0, ctypes.get_errno()
""")  # fmt: skip


# -- where confinement is weak


def test_without_walls_it_refuses_unless_it_is_told_to_go_on() -> None:
    with pytest.raises(SandboxRefused, match=r"not run here: nothing would protect network.*allow weak confinement"):
        Sandbox(without=MECHANISMS).call("def f(): return 1", "f", [[]])
    with Sandbox(without=MECHANISMS, allow_weak=True, limits=TIGHT) as box:
        assert works(box, "def f(): return 1") == 1
        assert set(box.protections().missing) == {"network", "files", "processes", "memory"}
        fails(box, "def f():\n    while True: pass\n", "timed out", "CPU time")
        fails(box, "def f(): return len(bytearray(2_000_000_000))\n", "MemoryError")
