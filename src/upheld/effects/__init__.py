"""Streaming average treatment effects by discrepancy-compressed covariate balancing.

For whom: teams that watch the effect of an intervention in an endless feed of observational rows (coupon, drug, ranking) which they
may not keep. The answer is the average effect so far, or lately, with an interval, an overlap check and drift alarms, from a few hundred
representative rows per arm and exact running means; sketches merge, resume, and are exported as small weighted tables.

Paper: *Streaming Covariate Balancing via Discrepancy-Based Feature Coresets*, ICML 2026. Only its abstract is public: this is a
reconstruction, with additions that are named as ours.

>>> from upheld.effects import StreamingBalancer
>>> from upheld.effects.data import DriftStream
>>> stream = DriftStream(5000, 6, "none", seed=1)
>>> balancer = StreamingBalancer(random_state=0).partial_fit(stream.X, stream.y, treatment=stream.w)
>>> estimate = balancer.estimate()
>>> naive = stream.y[stream.w == 1].mean() - stream.y[stream.w == 0].mean()
>>> round(naive - stream.effect, 1), abs(estimate.ate - stream.effect) < 3 * estimate.se
(1.2, True)

Where to look: `upheld.effects.coreset` (compression), `upheld.effects.pooling` (outcomes that survive it), `upheld.effects.weights`
(balancing), `upheld.effects.estimate` (effect and standard error), `upheld.effects.blocks` and `upheld.effects.drift` (time),
`upheld.effects.sequence` (looking as often as one likes), `upheld.effects.sensitivity` (confounders that nobody measured),
`upheld.effects.merging` and `upheld.effects.parallel` (streams read in parts), `upheld.effects.sketch` (state as bytes).
"""

from upheld.effects.balancer import StreamingBalancer
from upheld.effects.estimate import Contrast, EffectEstimate
from upheld.effects.exact import ExactMomentBalancer
from upheld.effects.reservoir import ReservoirBalancer
from upheld.effects.rows import BadRowError
from upheld.effects.sensitivity import Sensitivity

__all__ = [
    "BadRowError",
    "Contrast",
    "EffectEstimate",
    "ExactMomentBalancer",
    "ReservoirBalancer",
    "Sensitivity",
    "StreamingBalancer",
]
