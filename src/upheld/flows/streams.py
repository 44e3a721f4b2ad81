"""Random numbers by group: each group has a seed of its own, so that its particles do not depend on which groups run beside it."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

NUMBERS_AT_ONCE = 2**16
STEPS_AT_ONCE = 64


class GroupStreams:
    """Normal and uniform numbers for M groups of K particles.

    Numbers are drawn many steps at a time, since a call for every group and step would cost more than the step of a small network; but no
    more than a run will ask for. The start has a stream of its own, so that it is the same whatever follows.

    Parameters
    ----------
    seeds : one a group
    particles : K
    shape : of one particle
    device : where the numbers are wanted; they are drawn on the CPU, so that they are the same everywhere
    steps : how many steps of noise the run will ask for
    """

    def __init__(
        self, seeds: list[int], particles: int, shape: tuple[int, ...], device: torch.device | str = "cpu",
        steps: int = STEPS_AT_ONCE,
    ) -> None:  # fmt: skip
        self.particles, self.shape, self.device = particles, shape, device
        size = particles * math.prod(shape)
        self._normal = _Blocks(seeds, 0, size, steps, _normal)
        self._extra = _Blocks(seeds, 1, size, steps, _normal)
        self._uniform = _Blocks(seeds, 2, particles, steps, _uniform)
        self._choice = _Blocks(seeds, 3, 1, 1, _uniform)
        self._start = _Blocks(seeds, 4, size, 1, _normal)

    def start(self) -> Tensor:
        """(M K, \\*shape): where the particles begin."""
        return self._start.next().reshape(-1, *self.shape).to(self.device)

    def normal(self) -> Tensor:
        """(M K, \\*shape): the noise of one step."""
        return self._normal.next().reshape(-1, *self.shape).to(self.device)

    def look_ahead(self) -> Tensor:
        """The same from another stream: how a look-ahead draws does not move the particles."""
        return self._extra.next().reshape(-1, *self.shape).to(self.device)

    def uniform(self) -> Tensor:
        """(M, K), float64."""
        return self._uniform.next()

    def choice(self) -> Tensor:
        """(M, 1), float64: which particle of a group is handed over; apart, so that it does not hang on the steps before."""
        return self._choice.next()


def _normal(out: Tensor, generator: torch.Generator) -> None:
    torch.randn(out.shape, generator=generator, out=out)


def _uniform(out: Tensor, generator: torch.Generator) -> None:
    torch.rand(out.shape, generator=generator, out=out, dtype=out.dtype)


class _Blocks:
    """A stream a group, read a step at a time; how many steps are drawn at once depends on the run alone, not on the groups in it."""

    def __init__(
        self, seeds: list[int], stream: int, size: int, steps: int, draw: Callable[[Tensor, torch.Generator], None]
    ) -> None:
        self._seeds, self._stream, self._size, self._draw = seeds, stream, size, draw
        self._steps = max(1, min(STEPS_AT_ONCE, steps, NUMBERS_AT_ONCE // size))
        self._generators: list[torch.Generator] = []
        self._block, self._at = torch.empty(0), self._steps

    def next(self) -> Tensor:
        if not self._generators:
            self._generators = [
                torch.Generator().manual_seed((8 * seed + self._stream) % 2**63) for seed in self._seeds
            ]
            self._block = torch.empty(
                len(self._seeds), self._steps, self._size, dtype=torch.float64 if self._draw is _uniform else None
            )
        if self._at == self._steps:
            for rows, generator in zip(self._block, self._generators, strict=True):
                self._draw(rows, generator)
            self._at = 0
        self._at += 1
        return self._block[:, self._at - 1].clone()
