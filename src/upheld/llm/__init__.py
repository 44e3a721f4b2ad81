"""Language models and embedders behind one small interface: any OpenAI-compatible endpoint, or models shipped as packages.

>>> from upheld.llm import Sampling, language_model            # doctest: +SKIP
>>> model = language_model("embedded")                         # SmolLM2-135M-Instruct, no network
>>> model.chat("Name a planet.", sampling=Sampling(temperature=0, max_tokens=8)).text
"""

from upheld.llm.answer import Answer, Message, Request, Sampling, Token, Usage, conversation
from upheld.llm.model import Embedder, LanguageModel, ModelError

__all__ = [
    "Answer",
    "Embedder",
    "LanguageModel",
    "Message",
    "ModelError",
    "Request",
    "Sampling",
    "Token",
    "Usage",
    "conversation",
]
