"""Data sets in the folders they are handed out in; tiny files of the same formats."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from upheld.flows.folders import celeba, cifar10, image_folder

NAMES = [*(f"data_batch_{part}" for part in range(1, 6)), "test_batch"]


def batches() -> list[tuple[np.ndarray, list[int]]]:
    rng = np.random.default_rng(0)
    return [(rng.integers(0, 256, (2, 3072)).astype(np.uint8), [part, 9 - part]) for part in range(6)]


def write_python(folder: Path) -> None:
    folder.mkdir()
    for name, (data, labels) in zip(NAMES, batches(), strict=True):
        content = {b"data": data, b"labels": labels, b"batch_label": b"a batch", b"filenames": [b"a.png", b"b.png"]}
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))


def write_binary(folder: Path) -> None:
    folder.mkdir()
    for name, (data, labels) in zip(NAMES, batches(), strict=True):
        (folder / f"{name}.bin").write_bytes(np.c_[np.array(labels, np.uint8), data].astype(np.uint8).tobytes())


@pytest.mark.parametrize(
    ("name", "write"), [("cifar-10-batches-py", write_python), ("cifar-10-batches-bin", write_binary)]
)
def test_both_versions_of_cifar_hold_the_same(tmp_path, name, write):
    write(tmp_path / name)
    for found in (cifar10(tmp_path), cifar10(tmp_path / name)):
        x, labels = found.train
        assert x.shape == (10, 3, 32, 32)
        assert labels.tolist() == [0, 9, 1, 8, 2, 7, 3, 6, 4, 5]
        assert found.test[1].tolist() == [5, 4]
        data = batches()[0][0]
        # red first, then green, then blue; each by rows
        assert float(x[0, 0, 0, 1]) == pytest.approx(data[0, 1] / 127.5 - 1)
        assert float(x[1, 2, 3, 4]) == pytest.approx(data[1, 2048 + 3 * 32 + 4] / 127.5 - 1)


class Harm:
    """What a hostile pickle would do."""

    def __reduce__(self):
        return os.mkdir, ("harmed",)


def test_a_pickle_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_python(tmp_path / "cifar")
    (tmp_path / "cifar" / "test_batch").write_bytes(pickle.dumps({b"data": Harm(), b"labels": []}))
    with pytest.raises(ValueError, match=r"test_batch is no batch of CIFAR-10 \(it asks for .*mkdir\); copy it again"):
        cifar10(tmp_path / "cifar")
    assert not (tmp_path / "harmed").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1, 2], "has no data and labels in it"),
        ({b"data": np.zeros((2, 5), np.uint8), b"labels": [0, 1]}, r"holds data of shape \(2, 5\) and 2 labels"),
        ({b"data": np.zeros((2, 3072), np.uint8), b"labels": [0, 10]}, "has labels other than 0 to 9"),
    ],
)
def test_what_is_no_batch_is_refused(tmp_path, content, message):
    write_python(tmp_path / "cifar")
    (tmp_path / "cifar" / "data_batch_3").write_bytes(pickle.dumps(content))
    with pytest.raises(ValueError, match=f"data_batch_3 {message}"):
        cifar10(tmp_path / "cifar")


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(
        FileNotFoundError, match="holds neither cifar-10-batches-py nor cifar-10-batches-bin; name the folder"
    ):
        cifar10(tmp_path)
    write_binary(tmp_path / "cifar")
    (tmp_path / "cifar" / "data_batch_2.bin").write_bytes(b"12345")
    with pytest.raises(ValueError, match=r"data_batch_2.bin holds 5 bytes, no whole number of 3073-byte rows"):
        cifar10(tmp_path / "cifar")
    (tmp_path / "cifar" / "data_batch_2.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no data_batch_2.bin; unpack the whole archive"):
        cifar10(tmp_path / "cifar")


@pytest.fixture
def faces(tmp_path) -> Path:
    """Three pictures of 178 x 218: half red, half blue, the rest in the middle green."""
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "img_align_celeba").mkdir()
    for number, colour in enumerate([(255, 0, 0), (0, 0, 255), (0, 255, 0)], start=1):
        image.new("RGB", (178, 218), colour).save(tmp_path / "img_align_celeba" / f"{number:06d}.png")
    (tmp_path / "list_attr_celeba.txt").write_text(
        "3\nBald Smiling\n000001.png -1  1\n000002.png  1 -1\n000003.png -1 -1\n"
    )
    return tmp_path


def test_faces_with_their_attributes(faces):
    x, attributes, names = celeba(faces, side=8)
    assert names == ["Bald", "Smiling"]
    assert attributes.tolist() == [[0, 1], [1, 0], [0, 0]]
    assert torch.equal(x[:, :, 4, 4], torch.tensor([[1.0, -1, -1], [-1, -1, 1], [-1, 1, -1]]))
    assert celeba(faces, side=8, most=2)[0].shape == (2, 3, 8, 8)
    assert torch.equal(image_folder(faces / "img_align_celeba", 8), x)


def test_broken_faces_are_named(faces, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"holds no list_attr_celeba.txt beside img_align_celeba"):
        celeba(faces / "nowhere")
    with pytest.raises(FileNotFoundError, match="holds no picture"):
        image_folder(faces, 8)
    listing, text = faces / "list_attr_celeba.txt", (faces / "list_attr_celeba.txt").read_text()
    listing.write_text(text.replace("000002.png  1 -1", "000002.png  1"))
    with pytest.raises(ValueError, match="line 4: 1 entries for 2 attributes"):
        celeba(faces)
    listing.write_text("3\n")
    with pytest.raises(ValueError, match="has no rows"):
        celeba(faces)
    listing.write_text(text)
    (faces / "img_align_celeba" / "000003.png").write_text("hello")
    with pytest.raises(ValueError, match=r"000003.png is no picture that can be read"):
        celeba(faces, side=8)
    (faces / "img_align_celeba" / "000003.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"000003.png is not there"):
        celeba(faces, side=8)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match="pip install pillow"):
        celeba(faces, side=8)
