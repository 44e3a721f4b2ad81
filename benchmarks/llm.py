"""Speed and memory of the models on the own machine beside plain loops with transformers, in one run.

python benchmarks/llm.py [--part embedding|bucketing|memory|writing]     all parts by default, about three minutes on one core

Seconds are CPU seconds of one thread; every figure that matters is a ratio of two of them, measured in turns.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from upheld.llm import Encoder, Request, Sampling, conversation
from upheld.llm.batching import batches
from upheld.llm.embedded import EmbeddedModel
from upheld.llm.model_files import minilm, smollm2

STORY = """the river town lies between two hills and was founded by miners who came for copper its school trained many engineers
an old bridge leads to market square where farmers sell apples cheese wool in autumn most visitors arrive by train"""
BATCH = 32


def texts(n: int, shortest: int, longest: int, seed: int = 0) -> list[str]:
    """Texts of a length drawn evenly on the logarithmic scale, in words."""
    rng = np.random.default_rng(seed)
    sizes = np.exp(rng.uniform(np.log(shortest), np.log(longest + 1), n)).astype(int)
    return [" ".join(rng.choice(STORY.split(), size)) for size in sizes]


def in_turns(*works: Callable[[], object], rounds: int = 3) -> list[float]:
    """Fewest CPU seconds of each, after a round that is not counted: what else the machine does falls on all alike."""
    best = [float("inf")] * len(works)
    for turn in range(rounds + 1):
        for number, work in enumerate(works):
            begin = time.process_time()
            work()
            if turn:
                best[number] = min(best[number], time.process_time() - begin)
    return best


@torch.inference_mode()
def bare(model: Encoder, groups: Sequence[Sequence[str]]) -> list[Any]:
    """What one writes without this library: tokenize with padding, run the network, average over the mask."""
    found = []
    for group in groups:
        encoded = model.tokenizer(
            list(group), padding=True, truncation=True, max_length=model.limit, return_tensors="pt"
        )
        states = model.network(**encoded).last_hidden_state
        mask = encoded["attention_mask"][:, :, None]
        found.append(((states * mask).sum(1) / mask.sum(1)).numpy())
    return found


def embedding() -> None:
    model = Encoder(minilm(), device="cpu", batch_size=BATCH)
    print(f"embedding with MiniLM, batches of {BATCH} texts of like length, the same batches for both")
    for name, mixed in {"~70 tokens": texts(300, 60, 80), "10 to 250 tokens": texts(200, 10, 250)}.items():
        groups = [
            [mixed[place] for place in batch] for batch in batches(model.count_tokens(mixed), tokens=8192, rows=BATCH)
        ]
        ours, theirs = in_turns(lambda m=mixed: model.embed(m), lambda g=groups: bare(model, g))
        print(
            f"  {name:18} {len(mixed) / ours:6.1f} texts a second, bare loop {len(mixed) / theirs:6.1f}: {theirs / ours:.2f} x"
        )


def bucketing() -> None:
    model = Encoder(minilm(), device="cpu", batch_size=BATCH)
    mixed = texts(200, 5, 250)
    arrival = [mixed[begin : begin + BATCH] for begin in range(0, len(mixed), BATCH)]
    ours, theirs = in_turns(lambda: model.embed(mixed), lambda: bare(model, arrival), rounds=2)
    print("\nmixed lengths (5 to 250 tokens): sorted by length against the order of arrival")
    print(f"  {ours:.2f} s against {theirs:.2f} s: {theirs / ours:.2f} x")


def peak(n: int) -> float:
    """Megabytes that embedding n short texts adds to a fresh process's peak, once the model has run on a batch of them."""
    torch.set_num_threads(1)
    model = Encoder(minilm(), device="cpu", batch_size=BATCH)
    model.embed(texts(BATCH, 4, 8))
    given = texts(n, 4, 8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model.embed(given)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def memory() -> None:
    print("\nmemory that n short texts add, once a batch of them has passed")
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for n in (4000, 16000):
            print(f"  {n:6} texts {pool.apply(peak, (n,)):7.1f} MB, of which vectors {n * 384 * 4 / 2**20:.1f} MB")


def writing() -> None:
    model = EmbeddedModel(smollm2(), device="cpu")
    asked = [
        Request(conversation(f"Describe town {k}."), sampling=Sampling(seed=k, max_tokens=24, logprobs=0))
        for k in range(32)
    ]
    prompts = ["".join(model.tokenizer.apply_chat_template([{"role": "user", "content": request.messages[0].content}],
               tokenize=False, add_generation_prompt=True)) for request in asked]  # fmt: skip
    encoded = model.tokenizer(prompts, padding=True, padding_side="left", return_tensors="pt")
    written: list[int] = []

    def ours() -> None:
        written.append(sum(answer.usage.completion_tokens for answer in model.answers(asked)))

    def theirs() -> None:
        model.network.generate(
            **encoded, max_new_tokens=24, min_new_tokens=24, do_sample=True, temperature=0.7, top_k=0
        )

    own, other = in_turns(ours, theirs, rounds=1)
    rate, reference = written[-1] / own, 24 * len(asked) / other
    print(
        "\nwriting with SmolLM2, 32 answers of 24 tokens at once: every request with its own noise, against one generate of transformers"
    )
    print(f"  {rate:.1f} tokens a second against {reference:.1f}: {rate / reference:.2f} x")


PARTS = {"embedding": embedding, "bucketing": bucketing, "memory": memory, "writing": writing}


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the embedded models beside plain loops with transformers.")
    parser.add_argument("--part", choices=PARTS, action="append", help="all of them by default")
    torch.set_num_threads(1)
    for part in parser.parse_args().part or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main()
