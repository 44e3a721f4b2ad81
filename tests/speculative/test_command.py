"""``upheld run speculative`` as a user meets it: a model of one's own, trained for and decoded; what is printed, written and refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import openai
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, MambaConfig, MambaForCausalLM, PreTrainedTokenizerFast

from upheld import catalog
from upheld.cli import main
from upheld.speculative import DFlashDrafter
from upheld.speculative.command import write_data
from upheld.speculative.data import TOPICS, read_prompts

DRIVER = """
import sys
from upheld import catalog
if all(method.name != "speculative" for method in catalog.METHODS):
    one = catalog.Method("speculative", title="t", field="f", summary="s", paper="p")
    catalog.METHODS = (*catalog.METHODS, one)
from upheld.cli import main
main(sys.argv[1:])
"""


def started(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("UPHELD", "FORCE_COLOR"))}
    environment |= {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, *map(str, arguments)], cwd=folder, env=environment | {"COLUMNS": "100"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def upheld(folder: Path, *arguments: object) -> tuple[int, str, str]:
    process = started(folder, *arguments)
    out, err = process.communicate(timeout=280)
    return process.returncode, out, err


@pytest.fixture
def call(monkeypatch, capsys):
    """The command in this process, which it leaves as it was."""
    if all(method.name != "speculative" for method in catalog.METHODS):
        one = catalog.Method("speculative", title="t", field="f", summary="s", paper="p")
        monkeypatch.setattr(catalog, "METHODS", (*catalog.METHODS, one))
    threads = torch.get_num_threads()

    def run(folder: Path, *arguments: object) -> tuple[int, str, str]:
        monkeypatch.chdir(folder)
        with pytest.raises(SystemExit) as ended:
            main(["run", "speculative", *map(str, arguments)])
        return ended.value.code, *capsys.readouterr()

    yield run
    torch.set_num_threads(threads)


def model(folder: Path, *, layers: int = 4, extra: int = 0, vocabulary: int | None = None) -> Path:
    """A random Llama of bytes, as `save_pretrained` leaves it; `extra` tokens more in the tokenizer than in the model."""
    words = {piece: number for number, piece in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    plain = Tokenizer(models.BPE(vocab=words, merges=[]))
    plain.pre_tokenizer, plain.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain)
    tokenizer.add_tokens([f"<{number}>" for number in range(extra)])
    config = LlamaConfig(
        vocab_size=256, hidden_size=32, intermediate_size=64, num_hidden_layers=layers, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=512, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(layers)
        network = LlamaForCausalLM(config)
        for parameter in network.parameters():
            if parameter.dim() == 2:
                torch.nn.init.normal_(parameter, std=0.25)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A model of one's own, prompts to train on and to decode, and a drafter that the command trained."""
    made = tmp_path_factory.mktemp("own")
    model(made / "model")
    beginnings = (
        "Hello there",
        "What is this",
        "Tell me more",
        "Why not",
        "Once upon",
        "Give me five",
        "And so on",
        "In all",
    )
    (made / "train.txt").write_text("\n".join(beginnings))
    (made / "asked.jsonl").write_text(
        '{"prompt": "A quick <b>one</b>", "family": "short"}\n{"prompt": "Another beginning"}\n'
    )
    code, out, err = upheld(
        made, "run", "speculative", "train", "--model", "model", "--train-prompts", "train.txt", "--minutes", 0.3,
        "--max-tokens", 24, "--dtype", "float32", "--out", "mine",
    )  # fmt: skip
    assert code == 0, err
    assert "wrote mine/drafter" in out
    return made


def test_what_was_trained_is_a_drafter_of_this_model(folder):
    drafter = DFlashDrafter.from_pretrained(folder / "mine" / "drafter")
    assert drafter.config.num_target_layers == 4
    described = json.loads((folder / "mine" / "drafter" / "provenance.json").read_text())
    assert described["responses"] == 16
    assert described["steps"] > 0


