from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from transformers import GenerationConfig, MaxTimeCriteria

from upheld.speculative import DFlashDrafter
from upheld.speculative.decoder import SpeculativeDecoder
from upheld.speculative.proposals import BlockProposer
from upheld.speculative.reading import Reader

sys.path.insert(0, str(Path(__file__).parent))
from drafters import Constant, Random, Told


def prompt(seed=0, length=6, rows=1):
    return torch.randint(512, (rows, length), generator=torch.Generator().manual_seed(seed))


def plain(target, ids, **options):
    """What transformers writes."""
    options = {"max_new_tokens": 24, "do_sample": False, "pad_token_id": 0, **options}
    return target.generate(ids, attention_mask=torch.ones_like(ids), generation_config=GenerationConfig(**options))


def written(target, drafter, ids, decoder=None, config=None, **options):
    config = {"max_new_tokens": 24, "pad_token_id": 0, **(config or {})}
    decoder = SpeculativeDecoder(target, drafter, **(decoder or {}))
    return decoder.generate(ids, GenerationConfig(**config), **options)


def other(tokens):
    return (tokens + 1) % 512


DRAFTERS = {
    "none": lambda target: None,
    "oracle": Told,
    "anti-oracle": lambda target: Told(target, twist=other),
    "random": Random,
    "constant": Constant,
    "untrained": lambda target: DFlashDrafter.from_target(target, init="random", block_size=5),
    "aligned": lambda target: DFlashDrafter.from_target(target, block_size=5, num_layers=1, draft_vocab_size=None),
    "part of the vocabulary": lambda target: DFlashDrafter.from_target(target, draft_vocab_size=100),
    "input": lambda target: DFlashDrafter.from_target(target, injection="input"),
    "no features": lambda target: DFlashDrafter.from_target(target, injection="none"),
    "step by step": lambda target: DFlashDrafter.from_target(target, autoregressive=True),
    "window": lambda target: DFlashDrafter.from_target(target, context_window=3),
}


@pytest.mark.parametrize("name", DRAFTERS)
def test_greedy_text_is_that_of_generate(tiny, name):
    for seed in range(3):
        ids = prompt(seed)
        assert torch.equal(written(tiny, DRAFTERS[name](tiny), ids), plain(tiny, ids))


@pytest.mark.parametrize("budget", [1, 2, 4, 5, 9])
@pytest.mark.parametrize("name", ["oracle", "anti-oracle"])
def test_budget_is_met_to_the_token(tiny, name, budget):
    ids = prompt()
    out = written(tiny, DRAFTERS[name](tiny), ids, config={"max_new_tokens": budget})
    assert torch.equal(out, plain(tiny, ids, max_new_tokens=budget))


def test_oracle_emits_a_block_a_cycle(tiny):
    _, stats = written(tiny, Told(tiny, block_size=4), prompt(), return_stats=True)
    assert set(stats.acceptance_lengths) == {4}
    assert stats.tau == 4
    assert stats.position_acceptance == [1, 1, 1]
    assert (stats.tokens, stats.cycles) == (24, 6)  # one at the prefill, five full cycles, three of the last


def test_anti_oracle_emits_one(tiny):
    _, stats = written(tiny, Told(tiny, twist=other), prompt(), return_stats=True)
    assert stats.tau == 1
    assert (stats.tokens, stats.cycles) == (24, 23)


@pytest.mark.parametrize("adaptive", [False, True])
def test_half_an_oracle(tiny, adaptive):
    """Right for two tokens, wrong from there: three a cycle."""

    def wrong_from_the_third(tokens):
        return torch.cat([tokens[:, :2], other(tokens[:, 2:])], dim=1)

    ids = prompt()
    out, stats = written(
        tiny, Told(tiny, 8, wrong_from_the_third), ids, decoder={"adaptive": adaptive}, return_stats=True
    )
    assert torch.equal(out, plain(tiny, ids))
    assert stats.tau == 3 or adaptive


@pytest.mark.parametrize("place", [0, 1, 2, 5, 7])
def test_stop_token_inside_the_accepted_run(tiny, place):
    ids = prompt()
    stop = int(plain(tiny, ids)[0, ids.shape[1] + place])
    out = written(tiny, Told(tiny), ids, config={"eos_token_id": [stop, 511]})
    assert torch.equal(out, plain(tiny, ids, eos_token_id=[stop, 511]))


def test_criteria_are_asked_after_every_token(tiny):
    asked = []

    def after_ten(ids, scores):
        assert scores.shape == (1, 512)
        # The token is the likeliest of the scores it is shown with.
        assert int(scores.argmax()) == int(ids[0, -1])
        asked.append(ids.shape[1])
        return torch.tensor([ids.shape[1] >= 16])

    out = written(tiny, Told(tiny), prompt(), stopping_criteria=[after_ten])
    assert asked == list(range(7, 17))
    assert out.shape[1] == 16
    assert written(tiny, Told(tiny), prompt(), stopping_criteria=[MaxTimeCriteria(0.0)]).shape[1] == 7


