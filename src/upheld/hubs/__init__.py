"""Common hubs of several Gaussian graphical models (JIC-HD).

For whom: K related data matrices over the same p variables (cancer subtypes, sites, market regimes), and the question
which variables are highly connected in the conditional-dependence network of *every* group. The answer is one influence
per variable, a selected set, and a certificate that the optimum was reached, from one eigenvalue problem; no network is
estimated and no penalty is tuned.

Paper: "Identifying Common Hubs in Multiple Gaussian Graphical Models" (JIC-HD), ICML 2026.

>>> from upheld.hubs import JointHubs, hub_table
>>> from upheld.hubs.data import load_khan
>>> X, subtype = load_khan(top=60)
>>> hubs = JointHubs().fit(X, groups=subtype)
>>> hub_table(hubs)[["variable", "influence"]].head(2).round(2)
  variable  influence
0    G0058       0.49
1    G0524       0.39

Where to look: `upheld.hubs.eigenspaces` (the optimisation and its certificate), `upheld.hubs.detector` (the estimators),
`upheld.hubs.uncertainty` (stability, intervals, p-values), `upheld.hubs.data` (generator, embedded data, your files).
"""

from upheld.hubs.degeneracy import DegenerateJointNullSpaceError, JointNullSpaceWarning
from upheld.hubs.detector import InverseComponentsHubs, JointHubs
from upheld.hubs.eigenspaces import JointEigenspace, joint_eigenspace
from upheld.hubs.table import hub_table
from upheld.hubs.uncertainty import bootstrap_interval, null_reference, stability_selection

__all__ = [
    "DegenerateJointNullSpaceError",
    "InverseComponentsHubs",
    "JointEigenspace",
    "JointHubs",
    "JointNullSpaceWarning",
    "bootstrap_interval",
    "hub_table",
    "joint_eigenspace",
    "null_reference",
    "stability_selection",
]