def test_decoding_tells_and_writes_what_it_found(folder, call):
    code, out, err = call(
        folder, "--model", "model", "--drafter", "mine", "--prompts", "asked.jsonl", "--max-tokens", 20,
        "--dtype", "float32", "--out", "runs.jsonl", "--html", "page.html", "--pictures", "drawn",
        "--json",
    )  # fmt: skip
    assert code == 0, err
    document = json.loads(out, parse_constant=pytest.fail)
    methods = {one["method"]: one for one in document["methods"]}
    assert list(methods) == ["plain", "generate", "lookup", "DFlash"]
    assert all(one["identical"] == one["of"] == 2 for one in methods.values())
    assert methods["plain"]["speed_up"] == {"estimate": 1.0, "low": 1.0, "high": 1.0}
    ours, block = methods["DFlash"], document["settings"]["block_size"]
    assert document["settings"]["block_size_by"] == "calibration"
    assert block in (2, 3, 4, 6, 8)
    assert document["remarks"][0].startswith(f"Blocks of {block} were taken: what they cost here")
    assert list(document["costs"]["draft"]) == ["2", "3", "4", "6", "8"]
    costs = document["costs"]
    assert len(costs["text_by_text"]) == 2
    assert f"from text to text {min(costs['text_by_text']):.2f} to" in costs["advice"]
    assert "measuring costs" in err
    assert len(document["acceptance"]["by_position"]) == block - 1
    assert 1 <= ours["tau"] <= block
    assert ours["draft_ms"] > 0
    assert ours["speed_up"]["low"] <= ours["speed_up"]["estimate"] <= ours["speed_up"]["high"]
    assert set(document["acceptance"]["tau_by_family"]) == {"short", "asked"}
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    assert len(lines) == 8
    assert {line["tokens"] for line in lines} == {20}
    assert len({line["answer"] for line in lines if line["prompt"] == 1}) == 1
    (mine,) = (line for line in lines if line["prompt"] == 2 and line["method"] == "DFlash")
    assert 1 + sum(mine["acceptance_lengths"]) <= 20
    page = (folder / "page.html").read_text()
    assert page.count("<img src=") == 4
    drawn = {path.name for path in (folder / "drawn").iterdir()}
    assert drawn == {
        f"{name}.{ending}" for name in ("lengths", "positions", "costs", "race") for ending in ("png", "svg")
    }
    assert "&lt;b&gt;one" in page
    assert "<b>one" not in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.slow
def test_rivals_are_trained_beside_it(folder, call):
    code, out, err = call(
        folder, "--model", "model", "--prompts", "asked.jsonl", "--train-prompts", "train.txt",
        "--minutes", 0.2, "--rivals", "eagle,medusa", "--max-tokens", 16, "--dtype", "float32", "--out", "beside.jsonl",
        "--temperature", 1,
    )  # fmt: skip
    assert code == 0, err
    printed = [line.split()[0] for line in out.splitlines() if line]
    assert [name for name in printed if name in ("plain", "EAGLE", "Medusa", "DFlash")] == [
        "plain",
        "EAGLE",
        "Medusa",
        "DFlash",
    ]
    assert "law only" in out
    assert (folder / "beside-drafter" / "drafter" / "config.json").is_file()


@pytest.mark.parametrize(
    ("options", "by", "why"),
    [
        (["--block-size", 3], "asked", "Blocks of 3 were taken as asked for."),
        (["--adaptive"], "adaptive", "Blocks shorten and lengthen themselves, up to 8 tokens."),
    ],
)
def test_a_block_that_was_asked_for_is_taken(folder, call, options, by, why):
    code, out, err = call(
        folder, "--model", "model", "--drafter", "mine", "--prompts", "asked.jsonl", "--max-tokens", 6, "--rivals", "plain",
        "--dtype", "float32", "--json", *options,
    )  # fmt: skip
    assert code == 0, err
    document = json.loads(out)
    size = 3 if by == "asked" else 8
    assert (document["settings"]["block_size"], document["settings"]["block_size_by"]) == (size, by)
    assert document["remarks"][0] == why


def test_calibrating_says_whether_it_pays(folder, call):
    code, out, err = call(
        folder, "calibrate", "--model", "model", "--drafter", "mine/drafter", "--prompts", "asked.jsonl",
        "--max-tokens", 12, "--json",
    )  # fmt: skip
    assert code == 0, err
    document = json.loads(out, parse_constant=pytest.fail)
    assert [one["block"] for one in document["blocks"]] == [2, 3, 4, 6, 8]
    for one in document["blocks"]:
        assert one["predicted"] == pytest.approx(one["tau"] / (one["verify"] + one["draft"]))
        assert one["bound"] >= one["predicted"]
    assert document["recommended"] == (max(one["predicted"] for one in document["blocks"]) >= 1.05)
    assert len(document["text_by_text"]) == 2
    assert "calibrating" in err


