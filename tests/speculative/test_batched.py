from __future__ import annotations

import pytest
import torch
from transformers import GenerationConfig

from upheld.speculative import DFlashDrafter, SpeculativeDecoder
from upheld.speculative.batched import BatchedDecoder


def prompts():
    """Five prompts of 3 to 7 tokens, padded on the left."""
    lengths = [3, 7, 5, 4, 6]
    ids, mask = torch.zeros(5, 7, dtype=torch.long), torch.zeros(5, 7, dtype=torch.long)
    for row, length in enumerate(lengths):
        ids[row, -length:] = torch.randint(512, (length,), generator=torch.Generator().manual_seed(row))
        mask[row, -length:] = 1
    return ids, mask


@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_rows_are_what_each_would_be_alone(make_llama, penalty):
    """With so few tokens that an untrained drafter is right now and then, in one row and not in another."""
    target = make_llama(vocabulary=8, seed=4)
    drafter = DFlashDrafter.from_target(target, block_size=4, draft_vocab_size=7)
    ids, mask = prompts()
    ids = ids % 8
    config = GenerationConfig(max_new_tokens=30, pad_token_id=0, repetition_penalty=penalty)
    together, stats = BatchedDecoder(target, drafter).generate(ids, config, attention_mask=mask)
    alone, total = SpeculativeDecoder(target, drafter).generate(ids, config, attention_mask=mask, return_stats=True)
    assert torch.equal(together, alone)
    assert [s.tokens for s in stats] == [30] * 5
    accepted = [length for s in stats for length in s.acceptance_lengths]
    assert sorted(accepted) == sorted(total.acceptance_lengths)
    assert len(set(accepted)) > 1


def test_rows_end_at_their_own_stop(tiny):
    drafter = DFlashDrafter.from_target(tiny, block_size=4)
    ids, mask = prompts()
    free = SpeculativeDecoder(tiny, drafter).generate(ids, GenerationConfig(max_new_tokens=20), attention_mask=mask)
    config = GenerationConfig(max_new_tokens=20, pad_token_id=0, eos_token_id=[int(free[1, 10]), int(free[3, 15])])
    together, stats = BatchedDecoder(tiny, drafter).generate(ids, config, attention_mask=mask)
    assert torch.equal(together, SpeculativeDecoder(tiny, drafter).generate(ids, config, attention_mask=mask))
    assert len({s.tokens for s in stats}) > 1


def test_one_forward_of_the_target_serves_all_rows(tiny):
    drafter, calls = DFlashDrafter.from_target(tiny, block_size=4), []
    ids, mask = prompts()
    hook = tiny.register_forward_hook(lambda *_: calls.append(1))
    _, stats = BatchedDecoder(tiny, drafter).generate(ids, GenerationConfig(max_new_tokens=12), attention_mask=mask)
    hook.remove()
    assert len(calls) == 1 + max(s.cycles for s in stats)


def test_sampling_repeats_with_its_seed(tiny):
    drafter = DFlashDrafter.from_target(tiny, block_size=4)
    ids, mask = prompts()
    config = GenerationConfig(max_new_tokens=12, do_sample=True, temperature=0.9, top_p=0.9)
    one, two = (
        BatchedDecoder(tiny, drafter).generate(
            ids, config, attention_mask=mask, generator=torch.Generator().manual_seed(3)
        )[0]
        for _ in range(2)
    )
    assert torch.equal(one, two)


def test_what_cannot_be_batched_is_named(tiny):
    with pytest.raises(ValueError, match="injection='kv'"):
        BatchedDecoder(tiny, DFlashDrafter.from_target(tiny, injection="none"))
    with pytest.raises(ValueError, match="block_size must lie in 2 to 4, got 5"):
        BatchedDecoder(tiny, DFlashDrafter.from_target(tiny, block_size=4), block_size=5)
    with pytest.raises(ValueError, match="prompt 1 is empty"):
        BatchedDecoder(tiny, DFlashDrafter.from_target(tiny)).generate(
            torch.ones(2, 3, dtype=torch.long), attention_mask=torch.tensor([[1, 1, 1], [0, 0, 0]])
        )
