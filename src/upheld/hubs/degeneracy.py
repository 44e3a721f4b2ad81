"""When the data cannot tell: the joint null space of K sample matrices.

A sample correlation of n_k samples has rank at most n_k - 1, so all K matrices vanish together on a space of dimension
p - sum_k (n_k - 1). If s does not exceed it, the optimum of (1) is 0, any s directions in that space attain it, and
the influences mean nothing.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from upheld.hubs.screening import default_size

FloatArray = NDArray[np.float64]

FLAT = 1e-10  # eigenvalues this close to the lowest one, relative to the largest, count as equal to it


class DegenerateJointNullSpaceError(ValueError):
    """The optimum of (1) is 0 and its eigenspace arbitrary, because there are too few samples for p variables."""


class JointNullSpaceWarning(UserWarning):
    """Part of the joint eigenspace lies in the joint null space."""


def check_joint_null_space(
    p: int, n_components: int, null_dimension: int, joint_rank: int, *, can_screen: bool = True
) -> None:
    """Raise if `n_components` <= `null_dimension`, warn if the null space takes up only part of the eigenspace."""
    if null_dimension <= 0:
        return
    m = default_size(joint_rank)
    fewer = (
        f"screen={m} (keep the variables with the strongest correlations)" if can_screen else f"at most {m} variables"
    )
    if n_components <= null_dimension:
        raise DegenerateJointNullSpaceError(
            f"p={p} variables exceed the joint degrees of freedom sum(n_k - 1)={joint_rank} by {null_dimension}, and "
            f"n_components={n_components} fits into that null space, where every group's value is 0: the influences "
            f'would be arbitrary. Use {fewer}, or covariance="threshold", or collect more samples; covariance="ledoit-wolf" '
            "does not help: a ridge shrinks towards I and cannot break ties inside the joint null space"
        )
    warnings.warn(
        f"{null_dimension} of the {n_components} joint components lie in the joint null space of the groups "
        f"(p={p}, sum(n_k - 1)={joint_rank}) and reflect the sample size, not the networks; consider "
        + (f"screen={m}" if can_screen else fewer),
        JointNullSpaceWarning,
        stacklevel=4,
    )


def check_flat_directions(S: FloatArray, n_components: int, joint_rank: int | None) -> None:
    """The same policy for matrices (K, p, p) of which only the sample sizes are known, or not even these (None).

    Flat directions up to `n_components` say nothing by themselves: identical matrices always have one. They are the joint null
    space if there are as many as the samples leave.
    """
    p, flat = S.shape[1], joint_flat_dimension(S)
    if flat > n_components or (joint_rank is not None and 0 < p - joint_rank <= flat):
        check_joint_null_space(p, n_components, flat, p - flat)


def joint_flat_dimension(S: FloatArray) -> int:
    """Dimension of the space on which every S_k equals its own smallest eigenvalue.

    For positive semidefinite matrices without full rank that is the joint null space; a ridge c_k I does not hide it.
    """
    lifted = sum(S_k - np.linalg.eigvalsh(S_k)[0] * np.eye(len(S_k)) for S_k in S)
    values = np.linalg.eigvalsh(lifted)
    return int(np.sum(values <= FLAT * values[-1]))
