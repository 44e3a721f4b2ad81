from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from transformers import GenerationConfig

from upheld.speculative import DFlashDrafter, SpeculativeDecoder
from upheld.speculative.costs import CostTable, calibrate, in_turn, speed_up
from upheld.speculative.stats import expected_tau

sys.path.insert(0, str(Path(__file__).parent))
from drafters import Told


def test_the_papers_arithmetic():
    """At tau 4, c_v 2.4 and c_d 0.25 the ceiling is 1.5; break-even at c_v 1.03 and c_d 0.12 is tau 1.15."""
    assert speed_up(4, 2.4, 0.25) == pytest.approx(1.509, abs=1e-3)
    assert speed_up(1.15, 1.03, 0.12) == pytest.approx(1.0)


def test_best_block_weighs_tokens_against_costs():
    table = CostTable(0.1, {2: 1.0, 4: 1.2, 8: 3.0}, {2: 0.1, 4: 0.1, 8: 0.1}, [0.8] * 7)
    assert table.predicted[4] == pytest.approx((1 + 0.8 + 0.64 + 0.512) / 1.3)
    assert table.best_block == 4
    assert table.recommended
    assert table.bounds == pytest.approx({2: 2 / 1.1, 4: 4 / 1.3, 8: 8 / 3.1})
    assert table.advice.startswith("use blocks of 4: 2.27 times")


def test_what_cannot_pay_is_refused():
    table = CostTable(0.1, {2: 1.8, 8: 4.0}, {2: 0.2, 8: 0.2}, [0.3] * 7)
    assert not table.recommended
    assert table.advice.startswith("do not use it here: the best block (2) is expected to run at 0.65 times")


def test_measured_on_a_small_target(tiny):
    prompts = [torch.arange(3, 9)[None], torch.arange(40, 45)[None]]
    table = calibrate(tiny, Told(tiny, block_size=4), prompts, context=16, repeats=2, max_new_tokens=13)
    assert table.acceptance == [1.0, 1.0, 1.0]
    assert sorted(table.verify) == sorted(table.draft) == [2, 3, 4]
    assert all(cost > 0 for cost in (*table.verify.values(), *table.draft.values(), table.step_s))


def test_positions_never_reached_count_as_rejected(tiny):
    table = calibrate(
        tiny, Told(tiny, block_size=4, twist=lambda t: (t + 1) % 512), [torch.arange(5)[None]], context=16, repeats=1
    )
    assert table.acceptance == [0.0, 0.0, 0.0]
    assert not table.recommended


def test_every_call_takes_its_turn():
    order = []
    in_turn({1: lambda: order.append(1), 2: lambda: order.append(2)}, 2, torch.device("cpu"))
    assert order == [1, 2, 1, 2, 1, 2]


@pytest.mark.parametrize("sizes", [[1], [9], []])
def test_impossible_sizes(tiny, sizes):
    with pytest.raises(ValueError, match="block sizes must lie in 2 to 8"):
        calibrate(tiny, DFlashDrafter.from_target(tiny), [torch.arange(5)[None]], sizes=sizes)


def test_no_prompt(tiny):
    with pytest.raises(ValueError, match="at least one prompt"):
        calibrate(tiny, DFlashDrafter.from_target(tiny), [])


def test_the_promise_tells_how_far_texts_lie_apart():
    texts = [[1.0, 1.0, 0.5], [0.5, 0.0, 0.0]]
    table = CostTable(0.1, {2: 1.8, 4: 1.8}, {2: 0.2, 4: 0.2}, [0.8, 0.8, 0.4], texts)
    assert table.best_block == 4
    assert table.text_by_text == pytest.approx([3.5 / 2, 1.5 / 2])
    assert table.advice.endswith("; from text to text 0.75 to 1.75")


@pytest.mark.parametrize("block", [2, 3, 4])
def test_tokens_that_are_promised_are_those_that_decoding_emits(tiny, block):
    """The whole block is told wrong from its third draft on; whatever block is taken then emits what was foretold, by counting."""

    def twist(right):
        wrong = torch.arange(right.shape[-1]) >= 2
        return torch.where(wrong, (right + 1) % 512, right)

    prompt = torch.arange(3, 9)[None]
    table = calibrate(tiny, Told(tiny, block_size=4, twist=twist), [prompt], context=16, repeats=1, max_new_tokens=25)
    decoder = SpeculativeDecoder(tiny, Told(tiny, block_size=4, twist=twist), block_size=block)
    _, stats = decoder.generate(prompt, GenerationConfig(max_new_tokens=25, do_sample=False), return_stats=True)
    assert table.texts == [table.acceptance] == [[1.0, 1.0, 0.0]]
    assert expected_tau(table.acceptance[: block - 1]) == stats.tau == min(block, 3)
