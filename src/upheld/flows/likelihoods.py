"""What is wanted of a sample: log-likelihoods ``log_prob(x) -> (B,)`` of a classifier, a measurement, a caption, a reward.

Any object with that method is a likelihood; one that has no gradient says ``differentiable = False`` and particles are then moved
without guidance. Two kinds know more, which the calibrated look-ahead uses: a linear measurement can be blurred exactly, a softmax
can be tempered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

LARGEST_MATRIX = 2**26


@runtime_checkable
class Likelihood(Protocol):
    """A condition."""

    def log_prob(self, x: Tensor) -> Tensor:
        """log p(y | x) of every example of (B, \\*shape): (B,)."""


class LinearGaussian:
    """y = A x + N(0, sigma^2): a linear measurement with noise.

    Parameters
    ----------
    A : (m, d) acting on flattened examples, or a callable from (B, \\*shape) to (B, m) that is linear (`mask`, `blur`, `downsample`)
    y : (m,), what was measured
    sigma : standard deviation of the noise, one number or (m,)
    """

    differentiable = True

    def __init__(self, A: Tensor | Callable[[Tensor], Tensor], y: Tensor, sigma: float | Tensor) -> None:
        self.A: Tensor | Callable[[Tensor], Tensor] = A
        self.y, self.sigma = torch.as_tensor(y), torch.as_tensor(sigma)
        if self.y.dim() != 1:
            raise ValueError(f"y has shape {tuple(self.y.shape)}; give the measurements as one vector")
        if isinstance(A, Tensor) and (A.dim() != 2 or len(A) != len(self.y)):
            raise ValueError(f"A has shape {tuple(A.shape)} and y {len(self.y)} measurements; A must be (m, d)")
        if not (self.sigma > 0).all():
            raise ValueError("sigma must be above 0: an exact measurement has no density; give a small one")
        self._matrix: Tensor | None = None
        self._shape: tuple[int, ...] | None = None

    def noise(self) -> Tensor:
        """R: variances of the noise, (m,)."""
        return self.sigma.to(self.y.dtype).square().expand(len(self.y))

    def measure(self, x: Tensor) -> Tensor:
        """A x, (B, m)."""
        if not isinstance(self.A, Tensor):
            self._shape = tuple(x.shape[1:])
            found: Tensor = self.A(x)
            return found
        flat = x.flatten(1)
        if flat.shape[1] != self.A.shape[1]:
            raise ValueError(
                f"A takes {self.A.shape[1]} numbers and an example has {flat.shape[1]}; they must be the same"
            )
        measured: Tensor = flat @ self.A.T.to(flat.device, flat.dtype)
        return measured

    def matrix(self, d: int, shape: tuple[int, ...] | None = None) -> Tensor:
        """A as a matrix (m, d); an operator is applied to the identity once."""
        if isinstance(self.A, Tensor):
            return self.A
        if self._matrix is None:
            if d * len(self.y) > LARGEST_MATRIX:
                raise ValueError(
                    f"an operator from {d} to {len(self.y)} numbers is too large to calibrate; use lookahead='point'"
                )
            given = shape or self._shape or (d,)
            columns: Tensor = self.A(torch.eye(d, dtype=self.y.dtype).reshape(d, *given))
            self._matrix = columns.T
        return self._matrix

    def log_prob(self, x: Tensor) -> Tensor:
        """log N(y; A x, R)."""
        R = self.noise().to(x.device, x.dtype)
        gap = self.y.to(x.device, x.dtype) - self.measure(x)
        return -(gap.square() / R).sum(1) / 2 - (R.log().sum() + len(R) * math.log(2 * math.pi)) / 2

    def log_prob_blurred(self, x: Tensor, variance: float) -> Tensor:
        """log N(y; A x, R + r^2 A A'): the measurement of a point known up to N(0, r^2 I)."""
        A = self.matrix(x[0].numel(), tuple(x.shape[1:])).to(self.y.dtype)
        root = torch.linalg.cholesky(torch.diag(self.noise()) + variance * A @ A.T)
        gap = self.y.to(x.device, x.dtype) - self.measure(x)
        white: Tensor = torch.linalg.solve_triangular(root.to(x.device, x.dtype), gap.T, upper=False)
        constant = float(root.diagonal().log().sum()) + len(self.y) / 2 * math.log(2 * math.pi)
        return -white.square().sum(0) / 2 - constant


class ClassifierLikelihood:
    """p(class | x) of a classifier that returns logits.

    Parameters
    ----------
    module : from (B, \\*shape) to (B, classes)
    target : the wanted class
    temperature : logits are divided by it
    """

    differentiable = True

    def __init__(self, module: Callable[[Tensor], Tensor], target: int, temperature: float = 1.0) -> None:
        if not temperature > 0:
            raise ValueError(f"a temperature of {temperature} is none; it must be above 0")
        self.module, self.target, self.temperature = module, int(target), temperature
        if isinstance(module, nn.Module):
            module.eval()

    def log_prob(self, x: Tensor) -> Tensor:
        return self.log_prob_tempered(x, 1.0)

    def log_prob_tempered(self, x: Tensor, factor: float) -> Tensor:
        """The same with logits divided by `factor` once more."""
        logits = self.module(x)
        if logits.dim() != 2 or len(logits) != len(x):
            raise ValueError(
                f"the classifier gives shape {tuple(logits.shape)} for {len(x)} examples; give (B, classes)"
            )
        if not 0 <= self.target < logits.shape[1]:
            raise ValueError(f"target {self.target} is no class; the classifier has 0 to {logits.shape[1] - 1}")
        return torch.log_softmax(logits / (self.temperature * factor), 1)[:, self.target]


class ClipLikelihood:
    """How much better a picture fits one caption than others: softmax over captions of scaled cosines.

    Parameters
    ----------
    model : with ``encode_image(x) -> (B, e)``, ``encode_text(list of texts) -> (captions, e)`` and ``logit_scale``, the factor of the
        cosines as a number
    prompt, negative_prompts : the wanted caption, and those it is compared with; at least one
    """

    differentiable = True

    def __init__(self, model: Any, prompt: str, negative_prompts: Sequence[str]) -> None:
        if not negative_prompts:
            raise ValueError("a caption is compared with others; give at least one of negative_prompts")
        self.model, self.captions = model, [prompt, *(text for text in negative_prompts if text != prompt)]
        with torch.no_grad():
            self._text = nn.functional.normalize(model.encode_text(self.captions), dim=1)

    def log_prob(self, x: Tensor) -> Tensor:
        return self.log_prob_tempered(x, 1.0)

    def log_prob_tempered(self, x: Tensor, factor: float) -> Tensor:
        seen = nn.functional.normalize(self.model.encode_image(x), dim=1)
        return torch.log_softmax(float(self.model.logit_scale) / factor * seen @ self._text.T.to(seen.dtype), 1)[:, 0]


class Reward:
    """exp(beta fn(x)): samples tilted towards what a function likes.

    Parameters
    ----------
    fn : from (B, \\*shape) to (B,)
    beta : how strongly
    differentiable : whether fn has a gradient
    """

    def __init__(self, fn: Callable[[Tensor], Tensor], beta: float = 1.0, *, differentiable: bool = True) -> None:
        self.fn, self.beta, self.differentiable = fn, beta, differentiable

    def log_prob(self, x: Tensor) -> Tensor:
        return self.beta * self.fn(x)


class Product:
    """Several conditions at once, independent given the sample."""

    def __init__(self, parts: Sequence[Likelihood]) -> None:
        if not parts:
            raise ValueError("a product of no likelihoods conditions on nothing; give at least one")
        self.parts = list(parts)
        self.differentiable = all(is_differentiable(part) for part in parts)

    def log_prob(self, x: Tensor) -> Tensor:
        return torch.stack([part.log_prob(x) for part in self.parts]).sum(0)


class Decoded:
    """A likelihood that looks at decoded pictures, for flows whose states are latents.

    Parameters
    ----------
    likelihood : of what `decode` returns
    decode : from states to pictures, ``field.decode`` of `from_diffusers`
    """

    def __init__(self, likelihood: Likelihood, decode: Callable[[Tensor], Tensor]) -> None:
        self.likelihood, self.decode = likelihood, decode
        self.differentiable = is_differentiable(likelihood)

    def log_prob(self, x: Tensor) -> Tensor:
        return self.likelihood.log_prob(self.decode(x))


def is_differentiable(likelihood: Likelihood) -> bool:
    """Whether it has a gradient; what does not say, has."""
    return bool(getattr(likelihood, "differentiable", True))


def checked_log_prob(of: Callable[..., Tensor], x: Tensor, *further: Any) -> Tensor:
    """The log-likelihoods, (B,), refused where they are none.

    Raises
    ------
    ValueError
        If the shape is another, or one is NaN or plus infinity.
    """
    found = of(x, *further)
    if not isinstance(found, Tensor) or found.shape != (len(x),):
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ValueError(
            f"log_prob of {len(x)} examples gives {shape}; it must give one number an example, ({len(x)},)"
        )
    if not (found < math.inf).all():
        raise ValueError(
            f"log_prob is NaN or +inf for {int((torch.isnan(found) | torch.isposinf(found)).sum())} of {len(x)} examples; "
            "mend the likelihood (a logarithm of 0 should be -inf)"
        )
    return found


# -- linear operators


def mask(keep: Tensor) -> Callable[[Tensor], Tensor]:
    """Only some pixels are seen: from (B, \\*shape) to (B, number kept); `keep` is boolean of one example's shape."""
    where = keep.flatten().nonzero()[:, 0]
    if not len(where):
        raise ValueError("the mask keeps nothing; nothing would be measured")
    return lambda x: x.flatten(1)[:, where]


def downsample(factor: int) -> Callable[[Tensor], Tensor]:
    """Means of factor x factor pixels of (B, channels, H, W), flattened."""
    return lambda x: nn.functional.avg_pool2d(x, factor).flatten(1)


def blur(kernel: Tensor) -> Callable[[Tensor], Tensor]:
    """Each channel of (B, channels, H, W) convolved with an odd kernel, zeros around the picture, flattened."""
    if kernel.dim() != 2 or kernel.shape[0] % 2 == 0 or kernel.shape[1] % 2 == 0:
        raise ValueError(f"a kernel of shape {tuple(kernel.shape)} has no middle; give odd height and width")
    pad = (kernel.shape[0] // 2, kernel.shape[1] // 2)

    def convolve(x: Tensor) -> Tensor:
        channels = x.shape[1]
        weight = kernel.to(x.dtype).expand(channels, 1, *kernel.shape)
        return nn.functional.conv2d(x, weight, padding=pad, groups=channels).flatten(1)

    return convolve
