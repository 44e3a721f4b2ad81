"""What several experiments stand on: the real target with its drafter and questions, and what this processor computes with."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel

from upheld.claims import Preparation
from upheld.speculative.data import FAMILIES, Prompt, built_in
from upheld.speculative.drafter import DFlashDrafter
from upheld.speculative.pairs import load_target, shipped_drafter
from upheld.speculative.tuning import tune
from upheld.storage import whole_file


@lru_cache(maxsize=2)
def smollm2(dtype: str = "float32") -> tuple[PreTrainedModel, Any]:
    """SmolLM2-135M-Instruct on the processor, and its tokenizer."""
    torch.set_num_threads(1)
    return load_target("smollm2", dtype=dtype, device="cpu")


def drafter_for(target: PreTrainedModel) -> DFlashDrafter:
    """The drafter that comes with the package."""
    return shipped_drafter(target)


def questions(part: Any, family: str) -> list[Prompt]:
    """Built-in prompts of a family in an order that mixes topics and forms, always the same."""
    found = [prompt for prompt in built_in(part) if prompt.family == family]
    return sorted(found, key=lambda prompt: hashlib.sha256(prompt.text.encode()).digest())


def question(number: int, tokenizer: Any) -> Tensor:
    """(1, n) test prompt of that number; the families take turns."""
    turn, family = divmod(number, len(FAMILIES))
    return torch.tensor([questions("test", FAMILIES[family])[turn].ids(tokenizer)])


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def has_matrix_units() -> bool:
    """Whether the processor multiplies tiles of bfloat16 (AMX): then one-token steps are no slower in it than in float32."""
    return "amx_bf16" in _processor()


def has_bfloat16() -> bool:
    """Whether it has arithmetic in bfloat16 at all."""
    return has_matrix_units() or "avx512_bf16" in _processor()


def race_dtype() -> str:
    """The number format in which plain decoding is fastest here, so that no speed-up is read off a slow baseline."""
    return "bfloat16" if has_matrix_units() else "float32"


def tune_on_training(folder: Path, prompts: int, tokens: int) -> None:
    """Prompt lookup's number of drafts, and the block that pays best here, on greedy texts of training prompts of every family."""
    target, tokenizer = smollm2(race_dtype())
    asked = [
        torch.tensor([prompt.ids(tokenizer)]) for family in FAMILIES for prompt in questions("train", family)[:prompts]
    ]
    config = GenerationConfig(max_new_tokens=tokens, do_sample=False, pad_token_id=0)  # type: ignore[no-untyped-call]
    found = tune(target, drafter_for(target), asked, config)
    with whole_file(folder / "tuned.json") as file:
        json.dump({"drafts": found.lookup, "block": found.block, "predicted": found.costs.predicted}, file)


TUNING = Preparation("speculative.tuning", tune_on_training, timeout_s=1800)


def tuned(prompts: int, tokens: int) -> tuple[int, int]:
    """The number of drafts that lookup was tuned to, and the block that the drafter was."""
    path = TUNING(prompts=prompts, tokens=tokens).folder() / "tuned.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    return int(found["drafts"]), int(found["block"])