def test_streamer_is_told_prompt_and_tokens_one_by_one(tiny):
    told = []

    class Streamer:
        def put(self, value):
            told.append(value)

        def end(self):
            told.append("end")

    ids = prompt()
    out = written(tiny, Told(tiny), ids, streamer=Streamer())
    assert torch.equal(told[0], ids)
    assert [int(token) for token in told[1:-1]] == out[0, 6:].tolist()
    assert told[-1] == "end"


def test_rows_of_different_lengths_are_written_one_by_one(tiny):
    ids, mask = prompt(rows=2), torch.ones(2, 6, dtype=torch.long)
    mask[0, :2] = 0
    stop = int(plain(tiny, ids[:1, 2:])[0, 9])
    out = written(tiny, Told(tiny), ids, attention_mask=mask, config={"eos_token_id": stop})
    alone = plain(tiny, ids[:1, 2:], eos_token_id=stop)[0, 4:]
    assert out[0, 6 : 6 + len(alone)].tolist() == alone.tolist()
    assert (out[0, 6 + len(alone) :] == 0).all()


@pytest.mark.parametrize("name", ["oracle", "random", "aligned"])
def test_penalty_and_processors_hold_inside_the_block(tiny, name):
    """A grammar that looks at the last token: even after odd, odd after even."""

    class Alternating:
        def __call__(self, ids, scores):
            scores = scores.clone()
            scores[:, int(ids[0, -1]) % 2 :: 2] = -torch.inf
            return scores

    ids = prompt()
    out = written(tiny, DRAFTERS[name](tiny), ids, config={"repetition_penalty": 1.3}, logits_processor=[Alternating()])
    expected = tiny.generate(
        ids, attention_mask=torch.ones_like(ids), logits_processor=[Alternating()],
        generation_config=GenerationConfig(max_new_tokens=24, pad_token_id=0, repetition_penalty=1.3),
    )  # fmt: skip
    assert torch.equal(out, expected)
    tokens = out[0, 5:] % 2
    assert (tokens[1:] != tokens[:-1]).all()


SLOW = pytest.mark.slow
SAMPLED = [
    ("rejection", "part of the vocabulary", 400),
    *(pytest.param(verify, name, 1200, marks=SLOW) for verify in ("rejection", "match")
      for name in ("aligned", "part of the vocabulary", "constant", "step by step")),
]  # fmt: skip


@pytest.mark.parametrize(("verify", "name", "n"), SAMPLED)
def test_sampled_tokens_have_the_targets_law(make_llama, name, verify, n):
    """The second and third token, drawn through a block, against the law enumerated from the target's logits."""
    from scipy import stats

    target = make_llama(vocabulary=8, width=16, seed=2)
    small = {
        "constant": Constant(target, block_size=4),
        "aligned": DFlashDrafter.from_target(target, block_size=4),
        "step by step": DFlashDrafter.from_target(target, block_size=4, autoregressive=True),
        "part of the vocabulary": DFlashDrafter.from_target(target, block_size=4, draft_vocab_size=5),
    }
    ids, warp = torch.tensor([[1, 2, 3]]), {"do_sample": True, "temperature": 1.2, "top_k": 0, "max_new_tokens": 3}
    decoder = SpeculativeDecoder(target, small[name], verify=verify)
    source = torch.Generator().manual_seed(0)
    counts = torch.zeros(8, 8)
    for _ in range(n):
        text = decoder.generate(ids, GenerationConfig(**warp), generator=source)[0, 3:]
        counts[text[1], text[2]] += 1
    law = torch.zeros(8, 8, dtype=torch.float64)
    first = (target(input_ids=ids).logits[0, -1] / 1.2).softmax(-1)
    for a in range(8):
        logits = target(input_ids=torch.tensor([[1, 2, 3, a, b] for b in range(8)])).logits / 1.2
        second = logits[0, -2].softmax(-1)
        law += first[a] * second[:, None] * logits[:, -1].softmax(-1)
    counts, expected = counts.flatten().numpy(), (law * n).flatten().numpy()
    small_cells = expected < 5
    counts = [*counts[~small_cells], counts[small_cells].sum()]
    expected = [*expected[~small_cells], expected[small_cells].sum()]
    assert stats.chisquare(counts, expected).pvalue > 0.001


def test_cropped_cache_is_a_fresh_one(tiny):
    ids = prompt(length=20)
    with Reader(tiny, [1]) as reader:
        reader.read(ids[:, :8])
        reader.read(torch.cat([ids[:, 8:11], torch.tensor([[9, 9, 9]])], dim=1))
        reader.forget(3)
        reader.read(ids[:, 11:])
        fresh = Reader(tiny)
        fresh.read(ids)
        for one, two in zip(reader.cache.layers, fresh.cache.layers, strict=True):
            torch.testing.assert_close(one.keys, two.keys, atol=1e-6, rtol=0)
            torch.testing.assert_close(one.values, two.values, atol=1e-6, rtol=0)


