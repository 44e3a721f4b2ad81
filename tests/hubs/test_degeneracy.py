from __future__ import annotations

import warnings

import numpy as np
import pytest

from upheld.hubs.degeneracy import (
    DegenerateJointNullSpaceError,
    JointNullSpaceWarning,
    check_joint_null_space,
    joint_flat_dimension,
)


def test_flat_dimension_is_the_joint_null_space_of_sample_matrices():
    rng = np.random.default_rng(0)
    S = np.array([np.corrcoef(rng.standard_normal((n, 25)).T) for n in (6, 9)])
    assert joint_flat_dimension(S) == 25 - 5 - 8
    assert joint_flat_dimension(S + 0.2 * np.eye(25)) == 12
    assert joint_flat_dimension(np.array([np.corrcoef(rng.standard_normal((60, 25)).T)] * 2)) == 1


def test_policy_is_silent_then_warns_then_refuses():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_joint_null_space(p=79, n_components=8, null_dimension=0, joint_rank=79)
    with pytest.warns(JointNullSpaceWarning, match="7 of the 8 joint components"):
        check_joint_null_space(p=86, n_components=8, null_dimension=7, joint_rank=79)
    with pytest.raises(DegenerateJointNullSpaceError, match=r"p=87 .* exceed .*=79 by 8"):
        check_joint_null_space(p=87, n_components=8, null_dimension=8, joint_rank=79)
