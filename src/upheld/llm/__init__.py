"""Language models and embedders behind one small interface: any OpenAI-compatible endpoint, or models shipped as packages.

>>> from upheld.llm import Sampling, language_model            # doctest: +SKIP
>>> model = language_model("embedded")                         # SmolLM2-135M-Instruct, no network
>>> model.chat("Name a planet.", sampling=Sampling(temperature=0, max_tokens=8)).text
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from upheld.llm.answer import Answer, Message, Request, Sampling, Token, Usage, conversation
from upheld.llm.choose import embedder, language_model
from upheld.llm.model import Embedder, LanguageModel, ModelError

if TYPE_CHECKING:
    from upheld.llm.cache import CachedModel
    from upheld.llm.callable_embedder import CallableEmbedder
    from upheld.llm.embedded import EmbeddedModel
    from upheld.llm.embedding_cache import CachedEmbedder
    from upheld.llm.encoder import Encoder
    from upheld.llm.endpoint import Endpoint, EndpointEmbedder
    from upheld.llm.replay import Replay

BACKENDS = {
    "CachedEmbedder": "embedding_cache",
    "CachedModel": "cache",
    "CallableEmbedder": "callable_embedder",
    "EmbeddedModel": "embedded",
    "Encoder": "encoder",
    "Endpoint": "endpoint",
    "EndpointEmbedder": "endpoint",
    "Replay": "replay",
}
"""Where each of them is; imported when first asked for, since torch and openai come with them."""

__all__ = [
    "Answer",
    "CachedEmbedder",
    "CachedModel",
    "CallableEmbedder",
    "EmbeddedModel",
    "Embedder",
    "Encoder",
    "Endpoint",
    "EndpointEmbedder",
    "LanguageModel",
    "Message",
    "ModelError",
    "Replay",
    "Request",
    "Sampling",
    "Token",
    "Usage",
    "conversation",
    "embedder",
    "language_model",
]


def __getattr__(name: str) -> Any:
    if name not in BACKENDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{BACKENDS[name]}"), name)
