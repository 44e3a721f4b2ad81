"""The alternatives, three kinds of them: where multipliers come from, how one goes on from there, and the solvers' own bounds.

To add a start, put one into `starts.STARTS`; a solver's bound is a function ``(M, ...) -> SolverBound`` in `solvers`, or
in a file of its own where the solver needs an environment of its own (`gcg`).
"""

from upheld.lagrangian.rivals.ascents import GRID, Ascent, aim, ascend, best_factor, tuned_theta
from upheld.lagrangian.rivals.gcg import GCGMissing, gcg_root
from upheld.lagrangian.rivals.solvers import (
    LPDuals,
    SolverBound,
    cp_sat,
    highs_duals,
    highs_root,
    ortools_duals,
    textbook_commitment,
)
from upheld.lagrangian.rivals.starts import (
    STARTS,
    LastOptimum,
    OwnLPDual,
    OwnOptimum,
    RandomStart,
    Start,
    TunedSGA,
    ZeroStart,
    largest_multiplier,
    paper_sga,
    solve_lps_once,
)

__all__ = [
    "GRID", "STARTS", "Ascent", "GCGMissing", "LPDuals", "LastOptimum", "OwnLPDual", "OwnOptimum", "RandomStart", "SolverBound", "Start",
    "TunedSGA", "ZeroStart", "aim", "ascend", "best_factor", "cp_sat", "gcg_root", "highs_duals", "highs_root", "largest_multiplier",
    "ortools_duals", "paper_sga", "solve_lps_once", "textbook_commitment", "tuned_theta",
]  # fmt: skip
