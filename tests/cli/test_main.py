"""The door of the command."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

from upheld.__main__ import main


def test_ctrl_c_while_the_command_is_being_loaded_is_no_traceback(monkeypatch: pytest.MonkeyPatch):
    class Loading(ModuleType):
        def __getattr__(self, name: str):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "upheld.cli", Loading("upheld.cli"))
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130


def test_python_m_upheld_is_the_command():
    done = subprocess.run([sys.executable, "-m", "upheld", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "check" in done.stdout


def test_a_method_s_name_is_short_for_run(upheld):
    short, long = upheld("bandits", "--help"), upheld("run", "bandits", "--help")
    assert (short.returncode, short.stdout) == (0, long.stdout)


def test_what_is_neither_a_verb_nor_a_method_is_refused(upheld):
    done = upheld("nosuch")
    assert done.returncode == 2
    assert "No such command 'nosuch'" in done.stderr
