from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from upheld.speculative import DFlashDrafter
from upheld.speculative.blocks import Blocks, anchors_at_once, block_states, draw_anchors, loss_weights, packed_mask
from upheld.speculative.byteworld import ByteTokenizer
from upheld.speculative.drafter import embedding_of
from upheld.speculative.features import CachedFeatures, OnlineFeatures
from upheld.speculative.proposals import proposer_of
from upheld.speculative.responses import Response
from upheld.speculative.training import (
    DrafterTrainer,
    Evaluation,
    TrainReport,
    coverage,
    draft_vocabulary,
    part_by_group,
)


def responses(count, *, vocabulary=512, length=24, seed=0):
    """Texts in which a token follows from the one before: nothing hard to learn."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        tokens = [int(rng.integers(20))]
        while len(tokens) < length:
            tokens.append((tokens[-1] * 3 + 1) % 20)
        found.append(Response(np.array(tokens), 4, 0.0, f"group {number}"))
    return found


def drafter_of(target, **options):
    return DFlashDrafter.from_target(
        target, **{"num_layers": 1, "block_size": 4, "taps": 2, "init": "random", "draft_vocab_size": None} | options
    )


def trainer(target, drafter, data, **options):
    return DrafterTrainer(
        target, None, drafter, data, **{"epochs": 3, "anchors": 6, "lr": 3e-3, "evaluations": 4} | options
    )


def test_loss_weights_to_their_digits():
    expected = [1, 0.778801, 0.606531, 0.472367, 0.367879, 0.286505, 0.223130]
    assert loss_weights(8).tolist() == pytest.approx(expected, abs=5e-7)
    assert loss_weights(8).sum().item() == pytest.approx(3.735212, abs=1e-5)
    assert loss_weights(16).sum().item() == pytest.approx(6.630611, abs=1e-5)
    assert loss_weights(8, math.inf).tolist() == [1.0] * 7
    with pytest.raises(ValueError, match="gamma must be positive"):
        loss_weights(8, 0.0)


@given(st.integers(2, 30), st.integers(1, 40), st.integers(0, 99), st.sampled_from(["random", "grid"]))
def test_anchors_are_response_positions_with_a_token_after_them(length, count, seed, at):
    response = Response(np.arange(3 + length), 3, 0.0, "a")
    anchors = draw_anchors(response, count, np.random.default_rng(seed), block_size=4, at=at)
    assert len(set(anchors.tolist())) == len(anchors) <= count
    assert np.all(np.diff(anchors) > 0)
    assert anchors.min() >= 3
    assert anchors.max() <= 3 + length - 2
    if at == "random":
        assert len(anchors) == min(count, length - 1)


def test_anchors_are_uniform():
    response = Response(np.arange(14), 3, 0.0, "a")
    rng = np.random.default_rng(0)
    drawn = np.concatenate([draw_anchors(response, 2, rng, block_size=4) for _ in range(3000)])
    shares = np.bincount(drawn, minlength=13)[3:13] / len(drawn)
    assert np.abs(shares - 0.1).max() < 0.02


def test_mask_by_hand():
    # anchor 2 with blocks of 2 in a text of 4: context 0 and 1, then the block itself
    mask = packed_mask(torch.tensor([[2, 3]]), 4, 2)[0, 0].int().tolist()
    assert mask == [
        [1, 1, 0, 0, 1, 1, 0, 0],
        [1, 1, 0, 0, 1, 1, 0, 0],
        [1, 1, 1, 0, 0, 0, 1, 1],
        [1, 1, 1, 0, 0, 0, 1, 1],
    ]
    assert packed_mask(torch.tensor([[3]]), 4, 2, causal=True, window=1)[0, 0].int().tolist() == [
        [0, 0, 1, 0, 1, 0],
        [0, 0, 1, 0, 1, 1],
    ]


@pytest.mark.parametrize("injection", ["kv", "input", "none"])
def test_nothing_at_or_behind_the_anchor_is_seen(tiny, injection):
    drafter = drafter_of(tiny, injection=injection)
    text = responses(1, length=20)[0]
    anchor = np.array([9])
    taps = OnlineFeatures(tiny, drafter.config.target_layer_ids, [text]).of([0])[0][None]
    # What differs between the two: every state and token from the anchor on, but for the anchor's own token.
    other = taps.clone()
    other[:, 9:] += 7.0
    tokens = text.tokens.copy()
    tokens[10:] = 0
    seen = [
        block_states(drafter, embedding_of(tiny), Blocks.of([said], [anchor], 4), states)
        for said, states in ((text, taps), (Response(tokens, 4, 0.0, "a"), other))
    ]
    assert torch.equal(*seen)
    other[:, 8] += 7.0
    moved = block_states(drafter, embedding_of(tiny), Blocks.of([text], [anchor], 4), other)
    assert torch.equal(moved, seen[0]) == (injection == "none")


@pytest.mark.parametrize(
    ("injection", "autoregressive"),
    [("kv", False), ("input", False), ("none", False), ("kv", True), ("none", True)],
)
def test_packed_training_equals_decoding(tiny, injection, autoregressive):
    """Logits of a block in the packed forward are the decoder's own at that committed length, fed cycle by cycle."""
    drafter = drafter_of(tiny, injection=injection, autoregressive=autoregressive, num_layers=2, taps=2).eval()
    text = responses(1, length=22, seed=3)[0]
    anchors = [5, 7, 12, 17]
    taps = OnlineFeatures(tiny, drafter.config.target_layer_ids, [text]).of([0])[0][None]
    packed = (
        block_states(drafter, embedding_of(tiny), Blocks.of([text], [np.array(anchors)], 4), taps)
        @ drafter.head_rows(tiny).T
    )
    proposer = proposer_of(tiny, drafter)
    proposer.begin(64)
    ids, read = torch.from_numpy(text.tokens)[None], 0
    for row, anchor in enumerate(anchors):
        if autoregressive:
            features = drafter.context_inputs(taps[:, read:anchor], embedding_of(tiny)(ids[:, read:anchor]))
            positions = torch.arange(read, anchor + 1)[None]
            before = proposer.cache.length
            logits = drafter(embedding_of(tiny)(ids[:, anchor : anchor + 1]), features, positions, proposer.cache)
            proposer.cache.length = before + anchor - read
            logits = logits @ proposer.head.T
            assert torch.allclose(logits[0], packed[0, row, :1], atol=1e-5)
        else:
            logits = proposer.logits(ids[:, : anchor + 1], taps[:, read:anchor], 3)
            assert torch.allclose(logits[0], packed[0, row], atol=1e-5)
        read = anchor


