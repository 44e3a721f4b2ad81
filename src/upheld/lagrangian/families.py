"""All families of instances with their own oracles."""

from upheld.lagrangian.cflp import CFLP
from upheld.lagrangian.covering import MultiKnapsack, SetCovering
from upheld.lagrangian.gap import GAP
from upheld.lagrangian.hard_family import HardFamily
from upheld.lagrangian.routing import CVRP
from upheld.lagrangian.unit_commitment import UnitCommitment, Units

__all__ = ["CFLP", "CVRP", "GAP", "HardFamily", "MultiKnapsack", "SetCovering", "UnitCommitment", "Units"]
