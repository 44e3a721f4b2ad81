"""What speculative decoding costs and gives on this machine: SmolLM2-135M-Instruct, one thread, rivals in turns in one run.

python benchmarks/speculative.py [--part loop|costs|memory|race] [--dtypes float32 bfloat16] [--minutes 0]

`loop` sets our own loop with blocks of one token against `generate`; `costs` times reading and drafting k tokens; `memory`
counts what is held beyond plain decoding; `race` decodes test prompts of three families. With `--minutes` an EAGLE-3-style head
and Medusa heads are trained for the race, for so long each, on the target's own answers, another `--minutes` being spent on
these; without it they are left out, since untrained heads draft nothing that stands. Processor seconds, except where it says
wall.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig, PreTrainedModel

from measuring import Line
from upheld.speculative.costs import draft_costs, forward_costs, speed_up
from upheld.speculative.data import FAMILIES, Prompt, built_in, training_set
from upheld.speculative.drafter import DRAFT_VOCABULARY, DFlashDrafter
from upheld.speculative.heads import EagleHead, HeadProposer, MedusaHeads
from upheld.speculative.pairs import load_target, shipped_drafter
from upheld.speculative.proposals import BlockProposer, Proposer
from upheld.speculative.responses import load_responses, regenerate
from upheld.speculative.rivals import (
    Decoded,
    Method,
    dflash,
    eagle_chain,
    eagle_tree,
    generate,
    interleaved,
    medusa,
    plain,
    prompt_lookup,
    tune_lookup,
)
from upheld.speculative.training import DrafterTrainer

SIZES, CONTEXT, TOKENS, PROMPTS = (1, 2, 4, 8, 16, 32), 128, 64, 2
OVERHEAD, DRAFT_COST = 1.05, 0.25


def asked(tokens: int = TOKENS) -> GenerationConfig:
    return GenerationConfig(max_new_tokens=tokens, do_sample=False, pad_token_id=0)  # type: ignore[no-untyped-call]


def prompts(part: Any, tokenizer: Any, each: int) -> list[tuple[str, torch.Tensor]]:
    """So many of every family, one of another form each."""
    found = []
    for family in FAMILIES:
        of_family: list[Prompt] = [prompt for prompt in built_in(part) if prompt.family == family]
        step = max(1, len(of_family) // each)
        found += [(family, torch.tensor([p.ids(tokenizer)])) for p in of_family[::step][:each]]
    return found


def pace(texts: list[Decoded]) -> float:
    """The least seconds a token of several times the same text."""
    return min(text.seconds_a_token for text in texts)


def loop(target: PreTrainedModel, tokenizer: Any, dtype: str) -> None:
    """Our loop, one token a cycle, against `generate`."""
    ratios = []
    for turn, (_, prompt) in enumerate(prompts("test", tokenizer, 1)):
        found = interleaved([plain(target), generate(target)], prompt, asked(32), repeats=2, turn=turn)
        ratios.append(pace(found["plain"]) / pace(found["generate"]))
    ratio = float(np.exp(np.mean(np.log(ratios))))
    print(
        Line(
            f"{dtype}: our loop at B = 1 / generate, least of 2, 3 prompts",
            f"{ratio:.3f}",
            f"<= {OVERHEAD}",
            ratio <= OVERHEAD,
        )
    )


def costs(target: PreTrainedModel, tokenizer: Any, dtype: str) -> None:
    """c_v(k), and c_d of every drafter on the target's shapes."""
    step = forward_costs(target, SIZES, context=CONTEXT, repeats=6)
    shown = ", ".join(f"{k}: {1000 * step[k]:.0f} ms ({step[k] / step[1]:.2f})" for k in SIZES)
    print(Line(f"{dtype}: reading k tokens at once, and c_v(k)", shown))
    block = 8
    heads: dict[str, Any] = {"draft_vocab_size": DRAFT_VOCABULARY, "block_size": block}
    proposers: dict[str, Proposer] = {
        "DFlash, 2 layers, 8,192 tokens": BlockProposer(target, DFlashDrafter.from_target(target, block_size=block)),
        "DFlash, 2 layers, all tokens": BlockProposer(
            target, DFlashDrafter.from_target(target, block_size=block, draft_vocab_size=None)
        ),
        "EAGLE-3-style chain": HeadProposer(target, EagleHead.from_target(target, **heads)),
        "Medusa": HeadProposer(target, MedusaHeads.from_target(target, **heads)),
    }
    for name, proposer in proposers.items():
        cost = draft_costs(target, proposer, [block], context=CONTEXT, repeats=6)[block] / step[1]
        ours = name == "DFlash, 2 layers, 8,192 tokens"
        target_of = (f"<= {DRAFT_COST}", cost <= DRAFT_COST) if ours else ("", None)
        most = speed_up(block, step[block] / step[1], cost)
        print(Line(f"{dtype}: c_d(8) of {name}", f"{cost:.3f}, all right {most:.2f} x", *target_of))


