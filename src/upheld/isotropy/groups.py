"""The answers as they are given: checked, named in every error, and a seeded part of them where n_samples asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from upheld.isotropy.data.responses import NOT_TEXT, is_visible
from upheld.isotropy.entropy import unit_vectors

Group: TypeAlias = Sequence[str] | Sequence[Sequence[float]] | NDArray[Any]
"""Answers to one prompt: texts, or (N, D) vectors."""


@dataclass(frozen=True)
class Answers:
    """The n answers used of one prompt's, as texts, or as unit vectors (n, D) where vectors were given.

    Attributes
    ----------
    name : how errors call the group
    used : (n,) indices of the answers in the group as it was given
    """

    name: str
    used: NDArray[np.intp]
    prompt: str | None
    texts: tuple[str, ...] = ()
    vectors: NDArray[np.float64] | None = None


def taken(N: int, n_samples: int | None, seed: int | None, name: str) -> NDArray[np.intp]:
    """Indices, in order, of the answers used of N.

    They depend on N and the seed alone, so a prompt scores the same by itself and among others; a smaller `n_samples` takes
    some of those that a larger one takes.
    """
    if n_samples is None:
        return np.arange(N)
    if not isinstance(n_samples, Integral):
        raise TypeError(f"n_samples must be a whole number, got {n_samples!r}")
    if seed is not None and not isinstance(seed, Integral):
        raise TypeError(f"random_state must be a whole number, got {seed!r}: every group is drawn from the same seed")
    if n_samples > N:
        raise ValueError(f"{name} holds {N} answers and n_samples asks for {n_samples}; sample more, or ask for fewer")
    return np.sort(np.random.default_rng(seed).permutation(N)[:n_samples])


def checked(group: Any, index: int, prompt: str | None, n_samples: int | None, seed: int | None) -> Answers:
    """The answers used of group number `index`.

    Raises
    ------
    ValueError
        Naming group and answer: fewer than 2 answers, an empty one, a vector that is zero or not finite.
    TypeError
        If the group is neither texts nor vectors.
    """
    name = f"group {index}"
    if isinstance(group, (str, bytes)):
        raise TypeError(f"{name} is one text; give a list of the answers to each prompt: [[...], [...]]")
    if isinstance(group, (Mapping, Set)):
        raise TypeError(f"{name} is a {type(group).__name__}, which has no order; give a list of its answers")
    try:  # a table's own iterator would give the names of its columns
        answers = np.asarray(group) if hasattr(group, "__array__") else list(group)
    except (TypeError, RuntimeError) as error:
        raise TypeError(f"{name} is a {type(group).__name__} that is no list of answers ({error}); give one") from None
    if len(answers) < 2:
        raise ValueError(
            f"{name} holds {len(answers)} answer{'' if len(answers) == 1 else 's'}: a spread needs at least 2; "
            "sample more answers to that prompt"
        )
    used = taken(len(answers), n_samples, seed, name)
    if any(isinstance(answer, str) for answer in answers):
        return Answers(name, used, prompt, texts=_texts([answers[i] for i in used], used, name))
    try:
        vectors = np.asarray(answers)
        if np.iscomplexobj(vectors):
            raise TypeError
        vectors = vectors.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} is neither a list of texts nor an array of vectors (answers, dimensions); its first entry is "
            f"{type(answers[0]).__name__}"
        ) from None
    if vectors.ndim != 2:
        raise ValueError(f"the vectors of {name} must be of shape (answers, dimensions), got {vectors.shape}")
    return Answers(name, used, prompt, vectors=unit_vectors(vectors[used], of=f" of {name}", numbers=used))


def _texts(answers: Sequence[Any], numbers: NDArray[np.intp], name: str) -> tuple[str, ...]:
    for number, answer in zip(numbers, answers, strict=True):
        if not isinstance(answer, str):
            raise TypeError(f"answer {number} of {name} is a {type(answer).__name__}, not a text; give texts alone")
        if sign := NOT_TEXT.search(answer):
            raise ValueError(
                f"answer {number} of {name} holds {sign.group()!r} at character {sign.start() + 1}, which is no text; take it out"
            )
        if not is_visible(answer):
            raise ValueError(
                f"answer {number} of {name} is empty; leave it out, or sample it again: an empty answer has no meaning to embed"
            )
    return tuple(map(str, answers))


def chunks(groups: Iterable[Answers], size: int) -> Iterator[list[Answers]]:
    """Groups of about `size` answers together, so that memory is bounded whatever their number."""
    chunk: list[Answers] = []
    for group in groups:
        chunk.append(group)
        if sum(len(one.used) for one in chunk) >= size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
