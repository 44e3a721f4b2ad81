"""The alternatives, three kinds of them: where multipliers come from, how one goes on from there, and the solvers' own bounds.

To add a start, put one into `starts.STARTS`; a solver's bound is a function ``(P, ...) -> SolverBound`` in `solvers`.
"""

from upheld.lagrangian.rivals.ascents import GRID, Ascent, aim, ascend, best_factor, tuned_theta
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
)

__all__ = [
    "GRID", "STARTS", "Ascent", "LPDuals", "LastOptimum", "OwnLPDual", "OwnOptimum", "RandomStart", "SolverBound", "Start",
    "TunedSGA", "ZeroStart", "aim", "ascend", "best_factor", "cp_sat", "highs_duals", "highs_root", "largest_multiplier",
    "ortools_duals", "paper_sga", "textbook_commitment", "tuned_theta",
]  # fmt: skip
