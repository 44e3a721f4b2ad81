"""Byteworld: a language model of 0.75 million weights that writes structured text byte by byte, to train drafters for in seconds.

Drafters that are to be compared must be trained alike, many times over. A real model is too dear for that on a processor, so the races of
trained drafters have a small target of their own: a Llama of 4 layers and width 128 over bytes, trained on text whose pieces
depend on each other (JSON records, logs, running sums, prose with recurring names). It says how many drafted tokens stand, never
how fast anything is: a step of it costs what the interpreter costs, for one token as for eight.

>>> from upheld.speculative.byteworld import ByteTokenizer, byteworld
>>> target = byteworld()
>>> sum(p.numel() for p in target.parameters())
747136
>>> ByteTokenizer().decode(ByteTokenizer()("user=ada")["input_ids"])
'user=ada'

The weights that come with the package are made by ``python -m upheld.speculative.byteworld OUT``; `byteworld.json` beside them
says from what.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from upheld.speculative.data import Prompt
from upheld.storage import whole_file

START, END, MASK = 256, 257, 258
VOCABULARY = 260
KINDS = ("records", "log", "sums", "tale")
WINDOW = 640
"""Bytes a training window: a model trained on shorter ones writes noise beyond their end."""

FIRST = ("ada", "ben", "cleo", "dario", "elif", "femi", "greta", "hugo", "iris", "jonas", "kaya", "liam")
LAST = ("moore", "okafor", "petrov", "quinn", "rossi", "sato", "tran", "urban", "vega", "weber")
CITIES = {"oslo": "norway", "lima": "peru", "cairo": "egypt", "osaka": "japan", "porto": "portugal", "quito": "ecuador"}
WARES = {"lamp": 24, "desk": 180, "mug": 7, "chair": 65, "rug": 90, "clock": 31, "shelf": 48, "vase": 19}
SERVICES = {"auth": "login", "mail": "deliver", "store": "write", "index": "refresh"}
ANIMALS = ("fox", "owl", "hare", "crow", "bear", "toad")
PLACES = ("river", "old mill", "garden", "hill", "harbour", "forest")
GIFTS = ("apple", "lantern", "ribbon", "key", "map", "bell")


def document(rng: np.random.Generator, kind: str | None = None) -> str:
    """One text of some 700 bytes, of one of the four `KINDS`; None draws which."""
    drawn = KINDS[int(rng.integers(4))]
    return {"records": _records, "log": _log, "sums": _sums, "tale": _tale}[kind or drawn](rng)


def _records(rng: np.random.Generator) -> str:
    lines, number = [], int(rng.integers(100, 900))
    for _ in range(6):
        first, last, city, ware = rng.choice(FIRST), rng.choice(LAST), rng.choice(list(CITIES)), rng.choice(list(WARES))
        count = int(rng.integers(1, 9))
        lines.append(
            f'{{"id": {number}, "name": "{first} {last}", "mail": "{first}.{last}@post.{CITIES[city][:2]}", "city": "{city}", '
            f'"country": "{CITIES[city]}", "item": "{ware}", "price": {WARES[ware]}, "count": {count}, "total": {count * WARES[ware]}}}'
        )
        number += 1
    return "\n".join(lines) + "\n"


def _log(rng: np.random.Generator) -> str:
    lines, second = [], int(rng.integers(36000, 72000))
    for _ in range(12):
        second += int(rng.integers(1, 10))
        service, user, ok = rng.choice(list(SERVICES)), rng.choice(FIRST), rng.random() < 0.8
        ending = "status=200 ok" if ok else "status=500 failed, retry in 30 s"
        clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        lines.append(f"{clock} {'INFO ' if ok else 'ERROR'} [{service}] {SERVICES[service]} user={user} {ending}")
    return "\n".join(lines) + "\n"


def _sums(rng: np.random.Generator) -> str:
    total, step, lines = int(rng.integers(10, 60)), int(rng.integers(2, 9)), []
    ware = rng.choice(list(WARES))
    for day in range(1, 15):
        lines.append(f"day {day}: {total} {ware}s in store, {step} {ware}s come in, that makes {total + step} {ware}s.")
        total += step
    return "\n".join(lines) + "\n"


def _tale(rng: np.random.Generator) -> str:
    animal, friend = rng.choice(ANIMALS, size=2, replace=False)
    place, gift = rng.choice(PLACES), rng.choice(GIFTS)
    text = [f"Once upon a time a young {animal} lived by the {place}. One morning the {animal} found a {gift}."]
    for _ in range(3):
        place = rng.choice(PLACES)
        text.append(f'The {animal} took the {gift} to the {place} and met the {friend}. "Is this your {gift}?" asked the {animal}. '
                    f'"No," said the {friend}, "my {gift} is at home." So the {animal} went on with the {gift}.')  # fmt: skip
    return " ".join(text) + f" In the end the {animal} kept the {gift} and they lived happily by the {place}.\n"


class ByteTokenizer:
    """Text to bytes and back; a text begins with `START`."""

    chat_template = None
    eos_token_id = END

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [START, *text.encode()]}

    def decode(self, ids: Sequence[int], **_: Any) -> str:
        return bytes(int(i) for i in ids if i < START).decode(errors="replace")

    def __len__(self) -> int:
        return VOCABULARY


def beginnings(count: int, *, seed: int, length: int = 48, kind: str | None = None) -> list[Prompt]:
    """Prompts: the first bytes of documents that no other seed gives but by chance; of one kind, or (None) of all."""
    rng = np.random.default_rng([seed, 1])
    return [
        Prompt((), document(rng, kind)[:length], kind or "byteworld", f"{seed}-{number}") for number in range(count)
    ]


def configuration() -> LlamaConfig:
    """4 layers, width 128, 4 heads on 2 key-value heads, tied embedding."""
    return LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=128, intermediate_size=336, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=1024, tie_word_embeddings=True, bos_token_id=START, eos_token_id=END, pad_token_id=None,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )  # fmt: skip


def byteworld() -> LlamaForCausalLM:
    """The trained model that comes with the package, in float32.

    Raises
    ------
    ValueError
        If its weights are not those that `byteworld.json` describes.
    """
    from safetensors.torch import load

    folder = resources.files("upheld.speculative") / "weights"
    data = (folder / "byteworld.safetensors").read_bytes()
    noted = json.loads((folder / "byteworld.json").read_text(encoding="utf-8"))["sha256"]
    if hashlib.sha256(data).hexdigest() != noted:
        raise ValueError(
            "byteworld.safetensors is not the file that byteworld.json describes; install the package again"
        )
    model: Any = _empty()
    model.load_state_dict({name: value.to(torch.float32) for name, value in load(data).items()}, strict=False)
    model.tie_weights()
    found: LlamaForCausalLM = model.requires_grad_(False).eval()
    return found


def train(
    *, seed: int = 0, steps: int = 1500, batch: int = 4, lr: float = 4e-3, told: Any = None
) -> tuple[LlamaForCausalLM, float]:
    """A model from scratch, and its loss on documents it has not seen, in nats a byte.

    AdamW, cosine with 4 % warm-up, windows of `WINDOW` bytes of a stream of documents.
    """
    torch.manual_seed(seed)
    model = LlamaForCausalLM(configuration()).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01, betas=(0.9, 0.98))
    warm = max(1, int(0.04 * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda s: min((s + 1) / warm, 0.02 + 0.98 * 0.5 * (1 + np.cos(np.pi * min(1, s / steps))))
    )
    windows = _windows(np.random.default_rng([seed, 0]))
    for step in range(steps):
        ids = torch.stack([next(windows) for _ in range(batch)])
        loss = _loss(model, ids)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if told and step % 50 == 0:
            told(step, loss.item())
    model.eval()
    held_out = _windows(np.random.default_rng([seed, 2]))
    with torch.no_grad():
        loss = torch.stack([_loss(model, torch.stack([next(held_out) for _ in range(4)])) for _ in range(8)]).mean()
    return model, loss.item()


def _loss(model: LlamaForCausalLM, ids: Tensor) -> Tensor:
    logits = model(input_ids=ids[:, :-1], use_cache=False).logits
    return F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())


def _windows(rng: np.random.Generator) -> Iterator[Tensor]:
    """Each begins with a document, as every text that is gone on with does."""
    while True:
        stream: list[int] = []
        while len(stream) < WINDOW:
            stream += [START, *document(rng).encode(), END]
        yield torch.from_numpy(_cut(stream))


def _cut(stream: Sequence[int]) -> NDArray[np.int64]:
    return np.array(stream[:WINDOW], dtype=np.int64)


def _empty() -> LlamaForCausalLM:
    with torch.random.fork_rng(devices=[]):
        model = LlamaForCausalLM(configuration())
    model.generation_config = GenerationConfig(bos_token_id=START, eos_token_id=END)  # type: ignore[no-untyped-call]
    return model


def ship(folder: Path, *, seed: int = 0, steps: int = 1500) -> None:
    """Train, and write the weights in float16 with what they were made of."""
    from safetensors.torch import save

    started = time.process_time()
    model, loss = train(
        seed=seed, steps=steps, told=lambda step, value: print(f"step {step}: {value:.3f} nats a byte", flush=True)
    )
    kept = {name: value.half().contiguous() for name, value in model.state_dict().items() if name != "lm_head.weight"}
    data = save(kept)
    record = {
        "command": f"python -m upheld.speculative.byteworld OUT {seed} {steps}", "seed": seed, "steps": steps, "window": WINDOW, "batch": 4,
        "held_out_nats_per_byte": round(loss, 4), "cpu_seconds": round(time.process_time() - started), "torch": torch.__version__,
        "parameters": sum(p.numel() for p in model.parameters()), "sha256": hashlib.sha256(data).hexdigest(),
    }  # fmt: skip
    with whole_file(folder / "byteworld.safetensors", "wb") as file:
        file.write(data)
    with whole_file(folder / "byteworld.json") as file:
        file.write(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    ship(
        Path(sys.argv[1]),
        seed=int(sys.argv[2]) if len(sys.argv) > 2 else 0,
        steps=int(sys.argv[3]) if len(sys.argv) > 3 else 1500,
    )