def test_a_client_of_openais_streams_from_the_server(folder):
    process = started(
        folder,
        "run",
        "speculative",
        "serve",
        "--model",
        "model",
        "--drafter",
        "mine",
        "--port",
        0,
        "--dtype",
        "float32",
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[2]
        assert process.stdout.readline().startswith("blocks of ")
        with openai.OpenAI(base_url=address, api_key="none", max_retries=0) as client:
            asked = {"model": "model", "prompt": "Hello", "max_tokens": 12, "temperature": 0}
            whole = client.completions.create(**asked).choices[0].text
            pieces = [event.choices[0].text for event in client.completions.create(**asked, stream=True)]
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert "".join(pieces) == whole
    assert whole


@pytest.mark.parametrize("name", ["prompts.jsonl", "prompts.txt"])
def test_the_embedded_prompts_are_in_the_users_format(name, tmp_path):
    write_data(tmp_path / name)
    prompts = read_prompts(tmp_path / name, chat=True)
    assert len({prompt.text for prompt in prompts}) == 12
    assert all(any(topic in prompt.text for topic in TOPICS["test"]) for prompt in prompts)
    if name.endswith("jsonl"):
        assert sorted({prompt.family for prompt in prompts}) == ["code", "prose", "structured"]


BAD = [
    (["drift"], "'drift' is none of decode, train, calibrate and serve"),
    ([], "decode needs --prompts FILE"),
    (["train"], "train needs a folder to work in"),
    (["--prompts", "asked.jsonl", "--rivals", "plain,rest"], "--rivals rest is unknown; choose among plain"),
    (["--prompts", "asked.jsonl", "--rivals", "eagle"], "--rivals eagle is trained on the same answers"),
    (["--prompts", "asked.jsonl", "--rivals", "assistant"], "--rivals assistant needs the folder"),
    (["--prompts", "asked.jsonl", "--top-p", "0"], "--top-p must lie above 0"),
    (["--prompts", "asked.jsonl", "--temperature", "inf"], "--temperature must be 0, or a number of at least 1e-06, got inf"),
    (["--prompts", "asked.jsonl", "--minutes", "-1"], "minutes must be a positive number"),
    (["--prompts", "asked.jsonl", "--out", "."], ". is a folder; --out names the file to write"),
    (["--prompts", "none.txt", "--model", "model", "--drafter", "mine"], "none.txt: No such file"),
    (["--prompts", "asked.jsonl", "--model", "nowhere"], "nowhere is not a folder"),
    (["--prompts", "asked.jsonl", "--model", "model"], "no drafter comes with model; train one"),
    (["--prompts", "asked.jsonl", "--model", "model", "--drafter", "model"], "model holds a model of the kind 'llama', no drafter"),
    (["--prompts", "asked.jsonl", "--model", "model", "--drafter", "mine", "--block-size", "9"], "--block-size 9 is more than 8"),
    (["--prompts", "asked.jsonl", "--block-size", "1"], "--block-size must be auto or a whole number of at least 2, got 1"),
    (["--prompts", "asked.jsonl", "--block-size", "all"], "--block-size must be auto or a whole number of at least 2, got all"),
    (["--prompts", "empty.jsonl", "--model", "model", "--drafter", "mine"], '"prompt" must be a text that is not empty'),
    (["--prompts", "asked.jsonl", "--model", "model", "--drafter", "mine", "--max-tokens", "600"], "shorten it, or take a smaller"),
    (["--prompts", "asked.jsonl", "--model", "other", "--drafter", "mine"], "the drafter was trained for another target"),
    (["--prompts", "asked.jsonl", "--model", "wordy", "--drafter", "mine"], "has 261 tokens, the target 256"),
    (["train", "--model", "mamba", "--train-prompts", "train.txt", "--out", "new"], "keeps states that cannot be taken back"),
    (["train", "--model", "model", "--out", "new"], "model has no chat template"),
    (["train", "--model", "model", "--train-prompts", "train.txt", "--out", "soon", "--minutes", "1e-4"], "the target ended no answer"),
    (["--prompts", "asked.jsonl", "--model", "cut.gguf"], "the GGUF file cut.gguf cannot be read"),
    (["--prompts", "latin.txt", "--model", "model", "--drafter", "mine"], "latin.txt is not UTF-8"),
    (["serve", "--model", "model", "--drafter", "mine", "--host", "192.0.2.1"], "nothing can listen at 192.0.2.1, port 8000"),
    (["--prompts", "asked.jsonl", "--dtype", "int3"], "dtype must be float32, bfloat16 or float16"),
]  # fmt: skip


@pytest.fixture(scope="module")
def wrong(folder) -> Path:
    """The same folder with files that are not right."""
    (folder / "empty.jsonl").write_text('{"prompt": ""}\n')
    (folder / "cut.gguf").write_bytes(b"GGUF\3")
    (folder / "latin.txt").write_bytes("déjà vu".encode("latin-1"))
    model(folder / "other", layers=5)
    model(folder / "wordy", extra=5)
    PreTrainedTokenizerFast.from_pretrained(folder / "model").save_pretrained(folder / "mamba")
    MambaForCausalLM(MambaConfig(vocab_size=256, hidden_size=32, num_hidden_layers=2, state_size=4)).save_pretrained(
        folder / "mamba"
    )
    return folder


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_what_cannot_be_done_is_refused_in_a_sentence(wrong, call, arguments, message):
    code, out, err = call(wrong, *arguments)
    assert (code, out) == (2, "")
    *parts, line = err.strip().splitlines()
    assert set(parts) <= {"measuring costs, choosing the block", "training a drafter"}
    assert line.startswith("upheld: ")
    assert message in line
