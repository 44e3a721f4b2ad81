"""Data that need no download: handwritten digits of scikit-learn, and pictures in the IDX files of MNIST where they are installed."""

from __future__ import annotations

import gzip
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

GUIDE_ROWS = 1000
JUDGE_ROWS = 400
PLACES = (Path("/usr/share/dataset-fashion-mnist"), Path("/usr/share/datasets/fashion-mnist"))


@dataclass(frozen=True)
class Split:
    """Digits in three parts that share no row.

    train : what flow and guide learn from; tuning : for choosing settings; held_out : for judging. The judge learns from tuning and
    held_out together, so that it shares nothing with the guide.
    """

    train: tuple[Tensor, Tensor]
    tuning: tuple[Tensor, Tensor]
    held_out: tuple[Tensor, Tensor]

    @property
    def judges(self) -> tuple[Tensor, Tensor]:
        """Rows for the judge."""
        parts = zip(self.tuning, self.held_out, strict=True)
        x, labels = (torch.cat(pair) for pair in parts)
        return x, labels


def digits() -> Split:
    """1,797 digits of 8 x 8 pixels as rows of 64 numbers in [-1, 1], in an order drawn once: as they come, the last ones are of other
    writers than the first."""
    from sklearn.datasets import load_digits

    values, labels = load_digits(return_X_y=True)
    x, y = torch.as_tensor(values / 8 - 1, dtype=torch.float32), torch.as_tensor(labels, dtype=torch.long)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    x, y = x[order], y[order]
    middle = GUIDE_ROWS + JUDGE_ROWS
    return Split(
        (x[:GUIDE_ROWS], y[:GUIDE_ROWS]), (x[GUIDE_ROWS:middle], y[GUIDE_ROWS:middle]), (x[middle:], y[middle:])
    )


def read_idx(path: Path) -> np.ndarray:
    """An array of unsigned bytes from an IDX file, as MNIST and its like come in; gzipped or not.

    Raises
    ------
    ValueError
        If it is none, or not whole.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        content = file.read()
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path} is no IDX file of bytes; it begins with {content[:4].hex(' ')}, not with 00 00 08")
    axes = content[3]
    shape = struct.unpack(f">{axes}I", content[4 : 4 + 4 * axes])
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * axes)
    if values.size != np.prod(shape):
        raise ValueError(f"{path} promises {shape} and holds {values.size} values; copy it again")
    return values.reshape(shape)


def pictures(folder: Path | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training pictures (n, 1, 32, 32) in [-1, 1], their labels, and the same of the test part, of Fashion-MNIST or MNIST.

    Parameters
    ----------
    folder : with the four IDX files; None looks where the Debian package dataset-fashion-mnist puts them

    Raises
    ------
    FileNotFoundError
        If they are not there.
    """
    found = [place for place in ([folder] if folder else PLACES) if place.is_dir()]
    if not found:
        raise FileNotFoundError(
            f"no IDX files in {folder or ' or '.join(map(str, PLACES))}; apt install dataset-fashion-mnist, or name a folder that has them"
        )
    parts: list[Tensor] = []
    for part in ("train", "t10k"):
        images, labels = (
            read_idx(_one(found[0], f"{part}-{kind}")) for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
        )
        x = torch.as_tensor(images.astype(np.float32) / 127.5 - 1)[:, None]
        parts += [torch.nn.functional.pad(x, (2, 2, 2, 2), value=-1.0), torch.as_tensor(labels.astype(np.int64))]
    return parts[0], parts[1], parts[2], parts[3]


def _one(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise FileNotFoundError(f"{folder} has no {name} (nor {name}.gz); name the folder that has it")
