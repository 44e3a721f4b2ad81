"""The ``upheld`` command: one file per verb.

A verb says what is wrong with its input by raising `ValueError`, `TypeError` or `OSError`; here, once, that becomes one sentence on
standard error and exit code 2. ``UPHELD_TRACEBACK=1`` shows where it came from.
"""

from __future__ import annotations

import csv
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

import typer
from typer import TyperException
from typer.main import get_command

from upheld import catalog
from upheld.cli import check, data, doctor, install_skill, mcp, overview, report, run, show, verdicts
from upheld.cli.output import complain

app = typer.Typer(
    name="upheld",
    help="New machine-learning methods as software you can use, raced and put to the test.",
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback(invoke_without_command=True)(overview.overview)
app.command("show")(show.show)
app.add_typer(run.app, name="run")
app.command("check")(check.check)
app.command("data")(data.data)
app.command("verdicts")(verdicts.verdicts)
app.command("report")(report.report)
app.command("doctor")(doctor.doctor)
app.command("mcp")(mcp.mcp)
app.command("install-skill")(install_skill.install_skill)
VERBS = ("show", "run", "check", "data", "verdicts", "report", "doctor", "mcp", "install-skill")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 done, 1 a verdict was lost, 2 bad input, 130 stopped by Ctrl-C or a request to end."""
    _open_streams()
    with _orderly_end(), warnings.catch_warnings():
        warnings.showwarning = _remark
        code = _exit_code(sys.argv[1:] if arguments is None else list(arguments))
    sys.exit(code)


def _open_streams() -> None:
    """Every stream is there, if only to swallow what is written: a shell may have closed it (``>&-``).

    What the terminal's alphabet lacks is written as an escape; a name is no reason to lose a result.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - lives as long as the process
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def _orderly_end() -> Iterator[None]:
    """A request to end (SIGTERM) is like Ctrl-C, so that what is half-written is taken away."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _remark(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning as one sentence, without the line of code that a user did not write."""
    complain(f"note: {message}")


def _exit_code(arguments: list[str]) -> int:
    arguments = _spelled_out(arguments)
    try:
        # Not Typer's own main: to that, a reader who has seen enough is an error, and what a command returns an exit code.
        command = get_command(app)
        with command.make_context("upheld", [*arguments]) as context:
            command.invoke(context)
        sys.stdout.flush()  # here, where a closed pipe is no surprise
        return 0
    except typer.Exit as done:
        return done.exit_code
    except BrokenPipeError:  # whoever read our output has seen enough
        _swallow_the_rest()
        return 0
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # Rich's way of saying the same
            return 0
        raise
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except TyperException as error:  # the command line itself is wrong; Typer's sentence says what
        complain(f"{error.format_message()} {_help(arguments)}")
        return 2
    except Exception as error:
        if os.environ.get("UPHELD_TRACEBACK") or not _is_about_input(error):
            raise
        complain(_explained(error))
        try:
            sys.stdout.flush()
        except OSError:  # that is what was complained of: a full disk, a place that is gone
            _swallow_the_rest()
        return 2


def _spelled_out(arguments: list[str]) -> list[str]:
    """``upheld speculative serve`` is short for ``upheld run speculative serve``; a verb of that name comes first."""
    short = arguments and arguments[0] not in VERBS and arguments[0] in [method.name for method in catalog.methods()]
    return ["run", *arguments] if short else arguments


def _swallow_the_rest() -> None:
    """Let the interpreter's last flush of standard output succeed, or its failure would become the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _help(arguments: Sequence[str]) -> str:
    """Where to read how it is done right."""
    known = arguments[:1] if arguments[0] in VERBS else []
    method = arguments[1:2] if known == ["run"] and arguments[1:2] and not arguments[1].startswith("-") else []
    return f"(upheld {' '.join([*known, *method, '--help'])} tells how)"


def _is_about_input(error: Exception) -> bool:
    """What is wrong with what was given, not with the command.

    Compiled readers of others raise the bare class at a damaged file; readers that call themselves end where it nests without end.
    """
    kinds = (ValueError, TypeError, OSError, ImportError, MemoryError, RecursionError, csv.Error)
    return isinstance(error, kinds) or type(error) is Exception


def _explained(error: Exception) -> str:
    """The sentence of an exception; what an exception of the interpreter does not say is how to mend it."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for this; give less data at once, fewer --jobs, or a larger machine"
    if isinstance(error, RecursionError):
        return "what was read is nested without end; is it the file you meant, and whole?"
    if type(error) is Exception or isinstance(error, csv.Error):
        return f"a file that was named cannot be read ({error}); is it whole, and of the kind that is asked for?"
    if isinstance(error, ModuleNotFoundError):
        brings = [method.install for method in catalog.methods() if error.name in method.modules()]
        return f"{error.name} is not installed; it comes with: {brings[0] if brings else f'pip install {error.name}'}"
    if isinstance(error, OSError) and error.filename is None and error.strerror:
        return f"{error.strerror}, while reading or writing; is there room, and is the place yours?"
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}; name another file or folder, or mend this one"
    return str(error) or type(error).__name__
