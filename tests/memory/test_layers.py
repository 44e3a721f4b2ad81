"""Layers: equal to torch's attention where they must be, masks, gradients, empty supports."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from upheld.memory.layers import DenseAssociativeMemory, KernelAttention

torch.set_num_threads(1)


def projected_alike(kernel_attention: KernelAttention, torchs: nn.MultiheadAttention) -> None:
    with torch.no_grad():
        torchs.in_proj_weight.copy_(
            torch.cat(
                [one.weight for one in (kernel_attention.q_proj, kernel_attention.k_proj, kernel_attention.v_proj)]
            )
        )
        torchs.in_proj_bias.copy_(
            torch.cat([one.bias for one in (kernel_attention.q_proj, kernel_attention.k_proj, kernel_attention.v_proj)])
        )
        torchs.out_proj.load_state_dict(kernel_attention.out_proj.state_dict())


def keys_of_one_norm(layer: KernelAttention) -> torch.Tensor:
    """Inputs whose projected keys all have norm 1 in every head."""
    with torch.no_grad():
        layer.k_proj.weight.copy_(torch.eye(8))
        layer.k_proj.bias.zero_()
    x = torch.randn(2, 6, 2, 4, generator=torch.Generator().manual_seed(0))
    return nn.functional.normalize(x, dim=-1).flatten(2)


@pytest.mark.parametrize("masked", ["none", "causal", "padding", "added", "added per head", "both added"])
def test_lse_is_multihead_attention_when_keys_have_one_norm(masked):
    torch.manual_seed(0)
    ours, torchs = KernelAttention(8, 2), nn.MultiheadAttention(8, 2, batch_first=True)
    x = keys_of_one_norm(ours)
    projected_alike(ours, torchs)
    slope = -0.7 * (torch.arange(6.0)[:, None] - torch.arange(6.0)).abs()  # as attention with linear biases adds
    masks = {
        "none": {},
        "causal": {"attn_mask": torch.ones(6, 6, dtype=torch.bool).triu(1)},
        "padding": {"key_padding_mask": torch.tensor([[False] * 6, [False] * 4 + [True] * 2])},
        "added": {"attn_mask": slope},
        "added per head": {"attn_mask": torch.stack([slope, 3 * slope, slope.tril(), 0 * slope])},
        "both added": {"attn_mask": slope, "key_padding_mask": torch.tensor([[0.0] * 6, [2.0] * 5 + [-torch.inf]])},
    }[masked]
    for mine, theirs in zip(ours(x, x, x, **masks), torchs(x, x, x, **masks), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-6)


def test_what_a_mask_adds_can_be_learned():
    layer = KernelAttention(8, 2)
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1))
    bias = torch.zeros(5, 5).index_fill(1, torch.tensor([2]), -torch.inf)
    bias.requires_grad_()
    layer(x, x, x, attn_mask=bias)[0].square().sum().backward()
    assert bias.grad is not None
    assert torch.isfinite(bias.grad).all()
    assert torch.all(bias.grad[:, 2] == 0)
    assert bias.grad.abs().sum() > 0


def test_what_it_counts_lies_where_its_parameters_lie():
    made = KernelAttention(8, 2, device="meta"), DenseAssociativeMemory(torch.empty(3, 4, device="meta"))
    assert all(one.rows_seen.is_meta and one.rows_empty.is_meta for one in made)


def test_lse_keeps_the_norms_of_keys():
    torch.manual_seed(0)
    layer = KernelAttention(4, 1, bias=False)
    for proj in (layer.q_proj, layer.k_proj, layer.v_proj):
        nn.init.eye_(proj.weight)
    keys = torch.tensor([[[1.0, 0, 0, 0], [5.0, 0, 0, 0]]])
    weights = layer(keys[:, :1], keys, keys)[1]
    assert weights[0, 0, 0] > 0.9  # the nearest key; dot products would take the longest


def test_lsr_weights_are_the_mean_of_the_support():
    layer = KernelAttention(4, 1, bias=False, kernel="lsr", radius=1.0)
    for proj in (layer.q_proj, layer.k_proj, layer.v_proj, layer.out_proj):
        nn.init.eye_(proj.weight)
    keys = torch.tensor([[[0.0, 0, 0, 0], [0.5, 0, 0, 0], [3.0, 0, 0, 0]]])
    query = torch.tensor([[[0.2, 0, 0, 0], [9.0, 0, 0, 0]]])
    out, weights = layer(query, keys, keys)
    assert torch.allclose(weights[0], torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]))
    assert torch.allclose(out[0], torch.tensor([[0.25, 0, 0, 0], [9.0, 0, 0, 0]]))  # abstains: the query comes back
    assert layer.empty_rate == 0.5
    layer.on_empty = "nearest"
    assert layer(query, keys, keys)[1][0, 1].tolist() == [0, 0, 1]


def test_masks_act_on_the_support():
    layer = KernelAttention(8, 2, kernel="lsr", radius=50.0)
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1))
    _, causal = layer(x, x, x, is_causal=True)
    assert torch.allclose(causal[0, 3], torch.tensor([0.25, 0.25, 0.25, 0.25, 0.0]))
    _, padded = layer(x, x, x, key_padding_mask=torch.tensor([[False] * 5, [True] * 5]))
    assert torch.allclose(padded[0], torch.full((5, 5), 0.2))
    assert torch.all(padded[1] == 0)
    floats = torch.zeros(5, 5).masked_fill(torch.ones(5, 5).triu(1) > 0, -torch.inf)
    assert torch.allclose(layer(x, x, x, attn_mask=floats)[1], causal)
    with pytest.raises(ValueError, match="give booleans, or 0 and -inf"):
        layer(x, x, x, attn_mask=floats.clamp_min(-2.0))


def test_shapes_of_multihead_attention():
    x = torch.randn(7, 3, 8)
    layer = KernelAttention(8, 2, kernel="lsr", radius=4.0, batch_first=False)
    torchs = nn.MultiheadAttention(8, 2)
    for arguments in ({}, {"average_attn_weights": False}):
        assert [one.shape for one in layer(x, x, x, **arguments)] == [one.shape for one in torchs(x, x, x, **arguments)]
    assert layer(x, x, x, need_weights=False)[1] is None
    assert layer(x[:, 0], x[:, 0], x[:, 0])[0].shape == (7, 8)


@pytest.mark.parametrize("window", [0.0, 0.5])
def test_training_moves_lsr(window):
    torch.manual_seed(0)
    layer = KernelAttention(8, 2, kernel="lsr", radius=3.0, window=window)
    x, wanted = torch.randn(8, 6, 8), torch.randn(8, 6, 8)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.01)
    losses = []
    for _ in range(60):
        optimiser.zero_grad()
        loss = ((layer(x, x, x)[0] - wanted) ** 2).mean()
        loss.backward()
        assert (
            layer.k_proj.weight.grad.abs().sum() > 0
        )  # through the denominator: the mean of the support alone is flat
        optimiser.step()
        losses.append(float(loss))
    assert losses[-1] < 0.9 * losses[0]


def test_memory_layer_recalls_values_and_trains():
    patterns = torch.eye(4)
    layer = DenseAssociativeMemory(patterns, values=torch.arange(4.0)[:, None], kernel="lse", beta=60.0)
    assert layer(patterns).round(decimals=3).flatten().tolist() == [0, 1, 2, 3]
    assert not list(layer.parameters())
    trainable = DenseAssociativeMemory(patterns, kernel="lsr", beta=3.0, steps=3, trainable=True)
    trainable(patterns * 0.9).sum().backward()
    assert trainable.patterns.grad.abs().sum() > 0
    far = torch.full((2, 2, 4), 9.0)
    assert torch.equal(trainable(far), far)
    assert trainable.empty_rate == pytest.approx(0.5)


def test_bad_input_is_called_by_its_name():
    with pytest.raises(ValueError, match="must be a multiple of num_heads"):
        KernelAttention(7, 2)
    with pytest.raises(ValueError, match="not both"):
        KernelAttention(8, 2, beta=1.0, radius=1.0)
    with pytest.raises(ValueError, match="on_empty must be 'abstain' or 'nearest'"):
        KernelAttention(8, 2, on_empty="error")
    with pytest.raises(ValueError, match="kernel must be"):
        DenseAssociativeMemory(torch.eye(2), kernel="rbf")
    with pytest.raises(ValueError, match="beta must be above 0"):
        DenseAssociativeMemory(torch.eye(2), beta=0.0)
    with pytest.raises(ValueError, match="values as many rows as patterns"):
        DenseAssociativeMemory(torch.eye(2), values=torch.eye(3))
