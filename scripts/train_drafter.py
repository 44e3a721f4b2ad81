"""Train a drafter for a causal language model: regenerate, cache, fit, export, on a processor or a CUDA device.

    python scripts/train_drafter.py OUT --minutes 60                          the embedded SmolLM2, built-in prompts
    python scripts/train_drafter.py OUT --model FOLDER --prompts mine.jsonl --minutes 60
    python scripts/train_drafter.py OUT --start shipped --prompts mine.jsonl --minutes 30        go on from a trained drafter

Stopped at any moment it goes on where it was when it is called again. Called again after its end it gathers more answers and trains on.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from upheld.llm.loading import device_for, load_network, load_tokenizer
from upheld.llm.model_files import local, smollm2
from upheld.speculative.data import built_in, read_prompts, training_set
from upheld.speculative.making import GENERATING, fast_format, make_drafter, minutes_given
from upheld.speculative.pairs import drafter_folder
from upheld.speculative.responses import Progress
from upheld.speculative.training import TrainReport


def told(news: Progress | TrainReport) -> None:
    if isinstance(news, Progress):
        text = f"{news.responses} of {news.planned} responses, {news.tokens} tokens, {news.seconds:.0f} s"
    else:
        last = news.evaluations[-1]
        text = f"step {news.steps}: held-out loss {last.loss:.3f}, accepted length {last.accepted_length:.3f}, {news.seconds:.0f} s"
    print(time.strftime("%H:%M:%S"), text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", type=Path, help="folder of a causal model; by default the embedded SmolLM2")
    parser.add_argument("--prompts", type=Path, help="text lines or JSON lines; by default the built-in ones")
    parser.add_argument("--start", type=Path, help="folder of a drafter to go on from; shipped names the package's own")
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--device")
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.0, 1.0], help="at which the target answers")
    parser.add_argument("--generating", type=float, default=GENERATING, help="part of the time for the answers")
    parser.add_argument("--anchors", type=int, default=16)
    parser.add_argument(
        "--gamma", type=float, default=1.0, help="decay of the loss weights; the published 4 suits long trainings"
    )
    parser.add_argument(
        "--loss", choices=("ce", "kl"), default="kl", help="from the target's tokens, or from its whole law"
    )
    parser.add_argument("--short-block", type=int, default=4, help="tokens of the blocks trained on first; 0 for none")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    files = local(given.model) if given.model else smollm2()
    device = device_for(given.device)
    dtype = fast_format(device)
    tokenizer = load_tokenizer(files.folder)
    target = load_network(AutoModelForCausalLM, files.folder, dtype=dtype, device=device)
    large = device.type == "cuda"
    made = make_drafter(
        target,
        tokenizer,
        read_prompts(given.prompts, chat=bool(tokenizer.chat_template)) if given.prompts else training_set(),
        given.out,
        minutes=minutes_given(given.minutes),
        start=drafter_folder(given.start) if given.start else None,
        held_out=None if given.prompts else built_in("validation"),
        anchors=given.anchors,
        gamma=given.gamma,
        loss=given.loss,
        short_block=given.short_block or None,
        epochs=given.epochs,
        temperatures=given.temperatures,
        generating=given.generating,
        batch=16 if large else 2,
        rows=512 if large else 96,
        autocast=dtype if dtype != torch.float32 else None,
        seed=given.seed,
        command=f"python scripts/train_drafter.py {' '.join(sys.argv[1:])}",
        told=told,
    )
    print(f"{made.path}: {made.provenance}")


if __name__ == "__main__":
    main()
