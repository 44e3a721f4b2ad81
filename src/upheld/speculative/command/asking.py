"""What was asked for, refused where it cannot be done; the model, the drafter and the prompts that were named."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from upheld.llm.loading import device_for
from upheld.report.writing import expect_file, expect_folder
from upheld.speculative.data import FAMILIES, Prompt, built_in, read_prompts
from upheld.speculative.drafter import DFlashDrafter, head_of
from upheld.speculative.making import fast_format, minutes_given
from upheld.speculative.pairs import drafter_folder, load_drafter, load_target, shipped_drafter
from upheld.speculative.reading import Reader
from upheld.speculative.verification import LEAST_TEMPERATURE
from upheld.storage import whole_file

RIVALS = ("plain", "generate", "lookup", "assistant", "eagle", "medusa")
TRAINED_RIVALS = ("eagle", "medusa")
PER_FAMILY = 4


@dataclass(frozen=True)
class Asked:
    """As it was asked for; see `run`."""

    model: str
    prompts: Path | None
    drafter: Path | None
    train_prompts: Path | None
    minutes: float
    rivals: str
    assistant: Path | None
    max_tokens: int
    temperature: float
    top_p: float
    block_size: int | None
    adaptive: bool
    repeats: int
    dtype: str
    device: str | None
    threads: int
    host: str
    port: int
    seed: int
    out: Path | None
    html: Path | None
    pictures: Path | None
    json: bool

    @property
    def named_rivals(self) -> tuple[str, ...]:
        """Plain decoding first: it is what all others are compared with."""
        names = dict.fromkeys(["plain", *(name.strip() for name in self.rivals.split(",") if name.strip())])
        return tuple([*names, "assistant"] if self.assistant is not None and "assistant" not in names else names)

    def generation(self, tokens: int | None = None) -> GenerationConfig:
        sampled: dict[str, Any] = {"do_sample": True, "temperature": self.temperature, "top_k": 0, "top_p": self.top_p}
        options = sampled if self.temperature else {"do_sample": False}
        return GenerationConfig(max_new_tokens=tokens or self.max_tokens, pad_token_id=0, **options)  # type: ignore[no-untyped-call]

    def settings(self) -> dict[str, Any]:
        """For documents: files by name, not by place."""
        return {name: value.name if isinstance(value, Path) else value for name, value in vars(self).items()}


def block_named(named: str) -> int | None:
    """Tokens of a block; None where they are to be found.

    Raises
    ------
    ValueError
        If it is neither "auto" nor a number of at least 2.
    """
    if named == "auto":
        return None
    try:
        size = int(named)
    except ValueError:
        size = 0
    if size < 2:
        raise ValueError(f"--block-size must be auto or a whole number of at least 2, got {named}")
    return size


def check(what: str, asked: Asked) -> None:
    """Refuse what no model need be loaded for.

    Raises
    ------
    ValueError
        Naming the option, and what to give instead.
    """
    unknown = [name for name in asked.named_rivals if name not in RIVALS]
    if unknown:
        raise ValueError(f"--rivals {unknown[0]} is unknown; choose among {', '.join(RIVALS)}")
    if not 0 < asked.top_p <= 1:
        raise ValueError(f"--top-p must lie above 0 and at most at 1, got {asked.top_p}")
    if asked.temperature and not LEAST_TEMPERATURE <= asked.temperature < math.inf:
        raise ValueError(
            f"--temperature must be 0, or a number of at least {LEAST_TEMPERATURE:g}, got {asked.temperature}"
        )
    minutes_given(asked.minutes)
    if what == "train":
        if asked.out is None:
            raise ValueError("train needs a folder to work in, which it goes on in when it is called again; give --out")
        return
    if what == "serve":
        return
    if asked.prompts is None:
        raise ValueError(
            f"{what} needs --prompts FILE; upheld data speculative --out prompts.jsonl writes one to begin with"
        )
    for path in (asked.prompts, asked.train_prompts):
        if path is not None:
            read_prompts(path, chat=True)
    if what != "decode":
        return
    heads = [name for name in asked.named_rivals if name in TRAINED_RIVALS]
    if heads and (asked.train_prompts is None or asked.drafter is not None):
        raise ValueError(
            f"--rivals {heads[0]} is trained on the same answers and as long as the drafter; give --train-prompts, and no --drafter"
        )
    if asked.train_prompts is not None and asked.drafter is not None:
        raise ValueError("--train-prompts makes a drafter and --drafter names one; leave one of them out")
    if asked.train_prompts is not None and asked.out is None:
        raise ValueError("a drafter is trained in a folder beside the results; say with --out where these go")
    if "assistant" in asked.named_rivals and asked.assistant is None:
        raise ValueError("--rivals assistant needs the folder of a smaller model; name it with --assistant")
    for option, path in (("--out", asked.out), ("--html", asked.html)):
        if path is not None:
            expect_file(path, option)
    if asked.pictures is not None:
        expect_folder(asked.pictures, "--pictures")


@dataclass(frozen=True)
class Pair:
    """A target that is loaded, and what goes with it."""

    target: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase

    @property
    def chats(self) -> bool:
        return bool(self.tokenizer.chat_template)


def number_format(asked: Asked) -> torch.dtype:
    return (
        fast_format(device_for(asked.device)) if asked.dtype == "auto" else getattr(torch, asked.dtype, torch.float32)
    )


def load_pair(asked: Asked, dtype: str | None = None) -> Pair:
    """The target that was named, and its tokenizer.

    Raises
    ------
    ValueError
        If it cannot be loaded, the tokenizer knows more tokens than the target, or rejected drafts would stay in its states.
    """
    torch.set_num_threads(asked.threads)
    named = str(number_format(asked)).removeprefix("torch.") if asked.dtype == "auto" else asked.dtype
    target, tokenizer = load_target(asked.model, dtype=dtype or named, device=asked.device)
    words = head_of(target).weight.shape[0]
    if len(tokenizer) > words:
        raise ValueError(
            f"the tokenizer of {asked.model} has {len(tokenizer)} tokens, the target {words}; put the target's own tokenizer there"
        )
    with torch.inference_mode(), Reader(target) as reader:  # refuses a target whose states cannot be taken back
        reader.read(torch.zeros(1, 1, dtype=torch.long, device=target.device), keep=1)
    return Pair(target, tokenizer)


def drafter_of(asked: Asked, target: PreTrainedModel) -> DFlashDrafter:
    """The drafter that was named, or the shipped one.

    Raises
    ------
    ValueError
        If none was named for a model that none is shipped for, or blocks longer than its own were asked for.
    """
    found = _drafter(asked, target)
    longest = found.config.block_size
    if asked.block_size is not None and asked.block_size > longest:
        raise ValueError(
            f"--block-size {asked.block_size} is more than {longest}, the block that the drafter was trained with; take at most {longest}"
        )
    return found


def _drafter(asked: Asked, target: PreTrainedModel) -> DFlashDrafter:
    if asked.drafter is None:
        if asked.model != "smollm2":
            raise ValueError(
                f"no drafter comes with {asked.model}; train one (upheld run speculative train --model {asked.model} "
                "--train-prompts FILE --out FOLDER), then give --drafter FOLDER/drafter"
            )
        return shipped_drafter(target)
    return load_drafter(drafter_folder(asked.drafter), target)


def read(path: Path, pair: Pair, room: int) -> list[tuple[Prompt, Tensor]]:
    """The prompts of a file, and each as (1, n) tokens.

    Raises
    ------
    ValueError
        If one is empty, or leaves no room for an answer of `room` tokens.
    """
    limit = getattr(pair.target.config.get_text_config(), "max_position_embeddings", None)
    found = []
    for number, prompt in enumerate(read_prompts(path, chat=pair.chats), 1):
        ids = torch.tensor([prompt.ids(pair.tokenizer)], device=pair.target.device)
        if limit is not None and ids.shape[1] + room > limit:
            raise ValueError(
                f"prompt {number} of {path.name} has {ids.shape[1]} tokens, and with an answer of {room} the model, which reads {limit}, "
                "is full; shorten it, or take a smaller --max-tokens"
            )
        found.append((prompt, ids))
    return found


def tuning_prompts(asked: Asked, pair: Pair, room: int) -> list[Tensor]:
    """Prompts that nothing is timed on: of the training file where there is one, else built-in ones; with room for such an answer."""
    if asked.train_prompts is not None:
        return [ids for _, ids in read(asked.train_prompts, pair, room)[: len(FAMILIES)]]
    some = [next(p for p in built_in("train") if p.family == family) for family in FAMILIES]
    if not pair.chats:
        some = [Prompt((), prompt.text, prompt.family, prompt.group) for prompt in some]
    return [torch.tensor([prompt.ids(pair.tokenizer)], device=pair.target.device) for prompt in some]


def write_prompts(out: Path) -> None:
    """Some of the built-in test prompts, in the format that the file's ending tells."""
    chosen: list[Prompt] = []
    for family in FAMILIES:
        ours = [prompt for prompt in built_in("test") if prompt.family == family]
        chosen += ours[:: len(ours) // PER_FAMILY][:PER_FAMILY]
    with whole_file(out) as file:
        file.writelines(_line(prompt, out.suffix == ".jsonl") for prompt in chosen)


def _line(prompt: Prompt, as_json: bool) -> str:
    return (json.dumps({"prompt": prompt.text, "family": prompt.family}) if as_json else prompt.text) + "\n"
