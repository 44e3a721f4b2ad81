"""Learned multipliers inside SCIP's tree: a relaxator that bounds every node by one solution of the blocks.

At a node some binary variables are fixed, and u(pi) over what is left of X bounds all solutions below it. SCIP prunes by it before it
solves the node's linear program. The multipliers stay those given; the bound is certified for any.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from upheld.lagrangian.oracles import FREE, Infeasible, Instance, inside

WHOLE = 1e-6  # so near to 0 or 1 a node's bound counts as it
FIRST = 10_000  # priority of the relaxator; one that is not negative comes before the linear program


def add_relaxator(model: Any, P: Instance, multipliers: ArrayLike, *, frequency: int = 1) -> Any:
    """Give a pyscipopt model the Lagrangian bound at `multipliers`, at the root and at the nodes below it.

    Parameters
    ----------
    model : `pyscipopt.Model` that holds the monolith of `P` (for instance as read from the same file), its variables by the same
        names; its parameter misc/scaleobj is set to False, so that bounds stay in the objective's unit
    multipliers : (s,) a learner's prediction, or after some steps of `maximise_dual` from there
    frequency : every so many levels of the tree; 0 bounds the root alone

    Returns
    -------
    The relaxator. `calls` counts its bounds, `first` is the root's, in the sense in which the user stated the problem.

    Raises
    ------
    ImportError
        If pyscipopt is not installed.
    ValueError
        If the model lacks a variable of `P`, or as in `dual_value`.

    Examples
    --------
    ``past``, ``today``: instances read by ``CoupledMILP.from_mps``; SCIP reads the same file::

        scip = pyscipopt.Model()
        scip.readProblem("today.mps")
        add_relaxator(scip, today, SGAMultipliers().fit(past).predict(today))
        scip.optimize()
    """
    try:
        from pyscipopt.scip import PY_SCIP_RESULT, Relax
    except ImportError as error:
        raise ImportError(
            f'pyscipopt cannot be imported ({error}); install it with pip install "upheld[lagrangian-scip]"'
        ) from error
    pi = inside(multipliers, P)
    root = P.oracle(pi)
    variables = {variable.name: variable for variable in model.getVars()}
    names = np.array(P.milp().column_names)[P.monolith_positions()]
    lacking = [name for name in names if name not in variables]
    if lacking:
        raise ValueError(
            f"the SCIP model has no variable {lacking[0]} ({len(lacking)} are lacking); give it the same monolith"
        )

    class Lagrangian(Relax):  # type: ignore[misc]
        calls, first = 0, P.user_value(root.u)

        def relaxinitsol(self) -> None:
            self._columns = [self.model.getTransformedVar(variables[name]) for name in names]

        def _inner(self, value: float) -> float:
            """A value of the user's objective as SCIP has it inside: a minimisation, without constants."""
            sense = -1.0 if self.model.getObjectiveSense() == "maximize" else 1.0
            inner: float = sense * (value - self.model.getObjoffset()) - self.model.getObjoffset(original=False)
            return inner

        def relaxexec(self) -> dict[str, Any]:
            low = np.array([column.getLbLocal() for column in self._columns])
            high = np.array([column.getUbLocal() for column in self._columns])
            fixed = np.full(root.x.size, FREE, dtype=np.int8)
            fixed[P.branchable] = np.where(high < WHOLE, 0, np.where(low > 1 - WHOLE, 1, FREE))
            self.calls += 1
            try:
                u = P.oracle(pi, fixed=fixed).u
            except Infeasible:
                return {"result": PY_SCIP_RESULT.CUTOFF}
            return {"result": PY_SCIP_RESULT.SUCCESS, "lowerbound": self._inner(P.user_value(u))}

    relaxator: Any = Lagrangian()
    model.setParam("misc/scaleobj", False)
    model.includeRelax(
        relaxator, "lagrangian", "Lagrangian bound at learned multipliers", priority=FIRST, freq=frequency
    )
    return relaxator
