from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
import torch
from transformers import GenerationConfig

from upheld.speculative import DFlashDrafter
from upheld.speculative.features import OnlineFeatures
from upheld.speculative.heads import EagleHead, HeadProposer, MedusaHeads
from upheld.speculative.responses import Response
from upheld.speculative.rivals import (
    assistant,
    dflash,
    eagle_chain,
    eagle_tree,
    generate,
    interleaved,
    medusa,
    plain,
    prompt_lookup,
)
from upheld.speculative.verification import Sampling

sys.path.insert(0, str(Path(__file__).parent))
from drafters import Told

from upheld.speculative import SpeculativeDecoder
from upheld.speculative.rivals import Own

IDS = torch.randint(512, (1, 6), generator=torch.Generator().manual_seed(2))
GREEDY = GenerationConfig(max_new_tokens=20, do_sample=False, pad_token_id=0)
SAMPLED = GenerationConfig(max_new_tokens=6, do_sample=True, top_k=0, pad_token_id=0)


def methods(target, make_llama):
    head = EagleHead.from_target(target, block_size=5)
    return [
        plain(target), generate(target), prompt_lookup(target, 3), assistant(target, make_llama(layers=1, seed=3)),
        eagle_chain(target, head), eagle_tree(target, head, 16), medusa(target, MedusaHeads.from_target(target, block_size=4)),
        dflash(target, DFlashDrafter.from_target(target, block_size=5, num_layers=1)),
    ]  # fmt: skip


def test_all_write_the_same_text_under_their_own_names(tiny, make_llama):
    found = interleaved(methods(tiny, make_llama), IDS, GREEDY)
    assert len(found) == 8
    texts = {name: decoded[0].tokens.tolist() for name, decoded in found.items()}
    assert all(text == texts["generate"] for text in texts.values()), texts


def test_what_is_timed_is_what_comes_after_the_first_tokens(tiny, make_llama):
    for method in methods(tiny, make_llama):
        began = time.process_time()
        decoded = method.decode(IDS, GREEDY)
        took = time.process_time() - began
        assert 0 < decoded.prefill_s < took
        assert 0 < decoded.decode_s < took
        assert decoded.prefill_s + decoded.decode_s <= took
        assert 20 - 6 <= decoded.timed <= 19
        assert decoded.seconds_a_token == pytest.approx(decoded.decode_s / decoded.timed)
    assert plain(tiny).decode(IDS, GREEDY).timed == generate(tiny).decode(IDS, GREEDY).timed == 19


def test_a_text_of_one_token_has_no_pace(tiny):
    decoded = plain(tiny).decode(IDS, GenerationConfig(max_new_tokens=1, pad_token_id=0))
    assert decoded.timed == 0
    assert decoded.seconds_a_token != decoded.seconds_a_token


def test_sampling_is_the_seeds(tiny, make_llama):
    every = methods(tiny, make_llama)
    before = torch.get_rng_state()
    for method in every:
        first, again, other = (method.decode(IDS, SAMPLED, seed=seed).tokens.tolist() for seed in (1, 1, 2))
        assert first == again
        assert first != other
    assert torch.equal(before, torch.get_rng_state())


def test_methods_take_turns_at_beginning():
    order = []

    class Note:
        def __init__(self, name):
            self.name = name

        def decode(self, prompt, config, *, seed):
            order.append(self.name)

    interleaved([Note("a"), Note("b"), Note("c")], IDS, GREEDY, repeats=2, turn=2)
    assert order == ["c", "a", "b", "a", "b", "c"]


@pytest.mark.parametrize("kind", [EagleHead, MedusaHeads])
def test_heads_draft_from_what_is_committed_alone(tiny, kind):
    """Every draft made while decoding is made again from the text up to there alone, read by the target anew."""
    head = kind.from_target(tiny, block_size=4)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        for parameter in head.parameters():
            if parameter.dim() == 2:
                torch.nn.init.normal_(parameter, std=0.2)
    seen = []

    class Noting(HeadProposer):
        def propose(self, ids, states, count, sampling, generator):
            draft = super().propose(ids, states, count, sampling, generator)
            seen.append((ids.clone(), draft.tokens.clone()))
            return draft

    decoder = SpeculativeDecoder(tiny, Noting(tiny, head))
    text = decoder.generate(IDS, GREEDY)
    assert len(seen) > 5
    for ids, drafted in seen:
        assert torch.equal(ids, text[:, : ids.shape[1]])
        read = Response(ids[0, :-1].numpy(), 4, 0.0, "a")
        taps = OnlineFeatures(tiny, head.taps, [read]).of([0])[0][None]
        fresh = HeadProposer(tiny, head)
        fresh.begin(64)
        assert torch.equal(fresh.propose(ids, taps, drafted.shape[1], Sampling(), None).tokens, drafted)


def test_tau_counts_what_stands_and_the_bonus(tiny):
    """A head that is told the text: 4 drafts a cycle, 5 tokens."""
    decoded = Own("told", SpeculativeDecoder(tiny, Told(tiny, block_size=5))).decode(
        IDS, GenerationConfig(max_new_tokens=21, pad_token_id=0)
    )
    assert decoded.stats.tau == 5
    assert decoded.stats.cycles == 4
