"""What speculative decoding costs and gives on this machine: SmolLM2-135M-Instruct, one thread, rivals in turns in one run.

python benchmarks/speculative.py [--part loop|costs|memory|race] [--dtypes float32 bfloat16] [--minutes 0]
                                 [--families prose structured code] [--prompts 2] [--repeats 2]

`loop` sets our own loop with blocks of one token against `generate`; `costs` times reading and drafting k tokens; `memory`
counts what is held beyond plain decoding; `race` decodes test prompts, so many of every family, the drafter with its whole block
and with the one that pays best on training prompts, and sets beside its pace the one that its tau and its costs predict. With
`--minutes` an EAGLE-3-style head and Medusa heads are trained for the race, for so long each, on the target's own answers,
another `--minutes` being spent on these; without it they are left out, since untrained heads draft nothing that stands. Processor
seconds, except where it says wall; intervals (95 %, Student's t on logarithms) are over prompts. bfloat16 is left out by itself
where the processor has no arithmetic in it.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import t as student
from transformers import GenerationConfig, PreTrainedModel

from measuring import Line
from upheld.speculative.costs import draft_costs, forward_costs, speed_up
from upheld.speculative.data import FAMILIES, Prompt, built_in, training_set
from upheld.speculative.decoder import SpeculativeDecoder
from upheld.speculative.drafter import DRAFT_VOCABULARY, DFlashDrafter
from upheld.speculative.heads import EagleHead, HeadProposer, MedusaHeads
from upheld.speculative.making import fast_format
from upheld.speculative.pairs import load_target, shipped_drafter
from upheld.speculative.proposals import BlockProposer, Proposer
from upheld.speculative.responses import load_responses, regenerate
from upheld.speculative.rivals import (
    Decoded,
    Method,
    Own,
    dflash,
    eagle_chain,
    eagle_tree,
    generate,
    interleaved,
    medusa,
    plain,
    prompt_lookup,
)
from upheld.speculative.training import DrafterTrainer
from upheld.speculative.tuning import tune

SIZES, CONTEXT, TOKENS = (1, 2, 4, 8, 16, 32), 128, 64
OVERHEAD, DRAFT_COST = 1.05, 0.25
EVERY, CALIBRATED = "all prompts", "DFlash, calibrated block"

Found = dict[str, list[list[Decoded]]]
"""Of one method: family -> prompt -> the same text several times."""


def asked(tokens: int = TOKENS) -> GenerationConfig:
    return GenerationConfig(max_new_tokens=tokens, do_sample=False, pad_token_id=0)  # type: ignore[no-untyped-call]


def prompts(part: Any, tokenizer: Any, each: int, families: Sequence[str] = FAMILIES) -> list[tuple[str, torch.Tensor]]:
    """So many of every family, one of another form each."""
    found = []
    for family in families:
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


def race(target: PreTrainedModel, tokenizer: Any, dtype: str, heads: dict[str, Any], given: argparse.Namespace) -> None:
    """Every method on every prompt, in turns."""
    drafter = shipped_drafter(target)
    tuned = tune(target, drafter, [prompt for _, prompt in prompts("train", tokenizer, 1)], asked(32), repeats=6)
    methods: list[Method] = [
        plain(target),
        generate(target),
        prompt_lookup(target, tuned.lookup),
        dflash(target, drafter),
        Own(CALIBRATED, SpeculativeDecoder(target, drafter, block_size=tuned.block)),
    ]
    if heads:
        eagle, blocks = heads["eagle"].to(target.dtype), heads["medusa"].to(target.dtype)
        methods += [
            eagle_chain(target, eagle),
            *(eagle_tree(target, eagle, n) for n in (16, 60)),
            medusa(target, blocks),
        ]
    print(Line(f"{dtype}: drafts a cycle that lookup was tuned to", str(tuned.lookup)))
    expected = ", ".join(f"{block}: {ratio:.2f}" for block, ratio in tuned.costs.predicted.items())
    print(Line(f"{dtype}: block taken on training prompts (what each promised)", f"{tuned.block} ({expected})"))
    families = [*given.families, EVERY]
    found: dict[str, Found] = {method.name: {family: [] for family in families} for method in methods}
    for turn, (family, prompt) in enumerate(prompts("test", tokenizer, given.prompts, given.families)):
        interleaved(methods, prompt, asked(4))
        for name, texts in interleaved(methods, prompt, asked(), repeats=given.repeats, turn=turn).items():
            found[name][family].append(texts)
            found[name][EVERY].append(texts)
    print(Line(f"{dtype}: method, prompts, tokens a cycle", "tokens/s; times plain (by the wall)"))
    for method in methods:
        paces(dtype, method.name, found)
    for name in ("DFlash", CALIBRATED):
        against(dtype, name, "lookup", found)
    predicted(dtype, target, drafter, found)


def paces(dtype: str, name: str, found: dict[str, Found]) -> None:
    """Tokens a second and times plain decoding, by family and over all prompts."""
    for family, texts in found[name].items():
        base = found["plain"][family]
        ratio = interval([pace(one) / pace(other) for one, other in zip(base, texts, strict=True)])
        wall = _mean([_wall(one) / _wall(other) for one, other in zip(base, texts, strict=True)])
        told = name != "plain" and texts[0][0].stats is not None
        tau = f", tau {tau_of(texts):.2f}" if told else ""
        print(
            Line(
                f"{dtype}: {name}, {family}{tau}",
                f"{_mean([1 / pace(one) for one in texts]):.1f}; {ratio} ({wall:.2f})",
            )
        )


def against(dtype: str, name: str, rival: str, found: dict[str, Found]) -> None:
    """The drafter's pace over the rival's."""
    for family, texts in found[name].items():
        ratios = [pace(one) / pace(other) for one, other in zip(found[rival][family], texts, strict=True)]
        print(Line(f"{dtype}: {name}, times {rival}, {family}, {len(ratios)} prompts", interval(ratios)))


def predicted(dtype: str, target: PreTrainedModel, drafter: DFlashDrafter, found: dict[str, Found]) -> None:
    """tau / (c_v + c_d) of every family, and what no drafter of this block exceeds."""
    block = drafter.config.block_size
    step = forward_costs(target, [1, block], context=CONTEXT, repeats=6)
    draft = draft_costs(target, BlockProposer(target, drafter), [block], context=CONTEXT, repeats=6)[block]
    c_v, c_d = step[block] / step[1], draft / step[1]
    for family, texts in found["DFlash"].items():
        tau = tau_of(texts)
        print(
            Line(
                f"{dtype}: tau / (c_v + c_d) of {family}",
                f"{tau:.2f} / ({c_v:.2f} + {c_d:.2f}) = {speed_up(tau, c_v, c_d):.2f}",
            )
        )
    print(Line(f"{dtype}: all drafts right, {block} tokens a cycle", f"{speed_up(block, c_v, c_d):.2f}"))


def tau_of(texts: list[list[Decoded]]) -> float:
    """Tokens a cycle, over all cycles."""
    told = [one[0].stats for one in texts if one[0].stats is not None]
    return float(np.mean([length for stats in told for length in stats.acceptance_lengths]))


def interval(ratios: list[float]) -> str:
    """Geometric mean, and its interval where there are two values or more."""
    logs = np.log(ratios)
    if len(logs) < 2:
        return f"{np.exp(logs.mean()):.2f}"
    half = student.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    return f"{np.exp(logs.mean()):.2f} [{np.exp(logs.mean() - half):.2f}, {np.exp(logs.mean() + half):.2f}]"


def _wall(texts: list[Decoded]) -> float:
    return min(text.wall_s / text.timed for text in texts)


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
    formats = ["float32", "bfloat16"] if fast_format(torch.device("cpu")) is torch.bfloat16 else ["float32"]
    parser.add_argument("--dtypes", nargs="+", default=formats)
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--prompts", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2)
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
            race(target, tokenizer, dtype, heads, given)


if __name__ == "__main__":
    main()
