"""Data sets that a user has downloaded, read from the folder in which they are handed out: CIFAR-10, CelebA, and pictures in a folder.

Nothing is downloaded here and no pickle is trusted: CIFAR-10's Python version is read by an unpickler that knows arrays and nothing else.
Pictures come out as (n, 3, H, W) in [-1, 1].
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

CIFAR_SIDE = 32
CIFAR_NUMBERS = 3 * CIFAR_SIDE**2
CIFAR_CLASSES = 10
ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".webp")
ARRAYS = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}
"""All that the pickle of an array calls."""


@dataclass(frozen=True)
class Labelled:
    """Pictures of a training and a test part, (n, 3, 32, 32), with their classes, (n,)."""

    train: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]


def cifar10(folder: Path) -> Labelled:
    """CIFAR-10 from ``cifar-10-batches-py`` (pickles) or ``cifar-10-batches-bin``, or from the folder that holds one of them.

    Raises
    ------
    FileNotFoundError
        If a batch is not there.
    ValueError
        If a batch is not whole, or a pickle holds anything but arrays, lists and texts.
    """
    for place in (folder, folder / "cifar-10-batches-py", folder / "cifar-10-batches-bin"):
        for ending, read in (("", _python_batch), (".bin", _binary_batch)):
            names = [*(f"data_batch_{part}{ending}" for part in range(1, 6)), f"test_batch{ending}"]
            if any((place / name).is_file() for name in names):
                missing = [name for name in names if not (place / name).is_file()]
                if missing:
                    raise FileNotFoundError(f"{place} has no {missing[0]}; unpack the whole archive of CIFAR-10 there")
                parts = [read(place / name) for name in names]
                x, labels = (torch.cat(of) for of in zip(*parts[:-1], strict=True))
                return Labelled((x, labels), parts[-1])
    raise FileNotFoundError(
        f"{folder} holds neither cifar-10-batches-py nor cifar-10-batches-bin; name the folder into which CIFAR-10's archive was unpacked"
    )


class _ArraysOnly(pickle.Unpickler):
    """Refuses whatever a pickle of arrays does not need, so that a file from elsewhere can run nothing."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ARRAYS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return super().find_class(module, name)


def _python_batch(path: Path) -> tuple[Tensor, Tensor]:
    try:
        batch = _ArraysOnly(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    except Exception as error:  # a broken pickle fails in as many ways as there are
        raise ValueError(f"{path} is no batch of CIFAR-10 ({error}); copy it again from a source you trust") from error
    named = (
        {key.decode() if isinstance(key, bytes) else key: value for key, value in batch.items()}
        if isinstance(batch, dict)
        else {}
    )
    if "data" not in named or "labels" not in named:
        raise ValueError(f"{path} has no data and labels in it; copy it again")
    return _batch(path, np.asarray(named["data"]), np.asarray(named["labels"]))


def _binary_batch(path: Path) -> tuple[Tensor, Tensor]:
    values = np.frombuffer(path.read_bytes(), np.uint8)
    if not len(values) or len(values) % (CIFAR_NUMBERS + 1):
        raise ValueError(
            f"{path} holds {len(values)} bytes, no whole number of {CIFAR_NUMBERS + 1}-byte rows; copy it again"
        )
    table = values.reshape(-1, CIFAR_NUMBERS + 1)
    return _batch(path, table[:, 1:], table[:, 0])


def _batch(path: Path, data: NDArray[Any], labels: NDArray[Any]) -> tuple[Tensor, Tensor]:
    if data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != CIFAR_NUMBERS or labels.shape != (len(data),):
        raise ValueError(
            f"{path} holds data of shape {data.shape} and {labels.size} labels; a batch has ({labels.size}, {CIFAR_NUMBERS}) bytes"
        )
    if not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0 or labels.max() >= CIFAR_CLASSES:
        raise ValueError(f"{path} has labels other than 0 to {CIFAR_CLASSES - 1}; copy it again")
    return _scaled(data.reshape(-1, 3, CIFAR_SIDE, CIFAR_SIDE)), torch.as_tensor(labels.astype(np.int64))


def celeba(folder: Path, side: int = 64, most: int | None = None) -> tuple[Tensor, Tensor, list[str]]:
    """CelebA from ``img_align_celeba/`` and ``list_attr_celeba.txt``: pictures (n, 3, side, side), attributes (n, 40) of 0 and 1, names.

    Parameters
    ----------
    side : pictures are cut to a square about the middle and shrunk to it
    most : only so many of the first pictures

    Raises
    ------
    FileNotFoundError
        If the folder, the list or a picture is not there.
    ValueError
        If the list is not one of attributes.
    ImportError
        If Pillow is not installed.
    """
    listing = folder / "list_attr_celeba.txt"
    if not listing.is_file() or not (folder / "img_align_celeba").is_dir():
        raise FileNotFoundError(
            f"{folder} holds no list_attr_celeba.txt beside img_align_celeba; name the folder into which CelebA was unpacked"
        )
    lines = listing.read_text().splitlines()
    names = lines[1].split() if len(lines) > 1 else []
    rows = [line.split() for line in lines[2:] if line.strip()][:most]
    if not rows or not names:
        raise ValueError(
            f"{listing} has no rows; its first line is a number, its second the attributes, then a picture a line"
        )
    for number, row in enumerate(rows, start=3):
        if len(row) != len(names) + 1 or not set(row[1:]) <= {"1", "-1"}:
            raise ValueError(
                f"{listing}, line {number}: {len(row) - 1} entries for {len(names)} attributes; each is 1 or -1"
            )
    attributes = torch.tensor([[int(value == "1") for value in row[1:]] for row in rows])
    return read_pictures([folder / "img_align_celeba" / row[0] for row in rows], side), attributes, names


def image_folder(folder: Path, side: int) -> Tensor:
    """Every picture of a folder, in the order of their names, (n, 3, side, side).

    Raises
    ------
    FileNotFoundError
        If there is none.
    """
    paths = sorted(path for path in folder.glob("*") if path.suffix.lower() in ENDINGS)
    if not paths:
        raise FileNotFoundError(f"{folder} holds no picture ({', '.join(ENDINGS)}); name the folder that does")
    return read_pictures(paths, side)


def read_pictures(paths: Sequence[Path], side: int) -> Tensor:
    """Pictures cut to a square about the middle and shrunk, (n, 3, side, side).

    Raises
    ------
    ImportError
        If Pillow is not installed.
    ValueError
        If a file is no picture.
    """
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise ImportError("pictures are read through Pillow; it comes with: pip install pillow") from error
    if side < 1:
        raise ValueError(f"pictures of {side} x {side} pixels are none; give a side of at least 1")
    found = np.empty((len(paths), 3, side, side), np.uint8)
    for place, path in zip(found, paths, strict=True):
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not there; unpack the pictures again")
        try:
            with Image.open(path) as image:
                square = ImageOps.fit(image.convert("RGB"), (side, side), Image.Resampling.BICUBIC)
        except (OSError, SyntaxError, Image.DecompressionBombError) as error:
            raise ValueError(
                f"{path} is no picture that can be read ({error}); take it out or copy it again"
            ) from error
        place[:] = np.moveaxis(np.asarray(square), 2, 0)
    return _scaled(found)


def _scaled(values: NDArray[np.uint8]) -> Tensor:
    """Bytes in [-1, 1]."""
    return torch.as_tensor(values.astype(np.float32) / 127.5 - 1)