def test_blocks_whose_mask_is_too_large_are_read_in_parts(tiny, monkeypatch):
    drafter = drafter_of(tiny).eval()
    texts = responses(2, length=22, seed=3)
    packed = Blocks.of(texts, [np.array([5, 7, 12, 17]), np.array([6, 9])], 4)
    taps = torch.stack(OnlineFeatures(tiny, drafter.config.target_layer_ids, texts).of([0, 1]))
    whole = block_states(drafter, embedding_of(tiny), packed, taps)
    # Room for 12 queries of each text: 12 * (22 + 12) bytes twice
    monkeypatch.setattr("upheld.speculative.blocks.MASK_BYTES", 2 * 12 * 34)
    assert anchors_at_once(2, 22, 4) == 3
    torch.testing.assert_close(block_states(drafter, embedding_of(tiny), packed, taps), whole, atol=1e-6, rtol=0)


def test_states_are_those_transformers_calls_hidden_states(tiny):
    text = responses(2, length=11)
    with torch.no_grad():
        hidden = tiny(input_ids=torch.from_numpy(text[1].tokens)[None], output_hidden_states=True).hidden_states
    found = OnlineFeatures(tiny, [0, 1], text).of([0, 1])[1]
    assert torch.allclose(found, torch.cat([hidden[1], hidden[2]], dim=-1)[0], atol=1e-12)


def test_cached_states_are_the_online_ones_in_bfloat16(tiny, tmp_path):
    texts = [*responses(70, length=9), *responses(3, length=15)]
    cached = CachedFeatures(tmp_path, tiny, [0, 1], texts)
    for number in (0, 63, 64, 72):
        online = OnlineFeatures(tiny, [0, 1], texts).of([number])[0]
        assert torch.equal(cached.of([number])[0], online.to(torch.bfloat16))
    with pytest.raises(ValueError, match="states of other layers"):
        CachedFeatures(tmp_path, tiny, [0], texts)


def test_draft_vocabulary_takes_the_frequent_then_the_known_then_the_lowest():
    said = [Response(np.array([400, 300, 300, 200]), 1, 0.0, "a")]
    assert draft_vocabulary(said, 4, 512).tolist() == [0, 1, 200, 300]
    assert draft_vocabulary(said, 1, 512).tolist() == [300]
    assert draft_vocabulary(said, 4, 512, known=[300, 7, 9]).tolist() == [7, 9, 200, 300]
    assert coverage(said, torch.tensor([300])) == pytest.approx(2 / 3)


def test_groups_are_not_parted():
    texts = [*responses(40), *responses(40)]
    kept, held = part_by_group(texts, 0.25)
    assert len(held) == 20
    assert not {r.group for r in kept} & {r.group for r in held}
    with pytest.raises(ValueError, match="give more prompts"):
        part_by_group(responses(1))


