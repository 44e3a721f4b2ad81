"""Models for HiGHS, built from arrays: linear and mixed-integer programs, one thread each, silent."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    import highspy

Sparse = Any  # scipy's sparse arrays carry no useful static type


@cache
def _silent() -> type[highspy.Highs]:
    import highspy

    class Silent(highspy.Highs):
        def enableCallbacks(self) -> None:  # the constructor calls it, and the first call in a process prints a banner
            self.silent()
            super().enableCallbacks()  # type: ignore[no-untyped-call]

    return Silent


def quiet(**options: float | str | bool) -> highspy.Highs:
    """An empty HiGHS instance that prints nothing and stays on one thread."""
    import highspy

    h = _silent()()
    for name, value in {"threads": 1, **options}.items():
        if h.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise ValueError(f"HiGHS has no option {name} that takes {value!r}")
    return h


def linear_program(
    c: np.ndarray,
    rows: Sparse,
    row_lower: np.ndarray,
    row_upper: np.ndarray,
    lb: np.ndarray,
    ub: np.ndarray,
    *,
    integrality: np.ndarray | None = None,
    maximise: bool = False,
    offset: float = 0.0,
    column_names: list[str] | None = None,
    row_names: list[str] | None = None,
) -> highspy.HighsLp:
    """min (or max) offset + c x, row_lower <= rows x <= row_upper, lb <= x <= ub, x_j integer where `integrality`."""
    import highspy

    matrix = sparse.csr_array(rows)
    matrix.sort_indices()
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.sense_ = highspy.ObjSense.kMaximize if maximise else highspy.ObjSense.kMinimize
    lp.offset_ = offset
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = c, lb, ub
    lp.row_lower_, lp.row_upper_ = row_lower, row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.num_row_, lp.a_matrix_.num_col_ = matrix.shape
    lp.a_matrix_.start_ = matrix.indptr.astype(np.int32)
    lp.a_matrix_.index_ = matrix.indices.astype(np.int32)
    lp.a_matrix_.value_ = matrix.data
    if integrality is not None and integrality.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[bool(one)] for one in integrality]
    if column_names is not None:
        lp.col_names_ = column_names
    if row_names is not None:
        lp.row_names_ = row_names
    return lp


def solver(lp: highspy.HighsLp, **options: float | str | bool) -> highspy.Highs:
    """A HiGHS instance that holds `lp`, not yet solved."""
    import highspy

    h = quiet(**options)
    if h.passModel(lp) == highspy.HighsStatus.kError:
        raise ValueError("HiGHS refuses the model: a bound, a cost or a coefficient is beyond what it takes")
    return h
