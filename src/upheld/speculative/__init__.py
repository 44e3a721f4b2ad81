"""Train a small drafter for your own language model, decode faster, change nothing in what it says.

DFlash (Chen, Liang & Liu, ICML 2026): a block-diffusion drafter reads the model's own hidden states and proposes a block of
tokens in one forward; the model verifies them in one more, and the accepted prefix and one token of its own are written.
"""

from __future__ import annotations

from upheld.speculative.assisted import assisted
from upheld.speculative.batched import BatchedDecoder
from upheld.speculative.checkpoints import load_published, save_published
from upheld.speculative.configuration import DFlashConfig
from upheld.speculative.costs import CostTable, calibrate
from upheld.speculative.decoder import SpeculativeDecoder
from upheld.speculative.drafter import DFlashDrafter
from upheld.speculative.making import make_drafter
from upheld.speculative.responses import load_responses, regenerate
from upheld.speculative.stats import SpecStats
from upheld.speculative.training import DrafterTrainer, TrainReport
from upheld.speculative.trees import TreeDecoder

__all__ = [
    "BatchedDecoder",
    "CostTable",
    "DFlashConfig",
    "DFlashDrafter",
    "DrafterTrainer",
    "SpecStats",
    "SpeculativeDecoder",
    "TrainReport",
    "TreeDecoder",
    "assisted",
    "calibrate",
    "load_published",
    "load_responses",
    "make_drafter",
    "regenerate",
    "save_published",
]
