"""Anchors on the real model: what is equal by construction is equal to rounding, in float32, with the drafter that ships."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from upheld.speculative import DFlashDrafter, SpeculativeDecoder
from upheld.speculative.blocks import Blocks, block_states
from upheld.speculative.drafter import embedding_of
from upheld.speculative.features import OnlineFeatures
from upheld.speculative.pairs import load_target, shipped_drafter
from upheld.speculative.proposals import BlockProposer
from upheld.speculative.reading import Reader
from upheld.speculative.responses import Response
from upheld.speculative.verification import Sampling

pytestmark = pytest.mark.slow
TEXT = (
    "The Danube rises in the Black Forest and flows through ten countries to the Black Sea, past Vienna and Budapest."
)


@pytest.fixture(scope="module")
def pair():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    target, tokenizer = load_target("smollm2", dtype="float32", device="cpu")
    yield target, torch.tensor([tokenizer(TEXT)["input_ids"]])
    torch.set_num_threads(threads)


def states_at(target, taps, ids):
    return OnlineFeatures(target, taps, [Response(ids[0].numpy(), 1, 0.0, "")]).of([0])[0][None]


def test_an_aligned_drafter_starts_with_the_targets_own_keys_and_values(pair):
    """Of layer 28, the first of the two that are copied, out of tap 27; the drafter's own features are not normed again."""
    target, ids = pair
    drafter = DFlashDrafter.from_target(target, num_layers=2, taps=3)
    attention, seen = {"target": target.model.layers[28].self_attn, "drafter": drafter.layers[0].self_attn}, {}
    hooks = [
        getattr(module, f"{kind}_proj").register_forward_hook(
            lambda _m, _i, out, key=(name, kind): seen.update({key: out})
        )
        for name, module in attention.items()
        for kind in "kv"
    ]
    with torch.inference_mode():
        features, n = states_at(target, drafter.config.target_layer_ids, ids), ids.shape[1]
        block = drafter.block_inputs(ids[:, -1], target.get_input_embeddings())
        drafter(block, features, torch.arange(n + block.shape[1])[None])
    for hook in hooks:
        hook.remove()
    assert drafter.config.target_layer_ids == [1, 14, 27]
    for kind in "kv":
        torch.testing.assert_close(seen["drafter", kind][:, :n], seen["target", kind], atol=2e-4, rtol=1e-5)


def test_appending_to_the_drafters_context_is_reading_it_anew(pair):
    target, ids = pair
    drafter = shipped_drafter(target)
    states = states_at(target, drafter.config.target_layer_ids, ids)
    grown, anew = BlockProposer(target, drafter), BlockProposer(target, drafter)
    with torch.inference_mode():
        read = 0
        for end in (7, 8, 12, ids.shape[1] - 1):
            pieces = grown.logits(ids[:, : end + 1], states[:, read:end], 7)
            read = end
        torch.testing.assert_close(pieces, anew.logits(ids, states[:, :read], 7), atol=1e-4, rtol=1e-5)


def test_packed_training_reads_what_decoding_reads(pair):
    target, ids = pair
    drafter = shipped_drafter(target)
    response = Response(ids[0].numpy(), 4, 0.0, "")
    anchors = [5, 9, 14]
    blocks = Blocks.of([response], [np.array(anchors)], drafter.config.block_size)
    states = states_at(target, drafter.config.target_layer_ids, ids)
    with torch.inference_mode():
        packed = block_states(drafter, embedding_of(target), blocks, states) @ drafter.head_rows(target).T
        for place, anchor in enumerate(anchors):
            # As the decoder does: the target has read what stands before the anchor, and no more.
            proposer = BlockProposer(target, drafter)
            with Reader(target, proposer.taps) as reader:
                _, before = reader.read(ids[:, :anchor], keep=1)
            alone = proposer.logits(ids[:, : anchor + 1], before, drafter.config.block_size - 1)
            torch.testing.assert_close(packed[0, place], alone[0], atol=1e-3, rtol=1e-5)


def test_a_cropped_cache_is_that_of_a_fresh_reading(pair):
    """After every cycle the target holds the committed tokens' keys and values, to 1e-4."""
    target, ids = pair
    decoder, text, states = SpeculativeDecoder(target, shipped_drafter(target)), ids[:, :12], None
    with torch.inference_mode(), Reader(target, decoder.proposer.taps) as reader:
        decoder.proposer.begin(64)
        _, states = reader.read(text[:, :-1], keep=1)
        for _ in range(2):
            done = decoder._cycle(reader, text, states, 8, Sampling(), None)
            text, states = torch.cat([text, done.tokens[None]], dim=1), done.states
        fresh = Reader(target)
        fresh.read(text[:, :-1], keep=1)
    assert reader.length == fresh.length == text.shape[1] - 1
    for held, right in zip(reader.cache.layers, fresh.cache.layers, strict=True):
        torch.testing.assert_close(held.keys, right.keys, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(held.values, right.values, atol=1e-4, rtol=1e-4)
