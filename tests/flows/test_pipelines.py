"""Pipelines of diffusers, built small and random from their configurations: plumbing against the pipeline's own loop, and marginals."""

from __future__ import annotations

from types import SimpleNamespace

import diffusers
import pytest
import torch

from upheld.diffusion.paths import linear
from upheld.diffusion.samplers import integrate, marginal_preserving_sde
from upheld.flows.likelihoods import Decoded, LinearGaussian, Reward, downsample
from upheld.flows.pipelines import from_diffusers
from upheld.flows.sampler import TargetedFlow

SHAPE = (4, 8, 8)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def vae(channels: int):
    return diffusers.AutoencoderKL(
        block_out_channels=(8,), latent_channels=channels, norm_num_groups=4, sample_size=8, scaling_factor=1.5, shift_factor=0.1,
        use_quant_conv=False, use_post_quant_conv=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def stable():
    torch.manual_seed(0)
    transformer = diffusers.SD3Transformer2DModel(
        sample_size=8, patch_size=1, in_channels=4, out_channels=4, num_layers=1, attention_head_dim=8, num_attention_heads=4,
        joint_attention_dim=32, caption_projection_dim=32, pooled_projection_dim=64, pos_embed_max_size=16,
    )  # fmt: skip
    nothing = dict.fromkeys(
        ("text_encoder", "tokenizer", "text_encoder_2", "tokenizer_2", "text_encoder_3", "tokenizer_3")
    )
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0)
    pipe = diffusers.StableDiffusion3Pipeline(transformer=transformer, scheduler=scheduler, vae=vae(4), **nothing)
    pipe.set_progress_bar_config(disable=True)
    return pipe


@pytest.fixture(scope="module")
def flux():
    torch.manual_seed(0)
    transformer = diffusers.FluxTransformer2DModel(
        patch_size=1, in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=32, pooled_projection_dim=64, axes_dims_rope=(4, 4, 8),
    )  # fmt: skip
    nothing = dict.fromkeys(("text_encoder", "tokenizer", "text_encoder_2", "tokenizer_2"))
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0, use_dynamic_shifting=True)
    pipe = diffusers.FluxPipeline(transformer=transformer, scheduler=scheduler, vae=vae(4), **nothing)
    pipe.set_progress_bar_config(disable=True)
    return pipe


TEXT = {
    "prompt_embeds": torch.randn(1, 5, 32, generator=generator(1)),
    "pooled_prompt_embeds": torch.randn(1, 64, generator=generator(2)),
}


def ends(field, noise: torch.Tensor, n_steps: int) -> torch.Tensor:
    with torch.no_grad():
        return integrate(lambda x, t: field.velocity(x, t, linear()), noise, field.times(n_steps))


def test_the_plain_flow_is_the_pipelines_own_loop(stable):
    noise = torch.randn(2, *SHAPE, generator=generator())
    theirs = stable(
        **{name: value.repeat(2, *[1] * (value.dim() - 1)) for name, value in TEXT.items()}, latents=noise, guidance_scale=1.0,
        num_inference_steps=6, output_type="latent", height=64, width=64,
    ).images  # fmt: skip
    torch.testing.assert_close(ends(from_diffusers(stable, **TEXT), noise, 6), theirs, atol=2e-3, rtol=2e-3)


def test_flux_too(flux):
    noise = torch.randn(1, *SHAPE, generator=generator())
    packed = noise.reshape(1, 4, 4, 2, 4, 2).permute(0, 2, 4, 1, 3, 5).reshape(1, 16, 16)
    theirs = flux(
        **TEXT, latents=packed, guidance_scale=1.0, num_inference_steps=6, output_type="latent", height=8, width=8
    ).images.reshape(1, 4, 4, 4, 2, 2).permute(0, 3, 1, 4, 2, 5).reshape(1, *SHAPE)  # fmt: skip
    field = from_diffusers(flux, **TEXT, latent_shape=SHAPE)
    torch.testing.assert_close(ends(field, noise, 6), theirs, atol=2e-3, rtol=2e-3)
    with pytest.raises(ValueError, match="needs latent_shape"):
        from_diffusers(flux, **TEXT)


