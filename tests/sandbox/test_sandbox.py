"""What an honest program gets: values, callbacks, folders, errors that say where."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

import upheld.sandbox
import upheld.sandbox.limits
import upheld.sandbox.sandbox
from upheld.sandbox import Limits, Sandbox, protections


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    if not protections().strong:
        pytest.skip("this machine cannot confine a program strongly")
    with Sandbox(limits=Limits(seconds=5)) as box:
        yield box


@pytest.mark.parametrize(
    "module", [upheld.sandbox, upheld.sandbox.limits, upheld.sandbox.sandbox], ids=lambda one: one.__name__
)
@pytest.mark.usefixtures("sandbox")  # they need strong confinement
def test_examples(module) -> None:
    assert doctest.testmod(module).failed == 0


def test_one_call_takes_many_lists_of_arguments_and_one_that_fails_spoils_itself_alone(sandbox: Sandbox) -> None:
    program = """
import os
def f(x, by=2):
    if x == "die": os._exit(3)
    print("saw", x)
    return x / by
"""
    result = sandbox.call(program, "f", [[4], ["no"], ["die"], [6], [0]], keywords={"by": 2})
    assert [outcome.value for outcome in result.outcomes] == [2.0, None, None, 3.0, 0.0]
    assert result.outcomes[1].error == "TypeError: unsupported operand type(s) for /: 'str' and 'int' (line 6)"
    assert result.outcomes[2].error == "ended its process with code 3 and gave no answer"
    assert result.stdout == "saw 4\nsaw no\nsaw 6\nsaw 0\n"
    with pytest.raises(ValueError, match="argument list 1 of 5: TypeError"):
        result.values()


def test_a_program_that_cannot_be_loaded_says_why(sandbox: Sandbox) -> None:
    for program, why in (
        ("def f(:", "SyntaxError"),
        ("1/0", "ZeroDivisionError"),
        ("x = 1", "defines no function 'f'"),
    ):
        outcomes = sandbox.call(program, "f", [[], []]).outcomes
        assert all(why in str(outcome.error) and "could not be loaded" in str(outcome.error) for outcome in outcomes)


def test_callbacks_of_the_host(sandbox: Sandbox) -> None:
    def embed(texts: list[str]) -> np.ndarray:
        if not texts:
            raise ValueError("there is no text")
        return np.array([[len(text), 1.0] for text in texts])

    program = """
def f(texts, embed):
    try: return embed(texts)
    except Exception as wrong: return f"{type(wrong).__name__}: {wrong}"
"""
    found = sandbox.call(program, "f", [[["a", "bcd"]], [[]]], callbacks={"embed": embed}).values()
    assert found == [[[1.0, 1.0], [3.0, 1.0]], "HostError: embed: there is no text"]


def test_too_many_callbacks_end_it(sandbox: Sandbox) -> None:
    program = "def f(tell):\n    while True: tell()\n"
    [outcome] = sandbox.call(program, "f", [[]], callbacks={"tell": lambda: 1}, limits=Limits(callbacks=10)).outcomes
    assert outcome.error == "called the host more than 10 times (Limits.callbacks)"


def test_what_a_callback_raises_otherwise_is_the_host_s_own(sandbox: Sandbox) -> None:
    def broken() -> None:
        raise KeyError("the host's own fault")

    with pytest.raises(KeyError, match="own fault"):
        sandbox.call("def f(tell): tell()", "f", [[]], callbacks={"tell": broken})
    assert sandbox.call("def f(): return 1", "f", [[]]).values() == [1]


def test_scripts(sandbox: Sandbox, tmp_path: Path) -> None:
    result = sandbox.run(
        "import sys\nprint(__name__, sys.argv[1:])\nopen('made', 'w').write('x')", ["a", "b"], write=[tmp_path]
    )
    assert result.ok, result.error
    assert result.stdout == "__main__ ['a', 'b']\n"
    assert (tmp_path / "made").read_text() == "x"
    failed = sandbox.run("import sys\nsys.exit(4)")
    assert failed.error == "SystemExit: the program ended itself with code 4"


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"read": ["nowhere"]}, "does not exist"),
        ({"read": ["/"]}, "the whole machine"),
        ({"arguments": [[{1, 2}]]}, "not JSON serializable"),
    ],
)
def test_bad_arguments(sandbox: Sandbox, arguments: dict, match: str) -> None:
    with pytest.raises((ValueError, TypeError), match=match):
        sandbox.call("def f(*_): return 1", "f", **({"arguments": [[]]} | arguments))


def test_bad_settings() -> None:
    with pytest.raises(ValueError, match="limit 'seconds' must be a positive number, got -1"):
        Limits(seconds=-1)
    with pytest.raises(ValueError, match="no mechanism is called 'bwrap'"):
        Sandbox(without=["bwrap"])
    with pytest.raises(ValueError, match="'no_such_module' cannot be imported beforehand"):
        Sandbox(preload=["no_such_module"], allow_weak=True).call("", "f", [[]])


def test_nothing_is_left_of_it() -> None:
    me = psutil.Process()
    before, files = set(me.children(recursive=True)), me.num_fds()
    with Sandbox(allow_weak=True) as box:
        box.call("def f(): return 1", "f", [[], []])
    assert not set(me.children(recursive=True)) - before
    assert me.num_fds() <= files


def test_numpy_can_be_had_warm(sandbox: Sandbox) -> None:
    with Sandbox(preload=["numpy"]) as box:
        assert box.call("import numpy\ndef f(x): return numpy.sum(x).tolist()", "f", [[[1, 2, 3]]]).values() == [6]


def test_protections_are_told(sandbox: Sandbox) -> None:
    result = sandbox.call("def f(): return 1", "f", [[]])
    assert result.protections.strong
    assert result.protections == sandbox.protections()
    assert "network:" in str(result.protections)
