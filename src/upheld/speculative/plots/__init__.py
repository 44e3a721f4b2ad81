"""Pictures: of a run on one's own prompts, and of what was measured for each claim."""

from __future__ import annotations

from upheld.speculative.plots.decoding import (
    acceptance_by_position,
    acceptance_histogram,
    cost_curves,
    speed_up_forest,
)
from upheld.speculative.plots.evidence import PICTURES

__all__ = ["PICTURES", "acceptance_by_position", "acceptance_histogram", "cost_curves", "speed_up_forest"]
