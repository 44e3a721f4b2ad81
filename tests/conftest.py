"""What several folders of tests share: the worked example as an installed package, and the command as a subprocess."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))
from installed import Command, install_brittle, install_example

# No test is a matter of time: a busy machine may take as long as it likes over an example.
settings.register_profile("upheld", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("upheld")

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every command that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_brittle(install_example(tmp_path_factory.mktemp("site")))


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Command:
    """The command in a folder where the worked example was measured, with what that printed; not to be written to."""
    command = Command(tmp_path_factory.mktemp("measured"), site)
    done = command.cold("check", "mom", "--save", "verdicts.json", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    (command.folder / "printed").write_text(done.stdout)
    (command.folder / "progress").write_text(done.stderr)
    return command


@pytest.fixture
def upheld(tmp_path: Path, site: Path) -> Command:
    """The command, with the worked example among its methods."""
    return Command(tmp_path, site)


@pytest.fixture
def inside(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command in this process, for the many ways of being wrong: each start of an interpreter costs a second or two."""
    from upheld.cli import _exit_code

    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(tmp_path)

    def command(*arguments: object) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        code = _exit_code([str(argument) for argument in arguments])
        return subprocess.CompletedProcess(arguments, code, *capsys.readouterr())

    return command
