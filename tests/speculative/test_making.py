from __future__ import annotations

import hashlib
import json
import math
import shutil

import pytest
import torch

from upheld.speculative import DFlashDrafter
from upheld.speculative.byteworld import MASK, ByteTokenizer, beginnings, byteworld
from upheld.speculative.making import make_drafter, minutes_given
from upheld.speculative.training import DrafterTrainer, TrainReport

SHAPE = {"num_layers": 1, "block_size": 4, "init": "random", "draft_vocab_size": None, "mask_token_id": MASK}


def make(folder, **options):
    return make_drafter(
        byteworld(), ByteTokenizer(), beginnings(12, seed=8, length=20), folder, epochs=1, anchors=4, batch=4,
        rows=12, max_new_tokens=16, **{"minutes": 5} | options, **SHAPE,
    )  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make(tmp_path_factory.mktemp("made"))


def test_what_is_written_loads_and_is_described(made):
    drafter = DFlashDrafter.from_pretrained(made.path)
    assert drafter.config.block_size == 4
    described = json.loads((made.path / "provenance.json").read_text())
    for name, digest in described["sha256"].items():
        assert hashlib.sha256((made.path / name).read_bytes()).hexdigest() == digest
    assert described["responses"] == 24
    assert 24 < described["response_tokens"] <= 24 * 16
    assert described["held_out_accepted_length"] == pytest.approx(made.report.accepted_length, abs=1e-4)
    assert described["stopped"] == made.report.stopped


def test_the_weights_written_are_the_trained_ones(made):
    drafter = DFlashDrafter.from_pretrained(made.path, dtype=torch.float32)
    untrained = DFlashDrafter.from_target(byteworld(), **SHAPE)
    assert not torch.allclose(drafter.fc.weight, untrained.fc.weight, atol=1e-3)


def test_called_again_it_repeats_nothing_and_ends_the_same(made, monkeypatch):
    def not_again(self, *_):
        raise AssertionError("a step was made again")

    monkeypatch.setattr(DrafterTrainer, "_step", not_again)
    again = make(made.path.parent)
    assert again.provenance["sha256"]["model.safetensors"] == made.provenance["sha256"]["model.safetensors"]


def test_short_blocks_come_first_and_both_stages_are_told(tmp_path):
    seen = []
    made = make(tmp_path, short_block=2, told=lambda news: seen.append(news))
    assert {path.name.rpartition("-")[2] for path in tmp_path.glob("training-*")} == {"2", "4"}
    widths = [len(news.position_accuracy) for news in seen if isinstance(news, TrainReport)]
    assert widths == sorted(widths)
    assert set(widths) == {1, 3}
    assert DFlashDrafter.from_pretrained(made.path).config.block_size == 4
    described = json.loads((made.path / "provenance.json").read_text())
    assert len(described["held_out_position_accuracy"]) == 3
    short, whole = described["stages"]
    assert (short["block_size"], whole["block_size"]) == (2, 4)
    assert 8 < short["responses"] == whole["responses"] < described["responses"] == 24
    # A pass of each over what is not held out, 4 a step, unless the held-out length is flat before: that hangs on which token is
    # likeliest, and so on how a processor rounds.
    assert all(0 < stage["steps"] <= math.ceil(stage["responses"] / 4) for stage in (short, whole))
    assert made.report.steps == len(made.report.losses) == short["steps"] + whole["steps"]