def test_drafter_inside_the_decoder_sees_features_before_the_anchor(tiny):
    """What the decoder's drafter computes at a length = a drafter run from scratch on the features of the text so far."""
    drafter = DFlashDrafter.from_target(tiny, block_size=4, num_layers=1)
    seen = []

    class Watched(BlockProposer):
        def logits(self, ids, states, count):
            found = super().logits(ids, states, count)
            seen.append((ids.clone(), found))
            return found

    written(tiny, Watched(tiny, drafter), prompt())
    assert len(seen) > 3
    for ids, logits in seen:
        with Reader(tiny, drafter.config.target_layer_ids) as reader, torch.inference_mode():
            _, states = reader.read(ids[:, :-1])
            count = logits.shape[1]
            block = drafter.block_inputs(ids[:, -1], tiny.get_input_embeddings(), count + 1)
            hidden = drafter(block, states, torch.arange(ids.shape[1] + count)[None])
            torch.testing.assert_close(hidden[:, 1:] @ drafter.head_rows(tiny).T, logits, atol=1e-5, rtol=0)


def test_one_forward_a_cycle(tiny):
    drafter = BlockProposer(tiny, DFlashDrafter.from_target(tiny))
    _, stats = written(tiny, drafter, prompt(), return_stats=True)
    assert drafter.forwards in (stats.cycles, stats.cycles - 1)  # the last cycle may have room for the bonus alone


def test_sampled_text_repeats_with_its_seed(tiny):
    drafter = DFlashDrafter.from_target(tiny)
    config = {"do_sample": True, "temperature": 0.8}
    one, two, three = (
        written(tiny, drafter, prompt(), config=config, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    )
    assert torch.equal(one, two)
    assert not torch.equal(one, three)


def test_extra_memory_is_counted(tiny):
    drafter = DFlashDrafter.from_target(tiny, num_layers=1, draft_vocab_size=100)
    _, stats = written(tiny, drafter, prompt(), return_stats=True)
    weights = sum(p.numel() for p in drafter.parameters()) * 8
    # keys and values of 28 to 29 positions, 2 key-value heads of 16; 100 rows of the head; 8 x 512 logits
    rest = stats.peak_bytes - weights - 100 * 64 * 8 - 100 * 8 - 8 * 512 * 8
    assert 20 * 2 * 2 * 16 * 8 <= rest <= 30 * 2 * 2 * 16 * 8 + 64 * 8


def test_another_targets_drafter_is_refused(tiny, make_llama):
    drafter = DFlashDrafter.from_target(tiny)
    with pytest.raises(ValueError, match="was trained for another target"):
        SpeculativeDecoder(make_llama(seed=9), drafter)
    with pytest.raises(ValueError, match="width 64 and 512 tokens, this one has 64 and 500"):
        SpeculativeDecoder(make_llama(vocabulary=500), drafter)


def test_longer_blocks_than_trained_are_refused_unless_forced(tiny):
    drafter = DFlashDrafter.from_target(tiny, block_size=4)
    with pytest.raises(ValueError, match="block_size 6 is not within 1 to 4"):
        SpeculativeDecoder(tiny, drafter, block_size=6)
    ids = prompt()
    for size in (1, 2, 3, 6):
        decoder = {"block_size": size, "force": True}
        assert torch.equal(written(tiny, drafter, ids, decoder=decoder), plain(tiny, ids))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.generate(torch.zeros(1, 0, dtype=torch.long)), "prompt 0 is empty"),
        (lambda d: d.generate(torch.zeros(0, 3, dtype=torch.long)), "there is no prompt"),
        (lambda d: d.generate(torch.zeros(3, dtype=torch.long)), r"must be \(prompts, tokens\)"),
        (lambda d: d.generate(prompt(), GenerationConfig(max_length=6)), "0 new tokens are asked for"),
        (lambda d: d.generate(prompt(), GenerationConfig(num_beams=4)), "num_beams=4 is not followed"),
        (
            lambda d: d.generate(prompt(), GenerationConfig(no_repeat_ngram_size=2)),
            "no_repeat_ngram_size=2 is not followed",
        ),
        (lambda d: d.generate(prompt(rows=2), streamer=object()), "follows one text, 2 prompts were given"),
    ],
)
def test_what_cannot_be_decoded_is_named(tiny, call, message):
    with pytest.raises(ValueError, match=message):
        call(SpeculativeDecoder(tiny, None))


def test_verify_is_one_of_two(tiny):
    with pytest.raises(ValueError, match="rejection or match"):
        SpeculativeDecoder(tiny, None, verify="typical")


def test_a_model_whose_state_cannot_be_taken_back_is_named():
    from transformers import Qwen3NextConfig, Qwen3NextForCausalLM

    config = Qwen3NextConfig(
        vocab_size=64, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=8,
        linear_value_head_dim=8, num_experts=2, num_experts_per_tok=1, moe_intermediate_size=16,
        shared_expert_intermediate_size=16, layer_types=["linear_attention", "full_attention"],
    )  # fmt: skip
    target = Qwen3NextForCausalLM(config).eval()
    with pytest.raises(ValueError, match="keeps states that cannot be taken back"):
        SpeculativeDecoder(target, None).generate(torch.tensor([[1, 2, 3]]))
