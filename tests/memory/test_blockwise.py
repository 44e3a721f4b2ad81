"""Attention without its weights: what the dense layer gives, and blocks that are skipped for a reason."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from upheld.memory.blockwise import touching
from upheld.memory.layers import KernelAttention

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


def both(kernel: str, **options) -> tuple[KernelAttention, KernelAttention]:
    torch.manual_seed(0)
    dense = KernelAttention(16, 2, kernel=kernel, **options)
    flex = KernelAttention(16, 2, kernel=kernel, backend="flex", **options)
    flex.load_state_dict(dense.state_dict())
    return dense, flex


@pytest.mark.parametrize("kernel", ["lse", "lsr"])
@pytest.mark.parametrize("masked", ["none", "causal", "padding", "per head", "added", "added per head"])
def test_it_gives_what_the_dense_layer_gives(kernel, masked):
    dense, flex = both(kernel, radius=1.2)
    x = torch.randn(2, 150, 16, generator=torch.Generator().manual_seed(1))
    hidden = torch.rand(4, 150, 150, generator=torch.Generator().manual_seed(2)) < 0.5
    slope = -0.01 * (torch.arange(150.0)[:, None] - torch.arange(150.0)).abs()
    masks = {
        "none": {},
        "causal": {"is_causal": True},
        "padding": {"key_padding_mask": torch.arange(150).expand(2, -1) > torch.tensor([[149], [40]])},
        "per head": {"attn_mask": hidden},
        "added": {"attn_mask": slope.masked_fill(hidden[0], -torch.inf)},
        "added per head": {"attn_mask": torch.stack([slope, 2 * slope, 3 * slope, slope])},
    }[masked]
    if kernel == "lsr" and masked.startswith("added"):
        with pytest.raises(ValueError, match="adds to scores that a support has not"):
            flex(x, x, x, need_weights=False, **masks)
        return
    with torch.no_grad():
        expected, none = dense(x, x, x, need_weights=False, **masks)
        found, _ = flex(x, x, x, need_weights=False, **masks)
    assert none is None
    assert torch.allclose(found, expected, atol=1e-5)
    assert flex.empty_rate == pytest.approx(dense.empty_rate)


def test_rows_without_support_return_their_query():
    dense, flex = both("lsr", radius=0.05)
    query, keys = torch.randn(2, 1, 7, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected, _ = dense(query, keys, keys, need_weights=False)
        found, _ = flex(query, keys, keys, need_weights=False)
    assert flex.empty_rate > 0.5
    assert torch.allclose(found, expected, atol=1e-6)


@given(seed=st.integers(0, 2**31), rows=st.integers(1, 40), keys=st.integers(1, 40), radius=st.floats(0.01, 4.0))
def test_a_block_is_skipped_only_where_no_pair_is_within_the_radius(seed, rows, keys, radius):
    drawn = torch.Generator().manual_seed(seed)
    q, k = 2 * torch.randn(1, 2, rows, 3, generator=drawn), 2 * torch.randn(1, 2, keys, 3, generator=drawn)
    near = touching(q, k, radius, size=8)
    pairs = (torch.cdist(q, k) < radius).nonzero()
    assert all(near[b, h, i // 8, j // 8] for b, h, i, j in pairs.tolist())


def test_clusters_that_lie_apart_are_skipped():
    centres = 100.0 * torch.arange(4.0)[:, None, None].expand(4, 8, 3)
    x = (centres + torch.randn(4, 8, 3, generator=torch.Generator().manual_seed(0))).reshape(1, 1, 32, 3)
    assert touching(x, x, 3.0, size=8)[0, 0].tolist() == torch.eye(4, dtype=torch.bool).tolist()
    assert touching(x, x, None, size=8).all()


def test_what_it_cannot_do_is_refused():
    with pytest.raises(ValueError, match="backend must be 'dense' or 'flex', got 'fast'"):
        KernelAttention(8, 2, backend="fast")
    with pytest.raises(ValueError, match="never forms the weights that dropout"):
        KernelAttention(8, 2, backend="flex", dropout=0.1)
    layer = KernelAttention(8, 2, kernel="lsr", radius=3.0, backend="flex")
    x = torch.randn(1, 4, 8)
    with pytest.raises(ValueError, match="need_weights=False"):
        layer(x, x, x)
    with pytest.raises(ValueError, match="train with backend='dense'"):
        layer(x, x, x, need_weights=False)


def test_on_a_cpu_training_is_the_dense_backend_s():
    dense, flex = both("lse")
    x = torch.randn(1, 9, 16, generator=torch.Generator().manual_seed(3))
    with pytest.raises(
        ValueError, match="torch has no gradient of flex_attention on a CPU; train with backend='dense'"
    ):
        flex(x, x, x, need_weights=False)
    dense(x, x, x, need_weights=False)[0].square().sum().backward()
    torch.optim.SGD(dense.parameters(), lr=1.0).step()
    flex.load_state_dict(dense.state_dict())
    with torch.no_grad():
        expected, found = (layer(x, x, x, need_weights=False)[0] for layer in (dense, flex))
    assert torch.allclose(found, expected, atol=1e-5)
