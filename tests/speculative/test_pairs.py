from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import upheld.speculative
from upheld.speculative import DFlashDrafter
from upheld.speculative.pairs import SHIPPED, drafter_folder, load_drafter
from upheld.speculative.taps import tap_layers

FOLDER = Path(upheld.speculative.__file__).parent / "weights" / SHIPPED


def test_the_shipped_drafter_is_the_one_its_provenance_describes():
    described = json.loads((FOLDER / "provenance.json").read_text())
    for name, digest in described["sha256"].items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest
    drafter = DFlashDrafter.from_pretrained(FOLDER, dtype=torch.float16)
    assert drafter.config.target_digest == described["target_digest"]
    assert drafter.config.block_size == 8
    assert drafter.config.target_layer_ids == tap_layers(30, 3)
    assert len(drafter.draft_ids.unique()) == 8192
    assert all(parameter.isfinite().all() for parameter in drafter.parameters())
    assert len(described["held_out_position_accuracy"]) == 7


def test_folders_that_hold_no_drafter_are_refused(tiny, tmp_path):
    with pytest.raises(ValueError, match=r"holds no config\.json"):
        load_drafter(tmp_path, tiny)
    tiny.config.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="a model of the kind 'llama', no drafter"):
        load_drafter(tmp_path, tiny)


def test_a_drafter_is_found_by_the_name_of_its_training_too(tmp_path):
    assert drafter_folder(Path("shipped")) == FOLDER
    assert drafter_folder(tmp_path) == tmp_path
    (tmp_path / "drafter").mkdir()
    (tmp_path / "drafter" / "config.json").touch()
    assert drafter_folder(tmp_path) == tmp_path / "drafter"


def test_all_public_names_are_there():
    assert {name for name in upheld.speculative.__all__ if getattr(upheld.speculative, name).__name__ == name} == set(
        upheld.speculative.__all__
    )
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        upheld.speculative.nothing  # noqa: B018


def test_the_command_is_described_without_torch():
    code = "import sys, upheld.speculative.command; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0
