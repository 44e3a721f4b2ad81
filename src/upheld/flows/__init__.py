"""Conditional samples of a pretrained flow-matching model, by particles and without training (TFTF).

For whom: someone who owns an unconditional flow (pictures, molecules, trajectories, tables; any torch velocity field or a diffusers
pipeline with a flow-matching scheduler) and wants samples under a condition for which they have a likelihood: a classifier, a
caption scorer, a noisy measurement. Gradient guidance can fool the scorer that guides it. Weighted, resampled particles converge to
the posterior, estimate the evidence, and say when they should not be trusted.

Paper: Q. Qu and J. S. Liu, "TFTF: Training-Free Targeted Flow for Conditional Sampling", ICML 2026 (arXiv 2602.12932).

>>> import torch
>>> from upheld.flows import ClassifierLikelihood, TargetedFlow
>>> flow = TargetedFlow(my_velocity, ClassifierLikelihood(my_classifier, target=3))         # doctest: +SKIP
>>> found = flow.sample(64, shape=(1, 28, 28), generator=torch.Generator().manual_seed(0))  # doctest: +SKIP
>>> found.samples, found.log_evidence, found.log_evidence_se                                # doctest: +SKIP

Where to look: `upheld.flows.sampler` (the equations), `upheld.flows.smc` (weights and resampling), `upheld.flows.lookahead`,
`upheld.flows.likelihoods`, `upheld.flows.velocity` (adapters), `upheld.flows.diagnostics`, `upheld.flows.rivals`.
"""

from __future__ import annotations

import importlib
from typing import Any

PLACES = {
    "CalibratedLookAhead": "lookahead",
    "ClassifierLikelihood": "likelihoods",
    "ClipLikelihood": "likelihoods",
    "Decoded": "likelihoods",
    "FlowField": "velocity",
    "FlowSamples": "samples",
    "GaussianMixtureFlow": "mixture",
    "LinearGaussian": "likelihoods",
    "PointLookAhead": "lookahead",
    "Product": "likelihoods",
    "Reward": "likelihoods",
    "TargetedFlow": "sampler",
    "TemperedLookAhead": "lookahead",
    "celeba": "folders",
    "cifar10": "folders",
    "diagnose": "diagnostics",
    "fit_flow": "training",
    "from_diffusers": "pipelines",
    "from_flow_matching": "velocity",
    "from_torchcfm": "velocity",
    "image_folder": "folders",
    "mixture_benchmark": "mixture",
    "sample_sharded": "sharded",
}
"""Where each of them is; imported when first asked for, since torch comes with them."""

__all__ = sorted(PLACES)


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"upheld.flows.{PLACES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
