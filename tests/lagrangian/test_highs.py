"""HiGHS, silent, with options that are checked."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from upheld.lagrangian.highs import linear_program, quiet, solver


def test_it_prints_nothing_at_all():
    """Its first instance in a process writes a banner to the standard output, which a pipe would take for data."""
    code = (
        "import numpy as np\nfrom upheld.lagrangian.highs import linear_program, solver\n"
        "h = solver(linear_program(np.ones(1), np.ones((1, 1)), np.ones(1), np.full(1, 9.0), np.zeros(1), np.full(1, 9.0)))\n"
        "h.run()\nassert h.getInfo().objective_function_value == 1.0"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_unknown_option_is_refused():
    with pytest.raises(ValueError, match="HiGHS has no option colour that takes 'red'"):
        quiet(colour="red")


def test_a_model_beyond_its_range_is_refused():
    with pytest.raises(ValueError, match="HiGHS refuses the model"):
        solver(linear_program(np.ones(1), np.full((1, 1), 1e30), np.ones(1), np.ones(1), np.zeros(1), np.ones(1)))
