"""Small models that the experiments stand on, trained once and kept by content: flow and guide of the digits, scorer of the shapes.

``python -m upheld.flows.claims.models`` trains what is not in the cache yet and says where it lies; a changed source trains anew. The U-Net
of the shapes is trained when the standard scale is first checked: ``upheld check flows --scale standard``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from upheld.claims import Preparation
from upheld.diffusion.losses import flow_matching_error
from upheld.diffusion.networks import SmallUNet
from upheld.diffusion.paths import linear
from upheld.diffusion.training import TrainingPlan, train
from upheld.flows.data import digits
from upheld.flows.shapes import NOISE, SHAPE, Scorer, captions, drawn_scenes, scenes
from upheld.flows.training import fit_classifier, fit_flow, velocity_network
from upheld.flows.velocity import FlowField

CLASSES = 10


def guide_network() -> nn.Module:
    """The classifier that guides on digits: 64 units."""
    return nn.Sequential(nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, CLASSES))


def train_digits(folder: Path, seed: int, steps: int) -> None:
    """Flow and guide, both from the rows that the judge never sees."""
    torch.set_num_threads(1)
    x, labels = digits().train
    flow = fit_flow(x, steps=steps, jitter=0.1, seed=seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed + 1)
        guide = fit_classifier(guide_network(), x, labels, steps=min(1500, steps), seed=seed)
    torch.save({"flow": flow.state_dict(), "guide": guide.state_dict()}, folder / "digits.pt")


def train_scorer(folder: Path, seed: int, steps: int) -> None:
    """The scorer of captions: which of the 192 fits a noisy picture."""
    torch.set_num_threads(1)
    pictures = scenes()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        scorer = Scorer()

    def loss(net: nn.Module, generator: torch.Generator) -> Tensor:
        which = torch.randint(len(pictures), (128,), generator=generator)
        x = pictures[which] + NOISE * torch.randn(pictures[which].shape, generator=generator)
        logits: Tensor = net.logits(x)  # type: ignore[operator]
        return nn.functional.cross_entropy(logits, which)

    found = train(scorer, loss, TrainingPlan(steps=steps, learning_rate=2e-3, ema=0.98), seed=seed).averaged
    torch.save(found.state_dict(), folder / "scorer.pt")


def train_shapes(folder: Path, seed: int, steps: int, width: int) -> None:
    """A U-Net flow of noisy scenes whose shapes lie a pixel off at random."""
    torch.set_num_threads(1)

    def loss(net: nn.Module, generator: torch.Generator) -> Tensor:
        return flow_matching_error(net, linear(), drawn_scenes(64, generator), generator).mean()

    network = _shapes_network(seed, width)
    found = train(network, loss, TrainingPlan(steps=steps, learning_rate=1e-3, clip=10.0, ema=0.999), seed=seed)
    torch.save(found.averaged.state_dict(), folder / "shapes.pt")


def _shapes_network(seed: int, width: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return SmallUNet(SHAPE[0], widths=(width, 2 * width, 4 * width))


DIGITS = Preparation("flows.digits", train_digits, timeout_s=300)
SCORER = Preparation("flows.scorer", train_scorer, timeout_s=300)
SHAPES = Preparation("flows.shapes", train_shapes, timeout_s=24 * 3600)
SETTINGS: dict[str, Any] = {"seed": 0, "steps": 2500}
SCORER_SETTINGS: dict[str, Any] = {"seed": 0, "steps": 400}


@dataclass(frozen=True)
class DigitModels:
    """Flow and guide (torch), and a judge of another family from other rows."""

    flow: FlowField
    guide: nn.Module
    judge: Any

    def judged(self, x: Tensor) -> NDArray[np.int64]:
        """The judge's classes."""
        found: NDArray[np.int64] = self.judge.predict(x.numpy())
        return found


def digit_models(steps: int = 2500) -> DigitModels:
    """Trained now, or found in the cache."""
    from sklearn.svm import SVC

    state = torch.load(DIGITS(seed=0, steps=steps).folder() / "digits.pt", weights_only=True)
    flow, guide = velocity_network((64,)), guide_network()
    flow.load_state_dict(state["flow"])
    guide.load_state_dict(state["guide"])
    x, labels = digits().judges
    judge = SVC(C=10.0, gamma="scale").fit(x.numpy(), labels.numpy())
    field = FlowField(flow.eval().requires_grad_(False), parametrization="velocity")
    return DigitModels(field, guide.eval().requires_grad_(False), judge)


def caption_scorer(steps: int = 400) -> Scorer:
    """Trained now, or found in the cache."""
    scorer = Scorer()
    state = torch.load(SCORER(seed=0, steps=steps).folder() / "scorer.pt", weights_only=True)
    scorer.load_state_dict(state)
    return scorer.eval().requires_grad_(False)


def shapes_network(flow_steps: int, width: int) -> FlowField:
    """The U-Net flow of captioned shapes: trained now, which takes hours, or found in the cache."""
    network = _shapes_network(0, width)
    state = torch.load(SHAPES(seed=0, steps=flow_steps, width=width).folder() / "shapes.pt", weights_only=True)
    network.load_state_dict(state)
    return FlowField(network.eval().requires_grad_(False), parametrization="velocity")


def main() -> None:
    """Train what is missing."""
    for recipe in (DIGITS(**SETTINGS), SCORER(**SCORER_SETTINGS)):
        print(f"{recipe}: {recipe.folder()}")
    scorer = caption_scorer()
    x = scenes() + NOISE * torch.randn(scenes().shape, generator=torch.Generator().manual_seed(1))
    right = scorer.logits(x).argmax(1) == torch.arange(len(captions()))
    print(f"the scorer picks the right one of 192 captions for {float(right.float().mean()):.1%} of pictures")


if __name__ == "__main__":
    main()
