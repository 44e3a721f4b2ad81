from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import torch

from upheld.speculative.byteworld import ByteTokenizer
from upheld.speculative.data import Prompt
from upheld.speculative.responses import load_responses, regenerate

TEXTS = ("a", "bcd", "no", "a longer one that says more", "x" * 17, "yes", "maybe", "zz")


@pytest.fixture
def prompts():
    return [Prompt((), text, "plain", text) for text in TEXTS]


def plainly(target, ids, count, ends=()):
    """Greedy text, the whole text read anew for every token."""
    ids = list(ids)
    for _ in range(count):
        with torch.no_grad():
            ids.append(int(target(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
        if ids[-1] in ends:
            break
    return ids


@pytest.mark.parametrize("rows", [1, 3, 8])
def test_greedy_responses_are_plain_decoding_however_many_rows(tiny, prompts, tmp_path, rows):
    regenerate(tiny, ByteTokenizer(), prompts, tmp_path, temperatures=(0.0,), max_new_tokens=12, rows=rows)
    responses = load_responses(tmp_path)
    assert [response.group for response in responses] == list(TEXTS)
    for prompt, response in zip(prompts, responses, strict=True):
        start = prompt.ids(ByteTokenizer())
        assert response.prompt_tokens == len(start)
        assert response.tokens.tolist() == plainly(tiny, start, 12)


def test_rows_that_end_early_are_refilled_and_end_with_the_end_token(make_llama, prompts, tmp_path):
    target = make_llama(seed=3)
    # Tokens of a quarter of the vocabulary end an answer, so rows end at different ages.
    ends = list(range(0, 512, 4))
    target.generation_config.eos_token_id = ends
    regenerate(target, ByteTokenizer(), prompts, tmp_path, temperatures=(0.0,), max_new_tokens=20, rows=3)
    lengths = set()
    for prompt, response in zip(prompts, load_responses(tmp_path), strict=True):
        assert response.tokens.tolist() == plainly(target, prompt.ids(ByteTokenizer()), 20, ends)
        lengths.add(len(response.tokens) - response.prompt_tokens)
    assert len(lengths) > 2


def test_sampled_responses_do_not_depend_on_the_batch(tiny, prompts, tmp_path):
    for rows in (2, 5):
        regenerate(
            tiny, ByteTokenizer(), prompts, tmp_path / str(rows), temperatures=(1.0,), max_new_tokens=8, rows=rows
        )
    one, other = (load_responses(tmp_path / str(rows)) for rows in (2, 5))
    assert [a.tokens.tolist() for a in one] == [b.tokens.tolist() for b in other]


def test_sampled_first_tokens_have_the_targets_law(make_llama, tmp_path):
    target = make_llama(vocabulary=260, seed=5)
    prompts = [Prompt((), "ab", "plain", "ab")] * 1500
    regenerate(target, ByteTokenizer(), prompts, tmp_path, temperatures=(2.0,), max_new_tokens=1, rows=1500)
    drawn = np.array([response.tokens[-1] for response in load_responses(tmp_path)])
    with torch.no_grad():
        law = (target(input_ids=torch.tensor([prompts[0].ids(ByteTokenizer())])).logits[0, -1] / 2).softmax(-1).numpy()
    likely = law.argsort()[-5:]
    for token in likely:
        share, sigma = np.mean(drawn == token), np.sqrt(law[token] * (1 - law[token]) / len(drawn))
        assert abs(share - law[token]) < 4.5 * sigma
    assert law[likely].max() > 0.02


def test_a_stopped_run_goes_on_and_repeats_nothing(tiny, prompts, tmp_path):
    whole, halved = tmp_path / "whole", tmp_path / "halved"
    regenerate(tiny, ByteTokenizer(), prompts, whole, max_new_tokens=6, rows=3)
    first = regenerate(tiny, ByteTokenizer(), prompts, halved, max_new_tokens=6, rows=3, tokens=20, part_seconds=0)
    assert 20 <= first.tokens < 48
    kept = {path.name: path.read_bytes() for path in halved.glob("part-*.npz")}
    last = regenerate(tiny, ByteTokenizer(), prompts, halved, max_new_tokens=6, rows=3)
    assert last.responses == last.planned == 2 * len(TEXTS)
    assert {name: (halved / name).read_bytes() for name in kept} == kept
    assert [r.tokens.tolist() for r in load_responses(whole)] == [r.tokens.tolist() for r in load_responses(halved)]


def test_another_recipe_needs_another_folder(tiny, prompts, tmp_path):
    regenerate(tiny, ByteTokenizer(), prompts[:1], tmp_path, max_new_tokens=2)
    with pytest.raises(ValueError, match=r"another recipe \(max_new_tokens, prompts differ\)"):
        regenerate(tiny, ByteTokenizer(), prompts, tmp_path, max_new_tokens=3)


def test_an_empty_folder_says_so(tmp_path):
    with pytest.raises(ValueError, match="holds no responses; make some first"):
        load_responses(tmp_path)


@pytest.mark.slow
def test_kill_loses_only_what_was_not_kept(tmp_path):
    program = textwrap.dedent("""
        import sys
        from pathlib import Path
        import torch
        from transformers import LlamaForCausalLM
        from upheld.speculative.byteworld import ByteTokenizer, configuration
        from upheld.speculative.data import Prompt
        from upheld.speculative.responses import regenerate
        torch.set_num_threads(1)
        torch.manual_seed(0)
        target = LlamaForCausalLM(configuration()).eval()
        prompts = [Prompt((), f"number {n}", "plain", str(n)) for n in range(int(sys.argv[2]))]
        regenerate(target, ByteTokenizer(), prompts, Path(sys.argv[1]), max_new_tokens=24, rows=4, part_seconds=0)
    """)
    folder = tmp_path / "responses"
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(folder), "4000"], env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    try:
        deadline = time.monotonic() + 120
        while len(list(folder.glob("part-*.npz"))) < 3:
            assert child.poll() is None, "the run ended before it was killed"
            assert time.monotonic() < deadline, "no part was written"
            time.sleep(0.05)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    kept = load_responses(folder)
    assert len(kept) >= 3
    assert all(len(response.tokens) - response.prompt_tokens <= 24 for response in kept)
