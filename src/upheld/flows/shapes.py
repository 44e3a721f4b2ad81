"""Captioned pictures that can be made, described and parsed exactly: text to image without a download.

One of 4 shapes x 6 colours x 4 places x 2 sizes on a dark ground, 32 x 32 in three channels: 192 scenes, a caption each. A picture is a
scene plus N(0, 0.3^2) in every pixel, so that its flow is a mixture of 192 normals in 3,072 dimensions, and the nearest scene is the
Bayes-optimal reading of a picture.
"""

from __future__ import annotations

import functools
import itertools

import torch
from torch import Tensor, nn

from upheld.flows.mixture import GaussianMixtureFlow

SHAPES = ("circle", "square", "triangle", "cross")
COLOURS = {
    "red": (1.0, -0.8, -0.8),
    "green": (-0.8, 1.0, -0.8),
    "blue": (-0.8, -0.8, 1.0),
    "yellow": (1.0, 1.0, -0.8),
    "cyan": (-0.8, 1.0, 1.0),
    "magenta": (1.0, -0.8, 1.0),
}
PLACES = {"top left": (9, 9), "top right": (9, 23), "bottom left": (23, 9), "bottom right": (23, 23)}
SIZES = {"small": 3.5, "large": 6.5}
SIDE, NOISE, GROUND = 32, 0.3, -0.6
SHAPE = (3, SIDE, SIDE)
SCENES = list(itertools.product(SIZES, COLOURS, SHAPES, PLACES))


def captions() -> list[str]:
    """One a scene.

    >>> captions()[0]
    'a small red circle at the top left'
    """
    return [f"a {size} {colour} {shape} at the {place}" for size, colour, shape, place in SCENES]


@functools.lru_cache(maxsize=1)
def scenes() -> Tensor:
    """(192, 3, 32, 32), without noise, in the order of `captions`; made once, not to be written into."""
    rows, columns = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    pictures = torch.full((len(SCENES), *SHAPE), GROUND)
    for picture, (size, colour, shape, place) in zip(pictures, SCENES, strict=True):
        r, (y, x) = SIZES[size], PLACES[place]
        inside = _inside(shape, rows - y, columns - x, r)
        picture[:, inside] = torch.tensor(COLOURS[colour])[:, None]
    return pictures


def drawn_scenes(n: int, generator: torch.Generator) -> Tensor:
    """(n, 3, 32, 32): scenes at random, moved by at most a pixel each way, with noise."""
    which = torch.randint(len(SCENES), (n,), generator=generator)
    moves = torch.randint(-1, 2, (n, 2), generator=generator).tolist()
    moved = [torch.roll(picture, (dy, dx), (1, 2)) for picture, (dy, dx) in zip(scenes()[which], moves, strict=True)]
    return torch.stack(moved) + NOISE * torch.randn(n, *SHAPE, generator=generator)


def _inside(shape: str, dy: Tensor, dx: Tensor, r: float) -> Tensor:
    if shape == "circle":
        return dy.square() + dx.square() <= r**2
    if shape == "square":
        return (dy.abs() <= 0.85 * r) & (dx.abs() <= 0.85 * r)
    if shape == "triangle":
        return (dy <= 0.8 * r) & (dx.abs() <= (dy + r) / 2)
    return ((dy.abs() <= 0.3 * r) | (dx.abs() <= 0.3 * r)) & (dy.abs() <= r) & (dx.abs() <= r)


def shapes_flow() -> GaussianMixtureFlow:
    """The exact flow of captioned shapes."""
    return GaussianMixtureFlow(scenes().flatten(1), NOISE**2, shape=SHAPE)


def parsed(x: Tensor, *, moved: bool = False) -> Tensor:
    """Which scene a picture shows: the nearest, (B,); the nearest of those moved by a pixel, too, for pictures of `drawn_scenes`."""
    moves = list(itertools.product((-1, 0, 1), repeat=2)) if moved else [(0, 0)]
    all_ = torch.cat([torch.roll(scenes(), move, (2, 3)) for move in moves])
    return torch.cdist(x.flatten(1), all_.flatten(1)).argmin(1) % len(SCENES)


class Scorer(nn.Module):
    """Two towers: words of a caption, summed, and a picture, meet in 64 numbers; the interface of `ClipLikelihood`."""

    logit_scale = 20.0

    def __init__(self) -> None:
        super().__init__()
        self.words = {
            word: place for place, word in enumerate(sorted({w for text in captions() for w in text.split()}))
        }
        self.text = nn.EmbeddingBag(len(self.words), 64, mode="sum")
        self.image = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 256), nn.SiLU(), nn.Linear(256, 64))

    def encode_text(self, texts: list[str]) -> Tensor:
        """(captions, 64).

        Raises
        ------
        ValueError
            If a word is not of the grammar.
        """
        unknown = [word for text in texts for word in text.split() if word not in self.words]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no word of these captions; there are {', '.join(self.words)}")
        rows = [torch.tensor([self.words[word] for word in text.split()]) for text in texts]
        offsets = torch.tensor([0, *itertools.accumulate(len(row) for row in rows)][:-1])
        out: Tensor = self.text(torch.cat(rows), offsets)
        return out

    def encode_image(self, x: Tensor) -> Tensor:
        """(B, 64)."""
        out: Tensor = self.image(x)
        return out

    def logits(self, x: Tensor) -> Tensor:
        """(B, 192), of every caption."""
        pictures, texts = (
            nn.functional.normalize(one, dim=1) for one in (self.encode_image(x), self.encode_text(captions()))
        )
        return self.logit_scale * pictures @ texts.T
