"""``python -m upheld.cli``."""

from upheld.cli import main

main()