def memory(target: PreTrainedModel, tokenizer: Any, dtype: str) -> None:
    """Bytes beyond plain decoding, against what they should be."""
    drafter = shipped_drafter(target)
    method = dflash(target, drafter)
    _, prompt = prompts("test", tokenizer, 1)[0]
    stats = method.decode(prompt, asked()).stats
    assert stats is not None
    size, c = target.dtype.itemsize, drafter.config
    weights = sum(t.numel() * t.element_size() for t in (*drafter.parameters(), *drafter.buffers()))
    head = (c.draft_vocab_size or 0) * c.hidden_size * size
    read = prompt.shape[1] + TOKENS
    context = read * c.num_hidden_layers * 2 * c.num_key_value_heads * c.head_dim * size
    allowed = weights + head + context + c.block_size * c.vocab_size * size
    print(
        Line(
            f"{dtype}: held beyond plain decoding, {read} tokens", f"{stats.peak_bytes / 1e6:.1f} MB",
            f"<= {allowed / 1e6:.1f} MB (weights, head, context, logits)", stats.peak_bytes <= allowed,
        )
    )  # fmt: skip


def race(target: PreTrainedModel, tokenizer: Any, dtype: str, heads: dict[str, Any]) -> None:
    """Every method on every prompt, in turns; geometric means of plain decoding's pace over theirs."""
    tuning = [prompt for _, prompt in prompts("train", tokenizer, 1)]
    drafts = tune_lookup(target, tuning, asked(32))
    methods: list[Method] = [
        plain(target), generate(target), prompt_lookup(target, drafts), dflash(target, shipped_drafter(target)),
    ]  # fmt: skip
    if heads:
        eagle, blocks = heads["eagle"].to(target.dtype), heads["medusa"].to(target.dtype)
        methods += [
            eagle_chain(target, eagle),
            *(eagle_tree(target, eagle, n) for n in (16, 60)),
            medusa(target, blocks),
        ]
    ratios: dict[tuple[str, str], list[float]] = {}
    walls: dict[str, list[float]] = {}
    taus: dict[str, list[int]] = {}
    for turn, (family, prompt) in enumerate(prompts("test", tokenizer, PROMPTS)):
        interleaved(methods, prompt, asked(4))
        found = interleaved(methods, prompt, asked(), repeats=2, turn=turn)
        base, base_wall = pace(found["plain"]), min(text.wall_s / text.timed for text in found["plain"])
        for name, texts in found.items():
            ratios.setdefault((name, family), []).append(base / pace(texts))
            walls.setdefault(name, []).append(base_wall / min(text.wall_s / text.timed for text in texts))
            if texts[0].stats is not None:
                taus.setdefault(name, []).extend(texts[0].stats.acceptance_lengths)
    for method in methods:
        by_family = {family: _mean(ratios[method.name, family]) for family in FAMILIES}
        whole = _mean([value for family in FAMILIES for value in ratios[method.name, family]])
        shown = ", ".join(f"{family} {value:.2f}" for family, value in by_family.items())
        tau = f", tau {np.mean(taus[method.name]):.2f}" if taus.get(method.name) else ""
        drafted = f" ({drafts} drafts)" if method.name == "lookup" else ""
        print(
            Line(
                f"{dtype}: {method.name}{drafted}, times plain ({shown}{tau})",
                f"{whole:.2f} (wall {_mean(walls[method.name]):.2f})",
            )
        )


def _mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def trained_heads(target: PreTrainedModel, tokenizer: Any, minutes: float) -> dict[str, Any]:
    """Both heads, on the same answers of the target, for the same time."""
    with tempfile.TemporaryDirectory() as folder:
        # Answers as long as the race's texts; a part lies there before even a short time is over.
        regenerate(
            target, tokenizer, training_set(), Path(folder), max_new_tokens=TOKENS, minutes=minutes,
            part_seconds=min(60.0, 10 * minutes),
        )  # fmt: skip
        answers = load_responses(Path(folder))
    made: dict[str, Any] = {
        "eagle": EagleHead.from_target(target, draft_vocab_size=DRAFT_VOCABULARY),
        "medusa": MedusaHeads.from_target(target, draft_vocab_size=DRAFT_VOCABULARY),
    }
    for name, head in made.items():
        report = DrafterTrainer(
            target, tokenizer, head, answers, epochs=100, lr=1e-3, anchors=48, seconds=60 * minutes
        ).fit()
        print(
            Line(
                f"{name}: steps, held-out accepted length after {minutes:g} minutes",
                f"{report.steps}, {report.accepted_length:.2f}",
            )
        )
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("loop", "costs", "memory", "race"))
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--minutes", type=float, default=0.0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    heads: dict[str, Any] = {}
    if given.minutes > 0 and given.part in (None, "race"):
        heads = trained_heads(*load_target("smollm2", device="cpu"), given.minutes)
    for dtype in given.dtypes:
        target, tokenizer = load_target("smollm2", dtype=dtype, device="cpu")
        for name, part in (("loop", loop), ("costs", costs), ("memory", memory)):
            if given.part in (None, name):
                part(target, tokenizer, dtype)
        if given.part in (None, "race"):
            race(target, tokenizer, dtype, heads)


if __name__ == "__main__":
    main()
