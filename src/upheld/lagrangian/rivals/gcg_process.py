"""What the interpreter that has GCG runs: the root node of the model that an order names, the answer in a file of its own.

GCG prints on standard output whatever it is told, so that JSON must not go there. This file imports nothing of upheld: it runs in
another environment, ``PYTHON -I gcg_process.py ORDER.json``.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

INFINITE = 1e20  # to SCIP


def main(order: dict[str, Any]) -> None:
    """Writes {"bound", "seconds", "status"} to the order's "answer"; "bound" is null where nothing was proven."""
    from pygcgopt import SCIP_PARAMSETTING, Model

    begin = time.perf_counter()
    model = Model()
    model.setParam("display/verblevel", 0)
    model.readProblem(order["model"])
    model.setParam("limits/nodes", 1)
    model.setParam("limits/time", order["seconds"])
    model.setParam("pricing/masterpricer/threads", 1)
    if order["blocks"] is not None:
        # Else, where all objectives are whole numbers, pricing ends as soon as the bound rounds up to the master's value.
        model.setParam("pricing/masterpricer/abortpricingint", False)
        model.setPresolve(SCIP_PARAMSETTING.OFF)  # a decomposition is stated in the rows of the model as it was read
        model.setHeuristics(SCIP_PARAMSETTING.OFF)
        model.setSeparating(SCIP_PARAMSETTING.OFF)
        model.setGCGSeparating(SCIP_PARAMSETTING.OFF)
        rows = {row.name: row for row in model.getConss()}
        coupling, *blocks = ([rows[name] for name in names] for names in (order["coupling"], *order["blocks"]))
        model.addDecompositionFromConss(coupling, *blocks)
    model.optimize()
    bound = float(model.getDualbound())
    answer = {
        "bound": bound if abs(bound) < INFINITE else None,
        "status": str(model.getStatus()),
        "seconds": time.perf_counter() - begin,
    }
    Path(order["answer"]).write_text(json.dumps(answer))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
