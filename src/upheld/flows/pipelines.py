"""Pipelines of diffusers with a flow-matching scheduler as velocity fields; their latents are the states.

diffusers runs time backwards: noise level sigma from 1 to 0, and its networks predict noise minus data. Here t = 1 - sigma and
v = -prediction; the grid of times is the scheduler's own, which a shift makes uneven.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from upheld.flows.velocity import FlowField


def from_diffusers(
    pipe: Any, *, prompt: str = "", negative_prompt: str = "", guidance_scale: float = 1.0, prompt_embeds: Tensor | None = None,
    pooled_prompt_embeds: Tensor | None = None, latent_shape: tuple[int, int, int] | None = None, coupling: str = "independent",
) -> FlowField:  # fmt: skip
    """A StableDiffusion3Pipeline, a FluxPipeline, or one of their kin, as a field over latents.

    Parameters
    ----------
    prompt, negative_prompt : texts, encoded by the pipeline
    guidance_scale : of classifier-free guidance (Stable Diffusion 3); above 1 the field belongs to no law, and a warning says so
    prompt_embeds, pooled_prompt_embeds : (1, tokens, d) and (1, d), instead of a prompt
    latent_shape : (channels, H, W) of the latents; Flux shifts its times by the number of patches, so it has to know
    coupling : "distilled" or "reflow" for pipelines that were (a schnell or turbo checkpoint): noise can then not be added

    Returns
    -------
    a field whose ``decode`` turns latents into pictures in [-1, 1]; likelihoods of pictures go through
    ``Decoded(likelihood, field.decode)``

    Raises
    ------
    ValueError
        If the scheduler is not one of flow matching, or an option does not go with the pipeline.
    """
    scheduler = pipe.scheduler
    if not hasattr(scheduler, "sigmas") or "FlowMatch" not in type(scheduler).__name__:
        raise ValueError(
            f"the pipeline's scheduler is {type(scheduler).__name__}; only those of flow matching give a velocity "
            "(FlowMatchEulerDiscreteScheduler)"
        )
    flux = "Flux" in type(pipe.transformer).__name__
    if (prompt_embeds is None) != (pooled_prompt_embeds is None):
        raise ValueError("prompt_embeds and pooled_prompt_embeds go together; give both or a prompt")
    if flux and (guidance_scale > 1 or latent_shape is None):
        raise ValueError("Flux takes no guidance_scale above 1 here, and needs latent_shape=(channels, H, W)")
    guided = guidance_scale > 1 or bool(getattr(pipe.transformer.config, "guidance_embeds", False))
    with torch.no_grad():
        if flux:
            predict = _flux(pipe, prompt, prompt_embeds, pooled_prompt_embeds)
        else:
            predict = _stable_diffusion(
                pipe, prompt, negative_prompt, guidance_scale, prompt_embeds, pooled_prompt_embeds
            )
    return FlowField(
        predict, parametrization="velocity", coupling=coupling, guided=guided, times=lambda n: scheduled_times(scheduler, n, latent_shape),
        device=next(pipe.transformer.parameters()).device, dtype=next(pipe.transformer.parameters()).dtype,
        decode=lambda x: decoded(pipe.vae, x),
    )  # fmt: skip


def scheduled_times(scheduler: Any, n_steps: int, latent_shape: tuple[int, int, int] | None = None) -> Tensor:
    """The scheduler's grid, turned round: (n + 1,) times from 0 to 1.

    Raises
    ------
    ValueError
        If it does not begin at pure noise.
    """
    own = type(scheduler).from_config(scheduler.config)  # so that the pipeline's own stays as it is
    further: dict[str, Any] = {}
    if scheduler.config.use_dynamic_shifting:
        if latent_shape is None:
            raise ValueError("this scheduler shifts its times by the size of the picture; give latent_shape")
        patches = latent_shape[1] * latent_shape[2] / 4
        share = (patches - scheduler.config.base_image_seq_len) / (
            scheduler.config.max_image_seq_len - scheduler.config.base_image_seq_len
        )
        low, high = scheduler.config.base_shift, scheduler.config.max_shift
        further = {"mu": low + share * (high - low), "sigmas": torch.linspace(1, 1 / n_steps, n_steps).tolist()}
        own.set_timesteps(**further)
    else:
        own.set_timesteps(n_steps)
    times: Tensor = 1 - own.sigmas.double().cpu()
    if float(times[0]) > 1e-3 or abs(float(times[-1]) - 1) > 1e-6:
        raise ValueError(
            f"the scheduler runs from t = {float(times[0]):.3g} to {float(times[-1]):.3g}; it must run from 0 to 1"
        )
    times[0] = 0.0
    return times


def _stable_diffusion(
    pipe: Any, prompt: str, negative: str, scale: float, embeds: Tensor | None, pooled: Tensor | None
) -> Callable[[Tensor, Tensor], Tensor]:  # fmt: skip
    """(x, t) -> v of a transformer called as Stable Diffusion 3's."""
    no_embeds = no_pooled = None
    if embeds is None:
        embeds, no_embeds, pooled, no_pooled = pipe.encode_prompt(
            prompt=prompt, prompt_2=None, prompt_3=None, negative_prompt=negative, do_classifier_free_guidance=scale > 1
        )
    elif scale > 1:
        raise ValueError(
            "guidance_scale above 1 needs a prompt, not prompt_embeds: the negative one has to be encoded too"
        )
    steps = pipe.scheduler.config.num_train_timesteps

    def ask(x: Tensor, t: Tensor, text: Tensor, summary: Tensor) -> Tensor:
        out: Tensor = pipe.transformer(
            hidden_states=x, timestep=((1 - t) * steps).expand(len(x)), encoder_hidden_states=text.expand(len(x), -1, -1),
            pooled_projections=summary.expand(len(x), -1), return_dict=False,
        )[0]  # fmt: skip
        return out

    def predict(x: Tensor, t: Tensor) -> Tensor:
        assert embeds is not None
        assert pooled is not None
        with_text = ask(x, t, embeds.to(x.dtype), pooled.to(x.dtype))
        if no_embeds is None or no_pooled is None:
            negated: Tensor = -with_text
            return negated
        without = ask(x, t, no_embeds.to(x.dtype), no_pooled.to(x.dtype))
        guided: Tensor = without + scale * (with_text - without)
        return -guided

    return predict


