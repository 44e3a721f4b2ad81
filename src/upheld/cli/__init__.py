"""The ``upheld`` command: one file per verb.

A verb says what is wrong with its input by raising `ValueError`, `TypeError` or `OSError`; here, once, that becomes one sentence on
standard error and exit code 2. ``UPHELD_TRACEBACK=1`` shows where it came from.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer
from typer import TyperException

from upheld.cli import check, data, overview, report, run, show
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
app.command("report")(report.report)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 done, 1 a verdict was lost, 2 bad input, 130 stopped by Ctrl-C."""
    sys.exit(_exit_code(sys.argv[1:] if arguments is None else list(arguments)))


def _exit_code(arguments: list[str]) -> int:
    try:
        return app(args=arguments, standalone_mode=False) or 0
    except TyperException as error:  # the command line itself is wrong; Typer's sentence says what
        error.show()
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read our output has seen enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 -- so that the interpreter's last flush is silent
        return 0
    except (ValueError, TypeError, OSError) as error:
        if os.environ.get("UPHELD_TRACEBACK"):
            raise
        complain(str(error))
        return 2
