"""What is known about the answers to one prompt once they are scored."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from upheld.isotropy.templates import Template

FloatArray = NDArray[np.float64]


class IsotropyWarning(UserWarning):
    """The score may mean something else than it seems to; the message says what."""


@dataclass(frozen=True, eq=False)
class IsotropyResult:
    """Spread of n answers to one prompt. HIGH score = LESS trustworthy; it measures agreement, not truth.

    Attributes
    ----------
    score : S / log n between 0 and 1, or S in nats with ``normalize=False``
    se : jackknife standard error of `score`, in its unit; NaN for n = 2
    raw : S in nats
    n : answers used
    answers : (n,) their indices in the group as it was given; all of them unless ``n_samples`` took some
    purity, purity_unbiased, mean_cosine_distance, vmf_kappa : see `upheld.isotropy.spread`
    effective_samples : exp(S), how many distinct answers the spread is worth, between 1 and n
    cosines : (n, n) K
    influence : (n,) what each answer adds to `score`, in its unit; positive: it adds spread; NaN for n = 2
    medoid : index, in the group as it was given, of the answer nearest to all: the one to show
    truncated_share : share of the answers' tokens that the embedder did not read; NaN where vectors were given
    unknown_share : share of their tokens that its vocabulary lacks, and that all read the same to it; NaN where vectors were given
    template, embedder_id, long_text, jitter, normalized : how the answers were read and scored; results compare only where
        these are the same, see `check_comparable`
    """

    score: float
    se: float
    raw: float
    n: int
    answers: NDArray[np.intp]
    purity: float
    purity_unbiased: float
    effective_samples: float
    mean_cosine_distance: float
    vmf_kappa: float
    cosines: FloatArray
    influence: FloatArray
    medoid: int
    truncated_share: float
    unknown_share: float
    template: Template
    embedder_id: str
    long_text: str
    jitter: float
    normalized: bool

    @property
    def trust(self) -> float:
        """1 - S / log n."""
        return 1 - self.raw / math.log(self.n)

    def plane(self) -> FloatArray:
        """(n, 2) map of the answers: their inner products as well as two dimensions can give them.

        Row i is (√λ_1 u_1i, √λ_2 u_2i) with the two largest eigenvalues of K: an exact linear algebra, no random start.
        K is not centred, so the first axis is what the answers share and the second what divides them most.
        Their squares sum to the share of K's trace, n, that the map keeps. Each axis points to the answer that is farthest out.
        """
        values, vectors = eigh(self.cosines, subset_by_index=[self.n - 2, self.n - 1])
        axes = vectors[:, ::-1] * np.sqrt(np.clip(values[::-1], 0.0, None))
        farthest = np.argmax(np.abs(axes), axis=0)
        return axes * np.where(axes[farthest, [0, 1]] < 0, -1.0, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """All of it, and `trust`, as JSON can hold it: lists for arrays, None for what is no finite number."""
        return {"trust": _jsonable(self.trust)} | {
            field.name: _jsonable(getattr(self, field.name)) for field in fields(self)
        }


def _jsonable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_jsonable(item) for item in value.tolist()]
    if isinstance(value, list):
        return [_jsonable(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_SETTINGS = ("template", "embedder_id", "long_text", "jitter", "normalized")


def check_comparable(results: Sequence[IsotropyResult]) -> None:
    """Refuse to compare what was read or scored in different ways; warn where only the number of answers differs.

    Raises
    ------
    ValueError
        Naming the first result that differs from result 0, and in what: template, embedder, treatment of long texts, jitter
        or unit.
    """
    for number, result in enumerate(results):
        for setting in _SETTINGS:
            first, other = getattr(results[0], setting), getattr(result, setting)
            if first != other:
                raise ValueError(
                    f"result {number} has {setting} {other!r} and result 0 has {first!r}: such scores do not compare; "
                    f"score both groups with the same settings"
                )
    sizes = sorted({result.n for result in results})
    if len(sizes) > 1:
        warnings.warn(
            mixed_sizes(f"the results rest on {sizes[0]} to {sizes[-1]} answers"), IsotropyWarning, stacklevel=2
        )


def mixed_sizes(what: str) -> str:
    return (
        f"{what}: scores at different numbers of answers do not compare; set n_samples to the smallest number, or compare means "
        "of purity_unbiased"
    )
