"""A small sound file for every loader of every method, and the command that reads it.

What needs a model makes a tiny one of random weights: here files are read, nothing is judged.
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd

from damage import damaged

MOST_SIGNS = 10_000  # of a refusal


@dataclass(frozen=True)
class Reading:
    """A command, and those of its files that damage may hit; their content may also come under each other's names."""

    arguments: str
    files: tuple[str, ...]
    stdin: str = ""  # the file that is piped in

    @property
    def method(self) -> str:
        """Of whose loaders; those of the bench itself are the ledger's."""
        verb, method, *_ = self.arguments.split()
        return method if verb == "run" else "ledger"


@dataclass(frozen=True)
class Verdict:
    """What a command made of a file."""

    code: int
    printed: str
    said: str

    @property
    def fault(self) -> str:
        """What a user should not have met; empty if it is an answer, or a refusal in a sentence."""
        if "Traceback" in self.said or "Traceback" in self.printed:
            return "a traceback"
        if self.code not in (0, 2):
            return f"exit code {self.code}"
        last = self.said.strip().splitlines()[-1:] or [""]
        if self.code == 2 and not last[0].startswith("upheld: "):
            return "refused without a sentence"
        if self.code == 2 and len(last[0]) > MOST_SIGNS:
            return f"a refusal of {len(last[0])} signs"
        return ""


HUBS = "run hubs {} --stability 0 --bootstrap 0 --null 0"
BANDITS = "run bandits {} --threshold 0.5 --runs 4"
EFFECTS = "run effects {} --coreset-size 16 --pairing projection --every 300"
LAGRANGIAN = "run lagrangian {} --seconds 0 --steps 2"
MEMORY = "run memory --patterns {}"
FLOWS = "run flows {} --target 1 --shape 2 -n 4 --particles 2 --steps 4"
ISOTROPY = "run isotropy {} --embedder {{models}}/bert --no-cache --out scores.jsonl"
SPECULATIVE = "run speculative {} --max-tokens 4 --dtype float32 --rivals plain --out runs.jsonl --html page.html"
CONTEXT = "run context {} --consumer tfidf --iterations 1 --batch 10 --budget 80 --out work"

