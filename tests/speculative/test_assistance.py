from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from transformers import GenerationConfig

from upheld.speculative.assistance import assisted

sys.path.insert(0, str(Path(__file__).parent))
from drafters import Told


def test_generate_writes_the_same_in_fewer_forwards(tiny):
    ids, calls = torch.arange(5)[None], []
    given = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
    plain = tiny.generate(ids, **given)
    drafter = Told(tiny)
    with assisted(tiny, drafter) as decoder:
        hook = tiny.model.norm.register_forward_hook(lambda *_: calls.append(1))
        fast = tiny.generate(input_ids=ids, **given)
        named = tiny.generate(ids, GenerationConfig(max_new_tokens=12, pad_token_id=0))
        hook.remove()
        assert decoder.block_size == 4
    assert torch.equal(fast, plain)
    assert torch.equal(named, plain)
    assert "generate" not in vars(tiny)


def test_as_before_after_an_error(tiny):
    with pytest.raises(ValueError, match="was given typical_ness"), assisted(tiny, Told(tiny)):
        tiny.generate(torch.arange(5)[None], typical_ness=0.3)
    assert "generate" not in vars(tiny)
    with pytest.raises(ValueError, match="needs input_ids"), assisted(tiny, Told(tiny)):
        tiny.generate()


def test_one_inside_another(tiny):
    with assisted(tiny, Told(tiny)):
        outer = tiny.generate
        with assisted(tiny, Told(tiny, block_size=2)):
            assert tiny.generate is not outer
        assert tiny.generate is outer