@pytest.mark.parametrize("loss", ["ce", "kl"])
@pytest.mark.parametrize("weighting", ["decay", "dpace"])
def test_learning_lowers_the_held_out_loss(tiny, loss, weighting):
    data = responses(24)
    report = trainer(tiny, drafter_of(tiny), data, loss=loss, weighting=weighting, epochs=6, patience=99).fit()
    first, last = report.evaluations[0], report.evaluations[-1]
    assert last.loss < 0.7 * first.loss
    if loss == "ce":
        assert report.accepted_length > first.accepted_length + 0.5
    assert report.steps == len(report.losses) == 6 * 11
    assert 1 <= report.accepted_length <= 4
    assert len(report.position_accuracy) == 3


def test_the_law_learned_from_is_the_targets_own_at_the_place_before(tiny, monkeypatch):
    made = trainer(tiny, drafter_of(tiny), responses(4), loss="kl")
    made._read_head()
    seen = []
    scored = DrafterTrainer._scored
    monkeypatch.setattr(
        DrafterTrainer,
        "_scored",
        lambda self, states, rows, laws: (seen.append(laws), scored(self, states, rows, laws))[1],
    )
    _, _, blocks = made.loss_of([0, 2], np.random.default_rng(0))
    with torch.no_grad():
        laws = tiny(input_ids=blocks.ids).logits.softmax(dim=-1)
    expected = [
        laws[row, blocks.anchors[row, block] + k]
        for row, block, k in blocks.valid.nonzero().tolist()
    ]  # fmt: skip
    torch.testing.assert_close(seen[0], torch.stack(expected)[:, made.ids].float(), atol=1e-6, rtol=1e-4)


def test_only_the_drafter_learns(tiny):
    before = [p.clone() for p in tiny.parameters()]
    trainer(tiny, drafter_of(tiny), responses(6), epochs=1).fit()
    assert all(torch.equal(a, b) for a, b in zip(before, tiny.parameters(), strict=True))


def test_a_run_that_was_interrupted_ends_as_one_that_was_not(tiny, tmp_path):
    data = responses(12)
    whole, halved = drafter_of(tiny), drafter_of(tiny)
    expected = trainer(tiny, whole, data, patience=99).fit()

    class Interrupted(Exception):
        pass

    def stop(report):
        if report.steps >= 7:
            raise Interrupted

    with pytest.raises(Interrupted):
        trainer(tiny, halved, data, patience=99, folder=tmp_path, told=stop).fit()
    resumed = drafter_of(tiny, seed=5)
    report = trainer(tiny, resumed, data, patience=99, folder=tmp_path).fit()
    assert report.losses == expected.losses
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters(), strict=True))
    with pytest.raises(ValueError, match=r"another training \(lr differ\)"):
        trainer(tiny, resumed, data, lr=1e-2, folder=tmp_path).fit()


@pytest.mark.parametrize(
    ("lengths", "ended"), [([2.0, 1.5, 1.6, 1.7, 1.8, 1.9], None), ([1.0, 1.9, 1.9, 1.8, 1.7, 1.9], "flat")]
)
def test_a_drafter_trained_further_may_fall_at_first(tiny, lengths, ended):
    made = trainer(tiny, drafter_of(tiny), responses(12), epochs=4, patience=4)
    evaluations = [Evaluation(2 * place, 1.0, (0.5,), length) for place, length in enumerate(lengths)]
    assert made._ended(TrainReport(steps=evaluations[-1].step, evaluations=evaluations)) == ended


def test_it_stops_when_held_out_length_is_flat_and_says_so(tiny):
    report = trainer(tiny, drafter_of(tiny), responses(12), lr=1e-12, epochs=30, evaluations=30, patience=3).fit()
    assert report.stopped == "flat"
    assert 45 <= report.steps <= 54  # of 180: a quarter is too early to say


def test_it_stops_when_the_time_is_over_and_says_so(tiny):
    report = trainer(tiny, drafter_of(tiny), responses(12), seconds=1e-9).fit()
    assert report.stopped == "budget"
    assert report.steps == 1


def test_reduced_vocabulary_is_chosen_from_the_training_responses(tiny):
    drafter = drafter_of(tiny, draft_vocab_size=32)
    report = trainer(tiny, drafter, responses(12), epochs=1).fit()
    assert set(range(20)) <= set(drafter.draft_ids.tolist())
    assert report.coverage == 1.0
    assert drafter.config.draft_vocab_size == 32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "mse"}, "loss is ce or kl"),
        ({"features": "cached"}, "cached features need a folder"),
        ({"held_out": []}, "two tokens or more"),
    ],
)
def test_bad_options_are_refused(tiny, options, message):
    with pytest.raises(ValueError, match=message):
        trainer(tiny, drafter_of(tiny), responses(4), **options)


def test_a_tokenizer_of_another_model_is_refused(make_llama):
    small = make_llama(vocabulary=100)
    with pytest.raises(ValueError, match="the tokenizer has 260 tokens, the target 100"):
        DrafterTrainer(small, ByteTokenizer(), drafter_of(small), responses(4))