READINGS: tuple[Reading, ...] = (
    Reading(HUBS.format("t.csv --groups g"), ("t.csv",)),
    Reading(HUBS.format("t.tsv --groups g"), ("t.tsv",)),
    Reading(HUBS.format("t.csv.gz --groups g"), ("t.csv.gz",)),
    Reading(HUBS.format("t.csv.xz --groups g"), ("t.csv.xz",)),
    Reading(HUBS.format("t.parquet --groups g"), ("t.parquet",)),
    Reading(HUBS.format("t.h5ad --groups g"), ("t.h5ad",)),
    Reading(HUBS.format("a.csv b.csv"), ("a.csv", "b.csv")),
    Reading(HUBS.format("t.csv --groups g --gmt sets.gmt"), ("sets.gmt",)),
    Reading(BANDITS.format("log.csv"), ("log.csv",)),
    Reading(BANDITS.format("log.parquet"), ("log.parquet",)),
    Reading(BANDITS.format("--means means.csv --horizon 50"), ("means.csv",)),
    Reading("run bandits --serve --threshold 0.5 --arms a,b --state state.json", ("state.json", "events.jsonl"), "events.jsonl"),
    Reading(ISOTROPY.format("answers.jsonl"), ("answers.jsonl",)),
    Reading(ISOTROPY.format("answers.csv"), ("answers.csv",)),
    Reading(ISOTROPY.format("scored.jsonl"), ("scored.jsonl",)),
    Reading(ISOTROPY.format("answers.json.gz"), ("answers.json.gz",)),
    Reading(ISOTROPY.format("answers"), ("answers/q0/0.txt", "answers/q0/prompt.txt")),
    Reading(ISOTROPY.format("answers.jsonl --calibrate trust.json"), ("trust.json",)),
    Reading(ISOTROPY.format("--prompts prompts.txt --n 2 --replay record.jsonl"), ("prompts.txt", "record.jsonl")),
    Reading(EFFECTS.format("feed.csv --treatment w --outcome y"), ("feed.csv",)),
    Reading(EFFECTS.format("feed.csv.gz --treatment w --outcome y"), ("feed.csv.gz",)),
    Reading(EFFECTS.format("feed.parquet --treatment w --outcome y --time t"), ("feed.parquet",)),
    Reading(EFFECTS.format("feed.jsonl --treatment w --outcome y --on-bad-rows skip"), ("feed.jsonl",)),
    Reading(EFFECTS.format("- --treatment w --outcome y"), ("feed.csv",), "feed.csv"),
    Reading(EFFECTS.format("feed.csv --resume kept.sketch"), ("kept.sketch",)),
    Reading("run effects merge kept.sketch other.sketch --out out", ("kept.sketch", "other.sketch")),
    Reading(LAGRANGIAN.format("--train past/*.mps --test today.mps --coupling assign_.*"), ("past/0.mps", "today.mps")),
    Reading(LAGRANGIAN.format("--train past/*.lp --test today.lp"), ("past/0.lp", "today.lp")),
    Reading(LAGRANGIAN.format("--train past/*.mps --test today.mps.gz --coupling assign_.*"), ("today.mps.gz",)),
    Reading(LAGRANGIAN.format("--multipliers m.json --test today.mps"), ("m.json",)),
    Reading(LAGRANGIAN.format("--multipliers m.npz --test today.mps"), ("m.npz",)),
    Reading(LAGRANGIAN.format("--multipliers m.safetensors --test today.mps"), ("m.safetensors",)),
    *(Reading(MEMORY.format(f"keys.{ending}"), (f"keys.{ending}",)) for ending in ("npy", "npz", "csv", "parquet", "safetensors")),
    Reading(MEMORY.format("keys.npy --cues cues.csv --truth row"), ("cues.csv",)),
    Reading("run memory phase --alpha 0.2:0.3:2 --temp 0.1:1:2 --count 20 --trials 1 --sweeps 4 --out phase", ("phase/*",)),
    Reading(FLOWS.format("--velocity flow.pt --likelihood guide.pt --judge judge.pt"), ("flow.pt", "guide.pt", "judge.pt")),
    *(Reading(FLOWS.format(f"--velocity flow.pt --likelihood weights.{ending} --likelihood-loader fuzz_networks:guide"),
              (f"weights.{ending}",)) for ending in ("pt", "safetensors", "npz")),
    Reading(SPECULATIVE.format("--model {models}/llama --drafter {models}/drafter --prompts prompts.jsonl"), ("prompts.jsonl",)),
    Reading(SPECULATIVE.format("--model {models}/llama --drafter {models}/drafter --prompts prompts.txt"), ("prompts.txt",)),
    Reading(SPECULATIVE.format("--model llama --drafter {models}/drafter --prompts prompts.txt"),
            ("llama/config.json", "llama/tokenizer.json", "llama/tokenizer_config.json", "llama/generation_config.json",
             "llama/model.safetensors")),
    Reading(SPECULATIVE.format("--model {models}/llama --drafter drafter --prompts prompts.txt"),
            ("drafter/config.json", "drafter/model.safetensors")),
    Reading("run speculative train --model {models}/llama --train-prompts prompts.txt --minutes 0.02 --max-tokens 4 --out mine",
            ("prompts.txt",)),
    Reading(CONTEXT.format("--train train.jsonl --test test.jsonl"), ("train.jsonl", "test.jsonl")),
    Reading(CONTEXT.format("--train train.csv"), ("train.csv",)),
    Reading(CONTEXT.format("--train train.jsonl --online"), ("train.jsonl",)),
    Reading(CONTEXT.format("--train train.jsonl --seed-context AGENTS.md"), ("AGENTS.md",)),
    Reading(CONTEXT.format("--train train.jsonl --seed-context done/context"), ("done/context/**/*",)),
    Reading(CONTEXT.format("--train train.jsonl --skill done/skills/01"), ("done/skills/01/**/*",)),
    Reading(CONTEXT.format("--train train.jsonl").replace("work", "done"), ("done/**/*",)),
    Reading("report bandits --ledger book.sqlite --out report", ("book.sqlite",)),
    Reading("show bandits --ledger book.sqlite", ("book.sqlite",)),
    Reading("check bandits --scale smoke --ledger book.sqlite --baseline verdicts.json", ("verdicts.json",)),
)  # fmt: skip


# -- the sound files


def prepare(method: str, folder: Path) -> None:
    """Write what the readings of `method` read into `folder`, and its models into ``folder/../models``."""
    folder.mkdir(parents=True, exist_ok=True)
    with chdir(folder):
        WRITERS[method](np.random.default_rng(0))


