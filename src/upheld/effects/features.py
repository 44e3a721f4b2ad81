"""The class over which covariates are balanced: random Fourier features of a kernel, and the coordinates themselves (section 2).

    phi(x) = sqrt(1/R) [cos(Omega x), sin(Omega x)],       D = 2R features of norm exactly 1
    phi(x) = [phi(x), x / sqrt(d)]                          with linear features

Rows of Omega are drawn from the kernel's spectral measure with bandwidth l, the median pairwise distance of the warm-up rows:
N(0, I/l^2) for the Gaussian kernel exp(-|x-y|^2 / 2 l^2); independent Cauchy(1/l) for the Laplace kernel exp(-|x-y|_1 / l);
multivariate t with 3 degrees of freedom for the Matern kernel (1 + sqrt(3) r/l) exp(-sqrt(3) r/l). Where R >= d, the Gaussian
directions are orthogonal (Yu et al. 2016). With a time kernel, u = l (t - t_start) / (0.4 time_scale) is one more coordinate
inside the frequencies: a product kernel of bandwidth 0.4 time_scale in time, whatever d.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from upheld.effects.rows import FloatArray

KERNELS = ("gaussian", "laplace", "matern32")
TIME_BANDWIDTH = 0.4
SLICE = 256  # rows whose angles stay in the processor's cache


@dataclass(frozen=True)
class FeatureMap:
    """phi: (n, d) coordinates, (n,) times -> (n, D') features.

    Attributes
    ----------
    kernel : name, or "custom" for a fitted transformer
    bandwidth : l
    frequencies : (R, d), or (R, d + 1) with a time kernel, already divided by l
    linear : whether x / sqrt(d) is appended
    time_start, time_scale : of the time kernel, else None
    transformer : object with ``transform``, for "custom"
    """

    kernel: str
    bandwidth: float
    frequencies: FloatArray
    linear: bool
    n_coordinates: int
    time_start: float | None = None
    time_scale: float | None = None
    transformer: Any = None

    @property
    def n_features(self) -> int:
        if self.transformer is not None:
            return int(self.transformer.transform(np.zeros((1, self.n_coordinates))).shape[1])
        return 2 * len(self.frequencies) + self.linear * self.n_coordinates

    def __call__(self, X: FloatArray, time: FloatArray) -> FloatArray:
        if self.transformer is not None:
            return np.asarray(self.transformer.transform(X), dtype=float)
        n, R = len(X), len(self.frequencies)
        phi = np.empty((n, self.n_features))
        half = self.frequencies / 2
        for at in range(0, n if R else 0, SLICE):
            rows = slice(at, at + SLICE)
            angle = X[rows] @ half[:, : self.n_coordinates].T
            if self.time_start is not None and self.time_scale is not None:
                u = self.bandwidth * (time[rows] - self.time_start) / (TIME_BANDWIDTH * self.time_scale)
                angle += np.outer(u, half[:, -1])
            _circle(angle, phi[rows, :R], phi[rows, R : 2 * R], np.sqrt(1 / R))
        if self.linear:
            phi[:, 2 * R :] = X / np.sqrt(self.n_coordinates)
        return phi

    def digest(self) -> bytes:
        """Equal for equal maps."""
        text = (
            f"{self.kernel} {self.bandwidth!r} {self.linear} {self.n_coordinates} {self.time_start} {self.time_scale}"
        )
        return hashlib.sha256(text.encode() + np.ascontiguousarray(self.frequencies).tobytes()).digest()


def _circle(half_angle: FloatArray, cosine: FloatArray, sine: FloatArray, radius: float) -> None:
    """radius cos 2h and radius sin 2h from t = tan h: 2/(1 + t^2) - 1 and 2t/(1 + t^2), one transcendental function for two.

    NumPy's double tangent is vectorised where its sine and cosine are not: five times as fast, to the same 1e-15.
    """
    tangent = np.tan(half_angle, out=half_angle)
    np.multiply(tangent, tangent, out=cosine)
    cosine += 1
    np.divide(2 * radius, cosine, out=cosine)
    np.multiply(tangent, cosine, out=sine)
    cosine -= radius


def draw_features(
    X: FloatArray,
    n_features: int,
    rng: np.random.Generator,
    *,
    kernel: Any = "gaussian",
    linear: bool = True,
    bandwidth: float | str = "median",
    time_start: float | None = None,
    time_scale: float | None = None,
) -> FeatureMap:
    """The map for warm-up coordinates X (n, d): D = `n_features` (even) random features, without the d linear ones.

    Raises
    ------
    ValueError
        For an odd or negative number of features, an unknown kernel, a bandwidth that is not positive, or no features at all.
    """
    d = X.shape[1]
    if hasattr(kernel, "transform"):
        return FeatureMap("custom", 1.0, np.empty((0, d)), False, d, transformer=kernel)
    if kernel not in KERNELS:
        raise ValueError(f"unknown kernel {kernel!r}; take one of {', '.join(KERNELS)}, or a fitted transformer")
    if n_features < 0 or n_features % 2:
        raise ValueError(f"n_features must be even (cosines and sines) and not negative, got {n_features}")
    if n_features == 0 and not linear:
        raise ValueError("n_features=0 without linear features leaves nothing to balance; allow one of them")
    length = median_distance(X) if bandwidth == "median" else float(bandwidth)
    if not length > 0:
        raise ValueError(f"the bandwidth must be positive, got {length}")
    columns = d + (time_start is not None)
    frequencies = spectral_draws(kernel, n_features // 2, columns, rng) / length
    return FeatureMap(kernel, length, frequencies, linear, d, time_start, time_scale)


def spectral_draws(kernel: str, R: int, d: int, rng: np.random.Generator) -> FloatArray:
    """(R, d) frequencies of the kernel at bandwidth 1."""
    if kernel == "laplace":
        return rng.standard_cauchy((R, d))
    directions = orthogonal_gaussian(R, d, rng) if d <= R else rng.standard_normal((R, d))
    if kernel == "matern32":
        directions *= np.sqrt(3 / rng.chisquare(3, R))[:, None]
    return directions


def orthogonal_gaussian(R: int, d: int, rng: np.random.Generator) -> FloatArray:
    """R rows in blocks of d orthogonal ones, each with the norm of a standard normal vector."""
    blocks = []
    for _ in range(-(-R // d)):
        q, r = np.linalg.qr(rng.standard_normal((d, d)))
        blocks.append((q * np.sign(np.diag(r))).T)  # the signs make q uniform on the orthogonal group
    return np.concatenate(blocks)[:R] * np.sqrt(rng.chisquare(d, R))[:, None]


def median_distance(X: FloatArray) -> float:
    """Median distance of different rows; 1 where no two rows differ."""
    distance = pdist(X)
    distance = distance[distance > 0]
    return float(np.median(distance)) if distance.size else 1.0
