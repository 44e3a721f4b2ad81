"""Train a small drafter for your own language model, decode faster, change nothing in what it says.

DFlash (Chen, Liang & Liu, ICML 2026): a block-diffusion drafter reads the model's own hidden states and proposes a block of
tokens in one forward; the model verifies them in one more, and the accepted prefix and one token of its own are written.

>>> from upheld.speculative import assisted
>>> from upheld.speculative.pairs import load_target, shipped_drafter
>>> model, tokenizer = load_target("smollm2")                                  # doctest: +SKIP
>>> with assisted(model, shipped_drafter(model)):                              # doctest: +SKIP
...     model.generate(**tokenizer("The Danube", return_tensors="pt"), max_new_tokens=40)

``upheld run speculative train`` makes a drafter for a model of one's own.
"""

from __future__ import annotations

import importlib
from typing import Any

PLACES = {
    "BatchedDecoder": "batched",
    "CostTable": "costs",
    "DFlashConfig": "configuration",
    "DFlashDrafter": "drafter",
    "DrafterTrainer": "training",
    "SpecStats": "stats",
    "SpeculativeDecoder": "decoder",
    "TrainReport": "training",
    "TreeDecoder": "trees",
    "assisted": "assistance",
    "calibrate": "costs",
    "load_published": "checkpoints",
    "load_responses": "responses",
    "make_drafter": "making",
    "regenerate": "responses",
    "save_published": "checkpoints",
}
"""Where the public names live; torch is imported with the first of them."""

__all__ = sorted(PLACES)


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{PLACES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
