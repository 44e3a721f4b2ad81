"""The rule "consistently better": no rival wins anywhere, and most cells are won against every rival."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from upheld.claims import Judgement, Measurements, Outcome, Superior
from upheld.claims.measurements import Cell, Where
from upheld.claims.rules import NOMINAL, Levels


@dataclass(frozen=True)
class SuperiorInMostCells:
    """`ours` has the lower metric against every rival in a `share` of the cells at least, and no rival has the lower one in any.

    A cell is one combination of the conditions in `per`. A single comparison refutes, Holm over all of them. u = share x N of the N
    cells uphold, each at the error rate alpha / (N - u + 1): the partial conjunction test of Benjamini and Heller (2008), which upholds
    with probability alpha at the most where fewer than u cells are truly won, however they depend on one another. Where u = N, as with
    four cells and 80 %, it is `Superior` in each of them.
    """

    metric: str
    ours: str
    rivals: tuple[str, ...]
    per: tuple[str, ...]
    share: float = 0.8

    def judge(self, data: Measurements, levels: Levels = NOMINAL) -> Judgement:
        everywhere = self._superior(per=self.per).judge(data, levels)
        cells = self._cells(data)
        needed = math.ceil(self.share * len(cells))
        strict = replace(levels, uphold=levels.uphold / (len(cells) - needed + 1))
        won = sum(self._superior(where=cell).judge(data, strict).outcome is Outcome.UPHELD for cell in cells)
        outcome = Outcome.UPHELD if won >= needed else Outcome.INCONCLUSIVE
        if everywhere.outcome is Outcome.NOT_UPHELD:
            outcome = Outcome.NOT_UPHELD
        note = f"{won} of {len(cells)} cells won against every rival, {needed} are needed"
        return Judgement(outcome, everywhere.findings, "; ".join(filter(None, [note, everywhere.note])))

    def _superior(self, where: Where | None = None, per: tuple[str, ...] = ()) -> Superior:
        return Superior(self.metric, self.ours, self.rivals, lower_is_better=True, where=where or {}, per=per)

    def _cells(self, data: Measurements) -> list[Where]:
        rows = data.rows(Cell(self.metric, self.ours))[list(self.per)].drop_duplicates()
        return [dict(zip(self.per, values, strict=True)) for values in rows.itertuples(index=False)]

    def words(self) -> str:
        where = " and ".join(self.per)
        return (
            f"the paired difference in {self.metric} of {self.ours} to each of {', '.join(self.rivals)} is below 0 for at least "
            f"{self.share:.0%} of the combinations of {where}, and above 0 for none of them and no rival"
        )
