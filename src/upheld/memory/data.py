"""Patterns: generated on the sphere or Gaussian, independent or correlated; embedded tables of vectors; cues made from them.

Real stores are not independent draws in all their N dimensions. What counts is the effective dimension, the participation ratio of
the spectrum::

    N_eff = (tr Sigma)^2 / tr Sigma^2                                                                             (1)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from upheld.memory.geometry import FloatArray

LAWS = ("spherical", "gaussian")
Single = NDArray[np.float32]


def draw_patterns(
    M: int, N: int, *, rng: np.random.Generator, law: str = "spherical", rho: float = 0.0
) -> NDArray[np.float32]:
    """M random patterns in R^N.

    Parameters
    ----------
    law : "spherical", of squared norm N; or "gaussian", components N(0, 1) left as they are
    rho : share of a direction common to all patterns, xi = sqrt(rho) common + sqrt(1-rho) own, before rescaling

    Returns
    -------
    (M, N) float32

    Examples
    --------
    >>> xi = draw_patterns(5, 40, rng=np.random.default_rng(0))
    >>> (xi.astype(float) ** 2).sum(1).round(3)
    array([40., 40., 40., 40., 40.])
    """
    if law not in LAWS:
        raise ValueError(f"law must be 'spherical' or 'gaussian', got {law!r}")
    if not 0 <= rho < 1:
        raise ValueError(f"rho must lie in [0, 1), got {rho:g}")
    if M < 1 or N < 2:
        raise ValueError(f"at least one pattern in two dimensions, got M={M}, N={N}")
    xi = rng.standard_normal((M, N), dtype=np.float32)
    if rho:
        xi = math.sqrt(rho) * rng.standard_normal(N, dtype=np.float32) + math.sqrt(1 - rho) * xi
    return on_sphere(xi).astype(np.float32) if law == "spherical" else xi.astype(np.float32)


def on_sphere(x: ArrayLike) -> FloatArray:
    """Rows rescaled to squared norm N.

    Raises
    ------
    ValueError
        If a row is zero; the message names it.
    """
    x = np.asarray(x, dtype=float)
    norms = np.linalg.norm(x, axis=-1, keepdims=True)
    zero = np.flatnonzero(norms == 0)
    if zero.size:
        raise ValueError(f"row {zero[0]} is zero and has no direction; drop it, or take normalize=False")
    return np.asarray(x / norms * math.sqrt(x.shape[-1]))


def effective_dimension(X: ArrayLike) -> float:
    """Participation ratio (1) of the rows' covariance; N for isotropic rows, 1 for rows on a line.

    Examples
    --------
    >>> round(effective_dimension(np.random.default_rng(0).normal(size=(4000, 20))), 0)
    20.0
    """
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or len(X) < 2:
        raise ValueError(f"the effective dimension needs two rows or more, got shape {X.shape}")
    centred = X - X.mean(0)
    n = len(X) - 1
    gram = (centred.T @ centred if X.shape[1] <= len(X) else centred @ centred.T) / n
    total = float(np.trace(gram))
    if total == 0:
        raise ValueError("all rows are equal; there is no spread whose dimension could be told")
    # tr S^2 of a sample exceeds tr Sigma^2 by about (tr Sigma)^2 / n
    square = max(float((gram**2).sum()) - total**2 / n, total**2 / X.shape[1])
    return float(total**2 / square)


def near(x: ArrayLike, alignment: ArrayLike, *, rng: np.random.Generator) -> FloatArray:
    """States of squared norm N at given alignments to the rows of `x`, in a uniform direction round them."""
    x = on_sphere(x)
    phi = np.broadcast_to(np.asarray(alignment, dtype=float), x.shape[:-1])[..., None]
    noise = rng.standard_normal(x.shape)
    noise -= (noise * x).sum(-1, keepdims=True) / x.shape[-1] * x
    return np.asarray(phi * x + np.sqrt(1 - phi**2) * on_sphere(noise))


# -- tables of vectors and cues


def load_digits() -> tuple[FloatArray, NDArray[np.int64]]:
    """Handwritten digits of scikit-learn (1,797 x 64, BSD), centred; and their labels."""
    from sklearn import datasets

    X, y = datasets.load_digits(return_X_y=True)
    return np.asarray(X - X.mean(0), dtype=float), np.asarray(y)


def load_cancer() -> tuple[FloatArray, NDArray[np.int64]]:
    """Wisconsin breast cancer table of scikit-learn (569 x 30), standardised; and its labels."""
    from sklearn import datasets

    X, y = datasets.load_breast_cancer(return_X_y=True)
    return np.asarray((X - X.mean(0)) / X.std(0), dtype=float), np.asarray(y)


def load_sentences() -> list[str]:
    """Sentences of the data sets' descriptions that scikit-learn brings along, each once, in their order."""
    import re

    from sklearn import datasets

    loaders = (
        datasets.load_breast_cancer, datasets.load_diabetes, datasets.load_digits, datasets.load_iris,
        datasets.load_linnerud, datasets.load_wine,
    )  # fmt: skip
    sentences: dict[str, None] = {}
    for load in loaders:
        text = re.sub(r"\s+", " ", load().DESCR)
        for sentence in re.split(r"(?<=[.?!:])\s+|\s-\s", text):
            if 30 <= len(sentence) <= 400 and sum(letter.isalpha() for letter in sentence) > len(sentence) / 2:
                sentences.setdefault(sentence.strip())
    return list(sentences)


def corrupt(X: ArrayLike, *, rng: np.random.Generator, noise: float = 0.0, occlusion: float = 0.0) -> FloatArray:
    """Damaged copies of rows.

    Parameters
    ----------
    noise : standard deviation of what is added, in units of the rows' root mean square
    occlusion : share of the components that are set to the columns' mean over `X`
    """
    X = np.asarray(X, dtype=float)
    if noise < 0 or not 0 <= occlusion < 1:
        raise ValueError(f"noise must be at least 0 and occlusion in [0, 1), got {noise:g} and {occlusion:g}")
    damaged = X + noise * np.sqrt((X**2).mean()) * rng.standard_normal(X.shape)
    if occlusion:
        hidden = rng.random(X.shape).argsort(1) < round(occlusion * X.shape[1])
        damaged = np.where(hidden, X.mean(0), damaged)
    return np.asarray(damaged)
