"""The target's states at the taps, for whole responses: computed when they are asked for, or kept in a folder in bfloat16.

A folder takes 2 m D bytes a token (SmolLM2 with three taps: 3.5 kB). It pays where responses are seen several times, since a forward of the
target costs more than a training step of the drafter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from upheld.speculative.responses import Response
from upheld.speculative.taps import Taps, target_digest
from upheld.storage import whole_file

PART = 64
"""Responses a file."""


class Features(Protocol):
    """States of numbered responses."""

    def of(self, numbers: Sequence[int]) -> list[Tensor]:
        """For each a (n, m D) tensor: [H^(l_1); ...; H^(l_m)] at its n tokens."""


class OnlineFeatures:
    """Computed anew each time, several responses in one forward of the target."""

    def __init__(self, target: PreTrainedModel, layers: Sequence[int], responses: Sequence[Response]) -> None:
        self.target, self.layers, self.responses = target, list(layers), responses

    @torch.no_grad()
    def of(self, numbers: Sequence[int]) -> list[Tensor]:
        rows = [torch.from_numpy(self.responses[number].tokens) for number in numbers]
        # Padding stands behind the tokens, where causal attention does not look.
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(self.target.device)
        with Taps(self.target, self.layers) as taps:
            self.target.base_model(input_ids=ids, use_cache=False)
            states = taps.take()
        return [states[row, : len(tokens)] for row, tokens in enumerate(rows)]


class CachedFeatures:
    """Computed once, and read from a folder from then on.

    Parameters
    ----------
    folder : of these responses, taps and target alone; files that are there already are not made again

    Raises
    ------
    ValueError
        If the folder holds the states of other responses, taps or another target.
    """

    def __init__(
        self, folder: Path, target: PreTrainedModel, layers: Sequence[int], responses: Sequence[Response]
    ) -> None:
        self.folder, self.device = folder, target.device
        self.edges = np.cumsum([0] + [len(response.tokens) for response in responses])
        self._open({"target": target_digest(target), "layers": list(layers), "responses": _digest(responses)})
        online = OnlineFeatures(target, layers, responses)
        for start in range(0, len(responses), PART):
            path = self._path(start)
            if not path.is_file():
                states = torch.cat(online_in_eights(online, range(start, min(start + PART, len(responses)))))
                # NumPy knows no bfloat16: the bits are kept as integers.
                with whole_file(path, "wb") as file:
                    np.save(file, states.to(torch.bfloat16).cpu().view(torch.int16).numpy())

    def of(self, numbers: Sequence[int]) -> list[Tensor]:
        found = []
        for number in numbers:
            start = number - number % PART
            rows = np.load(self._path(start), mmap_mode="r")
            first, last = self.edges[[number, number + 1]] - self.edges[start]
            found.append(torch.from_numpy(rows[first:last].copy()).view(torch.bfloat16).to(self.device))
        return found

    def _path(self, start: int) -> Path:
        return self.folder / f"states-{start:07d}.npy"

    def _open(self, recipe: dict[str, object]) -> None:
        path = self.folder / "recipe.json"
        if not path.is_file():
            with whole_file(path) as file:
                json.dump(recipe, file, indent=1)
        elif (there := json.loads(path.read_text(encoding="utf-8"))) != recipe:
            other = ", ".join(sorted(key for key in recipe if there.get(key) != recipe[key]))
            raise ValueError(
                f"the folder {self.folder} holds states of other {other}; take another folder, or empty it"
            )


def online_in_eights(online: OnlineFeatures, numbers: Sequence[int]) -> list[Tensor]:
    """States of many responses, eight a forward."""
    found: list[Tensor] = []
    for start in range(0, len(numbers), 8):
        found += online.of(list(numbers[start : start + 8]))
    return found


def _digest(responses: Sequence[Response]) -> str:
    digest = hashlib.sha256()
    for response in responses:
        digest.update(response.tokens.tobytes())
        digest.update(b"|")
    return digest.hexdigest()[:16]
