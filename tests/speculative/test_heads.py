from __future__ import annotations

import numpy as np
import pytest
import torch

from upheld.speculative.blocks import Blocks
from upheld.speculative.drafter import embedding_of
from upheld.speculative.features import OnlineFeatures
from upheld.speculative.heads import EagleHead, HeadProposer, MedusaHeads
from upheld.speculative.responses import Response
from upheld.speculative.training import DrafterTrainer
from upheld.speculative.verification import Sampling


def responses(count):
    found = []
    for number in range(count):
        tokens = [number % 20]
        while len(tokens) < 24:
            tokens.append((tokens[-1] * 3 + 1) % 20)
        found.append(Response(np.array(tokens), 4, 0.0, f"group {number}"))
    return found


@pytest.fixture(params=[EagleHead, MedusaHeads])
def head(request, tiny):
    return request.param.from_target(tiny, block_size=4)


def test_learning_makes_more_drafts_stand(tiny, head):
    report = DrafterTrainer(tiny, None, head, responses(24), epochs=10, anchors=8, lr=3e-3, patience=99).fit()
    assert report.evaluations[-1].loss < 0.7 * report.evaluations[0].loss
    assert report.accepted_length > report.evaluations[0].accepted_length + 0.3


def test_nothing_at_or_behind_the_anchor_is_seen_but_the_tokens_it_would_have_drafted(tiny, head):
    text = responses(1)[0]
    blocks = Blocks.of([text], [np.array([9])], 4)
    taps = OnlineFeatures(tiny, head.taps, [text]).of([0])[0][None]
    other = taps.clone()
    other[:, 9:] += 7.0
    embedding = embedding_of(tiny)
    assert torch.equal(head.states(embedding, blocks, taps), head.states(embedding, blocks, other))
    other[:, 8] += 7.0
    assert not torch.equal(head.states(embedding, blocks, taps), head.states(embedding, blocks, other))


def test_training_states_are_those_of_drafting(tiny, head):
    """Greedy drafts from several committed lengths in a row, read in the training's packed form, choose themselves."""
    head.draft_ids = head.draft_ids.clone()
    with torch.no_grad():
        for parameter in head.parameters():
            if parameter.dim() == 2:
                torch.nn.init.normal_(parameter, std=0.2)
    text = responses(1)[0]
    taps = OnlineFeatures(tiny, head.taps, [text]).of([0])[0][None]
    ids = torch.from_numpy(text.tokens)[None]
    proposer, read = HeadProposer(tiny, head), 0
    proposer.begin(64)
    for anchor in (5, 7, 12, 13):
        drafted = proposer.propose(ids[:, : anchor + 1], taps[:, read:anchor], 3, Sampling(), None).tokens[0]
        # The text as it would be had the drafts stood: training reads the tokens, and must find the same choices.
        told = np.concatenate([text.tokens[: anchor + 1], drafted.numpy()])
        blocks = Blocks.of([Response(told, 4, 0.0, "a")], [np.array([anchor])], 4)
        states = head.states(embedding_of(tiny), blocks, torch.nn.functional.pad(taps[:, :anchor], (0, 0, 0, 4)))
        assert (states[0, 0] @ tiny.lm_head.weight.T).argmax(-1).tolist() == drafted.tolist()
        read = anchor
    assert proposer.forwards == (12 if isinstance(head, EagleHead) else 4)


def test_untrained_medusa_says_what_the_target_says(tiny):
    text = responses(1)[0]
    head = MedusaHeads.from_target(tiny, block_size=4)
    ids = torch.from_numpy(text.tokens)[None]
    taps = OnlineFeatures(tiny, head.taps, [text]).of([0])[0][None]
    with torch.no_grad():
        expected = int(tiny(input_ids=ids).logits[0, 10].argmax())
    blocks = Blocks.of([text], [np.array([11])], 4)
    states = head.states(embedding_of(tiny), blocks, taps)
    assert (states[0, 0] @ tiny.lm_head.weight.T).argmax(-1).tolist() == [expected] * 3
