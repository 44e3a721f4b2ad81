"""What is told from texts that were decoded once: prompt lookup's cycles without decoding again, and the block that pays."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from transformers import GenerationConfig

from upheld.speculative.costs import CostTable
from upheld.speculative.tuning import lookup_cost, lookup_cycles, tune

sys.path.insert(0, str(Path(__file__).parent))
from drafters import Told

SAID = torch.tensor([[5, 9, 5, 9, 5, 9, 30, 31, 5, 9, 30]])


def really(target, prompt, drafts, config):
    """The text that `generate` writes with prompt lookup, and the drafts it verified in every cycle."""
    widths = []
    hook = target.register_forward_pre_hook(
        lambda _module, _args, given: widths.append(given["input_ids"].shape[1]), with_kwargs=True
    )
    asked = GenerationConfig(**config.to_diff_dict() | {"prompt_lookup_num_tokens": drafts})
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            text = target.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=asked)
    finally:
        hook.remove()
    return text, [widths[0] - prompt.shape[1], *(width - 1 for width in widths[1:])]


@pytest.mark.parametrize("drafts", [3, 5, 10])
@pytest.mark.parametrize(
    "options",
    [
        {"do_sample": False},
        {"do_sample": False, "eos_token_id": [12, 9]},
        {"do_sample": True, "top_k": 3, "temperature": 0.1},
        {"do_sample": True, "top_k": 0, "top_p": 0.5, "temperature": 0.1},
    ],
)
def test_cycles_are_those_of_generate(make_llama, drafts, options):
    # Few tokens, of which a greedy text soon repeats some.
    target = make_llama(layers=1, vocabulary=32, seed=4)
    config = GenerationConfig(max_new_tokens=40, pad_token_id=0, **options)
    text, cycles = really(target, SAID, drafts, config)
    assert lookup_cycles(target, text, SAID.shape[1], drafts, config) == cycles
    assert max(cycles) > 1
    assert len(cycles) < text.shape[1] - SAID.shape[1]


def test_lengths_between_those_timed_cost_what_lies_between():
    costs = CostTable(0.1, {2: 1.5, 4: 2.0, 11: 9.0}, {2: 0.1}, [])
    # The first cycle reads the prompt and counts for nothing; then 1.0 + 1.5 + 1.75 + 2.0 steps.
    assert lookup_cost([9, 0, 1, 2, 3], costs) == pytest.approx(6.25)


def test_tuned_on_texts_decoded_once(tiny):
    config = GenerationConfig(max_new_tokens=13, do_sample=False, pad_token_id=0)
    found = tune(tiny, Told(tiny, block_size=4), [SAID], config, ks=(3, 5), context=16, repeats=1)
    assert found.costs.acceptance == [1.0, 1.0, 1.0]
    assert sorted(found.costs.draft) == [2, 3, 4]
    assert sorted(found.costs.verify) == [2, 3, 4, 6]
    assert found.block == max(found.costs.predicted, key=found.costs.predicted.get)
    assert found.lookup in (3, 5)
    with pytest.raises(ValueError, match="too few to tune on"):
        tune(tiny, Told(tiny), [], config)
    with pytest.raises(ValueError, match="too few to tune on"):
        tune(tiny, Told(tiny), [SAID], config, ks=())
