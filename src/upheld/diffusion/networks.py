"""Two small networks that know the time: an MLP for vectors, a U-Net for pictures.

Both are called as ``net(x, t)`` or, built with ``condition=c``, as ``net(x, t, condition)``: a condition is a vector of c numbers an
example (an embedded label, a latent), added to the features of time; all zeros is "no condition".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn


class TimeFeatures(nn.Module):
    """Sines and cosines of time at geometrically spaced frequencies, from 1 to 1,000 radians a unit."""

    frequencies: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        if size < 2 or size % 2:
            raise ValueError(f"{size} time features; sines and cosines come in pairs, so take an even number")
        self.register_buffer("frequencies", torch.logspace(0, 3, size // 2))

    def forward(self, t: Tensor, count: int) -> Tensor:
        """(count, size) for times of shape () or (count,)."""
        angle = t.to(self.frequencies.dtype).expand(count)[:, None] * self.frequencies
        return torch.cat([angle.sin(), angle.cos()], dim=1)


class TimeMLP(nn.Module):
    """A perceptron over ``[x, features of time, condition]``; hidden layers of equal width are residual if wanted.

    Parameters
    ----------
    size : numbers an example; x is (B, size)
    width, depth : hidden layers
    time_size : features of time
    condition : numbers of the condition, 0 for none
    residual : add the input of each hidden layer but the first to its output
    out : numbers that come out, `size` if None
    """

    def __init__(
        self, size: int, *, width: int = 256, depth: int = 3, time_size: int = 16, condition: int = 0,
        residual: bool = False, out: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.size, self.condition, self.residual = size, condition, residual
        self.time = TimeFeatures(time_size)
        widths = [size + time_size + condition, *[width] * depth]
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        self.last = nn.Linear(width, size if out is None else out)

    def forward(self, x: Tensor, t: Tensor, condition: Tensor | None = None) -> Tensor:
        h = torch.cat([x, self.time(t, x.shape[0]), *_given(condition, self.condition, x)], dim=1)
        for depth, layer in enumerate(self.hidden):
            new = nn.functional.silu(layer(h))
            h = h + new if self.residual and depth else new
        out: Tensor = self.last(h)
        return out


class SmallUNet(nn.Module):
    """A U-Net of residual blocks for (B, channels, H, W), H and W divisible by 2 to the number of levels less one.

    Parameters
    ----------
    channels : of the picture
    widths : features at each level; (32, 64, 128) with one block a level and direction has 2,260,737 parameters
    blocks : residual blocks a level on the way down; one more on the way up
    condition : numbers of the condition, 0 for none
    """

    def __init__(
        self, channels: int, *, widths: Sequence[int] = (32, 64, 128), blocks: int = 1, time_size: int = 32,
        condition: int = 0, groups: int = 8,
    ) -> None:  # fmt: skip
        super().__init__()
        bad = [width for width in widths if width % groups]
        if bad:
            raise ValueError(f"widths {bad} cannot be split into {groups} groups; take multiples of {groups}")
        self.condition, self.halvings, context = condition, len(widths) - 1, 4 * widths[0]
        self.time = TimeFeatures(time_size)
        self.context = nn.Sequential(nn.Linear(time_size + condition, context), nn.SiLU(), nn.Linear(context, context))
        self.first = nn.Conv2d(channels, widths[0], 3, padding=1)
        self.down, self.up, skips, now = nn.ModuleList(), nn.ModuleList(), [widths[0]], widths[0]
        for level, width in enumerate(widths):
            for _ in range(blocks):
                self.down.append(ResidualBlock(now, width, context, groups))
                now = width
                skips.append(now)
            if level < self.halvings:
                self.down.append(Halve(now))
                skips.append(now)
        self.middle = ResidualBlock(now, now, context, groups)
        for level, width in reversed(list(enumerate(widths))):
            for _ in range(blocks + 1):
                self.up.append(ResidualBlock(now + skips.pop(), width, context, groups))
                now = width
            if level:
                self.up.append(Double(now))
        self.last = nn.Sequential(nn.GroupNorm(groups, now), nn.SiLU(), nn.Conv2d(now, channels, 3, padding=1))

    def forward(self, x: Tensor, t: Tensor, condition: Tensor | None = None) -> Tensor:
        if x.shape[-1] % 2**self.halvings or x.shape[-2] % 2**self.halvings:
            raise ValueError(f"pictures of {tuple(x.shape[-2:])} cannot be halved {self.halvings} times; pad them")
        context = self.context(torch.cat([self.time(t, x.shape[0]), *_given(condition, self.condition, x)], dim=1))
        h = self.first(x)
        skips = [h]
        for layer in self.down:
            h = layer(h, context)
            skips.append(h)
        h = self.middle(h, context)
        for layer in self.up:
            h = layer(h if isinstance(layer, Double) else torch.cat([h, skips.pop()], dim=1), context)
        out: Tensor = self.last(h)
        return out


class ResidualBlock(nn.Module):
    """Two convolutions with group normalisation; the context scales and shifts between them."""

    def __init__(self, came: int, goes: int, context: int, groups: int) -> None:
        super().__init__()
        self.before = nn.Sequential(
            nn.GroupNorm(math.gcd(groups, came), came), nn.SiLU(), nn.Conv2d(came, goes, 3, padding=1)
        )
        self.modulate = nn.Linear(context, 2 * goes)
        self.norm = nn.GroupNorm(groups, goes)
        self.after = nn.Conv2d(goes, goes, 3, padding=1)
        self.skip = nn.Conv2d(came, goes, 1) if came != goes else nn.Identity()

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        scale, shift = self.modulate(context)[:, :, None, None].chunk(2, dim=1)
        h = self.norm(self.before(x)) * (1 + scale) + shift
        out: Tensor = self.skip(x) + self.after(nn.functional.silu(h))
        return out


class Halve(nn.Module):
    """Half the height and width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(width, width, 3, stride=2, padding=1)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        out: Tensor = self.convolution(x)
        return out


class Double(nn.Module):
    """Twice the height and width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        out: Tensor = self.convolution(nn.functional.interpolate(x, scale_factor=2.0))
        return out


def _given(condition: Tensor | None, size: int, x: Tensor) -> list[Tensor]:
    """The condition, zeros where none is given, nothing where the network takes none."""
    if condition is None:
        return [x.new_zeros(x.shape[0], size)] if size else []
    if condition.shape != (len(x), size):
        raise ValueError(
            f"the condition has shape {tuple(condition.shape)}, the network takes {(len(x), size)}; build it with condition="
            f"{condition.shape[-1]} or pass that shape"
        )
    return [condition.to(x.dtype)]
