from __future__ import annotations

import pytest
import torch

from upheld.speculative import DFlashConfig, DFlashDrafter
from upheld.speculative.drafter import ContextCache
from upheld.speculative.taps import Taps


def context(target, drafter, ids):
    """Features of all tokens of `ids`, as the injection takes them."""
    with Taps(target, drafter.config.target_layer_ids) as taps:
        target(input_ids=ids)
        states = taps.take()
    return drafter.context_inputs(states, target.get_input_embeddings()(ids))


def drafter_for(target, *, taps=2, **options):
    drafter = DFlashDrafter.from_target(target, num_layers=1, taps=taps, block_size=4, seed=3, **options)
    with torch.no_grad():
        for parameter in drafter.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)) * 0.1)
    return drafter.eval()


def test_first_layer_starts_with_the_targets_own_keys_and_values(make_llama):
    target = make_llama(layers=6)
    drafter = DFlashDrafter.from_target(target, num_layers=2, taps=3)
    seen = {}
    hooks = [
        module.register_forward_hook(lambda _m, _i, out, key=key: seen.update({key: out}))
        for key, module in {
            "k": target.model.layers[4].self_attn.k_proj, "v": target.model.layers[4].self_attn.v_proj,
            "own k": drafter.layers[0].self_attn.k_proj, "own v": drafter.layers[0].self_attn.v_proj,
        }.items()
    ]  # fmt: skip
    ids = torch.randint(512, (2, 9), generator=torch.Generator().manual_seed(0))
    features = context(target, drafter, ids)
    block = drafter.block_inputs(ids[:, -1], target.get_input_embeddings())
    drafter(block, features, torch.arange(9 + block.shape[1])[None])
    for hook in hooks:
        hook.remove()
    assert 3 in drafter.config.target_layer_ids
    torch.testing.assert_close(seen["own k"][:, :9], seen["k"], atol=1e-12, rtol=0)
    torch.testing.assert_close(seen["own v"][:, :9], seen["v"], atol=1e-12, rtol=0)


@pytest.mark.parametrize("injection", ["kv", "input", "none"])
def test_appending_context_in_pieces_equals_all_at_once(tiny, injection):
    drafter = drafter_for(tiny, injection=injection)
    ids = torch.randint(512, (2, 12), generator=torch.Generator().manual_seed(0))
    features = context(tiny, drafter, ids[:, :11])
    block = drafter.block_inputs(ids[:, 11], tiny.get_input_embeddings())
    whole = drafter(block, features, torch.arange(15)[None])
    cache = ContextCache(drafter.config.num_hidden_layers)
    for start, end in [(0, 5), (5, 6), (6, 11)]:
        other = drafter.block_inputs(ids[:, end], tiny.get_input_embeddings())
        pieces = drafter(other, features[:, start:end], torch.arange(start, end + 4)[None], cache)
    assert cache.length == 11
    torch.testing.assert_close(pieces, whole, atol=1e-6, rtol=0)


@pytest.mark.parametrize("injection", ["kv", "input", "none"])
def test_packed_blocks_equal_single_ones(tiny, injection):
    drafter = drafter_for(tiny, injection=injection)
    ids = torch.randint(512, (1, 12), generator=torch.Generator().manual_seed(0))
    features, anchors = context(tiny, drafter, ids), [3, 7, 10]
    blocks = torch.cat([drafter.block_inputs(ids[:, a], tiny.get_input_embeddings()) for a in anchors], dim=1)
    positions = torch.cat([torch.arange(12), *(a + torch.arange(4) for a in anchors)])
    owner = torch.arange(3).repeat_interleave(4)
    before = torch.arange(12)[None] < torch.tensor(anchors)[owner][:, None]
    mask = torch.cat([before, owner[:, None] == owner[None]], dim=1)[None, None]
    packed = drafter(blocks, features, positions[None], attention_mask=mask)
    for number, a in enumerate(anchors):
        block = drafter.block_inputs(ids[:, a], tiny.get_input_embeddings())
        alone = drafter(block, features[:, :a], torch.arange(a + 4)[None])
        torch.testing.assert_close(packed[:, 4 * number : 4 * number + 4], alone, atol=1e-6, rtol=0)


def test_positions_are_absolute(tiny):
    """Rotary attention sees differences alone, so shifting all positions changes nothing, restarting the block's does."""
    drafter = drafter_for(tiny)
    ids = torch.randint(512, (1, 8), generator=torch.Generator().manual_seed(0))
    features = context(tiny, drafter, ids[:, :7])
    block = drafter.block_inputs(ids[:, 7], tiny.get_input_embeddings())
    positions = torch.arange(11)[None]
    plain = drafter(block, features, positions)
    torch.testing.assert_close(drafter(block, features, positions + 5), plain, atol=1e-5, rtol=0)
    restarted = torch.cat([torch.arange(7), torch.arange(4)])[None]
    assert (drafter(block, features, restarted) - plain).abs().max() > 1e-3


def test_every_place_of_the_block_sees_the_whole_block(tiny):
    drafter = drafter_for(tiny)
    ids = torch.randint(512, (1, 8), generator=torch.Generator().manual_seed(0))
    features = context(tiny, drafter, ids[:, :7])
    block = drafter.block_inputs(ids[:, 7], tiny.get_input_embeddings())
    changed = block.clone()
    changed[:, -1] += 1
    difference = (
        drafter(changed, features, torch.arange(11)[None]) - drafter(block, features, torch.arange(11)[None])
    ).abs()
    assert (difference.amax(-1) > 1e-6).all()