def _hubs(rng: np.random.Generator) -> None:
    import anndata

    values = rng.normal(size=(24, 5)) + rng.normal(size=(24, 1))
    table = pd.DataFrame(values.round(3), columns=[f"gene{j}" for j in range(5)])
    table["g"] = ["a", "b"] * 12
    for name, separator in (("t.csv", ","), ("t.tsv", "\t"), ("t.csv.gz", ","), ("t.csv.xz", ",")):
        table.to_csv(name, index=False, sep=separator)
    table.to_parquet("t.parquet", index=False)
    obs = pd.DataFrame({"g": table["g"].to_numpy()}, index=[f"s{i}" for i in range(24)])
    anndata.AnnData(values, obs=obs, var=pd.DataFrame(index=table.columns[:5])).write_h5ad("t.h5ad")
    for group in "ab":
        table[table["g"] == group].drop(columns="g").to_csv(f"{group}.csv", index=False)
    Path("sets.gmt").write_text("all\thttp://x\t" + "\t".join(table.columns[:5]) + "\ntwo\t\tgene2\tgene3\n")


def _bandits(rng: np.random.Generator) -> None:
    log = pd.DataFrame({"arm": rng.choice(["a", "b"], 300), "reward": rng.random(300).round(3)})
    log.to_csv("log.csv", index=False)
    log.to_parquet("log.parquet", index=False)
    pd.DataFrame({"arm": ["a", "b"], "mean": [0.4, 0.7]}).to_csv("means.csv", index=False)
    Path("events.jsonl").write_text('{"arm": "a", "reward": 1}\n{"arm": "b", "reward": 0}\n{"event": "certificates"}\n')
    _sound(Reading("run bandits --serve --threshold 0.5 --arms a,b --state state.json", (), "events.jsonl"))