def test_called_again_with_more_answers_it_trains_the_earlier_drafter_further(tmp_path, monkeypatch):
    prompts = beginnings(12, seed=8, length=20)
    options = {"epochs": 1, "anchors": 4, "batch": 4, "max_new_tokens": 16, "temperatures": (0.0,), "short_block": 2}
    folder = tmp_path / "drafters"
    tokenizer = ByteTokenizer()
    first = make_drafter(byteworld(), tokenizer, prompts, folder, minutes=5, **options, **SHAPE)
    assert first.provenance["responses"] == 12
    # As if the first call's time had been over after eight answers.
    described = json.loads((first.path / "provenance.json").read_text()) | {"responses": 8}
    (first.path / "provenance.json").write_text(json.dumps(described))

    begun_with = []
    step = DrafterTrainer._step
    monkeypatch.setattr(
        DrafterTrainer,
        "_step",
        lambda self, *rest: (begun_with.append(self.module.fc.weight.detach().clone()), step(self, *rest))[1],
    )
    for old in folder.glob("training-12-*"):
        shutil.rmtree(old)
    second = make_drafter(byteworld(), tokenizer, prompts, folder, minutes=5, **options, **SHAPE)
    kept = DFlashDrafter.from_pretrained(folder / "drafter-8")
    torch.testing.assert_close(begun_with[0], kept.fc.weight.float())
    # Short blocks were for the beginning: the second call adds one stage.
    assert [stage["block_size"] for stage in second.provenance["stages"]] == [2, 4, 4]
    assert second.provenance["steps"] == first.provenance["steps"] + len(begun_with)

    again = make_drafter(byteworld(), tokenizer, prompts, folder, minutes=5, **options, **SHAPE)
    assert again.provenance["sha256"]["model.safetensors"] == second.provenance["sha256"]["model.safetensors"]

    with pytest.raises(ValueError, match="has block_size 4, not 3; ask for the same"):
        make_drafter(byteworld(), tokenizer, prompts, folder, minutes=5, **options, **SHAPE | {"block_size": 3})


def test_a_trained_drafter_is_gone_on_from_with_other_prompts(made, tmp_path, monkeypatch):
    begun_with = []
    step = DrafterTrainer._step
    monkeypatch.setattr(
        DrafterTrainer,
        "_step",
        lambda self, *rest: (begun_with.append(self.module.fc.weight.detach().clone()), step(self, *rest))[1],
    )
    other = {"epochs": 1, "anchors": 4, "batch": 4, "max_new_tokens": 16, "temperatures": (0.0,), "short_block": 2}
    prompts = beginnings(8, seed=9, length=20)

    def further(folder, start, **shape):
        return make_drafter(byteworld(), ByteTokenizer(), prompts, folder, minutes=5, start=start, **other, **shape)

    found = further(tmp_path / "on", made.path).provenance
    kept = DFlashDrafter.from_pretrained(made.path, dtype=torch.float32)
    torch.testing.assert_close(begun_with[0], kept.fc.weight)
    assert found["start_sha256"] == made.provenance["sha256"]
    assert found["stages"][:-1] == made.provenance["stages"]
    assert [stage["block_size"] for stage in found["stages"]] == [4, 4]
    assert found["steps"] == made.provenance["steps"] + len(begun_with)
    # The copy in the folder is what is gone on from, with the start named again or not.
    for start in (made.path, None):
        assert further(tmp_path / "on", start).provenance["sha256"] == found["sha256"]

    with pytest.raises(ValueError, match="was begun from another drafter than"):
        further(tmp_path / "on", tmp_path / "on" / "drafter")
    with pytest.raises(ValueError, match="holds a training that was not begun from"):
        further(made.path.parent, made.path)
    with pytest.raises(ValueError, match="has num_layers 1, not 2; ask for the same"):
        further(tmp_path / "deeper", made.path, num_layers=2)
    assert not (tmp_path / "deeper").exists()


def test_a_drafter_of_another_target_is_not_gone_on_from(made, tiny, tmp_path):
    with pytest.raises(ValueError, match="the drafter is for a target of width 128 and 260 tokens"):
        make_drafter(tiny, ByteTokenizer(), beginnings(2, seed=9), tmp_path, minutes=1, start=made.path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf")])
def test_no_time_is_refused(minutes):
    with pytest.raises(ValueError, match="minutes must be a positive number"):
        minutes_given(minutes)
