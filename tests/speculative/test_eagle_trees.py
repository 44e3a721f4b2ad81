from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import GenerationConfig

from upheld.speculative.blocks import Blocks
from upheld.speculative.drafter import embedding_of
from upheld.speculative.eagle_trees import Candidates, EagleTreeDecoder
from upheld.speculative.features import OnlineFeatures
from upheld.speculative.heads import EagleHead, HeadProposer
from upheld.speculative.responses import Response
from upheld.speculative.verification import Sampling

TEXT = torch.randint(512, (1, 12), generator=torch.Generator().manual_seed(4))


@pytest.fixture
def head(tiny):
    """Weights large enough that what a node sees changes what it says."""
    made = EagleHead.from_target(tiny, block_size=5)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for parameter in made.parameters():
            if parameter.dim() == 2:
                torch.nn.init.normal_(parameter, std=0.2)
    return made


def taps_of(target, head, ids):
    response = Response(ids[0].numpy(), 4, 0.0, "a")
    return OnlineFeatures(target, head.taps, [response]).of([0])[0][None]


def grown(target, head, top, steps=4):
    decoder = EagleTreeDecoder(target, head, nodes=8, top=top)
    decoder.proposer.begin(64)
    taps = taps_of(target, head, TEXT)[:, :-1]
    # Twice, as in two cycles of a text: what the first one drafted must be gone from the cache.
    decoder._candidates(decoder.proposer, head, TEXT[:, :9], taps[:, :8], steps, Sampling())
    return decoder._candidates(decoder.proposer, head, TEXT, taps[:, 8:], steps, Sampling())


def path(found, entry):
    tokens = []
    while entry >= 0:
        tokens.append(int(found.tokens[entry]))
        entry = int(found.parents[entry])
    return tokens[::-1]


def test_a_node_sees_the_text_and_its_ancestors_alone(tiny, head):
    """The chance of every path is that which the training's packed form, which knows no tree, gives the same tokens."""
    found = grown(tiny, head, top=3)
    taps = torch.nn.functional.pad(taps_of(tiny, head, TEXT)[:, :-1], (0, 0, 0, 5))
    entries = [e for e in range(len(found.tokens)) if int(found.depths[e]) == 4]
    assert len(entries) == 9
    for entry in entries:
        drafted = path(found, entry)
        told = Response(np.concatenate([TEXT[0].numpy(), drafted]), 4, 0.0, "a")
        blocks = Blocks.of([told], [np.array([11])], 5)
        with torch.no_grad():
            states = head.states(embedding_of(tiny), blocks, taps)[0, 0]
        laws = (states @ tiny.lm_head.weight.T).float().log_softmax(-1)
        chance = sum(float(laws[k, token]) for k, token in enumerate(drafted))
        assert float(found.logs[entry].detach()) == pytest.approx(chance, abs=1e-4)


def test_a_tree_of_one_child_is_the_chain(tiny, head):
    proposer = HeadProposer(tiny, head)
    proposer.begin(64)
    chain = proposer.propose(TEXT, taps_of(tiny, head, TEXT)[:, :-1], 4, Sampling(), None).tokens[0]
    tree = grown(tiny, head, top=1).best(8)
    assert tree.tokens == chain.tolist()
    assert (tree.parents, tree.depths) == ([0, 1, 2, 3], [1, 2, 3, 4])


def test_the_likeliest_paths_are_kept_and_hang_together():
    found = Candidates(
        tokens=torch.tensor([5, 6, 7, 8, 9, 4]), parents=torch.tensor([-1, -1, 0, 0, 1, 1]),
        depths=torch.tensor([1, 1, 2, 2, 2, 2]), logs=torch.tensor([-0.1, -2.0, -0.3, -3.0, -2.1, -5.0]),
    )  # fmt: skip
    tree = found.best(4)
    assert (tree.tokens, tree.parents, tree.depths) == ([5, 6, 7, 9], [0, 0, 1, 2], [1, 1, 2, 2])


@pytest.mark.parametrize("nodes", [1, 16, 60])
@pytest.mark.parametrize("vocabulary", [None, 200])
def test_greedy_text_is_that_of_generate(tiny, nodes, vocabulary):
    ids = torch.randint(512, (1, 6), generator=torch.Generator().manual_seed(nodes))
    head = EagleHead.from_target(tiny, block_size=5, draft_vocab_size=vocabulary)
    config = GenerationConfig(max_new_tokens=24, pad_token_id=0)
    out, stats = EagleTreeDecoder(tiny, head, nodes=nodes).generate(ids, config, return_stats=True)
    assert torch.equal(out, tiny.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config))
    assert stats.tokens == 24


def test_a_tree_of_nothing_is_refused(tiny, head):
    with pytest.raises(ValueError, match="at least one node below its anchor, got 0"):
        EagleTreeDecoder(tiny, head, nodes=0)
