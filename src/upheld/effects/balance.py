"""Did balancing work? Standardised mean differences of each covariate, before and after weighting, over all blocks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from upheld.effects.arms import Sums
from upheld.effects.blocks import Block, BlockEstimate
from upheld.effects.rows import FloatArray, Label


@dataclass
class Balance:
    """Absolute differences between each arm and the reference, averaged over blocks by rows; the last entry is the kernel's |.|.

    SMD of a covariate: difference of the arms' means over the root of the mean of their variances; the kernel's: distance of the arms'
    mean features.
    """

    before: dict[Label, FloatArray] = field(default_factory=dict)
    after: dict[Label, FloatArray] = field(default_factory=dict)
    rows: dict[Label, float] = field(default_factory=dict)

    def plus(self, block: Block, estimate: BlockEstimate, reference: Label) -> Balance:
        """With one more block."""
        new = Balance()
        for label, one in estimate.contrasts.items():
            if one.reason:
                continue
            arm, base = block.arms[label].sums, block.arms[reference].sums
            scale = np.sqrt((_variance(arm) + _variance(base)) / 2)
            scale[scale == 0] = 1.0  # a level that neither arm has in this block
            kernel = float(np.linalg.norm(arm.phi / arm.n - base.phi / base.n))
            before = np.append(np.abs(arm.x / arm.n - base.x / base.n) / scale, kernel)
            after = np.append(
                np.abs(one.treated.x_mean - one.base.x_mean) / scale,
                float(np.linalg.norm(one.treated.phi_mean - one.base.phi_mean)),
            )
            new.before[label], new.after[label], new.rows[label] = before, after, float(block.n)
        return self.merge(new)

    def merge(self, other: Balance) -> Balance:
        """Blocks of both."""
        answer = Balance(dict(self.before), dict(self.after), dict(self.rows))
        for label, rows in other.rows.items():
            total = answer.rows.get(label, 0.0) + rows
            share = rows / total
            for kept, now in ((answer.before, other.before[label]), (answer.after, other.after[label])):
                kept[label] = (1 - share) * kept.get(label, np.zeros_like(now)) + share * now
            answer.rows[label] = total
        return answer

    def table(self, columns: list[str], reference: Label) -> pd.DataFrame:
        """One row a contrast and covariate."""
        parts = [
            pd.DataFrame(
                {
                    "covariate": [*columns, "(all features)"], "arm": label, "reference": reference,
                    "smd_before": before, "smd_after": self.after[label],
                }
            )
            for label, before in self.before.items()
        ]  # fmt: skip
        empty = pd.DataFrame(columns=["covariate", "arm", "reference", "smd_before", "smd_after"])
        return pd.concat(parts, ignore_index=True) if parts else empty


def _variance(sums: Sums) -> FloatArray:
    return np.maximum(sums.xx / sums.n - (sums.x / sums.n) ** 2, 0.0)