def test_autoregressive_places_see_what_is_before_them_alone(tiny):
    drafter = drafter_for(tiny, autoregressive=True)
    ids = torch.randint(512, (1, 8), generator=torch.Generator().manual_seed(0))
    features = context(tiny, drafter, ids[:, :7])
    block = drafter.block_inputs(ids[:, 7], tiny.get_input_embeddings())
    changed = block.clone()
    changed[:, -1] += 1
    difference = (
        drafter(changed, features, torch.arange(11)[None]) - drafter(block, features, torch.arange(11)[None])
    ).abs()
    assert (difference.amax(-1)[0, :-1] == 0).all()
    assert difference.amax(-1)[0, -1] > 1e-6


def test_a_window_forgets_what_lies_before_it(tiny):
    drafter = drafter_for(tiny, context_window=4)
    ids = torch.randint(512, (1, 10), generator=torch.Generator().manual_seed(0))
    features = context(tiny, drafter, ids[:, :9])
    block = drafter.block_inputs(ids[:, 9], tiny.get_input_embeddings())
    plain = drafter(block, features, torch.arange(13)[None])
    features[:, :5] += 1
    torch.testing.assert_close(drafter(block, features, torch.arange(13)[None]), plain, atol=0, rtol=0)
    features[:, 5] += 1
    assert (drafter(block, features, torch.arange(13)[None]) - plain).abs().max() > 1e-6


@pytest.mark.parametrize("injection", ["kv", "input", "none"])
def test_saved_and_loaded_again(tiny, injection, tmp_path):
    drafter = drafter_for(tiny, injection=injection, draft_vocab_size=100)
    drafter.use_vocabulary(torch.arange(0, 500, 5))
    drafter.save_pretrained(tmp_path)
    again = DFlashDrafter.from_pretrained(tmp_path, dtype=torch.float64)
    assert again.config.target_layer_ids == drafter.config.target_layer_ids
    assert again.draft_ids.tolist() == list(range(0, 500, 5))
    ids = torch.randint(512, (1, 8), generator=torch.Generator().manual_seed(0))
    features = context(tiny, drafter, ids[:, :7])
    block = drafter.block_inputs(ids[:, 7], tiny.get_input_embeddings())
    given = (block, features, torch.arange(11)[None])
    torch.testing.assert_close(again(*given), drafter(*given), atol=0, rtol=0)


def test_published_size_for_smollm2():
    """8.1 million weights to train, of which 3.54 million a layer and 1.0 million in W_c: the method's figures."""
    with torch.device("meta"):
        drafter = DFlashDrafter(DFlashConfig(qk_norm=False, draft_vocab_size=8192, rms_norm_eps=1e-5))
    count = sum(p.numel() for p in drafter.parameters())
    assert drafter.config.target_layer_ids == [1, 14, 27]
    assert abs(sum(p.numel() for p in drafter.layers[0].parameters()) / 1e6 - 3.54) < 0.01
    assert abs(drafter.fc.weight.numel() / 1e6 - 1.0) < 0.01
    assert abs(count / 1e6 - 8.1) < 0.05


def test_random_start_has_query_and_key_norms(tiny):
    assert DFlashDrafter.from_target(tiny, init="random").config.qk_norm
    assert not DFlashDrafter.from_target(tiny, init="aligned").config.qk_norm


def test_no_gap_between_two_drawings_of_one_seed(tiny):
    one, two, other = (DFlashDrafter.from_target(tiny, init="random", seed=seed) for seed in (0, 0, 1))
    assert torch.equal(one.fc.weight, two.fc.weight)
    assert not torch.equal(one.fc.weight, other.fc.weight)


def test_drawing_leaves_the_global_generator_alone(tiny):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    DFlashDrafter.from_target(tiny, init="random")
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_layers": 3}, "aligned drafter of 3 layers needs a target of 4, this one has 3; take num_layers=2"),
        ({"init": "warm"}, "init must be aligned or random"),
        ({"block_size": 1}, "block_size must be 2 or more"),
        ({"injection": "q"}, "injection must be one of kv, input, none"),
        ({"draft_vocab_size": 513}, "draft_vocab_size must lie in 1 to 512"),
    ],
)
def test_impossible_drafters(tiny, options, message):
    with pytest.raises(ValueError, match=message):
        DFlashDrafter.from_target(tiny, **options)


@pytest.mark.parametrize("taps", [[2, 1], [1, 1], [0, 30], [-1, 3], []])
def test_impossible_taps(taps):
    with pytest.raises(ValueError, match="target_layer_ids must increase within 0 to 29"):
        DFlashConfig(target_layer_ids=taps)


def test_vocabulary_outside_the_target(tiny):
    drafter = DFlashDrafter.from_target(tiny)
    with pytest.raises(ValueError, match="ids from 0 to 511"):
        drafter.use_vocabulary(torch.tensor([3, 512]))


def test_cache_refuses_to_forget_what_it_does_not_hold():
    with pytest.raises(ValueError, match="crop takes 0 to -0"):
        ContextCache(1).crop(-1)
