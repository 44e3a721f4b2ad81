"""The digits' models as files of the kind that a user brings."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from upheld.flows.claims.models import CLASSES, digit_models
from upheld.flows.data import digits


class Nearest(nn.Module):
    """Minus the distance to the nearest example of every class, as logits."""

    examples: Tensor
    labels: Tensor

    def __init__(self, x: Tensor, labels: Tensor, sharpness: float) -> None:
        super().__init__()
        self.sharpness = sharpness
        self.register_buffer("examples", x)
        self.register_buffer("labels", labels)

    def forward(self, x: Tensor) -> Tensor:
        far = torch.cdist(x, self.examples)
        each = [far[:, self.labels == c].min(1).values for c in range(CLASSES)]
        return -self.sharpness * torch.stack(each, 1)


def write_digit_models(folder: Path) -> None:
    """flow.pt, guide.pt and judge.pt."""
    models = digit_models()
    x, labels = digits().judges
    flow = models.flow.predict
    assert isinstance(flow, nn.Module)
    parts = {
        "flow.pt": (flow, (torch.zeros(2, 64), torch.tensor(0.5))),
        "guide.pt": (models.guide, (torch.zeros(2, 64),)),
        "judge.pt": (Nearest(x, labels, 4.0), (torch.zeros(2, 64),)),
    }
    folder.mkdir(exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for name, (module, example) in parts.items():
            traced: Any = torch.jit.trace(module, example, check_trace=False)  # type: ignore[no-untyped-call]
            traced.save(str(folder / name))
