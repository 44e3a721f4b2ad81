"""Learned Lagrangian relaxation: multipliers from past mixed-integer programs, certified bounds for today's.

For whom: planners who solve the same large, nearly decomposable problem every day with new data (unit commitment, assignment,
facility location, routing). A few coupling rows tie easy blocks together. With multipliers (prices) on these rows the blocks
fall apart, and *any* prices give a proven bound on the optimum; good prices give a tight one. They are learned here from past
instances: directly, as a start for a few more steps, and with a statement of how many instances are enough.

The method is that of T. Q. Le, A. T. Nguyen and V. A. Nguyen, *Provably Data-driven Lagrangian Relaxation for Mixed Integer
Linear Programming*, ICML 2026.

>>> import numpy as np
>>> from upheld.lagrangian import SGAMultipliers, data, dual_value
>>> days = data.unit_commitment_days(9, np.random.default_rng(0))       # ten power plants, 24 hours
>>> prices = SGAMultipliers().fit(days[:8]).predict(days[8])            # 24 energy and 24 reserve prices, $/MWh
>>> best = dual_value(prices, days[8]).u                                # a lower bound on tomorrow's cost, in one call
>>> bool(best > 0.99 * days[8].milp().lp_relaxation()[0])
True
"""

from upheld.lagrangian import bounds, data, families
from upheld.lagrangian.ascent import Budget, DualResult
from upheld.lagrangian.benders import BendersResult, benders
from upheld.lagrangian.bounds import sample_size
from upheld.lagrangian.branch_and_bound import ObjectiveCut, Solution, root_bound_cut, solve
from upheld.lagrangian.column_generation import dantzig_wolfe
from upheld.lagrangian.contextual import ContextualMultipliers
from upheld.lagrangian.drift import DriftAlarm
from upheld.lagrangian.dual import maximise_dual
from upheld.lagrangian.instance import CoupledMILP
from upheld.lagrangian.learners import ERMMultipliers, SGAMultipliers, WarmStartMultipliers
from upheld.lagrangian.oracles import DualEval, Infeasible, Instance, dual_value
from upheld.lagrangian.scip import add_relaxator
from upheld.lagrangian.tracking import TrackingMultipliers

__all__ = [
    "BendersResult",
    "Budget",
    "ContextualMultipliers",
    "CoupledMILP",
    "DriftAlarm",
    "DualEval",
    "DualResult",
    "ERMMultipliers",
    "Infeasible",
    "Instance",
    "ObjectiveCut",
    "SGAMultipliers",
    "Solution",
    "TrackingMultipliers",
    "WarmStartMultipliers",
    "add_relaxator",
    "benders",
    "bounds",
    "dantzig_wolfe",
    "data",
    "dual_value",
    "families",
    "maximise_dual",
    "root_bound_cut",
    "sample_size",
    "solve",
]
