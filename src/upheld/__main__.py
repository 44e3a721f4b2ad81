"""``upheld``, or ``python -m upheld``: the command, with an orderly end even while it is still being loaded."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; Ctrl-C before it can take care of itself ends with 130 like any other."""
    try:
        from upheld.cli import main as command

        command()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
