"""Random numbers by group: each group has a seed of its own, so that its particles do not depend on which groups run beside it."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

NUMBERS_AT_ONCE = 2**16


class GroupStreams:
    """Normal and uniform numbers for M groups of K particles.

    Numbers are drawn many steps at a time, since a call for every group and step would cost more than the step of a small network.

    Parameters
    ----------
    seeds : one a group
    particles : K
    shape : of one particle
    device : where the numbers are wanted; they are drawn on the CPU, so that they are the same everywhere
    """

    def __init__(
        self, seeds: list[int], particles: int, shape: tuple[int, ...], device: torch.device | str = "cpu"
    ) -> None:
        self.particles, self.shape, self.device = particles, shape, device
        size = particles * math.prod(shape)
        self._normal = _Blocks(seeds, 0, size, _normal)
        self._extra = _Blocks(seeds, 1, size, _normal)
        self._uniform = _Blocks(seeds, 2, particles, _uniform)
        self._choice = _Blocks(seeds, 3, 1, _uniform)

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


def _normal(steps: int, size: int, generator: torch.Generator) -> Tensor:
    return torch.randn(steps, size, generator=generator)


def _uniform(steps: int, size: int, generator: torch.Generator) -> Tensor:
    return torch.rand(steps, size, generator=generator, dtype=torch.float64)


class _Blocks:
    """A stream a group, read a step at a time; how many steps are drawn at once depends on the size of a step alone."""

    def __init__(
        self, seeds: list[int], stream: int, size: int, draw: Callable[[int, int, torch.Generator], Tensor]
    ) -> None:
        self._seeds, self._stream, self._size, self._draw = seeds, stream, size, draw
        self._steps = max(1, min(64, NUMBERS_AT_ONCE // size))
        self._generators: list[torch.Generator] = []
        self._block, self._at = torch.empty(0), self._steps

    def next(self) -> Tensor:
        if not self._generators:
            self._generators = [
                torch.Generator().manual_seed((4 * seed + self._stream) % 2**63) for seed in self._seeds
            ]
        if self._at == self._steps:
            drawn = [self._draw(self._steps, self._size, generator) for generator in self._generators]
            self._block, self._at = torch.stack(drawn), 0
        self._at += 1
        return self._block[:, self._at - 1]
