"""The race on pictures of Fashion-MNIST (or MNIST): a U-Net flow and a small convolutional guide, a wider judge from other rows.

Pictures come from the Debian package dataset-fashion-mnist or from the folder that `UPHELD_PICTURES` names. Training takes hours on a
processor; it is done once and kept by content.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from upheld.claims import Measurement, NotRun, Preparation, Trial
from upheld.claims.preparation import Recipe
from upheld.diffusion.networks import SmallUNet
from upheld.flows.claims import race
from upheld.flows.claims.models import CLASSES
from upheld.flows.data import pictures
from upheld.flows.metrics import frechet_distance
from upheld.flows.training import fit_classifier, fit_flow
from upheld.flows.velocity import FlowField

FOLDER = "UPHELD_PICTURES"
BATCH, JITTER = 128, 0.05
NEIGHBOURS, TUNING_ROWS = 5000, 2000


class Classifier(nn.Module):
    """Three halving convolutions and a layer of features; `width` tells guide and judge apart."""

    def __init__(self, width: int, features: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1), nn.SiLU(), nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.SiLU(),
            nn.Conv2d(2 * width, 4 * width, 3, stride=2, padding=1), nn.SiLU(), nn.Flatten(), nn.Linear(64 * width, features), nn.SiLU(),
        )  # fmt: skip
        self.last = nn.Linear(features, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.last(self.body(x))
        return logits


@dataclass(frozen=True)
class Rows:
    """Pictures in parts that share no row: flow and guide learn from `train`, the judge from `judges`; `held_out` is the test part."""

    train: tuple[Tensor, Tensor]
    judges: tuple[Tensor, Tensor]
    held_out: tuple[Tensor, Tensor]


@dataclass(frozen=True)
class PictureModels:
    """Flow and guide, and two judges: a wider network, and the nearest of 5,000 pictures."""

    flow: FlowField
    guide: nn.Module
    judge: Classifier
    nearest: Any


def rows() -> Rows:
    """Both halves of the training part, and the test part.

    Raises
    ------
    NotRun
        If the files are not there.
    """
    named = os.environ.get(FOLDER)
    try:
        x, labels, test, test_labels = pictures(Path(named) if named else None)
    except FileNotFoundError as error:
        raise NotRun(f"{error}, or name it with {FOLDER}") from error
    half = len(x) // 2
    return Rows((x[:half], labels[:half]), (x[half:], labels[half:]), (test, test_labels))


def train_pictures(folder: Path, seed: int, epochs: float, width: int) -> None:
    """Flow and guide from one half, the judge from the other."""
    torch.set_num_threads(1)
    of = rows()
    steps = max(1, round(epochs * len(of.train[0]) / BATCH))
    networks = _untrained(seed, width)
    flow = fit_flow(of.train[0], steps=steps, batch=BATCH, jitter=JITTER, seed=seed, network=networks["flow"])
    guide = fit_classifier(networks["guide"], *of.train, steps=steps, jitter=JITTER, seed=seed)
    judge = fit_classifier(networks["judge"], *of.judges, steps=steps, jitter=JITTER, seed=seed + 1)
    states = {"flow": flow.state_dict(), "guide": guide.state_dict(), "judge": judge.state_dict()}
    torch.save(states, folder / "pictures.pt")


def _untrained(seed: int, width: int) -> dict[str, nn.Module]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return {
            "flow": SmallUNet(1, widths=(width, 2 * width, 4 * width)),
            "guide": Classifier(max(width // 2, 1), 64),
            "judge": Classifier(width, 128),
        }


PICTURES = Preparation("flows.pictures", train_pictures, timeout_s=24 * 3600)


def picture_models(seed: int, epochs: float, width: int) -> PictureModels:
    """Trained now, or found in the cache."""
    from sklearn.neighbors import KNeighborsClassifier

    state = torch.load(PICTURES(seed=seed, epochs=epochs, width=width).folder() / "pictures.pt", weights_only=True)
    networks = _untrained(seed, width)
    for name, network in networks.items():
        network.load_state_dict(state[name])
        network.eval().requires_grad_(False)
    x, labels = rows().judges
    nearest = KNeighborsClassifier(1).fit(x[:NEIGHBOURS].flatten(1).numpy(), labels[:NEIGHBOURS].numpy())
    judge = networks["judge"]
    assert isinstance(judge, Classifier)
    return PictureModels(FlowField(networks["flow"], parametrization="velocity"), networks["guide"], judge, nearest)


def tune(folder: Path, seed: int, epochs: float, width: int, each: int, settings: int) -> None:
    """The setting of every method by energy distance to rows of the flow's half: neither judge takes part."""
    torch.set_num_threads(1)
    models, of = picture_models(seed, epochs, width), rows()
    validation = of.train[0][-TUNING_ROWS:], of.train[1][-TUNING_ROWS:]
    chosen = race.chosen(models, of.held_out[0].shape[1:], each, 1, settings, validation)
    (folder / "settings.json").write_text(json.dumps(chosen, indent=2))


PICTURE_TUNING = Preparation("flows.picture-tuning", tune, timeout_s=24 * 3600)


def _recipes(trial: Trial) -> tuple[Recipe, Recipe]:
    model = {"seed": 0, "epochs": float(trial.condition["epochs"]), "width": int(trial.condition["width"])}
    tuning = {"each": int(trial.condition["tune_each"]), "settings": int(trial.condition["settings"])}
    return PICTURES(**model), PICTURE_TUNING(**model, **tuning)


def prepare_pictures(trial: Trial) -> Iterable[Recipe]:
    return _recipes(trial)


def measure_pictures(trial: Trial) -> Iterator[Measurement]:
    """Frechet distance on the judge's features over all classes, and accuracy for guide and both judges."""
    torch.set_num_threads(1)
    models_of, tuned = _recipes(trial)
    models, (real, _) = picture_models(**dict(models_of.parameters)), rows().held_out  # type: ignore[arg-type]
    chosen = json.loads((tuned.folder() / "settings.json").read_text())
    likelihood = race.all_classes(models, int(trial.condition["each"]))
    allowed, wanted = race.budget(models.flow, likelihood), likelihood.wanted
    with torch.no_grad():
        reference = models.judge.body(real)
    for name in race.METHODS:
        method = race.built(name, models.flow, likelihood, chosen[name], allowed)
        x = method.sample(len(wanted), tuple(real.shape[1:]), trial.torch_generator(name))
        with torch.no_grad():
            features = models.judge.body(x)
            seen = {"judge": models.judge.last(features).argmax(1), "guide": models.guide(x).argmax(1)}
        seen["nearest-neighbour"] = torch.as_tensor(models.nearest.predict(x.flatten(1).numpy()))
        shares = {of: float((found == wanted).double().mean()) for of, found in seen.items()}
        yield Measurement(name, "FD-judge", frechet_distance(features, reference))
        for of, share in shares.items():
            yield Measurement(name, f"{of} accuracy", share)
        yield Measurement(name, "guide above judge", shares["guide"] - shares["judge"])
