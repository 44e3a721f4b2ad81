from __future__ import annotations

import itertools

import pytest
import torch
from transformers import GenerationConfig

from upheld.speculative import DFlashDrafter
from upheld.speculative.proposals import BlockProposer
from upheld.speculative.trees import TreeDecoder, best_first


def test_holds_the_likeliest_paths():
    """Against all paths listed and sorted."""
    law = torch.rand(3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64).softmax(-1)
    tree = best_first(law, 12)
    paths = {}
    for node, (token, parent) in enumerate(zip(tree.tokens, tree.parents, strict=True), start=1):
        paths[node] = (*paths.get(parent, ()), token)
    chance = {
        path: float(torch.stack([law[d, t] for d, t in enumerate(path)]).prod())
        for k in (1, 2, 3)
        for path in itertools.product(range(5), repeat=k)
    }
    assert set(paths.values()) == set(sorted(chance, key=chance.__getitem__, reverse=True)[:12])
    assert tree.depths == [len(paths[node]) for node in sorted(paths)]


def test_tokens_that_cannot_come_are_no_nodes():
    assert best_first(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), 10).tokens == [0, 1]


def test_a_node_looks_at_what_is_above_it():
    tree = best_first(torch.tensor([[0.6, 0.4], [0.9, 0.1]]), 4)
    assert (tree.tokens, tree.parents) == ([0, 0, 1, 0], [0, 1, 0, 3])
    assert tree.ancestors().int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [1, 0, 0, 1, 1],
    ]


@pytest.mark.parametrize("nodes", [1, 7, 30])
@pytest.mark.parametrize("vocabulary", [None, 200])
def test_greedy_text_is_that_of_generate(tiny, nodes, vocabulary):
    ids = torch.randint(512, (1, 6), generator=torch.Generator().manual_seed(nodes))
    drafter = DFlashDrafter.from_target(tiny, block_size=5, draft_vocab_size=vocabulary)
    config = GenerationConfig(max_new_tokens=24, pad_token_id=0, repetition_penalty=1.1)
    out, stats = TreeDecoder(tiny, drafter, nodes=nodes).generate(ids, config, return_stats=True)
    assert torch.equal(out, tiny.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config))
    assert stats.tokens == 24


def test_wider_trees_are_accepted_further(tiny):
    """The drafts' second guesses are the target's choices: a chain finds none of them, a tree of two a depth all."""
    ids = torch.randint(512, (1, 6), generator=torch.Generator().manual_seed(1))
    drafter = DFlashDrafter.from_target(tiny, block_size=4, draft_vocab_size=None)

    class SecondBest(BlockProposer):
        def logits(self, ids, states, count):
            super().logits(ids, states, count)
            text, rows = ids, []
            for _ in range(count):
                row = self.target(input_ids=text).logits[:, -1].float()
                best = row.argmax(-1)
                text = torch.cat([text, best[:, None]], dim=1)
                rows.append(torch.full((512,), -30.0))
                rows[-1][best], rows[-1][(best + 1) % 512] = 0.0, 0.5
            return torch.stack(rows)[None]

    taus = {}
    for nodes in (3, 14):
        decoder = TreeDecoder(tiny, drafter, nodes=nodes)
        decoder.proposer = SecondBest(tiny, drafter)
        decoder.proposer.target = tiny
        _, stats = decoder.generate(ids, GenerationConfig(max_new_tokens=25), return_stats=True)
        taus[nodes] = stats.tau
    assert taus[14] == 4  # 2 + 4 + 8 nodes are all paths of two choices a depth
    assert taus[3] < 4


@pytest.mark.slow
def test_sampled_tokens_have_the_targets_law(make_llama):
    from scipy import stats

    target = make_llama(vocabulary=8, width=16, seed=2)
    decoder = TreeDecoder(target, DFlashDrafter.from_target(target, block_size=4, draft_vocab_size=None), nodes=6)
    ids, source = torch.tensor([[1, 2, 3]]), torch.Generator().manual_seed(0)
    config = GenerationConfig(do_sample=True, temperature=1.2, top_k=0, max_new_tokens=2)
    counts = torch.zeros(8, 8)
    for _ in range(1200):
        first, second = decoder.generate(ids, config, generator=source)[0, 3:]
        counts[first, second] += 1
    logits = target(input_ids=torch.tensor([[1, 2, 3, a] for a in range(8)])).logits / 1.2
    law = logits[0, -2].softmax(-1)[:, None] * logits[:, -1].softmax(-1)
    expected = (law * 1200).flatten().numpy()
    few, counts = expected < 5, counts.flatten().numpy()
    assert stats.chisquare([*counts[~few], counts[few].sum()], [*expected[~few], expected[few].sum()]).pvalue > 0.001


def test_impossible_trees(tiny):
    with pytest.raises(ValueError, match="at least one node"):
        TreeDecoder(tiny, DFlashDrafter.from_target(tiny), nodes=0)
    with pytest.raises(ValueError, match="proposes token by token"):
        TreeDecoder(tiny, DFlashDrafter.from_target(tiny, autoregressive=True), nodes=4)
