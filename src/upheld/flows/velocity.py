"""Velocity fields from wherever they come, under one signature: ``field(x, t) -> v``, noise at t = 0, data at t = 1.

What a sampler has to know beside the numbers is declared with the field: whether its base is Gaussian and drawn independently of
the data (else no score follows from the velocity), what the network predicts, and on which times it wants to be asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from upheld.diffusion.paths import AffinePath, clamped

PREDICTIONS = ("velocity", "endpoint", "noise")
PROBES = 128


@dataclass
class FlowField:
    """A velocity field with what is known of it.

    Parameters
    ----------
    predict : called as ``predict(x, t)``, x (B, \\*shape), t a scalar tensor in x's type
    parametrization : what comes back: "velocity", "endpoint" (the data) or "noise"; "auto" is velocity, checked
    base : law of x_0; noise can be added to a flow of a "gaussian" base only
    coupling : "independent" if training paired data with noise at random; else ("ot", "reflow", "distilled") there is no score
    guided : the field is one under guidance, which is the velocity of no law
    times : from a number of steps to the grid, 0 to 1; None for equal steps
    device, dtype : in which the network computes; particles are kept in torch's default type
    decode : from a state to what a likelihood looks at (latents to pictures)
    """

    predict: Callable[[Tensor, Tensor], Tensor]
    parametrization: str = "auto"
    base: str = "gaussian"
    coupling: str = "independent"
    guided: bool = False
    times: Callable[[int], Tensor] | None = None
    device: torch.device | str = "cpu"
    dtype: torch.dtype | None = None
    decode: Callable[[Tensor], Tensor] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.parametrization not in ("auto", *PREDICTIONS):
            raise ValueError(f"no parametrization {self.parametrization!r}; there are {', '.join(PREDICTIONS)}")

    def velocity(self, x: Tensor, t: Tensor, path: AffinePath) -> Tensor:
        """Velocity at time t, (B, \\*shape), in x's type.

        Raises
        ------
        ValueError
            If the network gives another shape, or something that is not finite.
        """
        at = clamped(t).to(x.device, x.dtype)
        out = self.predict(
            x if self.dtype is None else x.to(self.dtype), at if self.dtype is None else at.to(self.dtype)
        )
        if out.shape != x.shape:
            raise ValueError(
                f"the velocity of particles of shape {tuple(x.shape)} has shape {tuple(out.shape)}; it must return what it is given"
            )
        out = out.to(x.dtype)
        if self.parametrization == "endpoint":
            out = path.velocity_from_endpoint(x, out, at)
        elif self.parametrization == "noise":
            out = path.velocity_from_noise(x, out, at)
        if not math.isfinite(float(out.detach().sum())) and not torch.isfinite(out).all():
            bad = int((~torch.isfinite(out)).flatten(1).any(1).sum())
            norm = float(x.detach().flatten(1).norm(dim=1).max())
            raise ValueError(
                f"the velocity is not finite at time {float(t):.4g} for {bad} of {len(x)} particles (largest norm of a particle "
                f"{norm:.4g}); take more steps, or check the network's precision"
            )
        return out


def flow_field(velocity: Any) -> FlowField:
    """The field, or a callable ``f(x, t)`` as one; a module computes where its parameters are."""
    if isinstance(velocity, FlowField):
        return velocity
    if not callable(velocity):
        raise TypeError(f"a velocity is called as f(x, t); {type(velocity).__name__} cannot be called")
    return FlowField(velocity, device=_device(velocity))


def from_flow_matching(
    model: nn.Module, *, coupling: str, parametrization: str = "velocity", **extras: Any
) -> FlowField:
    """A model of Meta's ``flow_matching``: called as ``model(x, t, **extras)``."""
    return FlowField(
        lambda x, t: model(x, t, **extras), parametrization=parametrization, coupling=coupling, device=_device(model)
    )


def from_torchcfm(model: nn.Module, *, coupling: str) -> FlowField:
    """A model of ``torchcfm``: called as ``model(t, x)``, the other way round.

    Parameters
    ----------
    coupling : "independent" for models trained with ``ConditionalFlowMatcher`` or ``TargetConditionalFlowMatcher``; "ot" for
        ``ExactOptimalTransportConditionalFlowMatcher`` and its like. It cannot be read off the model, so it must be said.
    """
    return FlowField(lambda x, t: model(t, x), parametrization="velocity", coupling=coupling, device=_device(model))


class UnlikelyVelocity(ValueError):
    """Answers that rise with the noise as no velocity's do; `likely` is the parametrization that fits them."""

    def __init__(self, slope: float) -> None:
        self.likely = "noise" if slope > 0.5 else "endpoint"
        what = "the noise" if slope > 0.5 else "the data (or of a flow trained with optimal-transport pairs)"
        self.seen = (
            f"near t = 0 the answers of this field rise by {slope:.2f} for every unit of the noise, a velocity's fall by 1: it looks like "
            f"a prediction of {what}"
        )
        super().__init__(
            f"{self.seen}; wrap it as FlowField(f, parametrization={self.likely!r}), or say parametrization='velocity' if it is one"
        )


def check_parametrization(found: FlowField, path: AffinePath, shape: tuple[int, ...]) -> None:
    """See from the answers near t = 0 on the linear path whether "auto" is right.

    There a velocity is E[x_1] - x_0, so that regressed on x it has slope -1; a prediction of the data has slope 0, one of the noise
    slope 1, and the velocity of an optimal-transport coupling T(x) - x lies between.

    Raises
    ------
    UnlikelyVelocity
        If the slope is not near -1.
    """
    if found.parametrization != "auto" or path.name != "linear":
        return
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(PROBES, *shape, generator=generator).to(found.device)
    with torch.no_grad():
        v = found.velocity(x, torch.tensor(1e-3), path)
    here, there = x - x.mean(0), v - v.mean(0)
    slope = float((here * there).sum() / here.square().sum())
    if slope > -0.6:
        raise UnlikelyVelocity(slope)


def _device(model: Any) -> torch.device | str:
    if isinstance(model, nn.Module):
        for parameter in model.parameters():
            return parameter.device
    return "cpu"
