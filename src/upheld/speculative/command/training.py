"""``upheld run speculative train``: the target answers, the drafter learns; the rivals' heads on the same answers, as long."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from transformers import PreTrainedModel

from upheld.llm.loading import device_for
from upheld.report.content import json_text
from upheld.report.printing import Terminal
from upheld.report.progress import Part, Progress
from upheld.speculative.command.asking import Asked, load_pair, read
from upheld.speculative.configuration import DFlashConfig
from upheld.speculative.data import built_in, training_set
from upheld.speculative.heads import EagleHead, MedusaHeads
from upheld.speculative.making import Made, fast_format, make_drafter
from upheld.speculative.pairs import drafter_folder
from upheld.speculative.responses import Progress as Answered
from upheld.speculative.responses import load_responses
from upheld.speculative.rivals import Own, eagle_chain, medusa
from upheld.speculative.training import DrafterTrainer, TrainReport

SCHEMA = "upheld.speculative.train/1"

EPOCHS, ENDLESS = 30, 10_000
"""Passes over the answers: the drafter ends sooner where its time is over or nothing is gained; the rivals have as long as it took."""

GAMMA, SHORT_BLOCK = 1.0, 4
"""Minutes are few: the first drafts count most, and short blocks come first."""

HEADS: dict[str, type[EagleHead] | type[MedusaHeads]] = {"eagle": EagleHead, "medusa": MedusaHeads}


def train(asked: Asked) -> None:
    """Make a drafter in the folder that was named, and say how good it is."""
    assert asked.out is not None
    with Progress(announce=True) as progress:
        made = make(asked, asked.out, progress)
    if asked.json:
        sys.stdout.write(json_text({"schema": SCHEMA, "path": str(made.path), **made.provenance}))
        return
    terminal, described = Terminal(), made.provenance
    terminal.table(
        ("", ""),
        [
            ["answers of the target", f"{described['responses']:,}, {described['response_tokens']:,} tokens"],
            ["training", f"{described['steps']:,} steps, {described['training_cpu_seconds']:,} s of the processor"],
            ["accepted length (τ, greedy, held out)", f"{described['held_out_accepted_length']:.2f}"],
            ["held-out tokens it can propose", f"{100 * described['coverage']:.0f} %"],
        ],
    )
    if described["stopped"] == "budget":
        terminal.say("The time was over before the drafter had stopped improving; more --minutes make it better.")
    terminal.say(
        f"wrote {made.path}; try\n  upheld run speculative --model {asked.model} --drafter {made.path} --prompts FILE"
    )


def make(asked: Asked, folder: Path, progress: Progress) -> Made:
    """Answers, training, export, in the number format in which this device trains fastest."""
    format_ = fast_format(device_for(asked.device))
    pair = load_pair(asked, dtype=str(format_).removeprefix("torch."))
    if asked.train_prompts is None and not pair.chats:
        raise ValueError(
            f"{asked.model} has no chat template, so the built-in requests are nothing to it; give texts of your own with --train-prompts"
        )
    prompts = asked.train_prompts
    own = None if prompts is None else [one for one, _ in read(prompts, pair, asked.max_tokens)]
    with progress.part("training a drafter") as part:
        return make_drafter(
            pair.target, pair.tokenizer, training_set() if own is None else own, folder, minutes=asked.minutes,
            held_out=built_in("validation") if own is None else None, max_new_tokens=asked.max_tokens,
            start=None if asked.drafter is None else drafter_folder(asked.drafter),
            epochs=EPOCHS, gamma=GAMMA, short_block=SHORT_BLOCK,
            autocast=None if format_ == torch.float32 else format_, seed=asked.seed,
            command=f"upheld run speculative train --minutes {asked.minutes:g} --seed {asked.seed}",
            told=partial(_tell, part),
        )  # fmt: skip


def make_heads(
    asked: Asked,
    names: Sequence[str],
    folder: Path,
    target: PreTrainedModel,
    seconds: float,
    shape: DFlashConfig,
    progress: Progress,
) -> dict[str, Own]:
    """The rivals' heads: the drafter's answers, block and vocabulary, and as many processor seconds as it was trained."""
    found: dict[str, Own] = {}
    if not names:
        return found
    responses = load_responses(folder / "responses")
    for name in names:
        kind = HEADS[name]
        head = kind.from_target(target, block_size=shape.block_size, draft_vocab_size=shape.draft_vocab_size)
        head.float()
        with progress.part(f"training the rival {name}") as part:
            trainer = DrafterTrainer(
                target, None, head, responses, epochs=ENDLESS, lr=1e-3, anchors=16, gamma=GAMMA, features="cached",
                seconds=seconds, seed=asked.seed,
                folder=folder / f"{name}-{len(responses)}", told=partial(_tell, part),
                autocast=None if target.dtype == torch.float32 else target.dtype,
            )  # fmt: skip
            trainer.fit()
        head.to(target.dtype)
        head.eval()
        if isinstance(head, EagleHead):
            found[name] = eagle_chain(target, head)
        elif isinstance(head, MedusaHeads):
            found[name] = medusa(target, head)
    return found


def _tell(part: Part, news: Answered | TrainReport) -> None:
    if isinstance(news, Answered):
        part.reach(news.responses, f"{news.responses:,} of {news.planned:,} answers, {news.tokens:,} tokens")
    else:
        part.reach(news.steps, f"step {news.steps:,}, accepted length {news.accepted_length:.2f}")
