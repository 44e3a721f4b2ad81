"""Multipliers from the instance itself: a permutation-equivariant network, trained on the dual.

Beyond the theorems, which are about one vector for all instances. With LP(P) the instance's LP multipliers and f_theta a network
over its rows and columns::

    pi_theta(P) = clip(LP(P) + pi_max (softplus(f_theta(P)) - ln 2)),       f_theta = 0 at the start                   (1)

    maximise sum_i u(pi_theta(P_i), P_i),     where the supergradient g_i = b - A x*(pi) is what is propagated back    (2)

so that epoch 0 is the LP start. The network embeds rows and columns, passes messages rows -> columns -> rows twice (means over
neighbours), and reads one number a coupling row: renumbering rows or columns renumbers the answer and changes nothing else.

**Never worse.** A part of the past is held out. The epoch with the best mean u there is kept (epoch 0 among them), and if a
constant vector, of averaged SGA or the mean LP multipliers, does better there, that vector is what `predict` returns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from upheld.lagrangian.ascent import Box, box_of
from upheld.lagrangian.drift import DriftAlarm
from upheld.lagrangian.graph import COLUMN_FEATURES, ROW_FEATURES, Graph, graph_of
from upheld.lagrangian.learners import TIMES_LP, MultiplierLearner, SGAMultipliers
from upheld.lagrangian.oracles import Instance
from upheld.storage.files import whole_file

if TYPE_CHECKING:
    import torch

WIDTH, ROUNDS = 64, 2
LEARNING_RATE, BATCH, EPOCHS, PATIENCE = 1e-3, 16, 50, 10
FEWEST = 4  # instances, so that one can be held out
FORMAT = 1  # of the saved file


class ContextualMultipliers(MultiplierLearner):
    """Multipliers predicted from an instance's data, never worse on held-out instances than its LP's, SGA's or their mean.

    Parameters
    ----------
    pi_max : end of Pi; None takes twice the largest LP multiplier of the instances seen
    epochs : most passes over the past
    held_out : share of the past that decides between epochs, and between the network and constant vectors
    random_state : seeds the network, the order of batches and the split

    Attributes
    ----------
    chosen_ : ``"network"``, ``"SGA"`` or ``"mean LP dual"``: what `predict` returns
    epoch_ : the epoch kept; 0 is the instance's own LP multipliers
    validation_ : mean u on the held-out instances, of the network, of the LP multipliers and of both vectors
    alarm_ : says whether an instance looks like those learned from, see `DriftAlarm`

    Raises
    ------
    ValueError
        If there are fewer than four instances, or as for the other learners.

    Examples
    --------
    >>> import itertools
    >>> from upheld.lagrangian import data, dual_value
    >>> *past, today = itertools.islice(data.gap_stream("D", 3, 7, np.random.default_rng(0)), 13)
    >>> learned = ContextualMultipliers(epochs=5).fit(past)
    >>> dual_value(learned.predict(today), today).u <= today.milp().optimum().value
    True
    """

    def __init__(
        self, *, pi_max: float | None = None, epochs: int = EPOCHS, held_out: float = 0.25, random_state: int = 0
    ) -> None:
        self.pi_max, self.epochs, self.held_out, self.random_state = pi_max, epochs, held_out, random_state

    def fit(self, instances: Iterable[Instance], y: Any = None) -> Self:
        super().fit(instances)
        self._train()
        return self

    def predict(self, instance: Instance) -> np.ndarray:
        """(s,) multipliers for `instance`; one LP solve unless a constant vector was chosen."""
        self._ready(instance)
        if self.chosen_ != "network":
            return np.array(self._constant)
        return self.predict_by_network(instance)

    def predict_by_network(self, instance: Instance) -> np.ndarray:
        """What the kept epoch's network says, whether or not it was chosen."""
        self._ready(instance)
        graph = graph_of(instance)
        return self._multipliers([graph], [box_of(instance, self.pi_max_)])[0]

    @property
    def bound_(self) -> float:
        """NaN: nothing is proved of a network."""
        self._check_fitted()
        return float("nan")

    # learning

    def _reset(self) -> None:
        super()._reset()
        self._past: list[Instance] = []
        self._graphs: list[Graph] = []
        self._trained = False

    def _see(self, instance: Instance) -> None:
        if getattr(self, "_past", None) is None:
            raise ValueError("a loaded learner holds no past instances and cannot learn on; fit a new one")
        graph = graph_of(instance)
        self._past.append(instance)
        self._graphs.append(graph)
        self._trained = False
        self.B_ = max(self.B_, instance.B)
        self._lp_max = max(self._lp_max, float(np.abs(graph.lp_dual).max(initial=0.0)))
        self.pi_max_ = float(self.pi_max) if self.pi_max is not None else TIMES_LP * self._lp_max or 1.0

    def _ready(self, instance: Instance) -> None:
        self._check_fitted()
        if list(instance.row_names) != self.row_names_:
            raise ValueError(
                f"the instance's coupling rows ({instance.row_names[0]}, ...; {instance.n_rows} in all) are not those learned "
                f"from ({self.row_names_[0]}, ...; {len(self.row_names_)}); multipliers carry over only between the same rows"
            )
        if not self._trained:
            self._train()

    def _train(self) -> None:
        """Split, train, choose."""
        if len(self._past) < FEWEST:
            raise ValueError(
                f"{len(self._past)} instances cannot be split into those to learn from and those held out; give at least "
                f"{FEWEST}, or take another learner"
            )
        rng = np.random.default_rng(self.random_state)
        order = rng.permutation(len(self._past))
        n_held = min(max(1, round(self.held_out * len(self._past))), len(self._past) - 2)
        held, used = order[:n_held], order[n_held:]
        self.alarm_ = DriftAlarm().fit(self._graphs)
        self._scaling = _scaling([self._graphs[i] for i in used])
        self._network = network(self.random_state)
        self._trained = True
        top = self._ascend(used, held, rng)
        self._choose(used, held, top)

    def _ascend(self, used: np.ndarray, held: np.ndarray, rng: np.random.Generator) -> float:
        """Adam on (2); keeps the weights of the best epoch on the held-out instances and returns its mean u."""
        import torch

        optimiser = torch.optim.Adam(self._network.parameters(), lr=LEARNING_RATE)
        boxes = [box_of(P, self.pi_max_) for P in self._past]
        graphs, held_boxes = [self._graphs[i] for i in held], [boxes[i] for i in held]
        held_past = [self._past[i] for i in held]
        self.epoch_, top = 0, _mean_u(held_past, self._multipliers(graphs, held_boxes))
        self._lp_on_held = top
        kept = {name: value.clone() for name, value in self._network.state_dict().items()}
        scale = _typical_norm([self._past[i] for i in used], [self._graphs[i].lp_dual for i in used])
        for epoch in range(1, self.epochs + 1):
            for batch in np.array_split(rng.permutation(used), -(-used.size // BATCH)):
                optimiser.zero_grad()
                raw = self._raw([self._graphs[i] for i in batch])
                direction = _uphill([self._past[i] for i in batch], [boxes[i] for i in batch], raw.detach().numpy())
                raw.backward(torch.from_numpy(-direction / (scale * batch.size)).float())  # type: ignore[no-untyped-call]
                optimiser.step()
            now = _mean_u(held_past, self._multipliers(graphs, held_boxes))
            if now > top:
                self.epoch_, top = epoch, now
                kept = {name: value.clone() for name, value in self._network.state_dict().items()}
            elif epoch - self.epoch_ >= PATIENCE:
                break
        self._network.load_state_dict(kept)
        return top

    def _choose(self, used: np.ndarray, held: np.ndarray, top: float) -> None:
        """The network, unless a constant vector learned from the same instances does better on the held-out ones."""
        past, held_past = [self._past[i] for i in used], [self._past[i] for i in held]
        duals = np.array([graph.lp_dual for graph in self._graphs])
        box = box_of(self._first, self.pi_max_)

        def sga(instances: Sequence[Instance], lp_duals: np.ndarray) -> np.ndarray:
            return SGAMultipliers(pi_max=self.pi_max_, init=box.clip(lp_duals[0])).fit(instances).multipliers_

        constants = {"SGA": sga(past, duals[used]), "mean LP dual": box.clip(duals[used].mean(axis=0))}
        values = {name: _mean_u(held_past, [pi] * len(held)) for name, pi in constants.items()}
        self.validation_ = {"network": top, "own LP dual": self._lp_on_held, **values}
        self.chosen_ = max(("network", *constants), key=lambda name: self.validation_[name])
        # With the choice made, all instances teach the vector.
        whole = {"SGA": lambda: sga(self._past, duals), "mean LP dual": lambda: box.clip(duals.mean(axis=0))}
        self._constant = whole[self.chosen_]() if self.chosen_ in whole else np.zeros(box.low.size)

    # the network

    def _raw(self, graphs: Sequence[Graph]) -> torch.Tensor:
        """(1) before it is clipped, the coupling rows of all graphs one after the other."""
        import torch

        f = self._network(batched(graphs, *self._scaling))
        lp = torch.from_numpy(np.concatenate([graph.lp_dual for graph in graphs])).float()
        return lp + self.pi_max_ * (torch.nn.functional.softplus(f) - math.log(2.0))

    def _multipliers(self, graphs: Sequence[Graph], boxes: Sequence[Box]) -> list[np.ndarray]:
        """(1). Where the network says nothing at all, the LP multipliers to their last digit."""
        import torch

        with torch.no_grad():
            correction = self._raw(graphs).double().numpy()
        lp = np.concatenate([graph.lp_dual for graph in graphs])
        silent = np.abs(correction - lp) <= 1e-6 * (1 + np.abs(lp))  # single precision
        pi = np.where(silent, lp, correction)
        return [box.clip(part) for box, part in zip(boxes, _split(pi, boxes), strict=True)]

    # on disk

    def save(self, path: str | Path) -> None:
        """Write weights, scaling and choice to a ``.safetensors`` file; past instances are not saved.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        import json

        from safetensors.numpy import save

        self._check_fitted()
        if not self._trained:
            self._train()
        arrays = {f"network.{name}": value.numpy() for name, value in self._network.state_dict().items()}
        arrays |= {f"scaling.{k}": part for k, part in enumerate(self._scaling)}
        arrays |= {"constant": self._constant, **{f"alarm.{k}": v for k, v in self.alarm_.arrays().items()}}
        about = {
            "format": FORMAT, "parameters": self.get_params(), "rows": self.row_names_, "n_seen": self.n_seen_, "B": self.B_,
            "pi_max": self.pi_max_, "chosen": self.chosen_, "epoch": self.epoch_, "validation": self.validation_,
        }  # fmt: skip
        with whole_file(Path(path), "wb") as file:
            file.write(save({k: np.ascontiguousarray(v) for k, v in arrays.items()}, {"upheld": json.dumps(about)}))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A learner that predicts as the saved one did; it cannot learn on.

        Raises
        ------
        ValueError
            If the file is not one of `save`, or of a later format.
        """
        import json

        import torch
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(path), framework="numpy") as file:
                about = json.loads((file.metadata() or {}).get("upheld", "{}"))
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, it is no mapping
        except SafetensorError as error:
            raise ValueError(f"{path} is no .safetensors file: {error}") from None
        if about.get("format") != FORMAT:
            raise ValueError(f"{path} holds no contextual multipliers of format {FORMAT}; save them anew")
        learner = cls(**about["parameters"])
        learner._past, learner._graphs, learner._trained = None, [], True  # type: ignore[assignment]
        learner.row_names_, learner.n_seen_, learner.B_ = about["rows"], about["n_seen"], about["B"]
        learner.pi_max_, learner.chosen_, learner.epoch_ = about["pi_max"], about["chosen"], about["epoch"]
        learner.validation_, learner._constant = about["validation"], arrays["constant"]
        learner._scaling = tuple(arrays[f"scaling.{k}"] for k in range(4))
        learner.alarm_ = DriftAlarm.of({k[6:]: v for k, v in arrays.items() if k.startswith("alarm.")})
        learner._network = network(0)
        weights = {k[8:]: torch.from_numpy(v.copy()) for k, v in arrays.items() if k.startswith("network.")}
        learner._network.load_state_dict(weights)
        return learner

    def partial_fit(self, instance: Instance) -> Self:
        """Learn from one more instance; the network is trained anew when it is next asked."""
        if getattr(self, "n_seen_", 0) and self._past is None:
            raise ValueError("a loaded learner holds no past instances and cannot learn on; fit a new one")
        return super().partial_fit(instance)


def _uphill(past: Sequence[Instance], boxes: Sequence[Box], raw: np.ndarray) -> np.ndarray:
    """Supergradients of u at the clipped multipliers, all in one vector; 0 where they point out of the box."""
    parts = []
    for P, box, pi in zip(past, boxes, _split(raw.astype(float), boxes), strict=True):
        g = P.oracle(box.clip(pi)).g
        parts.append(np.where(((pi < box.low) & (g < 0)) | ((pi > box.high) & (g > 0)), 0.0, g))
    return np.concatenate(parts)


def _split(pi: np.ndarray, boxes: Sequence[Box]) -> list[np.ndarray]:
    return np.split(pi, np.cumsum([box.low.size for box in boxes])[:-1])


def _mean_u(instances: Sequence[Instance], pis: Sequence[np.ndarray]) -> float:
    return float(np.mean([P.oracle(pi).u for P, pi in zip(instances, pis, strict=True)]))


def _typical_norm(past: Sequence[Instance], pis: Sequence[np.ndarray]) -> float:
    """Mean length of the supergradients at the start: the unit in which they are propagated back."""
    return float(np.mean([np.linalg.norm(P.oracle(pi).g) for P, pi in zip(past, pis, strict=True)])) or 1.0


def _scaling(graphs: Sequence[Graph]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Means and spreads of row and column features; a feature that never varies is left as it is."""
    found = []
    for features in (np.vstack([g.rows for g in graphs]), np.vstack([g.columns for g in graphs])):
        spread = features.std(axis=0)
        found += [features.mean(axis=0), np.where(spread > 1e-9, spread, 1.0)]
    return found[0], found[1], found[2], found[3]


def batched(
    graphs: Sequence[Graph], row_mean: np.ndarray, row_sd: np.ndarray, column_mean: np.ndarray, column_sd: np.ndarray
) -> dict[str, torch.Tensor]:
    """Several graphs as one that is not connected, features standardised."""
    import torch

    row_start = np.cumsum([0, *(len(g.rows) for g in graphs)])
    column_start = np.cumsum([0, *(len(g.columns) for g in graphs)])
    coupling = [start + np.arange(g.lp_dual.size) for g, start in zip(graphs, row_start[:-1], strict=True)]
    numbers = {
        "rows": (np.vstack([g.rows for g in graphs]) - row_mean) / row_sd,
        "columns": (np.vstack([g.columns for g in graphs]) - column_mean) / column_sd,
        "weight": np.concatenate([g.weight for g in graphs]),
    }
    index = {
        "edge_row": np.concatenate([g.edge_row + k for g, k in zip(graphs, row_start[:-1], strict=True)]),
        "edge_column": np.concatenate([g.edge_column + k for g, k in zip(graphs, column_start[:-1], strict=True)]),
        "coupling": np.concatenate(coupling),
    }
    return {name: torch.from_numpy(v).float() for name, v in numbers.items()} | {
        name: torch.from_numpy(v) for name, v in index.items()
    }


def network(seed: int) -> torch.nn.Module:
    """f_theta: row and column embeddings, two rounds of messages along edges, one number a coupling row; 0 at the start."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.row = nn.Sequential(nn.Linear(len(ROW_FEATURES), WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
            self.column = nn.Sequential(nn.Linear(len(COLUMN_FEATURES), WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
            self.to_columns = nn.ModuleList(nn.Linear(3 * WIDTH, WIDTH) for _ in range(ROUNDS))
            self.to_rows = nn.ModuleList(nn.Linear(3 * WIDTH, WIDTH) for _ in range(ROUNDS))
            last = nn.Linear(WIDTH, 1)
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)
            self.head = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), last)

        def forward(self, graph: dict[str, torch.Tensor]) -> torch.Tensor:
            rows, columns = self.row(graph["rows"]), self.column(graph["columns"])
            at_row, at_column, weight = graph["edge_row"], graph["edge_column"], graph["weight"]
            for to_columns, to_rows in zip(self.to_columns, self.to_rows, strict=True):
                columns = columns + to_columns(torch.relu(_gathered(columns, rows, at_column, at_row, weight)))
                rows = rows + to_rows(torch.relu(_gathered(rows, columns, at_row, at_column, weight)))
            answer: torch.Tensor = self.head(torch.relu(rows[graph["coupling"]]))[:, 0]
            return answer

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Network()


def _gathered(
    own: torch.Tensor, others: torch.Tensor, to: torch.Tensor, origin: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """A node's own state, the mean of its neighbours', and that mean weighted by the coefficients."""
    import torch

    sent = others[origin]
    degree = torch.zeros(len(own)).index_add(0, to, torch.ones(len(to))).clamp(min=1.0)[:, None]
    plain = torch.zeros_like(own).index_add(0, to, sent) / degree
    weighted = torch.zeros_like(own).index_add(0, to, sent * weight[:, None]) / degree
    return torch.cat([own, plain, weighted], dim=1)