def _isotropy(rng: np.random.Generator) -> None:
    from unittest.mock import patch

    sys.path.append(str(Path(__file__).parent / "isotropy"))
    from scripted_model import ScriptedModel
    from tiny_models import tiny_bert

    _once("bert", tiny_bert)
    words = ["Ada", "was", "born", "in", "London", "1815", "and", "died", "there"]
    rows = [
        {"id": f"q{k}", "prompt": f"Who was {k}?", "responses": [" ".join(rng.choice(words, 6)) + "." for _ in range(3)],
         "factuality": round(rng.random(), 2)}
        for k in range(24)
    ]  # fmt: skip
    Path("answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with gzip.open("answers.json.gz", "wt") as file:
        json.dump(rows, file)
    long = [(row["id"], row["prompt"], answer) for row in rows for answer in row["responses"]]
    pd.DataFrame(long, columns=["id", "prompt", "response"]).to_csv("answers.csv", index=False)
    scored = [
        {
            "entity": row["id"],
            "responses": [{"response": one, "statements": [{"class": 1}, {"class": 0}]} for one in row["responses"]],
        }
        for row in rows
    ]
    Path("scored.jsonl").write_text("".join(json.dumps(row) + "\n" for row in scored))
    for row in rows[:3]:
        place = Path("answers") / row["id"]
        place.mkdir(parents=True)
        (place / "prompt.txt").write_text(row["prompt"])
        for number, answer in enumerate(row["responses"]):
            (place / f"{number}.txt").write_text(answer)
    renamed = [row | {"id": f"old{row['id']}"} for row in rows]
    Path("labelled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in renamed))
    _sound(Reading("run isotropy labelled.jsonl --embedder {models}/bert --no-cache --save-calibrator trust.json", ()))
    Path("prompts.txt").write_text("Where is Lima?\nWho was Ada?\n")
    spoken = ScriptedModel(
        lambda request: f"<answer>{request.messages[-1].content} {request.sampling.seed} words</answer>"
    )
    with patch("upheld.llm.language_model", lambda *_, **__: spoken):
        _sound(
            Reading(
                "run isotropy --prompts prompts.txt --n 2 --model m --embedder {models}/bert --record record.jsonl", ()
            )
        )


def _effects(rng: np.random.Generator) -> None:
    n = 600
    feed = pd.DataFrame(rng.normal(size=(n, 3)).round(3), columns=["x1", "x2", "x3"])
    feed["w"], feed["y"], feed["t"] = rng.integers(0, 2, n), rng.normal(size=n).round(3), np.arange(n)
    feed.to_csv("feed.csv", index=False)
    feed.to_csv("feed.csv.gz", index=False)
    feed.to_parquet("feed.parquet", index=False)
    feed.to_json("feed.jsonl", orient="records", lines=True)
    for seed, name in enumerate(("kept", "other")):
        like = "" if name == "kept" else " --like kept.sketch"
        columns = "" if like else " --treatment w --outcome y --coreset-size 16 --pairing projection"
        _sound(Reading(f"run effects feed.csv{columns} --every 300 --seed {seed} --sketch {name}.sketch{like}", ()))


LP = """\
minimize
 cost: {cost}
subject to
 assign_1: x11 + x21 = 1
 assign_2: x12 + x22 = 1
 assign_3: x13 + x23 = 1
 room_1: 3 x11 + 4 x12 + 2 x13 <= 6
 room_2: 2 x21 + 3 x22 + 4 x23 <= 6
binary
 x11 x12 x13 x21 x22 x23
end
"""


def _lagrangian(rng: np.random.Generator) -> None:
    import highspy

    from upheld.lagrangian.saving import save_multipliers

    Path("past").mkdir()
    for name in ("past/0", "past/1", "past/2", "today"):
        costs = rng.integers(1, 9, 6)
        variables = ("x11", "x12", "x13", "x21", "x22", "x23")
        cost = " + ".join(f"{c} {x}" for c, x in zip(costs, variables, strict=True))
        Path(f"{name}.lp").write_text(LP.format(cost=cost))
        h = highspy.Highs()
        h.setOptionValue("output_flag", False)
        h.readModel(f"{name}.lp")
        h.writeModel(f"{name}.mps")
    Path("today.mps.gz").write_bytes(gzip.compress(Path("today.mps").read_bytes()))
    for ending in ("json", "npz", "safetensors"):
        save_multipliers(f"m.{ending}", ["assign_1", "assign_2", "assign_3"], [1.0, 2.0, 3.0])


def _memory(rng: np.random.Generator) -> None:
    from safetensors.numpy import save_file

    from upheld.memory.command.vectors import write_vectors

    keys = rng.normal(size=(24, 6)).astype(np.float32)
    for ending in ("npy", "npz", "csv", "parquet"):
        write_vectors(Path(f"keys.{ending}"), keys)
    save_file({"keys": keys}, "keys.safetensors")
    pd.DataFrame(keys[:8] + 0.05, columns=[f"x{j}" for j in range(6)]).assign(row=range(8)).to_csv(
        "cues.csv", index=False
    )
    _sound(next(one for one in READINGS if one.arguments.startswith("run memory phase")))


NETWORKS = """
import torch


def guide():
    return torch.nn.Linear(2, 2)
"""


def _flows(rng: np.random.Generator) -> None:
    import warnings

    import torch
    from safetensors.torch import save_file

    Path("fuzz_networks.py").write_text(NETWORKS)
    guide = torch.nn.Linear(2, 2)
    x = torch.zeros(3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(lambda x, t: -x * (1 - t), (x, torch.tensor(0.5))).save("flow.pt")
        for name in ("guide", "judge"):
            torch.jit.trace(guide, x).save(f"{name}.pt")
    state = guide.state_dict()
    torch.save(state, "weights.pt")
    save_file(state, "weights.safetensors")
    np.savez("weights.npz", **{name: value.numpy() for name, value in state.items()})


def _speculative(rng: np.random.Generator) -> None:
    Path("prompts.txt").write_text("Hello there\nWhat is this\n")
    Path("prompts.jsonl").write_text('{"prompt": "Hello there"}\n{"messages": [{"role": "user", "content": "What"}]}\n')
    for name, make in (("llama", tiny_llama), ("drafter", tiny_drafter)):
        shutil.copytree(_once(name, make), name)


def tiny_llama(folder: Path) -> None:
    """A random Llama of bytes, as `save_pretrained` leaves it."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = {piece: number for number, piece in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    plain = Tokenizer(models.BPE(vocab=words, merges=[]))
    plain.pre_tokenizer, plain.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    PreTrainedTokenizerFast(tokenizer_object=plain, chat_template=template).save_pretrained(folder)
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(
        vocab_size=256, hidden_size=32, intermediate_size=64, num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=1,
        max_position_embeddings=512, bos_token_id=None, eos_token_id=None,
    )).save_pretrained(folder)  # fmt: skip


def tiny_drafter(folder: Path) -> None:
    """An untrained drafter of the tiny Llama."""
    from transformers import LlamaForCausalLM

    from upheld.speculative import DFlashDrafter

    target = LlamaForCausalLM.from_pretrained(_once("llama", tiny_llama))
    DFlashDrafter.from_target(target, num_layers=1, taps=2, block_size=4).save_pretrained(folder)


def _context(rng: np.random.Generator) -> None:
    topics = {"heart": ["pulse", "chest", "beat"], "skin": ["rash", "itch", "mole"]}
    rows = []
    for k in range(40):
        label = list(topics)[k % 2]
        text = " ".join([*rng.choice(topics[label], 2), *rng.choice([f"word{i}" for i in range(30)], 3), str(k)])
        rows.append({"id": str(k), "question": text, "target": label})
    for name, part in (("train", rows[:30]), ("test", rows[30:])):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    pd.DataFrame(rows[:30]).to_csv("train.csv", index=False)
    Path("AGENTS.md").write_text("# Triage\n\nGive heart or skin.\n")
    _sound(next(one for one in READINGS if one.arguments.endswith("--out done")))


def _kept(rng: np.random.Generator) -> None:
    """A ledger with a smoke run of bandits in it, and its verdicts."""
    _sound(Reading("check bandits --scale smoke --jobs 1 --ledger book.sqlite --save verdicts.json", ()))
    import sqlite3

    book = sqlite3.connect("book.sqlite")
    book.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    book.close()


WRITERS: dict[str, Callable[[np.random.Generator], None]] = {
    "hubs": _hubs, "bandits": _bandits, "isotropy": _isotropy, "effects": _effects, "lagrangian": _lagrangian, "memory": _memory,
    "flows": _flows, "speculative": _speculative, "context": _context, "ledger": _kept,
}  # fmt: skip


def readings_of(method: str) -> list[Reading]:
    return [one for one in READINGS if one.method == method]


def _models() -> Path:
    return Path.cwd().parent / "models"


def _once(name: str, make: Callable[[Path], Any]) -> Path:
    """A model's folder, made when it is first asked for."""
    folder = _models() / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        make(folder)
    return folder


def _sound(reading: Reading) -> None:
    """Have the command itself write one of the files."""
    done = answered(reading, Path.cwd())
    assert done.code == 0, (reading.arguments, done.said)


# -- the command in this process


def answered(reading: Reading, folder: Path) -> Verdict:
    """What the command makes of the files in `folder`; what is no refusal propagates."""
    from upheld.cli import _exit_code

    printed, said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    piped = (folder / reading.stdin).read_bytes() if reading.stdin else b""
    before, path = sys.stdin, list(sys.path)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(piped)), encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        with chdir(folder), redirect_stdout(printed), redirect_stderr(said):
            code = _exit_code(shlex.split(reading.arguments.replace("{models}", str(folder.parent / "models"))))
    finally:
        sys.stdin, sys.path[:] = before, path
        sys.modules.pop("fuzz_networks", None)
    printed.flush()
    return Verdict(code, printed.buffer.getvalue().decode(errors="replace"), said.getvalue())


def attempt(reading: Reading, sound: Path, place: Path, chance: Random) -> tuple[Verdict, str]:
    """The command on a copy, below `place`, of the sound files, one of which was damaged; and which, with how many bytes left."""
    folder = place / "files"
    shutil.copytree(sound, folder)
    if not (place / "models").exists() and (sound.parent / "models").exists():
        (place / "models").symlink_to(sound.parent / "models")
    targets = [path for name in reading.files for path in sorted(folder.glob(name)) if path.is_file()]
    target = chance.choice(targets)
    if (
        len(others := [path for path in folder.iterdir() if path.is_file() and path != target])
        and chance.random() < 0.05
    ):
        content = chance.choice(sorted(others)).read_bytes()  # another file, under this name
    else:
        content = broken(target, chance)
    target.write_bytes(content)
    try:
        return answered(reading, folder), f"{target.relative_to(folder)} of {len(content):,} bytes"
    finally:
        shutil.rmtree(folder)


def broken(path: Path, chance: Random) -> bytes:
    """Damaged; of a compressed file now and then what was compressed."""
    content = path.read_bytes()
    codec: Any = {".gz": gzip, ".xz": lzma}.get(path.suffix)
    if codec is None or chance.random() < 0.5:
        return damaged(content, chance)
    return codec.compress(damaged(codec.decompress(content), chance))
