"""Semantic isotropy: how far several answers to one prompt spread on the sphere, as a sign that they are invented.

For whom: a team that lets a language model write long answers (biographies, reports, summaries) and wants one cheap number a
prompt before anyone checks claim by claim. Sample a handful of answers, embed each once, and the entropy of their cosine
kernel says how much they differ: 0 = all say the same, 1 = mutually orthogonal. HIGH = expect LOW factuality. No labels, no
training, no threshold. It measures agreement: a falsehood that all answers share scores low.

Paper: D. Bhardwaj, J. Kempe, T. G. J. Rudner, "Embedding Trust: Semantic Isotropy Predicts Nonfactuality in Long-Form Text
Generation", ICML 2026 (arXiv 2510.21891).

>>> import numpy as np
>>> from upheld.isotropy import SemanticIsotropy
>>> answers = np.array([[1, 0, 0], [0.9, 0.1, 0], [0.2, 1, 0.3]])     # vectors, or texts with an embedder
>>> result = SemanticIsotropy().explain(answers)
>>> round(result.score, 2), result.medoid, result.influence.round(2)  # answer 2 is the odd one
(0.56, 1, array([-0.38, -0.42,  0.53]))

Where to look: `upheld.isotropy.entropy` (the equations), `upheld.isotropy.spread` and `upheld.isotropy.leave_one_out` (what goes
with the score), `upheld.isotropy.semantic_isotropy` (the scorer), `upheld.isotropy.windows` (long answers),
`upheld.isotropy.calibration` (a threshold with a guarantee), `upheld.isotropy.trust` (one trusted answer).
"""

from upheld.isotropy.adaptive import AdaptiveSample, sample_until
from upheld.isotropy.calibration import FactualityInterval, ScoreSetting, TrustCalibrator
from upheld.isotropy.entropy import spectrum, von_neumann_entropies, von_neumann_entropy
from upheld.isotropy.leave_one_out import influence, jackknife_standard_error, leave_one_out_scores
from upheld.isotropy.passages import Passage, passages
from upheld.isotropy.result import IsotropyResult, IsotropyWarning, check_comparable
from upheld.isotropy.sampling import SampledResponses, draw_responses, sample_responses
from upheld.isotropy.segments import SegmentScorer
from upheld.isotropy.semantic_isotropy import SemanticIsotropy
from upheld.isotropy.spread import cosine_matrix
from upheld.isotropy.trust import assess_trust, trusted_completion

__all__ = [
    "AdaptiveSample",
    "FactualityInterval",
    "IsotropyResult",
    "IsotropyWarning",
    "Passage",
    "SampledResponses",
    "ScoreSetting",
    "SegmentScorer",
    "SemanticIsotropy",
    "TrustCalibrator",
    "assess_trust",
    "check_comparable",
    "cosine_matrix",
    "draw_responses",
    "influence",
    "jackknife_standard_error",
    "leave_one_out_scores",
    "passages",
    "sample_responses",
    "sample_until",
    "spectrum",
    "trusted_completion",
    "von_neumann_entropies",
    "von_neumann_entropy",
]
