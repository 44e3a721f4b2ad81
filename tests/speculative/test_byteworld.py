from __future__ import annotations

import json
from importlib import resources

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from upheld.speculative import byteworld as module
from upheld.speculative.byteworld import END, START, ByteTokenizer, beginnings, byteworld, document, train


@pytest.fixture(scope="module")
def target():
    return byteworld()


def test_the_shipped_weights_are_small_and_as_described(target):
    folder = resources.files("upheld.speculative") / "weights"
    assert len((folder / "byteworld.safetensors").read_bytes()) < 1_600_000
    described = json.loads((folder / "byteworld.json").read_text())
    assert sum(p.numel() for p in target.parameters()) == described["parameters"] == 747136


def test_it_knows_text_it_has_not_seen_to_the_end_of_its_window(target):
    rng = np.random.default_rng([77, 5])
    rows = [[START, *"".join(document(rng) for _ in range(2)).encode()][:600] for _ in range(6)]
    ids = torch.tensor(rows)
    with torch.no_grad():
        logits = target(input_ids=ids, use_cache=False).logits
    nats = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none").view(6, -1)
    # Entropy of the bytes themselves is about 3 nats; late bytes are no harder than early ones.
    assert nats[:, :300].mean() < 0.6
    assert nats[:, 400:].mean() < 0.6


def test_documents_hold_what_they_promise():
    rng = np.random.default_rng(0)
    records = [json.loads(line) for _ in range(5) for line in module._records(rng).splitlines()]
    assert all(r["total"] == r["price"] * r["count"] and module.CITIES[r["city"]] == r["country"] for r in records)
    assert {len(document(rng)) > 400 for _ in range(40)} == {True}


def test_documents_are_the_seeds():
    first, again, other = (document(np.random.default_rng(seed)) for seed in (4, 4, 5))
    assert first == again
    assert first != other
    assert beginnings(20, seed=1) == beginnings(20, seed=1)
    assert not {p.group for p in beginnings(20, seed=1)} & {p.group for p in beginnings(20, seed=2)}


def test_bytes_come_back():
    tokenizer = ByteTokenizer()
    ids = tokenizer("größe = 1")["input_ids"]
    assert ids[0] == START
    assert tokenizer.decode([*ids, END]) == "größe = 1"


def test_weights_of_another_file_are_refused(tmp_path, monkeypatch):
    folder = resources.files("upheld.speculative") / "weights"
    (tmp_path / "weights").mkdir()
    data = bytearray((folder / "byteworld.safetensors").read_bytes())
    data[-1] ^= 1
    (tmp_path / "weights" / "byteworld.safetensors").write_bytes(bytes(data))
    (tmp_path / "weights" / "byteworld.json").write_text((folder / "byteworld.json").read_text())
    monkeypatch.setattr(module.resources, "files", lambda _: tmp_path)
    with pytest.raises(ValueError, match="not the file that"):
        byteworld()


@pytest.mark.slow
def test_training_learns_and_repeats():
    model, loss = train(steps=8, batch=1)
    again, same = train(steps=8, batch=1)
    assert loss == same < 5.0
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
