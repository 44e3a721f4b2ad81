"""How well a set, or a ranking, of variables recovers the true common hubs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata


@dataclass(frozen=True)
class Recovery:
    """Counts of a selected set against the truth, and the shares read off them.

    With no true hub, or with no other variable, the share whose denominator vanishes is NaN: it is not defined.
    """

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def tpr(self) -> float:
        """Share of the true hubs that were selected (sensitivity, recall)."""
        return _share(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def fpr(self) -> float:
        """Share of the other variables that were selected."""
        return _share(self.false_positives, self.false_positives + self.true_negatives)

    @property
    def precision(self) -> float:
        """Share of the selected variables that are true hubs; NaN when nothing was selected."""
        return _share(self.true_positives, self.true_positives + self.false_positives)

    @property
    def f_score(self) -> float:
        """2 TP / (2 TP + FP + FN): 0 when hubs exist and none was found, whether or not anything was selected.

        NaN only when there is no true hub and nothing was selected.
        """
        return _share(2 * self.true_positives, 2 * self.true_positives + self.false_positives + self.false_negatives)


def hub_recovery(selected: ArrayLike, hubs: ArrayLike) -> Recovery:
    """Compare a selected set with the true common hubs.

    Parameters
    ----------
    selected, hubs : (p,) boolean masks over the variables

    Raises
    ------
    TypeError
        If a mask is not boolean: positions and masks are easily confused.
    ValueError
        If the masks differ in length.

    Examples
    --------
    >>> found = hub_recovery([True, True, False, False], [True, False, True, False])
    >>> found.tpr, found.fpr, found.precision, found.f_score
    (0.5, 0.5, 0.5, 0.5)
    """
    chosen, truth = _mask("selected", selected), _mask("hubs", hubs)
    _same_length("selected", len(chosen), len(truth))
    return Recovery(
        true_positives=int(np.sum(chosen & truth)),
        false_positives=int(np.sum(chosen & ~truth)),
        false_negatives=int(np.sum(~chosen & truth)),
        true_negatives=int(np.sum(~chosen & ~truth)),
    )


def ranking_auc(score: ArrayLike, hubs: ArrayLike) -> float:
    """Probability that a true hub has a larger score than another variable, a tie counting one half.

    Parameters
    ----------
    score : (p,) finite values, larger for a likelier hub; a constant score has AUC 0.5
    hubs : (p,) boolean mask

    Raises
    ------
    ValueError
        If the score holds a NaN or an infinity, or the mask has no hub or nothing but hubs.

    Examples
    --------
    >>> ranking_auc([0.9, 0.2, 0.5, 0.2], [True, True, False, False])
    0.625
    """
    truth = _mask("hubs", hubs)
    values = np.asarray(score, dtype=float)
    _same_length("score", len(values), len(truth))
    if not np.isfinite(values).all():
        raise ValueError(
            f"score holds {int(np.sum(~np.isfinite(values)))} values that are not finite; a ranking needs all"
        )
    n_hubs, n_others = int(truth.sum()), int((~truth).sum())
    if min(n_hubs, n_others) == 0:
        raise ValueError(f"an AUC needs both hubs and other variables, got {n_hubs} hubs among {len(truth)} variables")
    wins = rankdata(values)[truth].sum() - n_hubs * (n_hubs + 1) / 2
    return float(wins / (n_hubs * n_others))


def _share(count: int, total: int) -> float:
    return count / total if total else float("nan")


def _mask(name: str, values: ArrayLike) -> NDArray[np.bool_]:
    mask = np.asarray(values)
    if mask.dtype != np.bool_ or mask.ndim != 1:
        raise TypeError(f"{name} must be a boolean mask of shape (p,), got dtype {mask.dtype} and shape {mask.shape}")
    return mask


def _same_length(name: str, n_values: int, n_variables: int) -> None:
    if n_values != n_variables:
        raise ValueError(
            f"{name} covers {n_values} variables and the mask of hubs {n_variables}; give both for the same"
        )
