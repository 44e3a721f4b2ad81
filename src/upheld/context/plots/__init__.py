"""Pictures: of a run on own data, and of what was measured for each claim."""

from upheld.context.plots.of_a_run import accuracy_by_rollouts, accuracy_by_tokens, effects
from upheld.context.plots.of_claims import PICTURES

__all__ = ["PICTURES", "accuracy_by_rollouts", "accuracy_by_tokens", "effects"]