class Exact(torch.nn.Module):
    """A transformer in diffusers' own convention whose data are N(1, 4): it predicts noise minus data at level sigma."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = torch.nn.Parameter(torch.zeros(1))
        self.config = SimpleNamespace()

    def forward(self, hidden_states, timestep, **ignored):
        sigma = (timestep / 1000).reshape(-1, 1, 1, 1)
        alpha = 1 - sigma
        data = 1 + 4 * alpha / (4 * alpha**2 + sigma**2) * (hidden_states - alpha)
        return ((hidden_states - alpha * data) / sigma - data,)


def exact(shift: float):
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler(shift=shift)
    return from_diffusers(SimpleNamespace(transformer=Exact(), scheduler=scheduler, vae=None), **TEXT)


@pytest.mark.parametrize("shift", [1.0, 3.0])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_marginals_are_kept_through_the_adapter(shift, noise):
    """Sign, direction of time and shift: with any of them wrong, mean and spread of the data are missed."""
    field = exact(shift)
    times = field.times(256)
    first, last = (int((times - end).abs().argmin()) for end in (3 / 16, 14 / 16))

    def velocity(x, t):
        return field.velocity(x, t, linear())

    with torch.no_grad():
        x = integrate(velocity, torch.randn(10_000, 1, 1, 1, generator=generator()), times[: first + 1])
        x = marginal_preserving_sde(
            velocity,
            linear(),
            x,
            times[first : last + 1],
            lambda t: noise**2 * float(linear().memoryless_variance(t)),
            generator(1),
        )
        x = integrate(velocity, x, times[last:])
    assert float(x.mean()) == pytest.approx(1, abs=0.08)
    assert float(x.std()) == pytest.approx(2, abs=0.08)


def test_the_target_is_reached_on_an_uneven_grid():
    """y = x + noise of variance 1 seen at 3, prior N(1, 4): posterior mean 1 + 4/5 * 2 = 2.6 in every coordinate."""
    seen = LinearGaussian(lambda x: x.flatten(1), torch.full((4,), 3.0), 1.0)
    flow = TargetedFlow(exact(3.0), seen, n_steps=64, n_particles=32)
    found = flow.sample(200, shape=(1, 2, 2), generator=generator())
    assert float(found.samples.mean()) == pytest.approx(2.6, abs=0.15)
    assert float(found.samples.std()) == pytest.approx((4 / 5) ** 0.5, abs=0.15)


def test_a_likelihood_of_decoded_pictures_guides_latents(stable):
    field = from_diffusers(stable, **TEXT)
    likelihood = Decoded(Reward(lambda x: -x.square().mean((1, 2, 3))), field.decode)
    found = TargetedFlow(field, likelihood, n_steps=8, n_particles=2, window=(0.3, 0.8)).sample(
        2, shape=SHAPE, generator=generator()
    )
    assert found.samples.shape == (2, *SHAPE)
    assert found.evaluations["backward"] > 0
    assert field.decode(found.samples).shape == (2, 3, 8, 8)
    latents = found.samples.clone().requires_grad_()
    Decoded(Reward(lambda x: downsample(2)(x).sum(1)), field.decode).log_prob(latents).sum().backward()
    assert float(latents.grad.abs().sum()) > 0


def test_the_pipelines_scheduler_stays_as_it_is(stable):
    before = stable.scheduler.sigmas.clone()
    from_diffusers(stable, **TEXT).times(7)
    assert torch.equal(stable.scheduler.sigmas, before)


def test_what_is_no_flow_is_refused(stable):
    other = SimpleNamespace(transformer=stable.transformer, scheduler=diffusers.DDIMScheduler(), vae=None)
    with pytest.raises(ValueError, match="scheduler is DDIMScheduler; only those of flow matching"):
        from_diffusers(other, **TEXT)
    with pytest.raises(ValueError, match="prompt_embeds and pooled_prompt_embeds go together"):
        from_diffusers(stable, prompt_embeds=TEXT["prompt_embeds"])
    with pytest.raises(ValueError, match="guidance_scale above 1 needs a prompt"):
        from_diffusers(stable, **TEXT, guidance_scale=3.0)