def _flux(pipe: Any, prompt: str, embeds: Tensor | None, pooled: Tensor | None) -> Callable[[Tensor, Tensor], Tensor]:
    """(x, t) -> v of a transformer called as Flux's: patches of 2 x 2 latents in a row, with their places."""
    if embeds is None or pooled is None:
        embeds, pooled, _ = pipe.encode_prompt(prompt=prompt, prompt_2=None)
    text, summary = embeds, pooled
    guidance = 1.0 if getattr(pipe.transformer.config, "guidance_embeds", False) else None

    def predict(x: Tensor, t: Tensor) -> Tensor:
        assert text is not None
        assert summary is not None
        _, channels, height, width = x.shape
        rows = x.reshape(len(x), channels, height // 2, 2, width // 2, 2).permute(0, 2, 4, 1, 3, 5)
        places = torch.zeros(height // 2, width // 2, 3, device=x.device, dtype=x.dtype)
        places[..., 1] = torch.arange(height // 2)[:, None]
        places[..., 2] = torch.arange(width // 2)[None]
        out: Tensor = pipe.transformer(
            hidden_states=rows.reshape(len(x), -1, 4 * channels), timestep=(1 - t).expand(len(x)),
            guidance=None if guidance is None else torch.full((len(x),), guidance, dtype=x.dtype, device=x.device),
            encoder_hidden_states=text.to(x.dtype).expand(len(x), -1, -1), pooled_projections=summary.to(x.dtype).expand(len(x), -1),
            txt_ids=torch.zeros(text.shape[1], 3, dtype=x.dtype, device=x.device), img_ids=places.reshape(-1, 3), return_dict=False,
        )[0]  # fmt: skip
        back = out.reshape(len(x), height // 2, width // 2, channels, 2, 2).permute(0, 3, 1, 4, 2, 5)
        patches: Tensor = back.reshape(x.shape)
        return -patches

    return predict


def decoded(vae: Any, latents: Tensor) -> Tensor:
    """Pictures of latents, (B, 3, H, W) about [-1, 1]; on the way back the decoder runs once more instead of keeping its layers."""
    shift = vae.config.shift_factor or 0.0
    scale = vae.config.scaling_factor
    if not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"the VAE's scaling_factor is {scale}; it must be above 0")

    def run(x: Tensor) -> Tensor:
        out: Tensor = vae.decode(x, return_dict=False)[0]
        return out

    found: Tensor = checkpoint(run, latents.to(next(vae.parameters()).dtype) / scale + shift, use_reentrant=False)
    return found.to(latents.dtype)
