"""Training a drafter on what its target wrote: anchors drawn anew every epoch, packed blocks, weighted cross-entropy, an honest stop.

>>> responses = load_responses(Path("responses"))                                            # doctest: +SKIP
>>> trainer = DrafterTrainer(target, tokenizer, drafter, responses, epochs=6, folder=Path("training"))     # doctest: +SKIP
>>> report = trainer.fit()                                                                   # doctest: +SKIP
>>> report.accepted_length, report.stopped                                                   # doctest: +SKIP
(1.92, 'epochs')
"""

from __future__ import annotations

import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from upheld.speculative.blocks import Blocks, block_states, draw_anchors, loss_weights
from upheld.speculative.drafter import DFlashDrafter, embedding_of, final_norm, head_of
from upheld.speculative.features import CachedFeatures, Features, OnlineFeatures
from upheld.speculative.heads import Head
from upheld.speculative.responses import Response
from upheld.speculative.taps import decoder_layers
from upheld.storage import whole_file

Loss = Literal["ce", "kl"]
Weighting = Literal["decay", "dpace"]
Stop = Literal["epochs", "budget", "flat"]

HELD_OUT = 0.1
"""Share of the groups of prompts that training is judged by, where the caller holds none out."""

WARM_UP = 0.04
CLIP = 1.0
CHUNK = 2048
"""Rows of logits at once."""

YOUTH = 0.25
"""The part of the training before which nothing is called flat."""

PACE = 0.5
"""The power of the prefix's probability in the weights of "dpace"."""


class Trainable(Protocol):
    """A drafter of any make: weights to train, and states that the target's head reads as the tokens behind each anchor."""

    @property
    def taps(self) -> Sequence[int]: ...

    @property
    def block_size(self) -> int: ...

    @property
    def module(self) -> nn.Module: ...

    def states(self, embedding: nn.Module, blocks: Blocks, taps: Tensor) -> Tensor:
        """(S, A, B - 1, D)."""


@dataclass(frozen=True)
class BlockTrainable:
    """The block drafter as the trainer sees it."""

    module: DFlashDrafter

    @property
    def taps(self) -> Sequence[int]:
        return tuple(self.module.config.target_layer_ids or ())

    @property
    def block_size(self) -> int:
        return self.module.config.block_size

    def states(self, embedding: nn.Module, blocks: Blocks, taps: Tensor) -> Tensor:
        return block_states(self.module, embedding, blocks, taps)


@dataclass(frozen=True)
class Evaluation:
    """How good a drafter is on held-out responses.

    Parameters
    ----------
    step : after how many steps
    loss : equation (4) on held-out blocks, in nats a token
    position_accuracy : (B - 1,) share of blocks whose likeliest token k is the target's
    accepted_length : 1 + the mean number of leading tokens that are all the target's, over blocks that are not cut short: what greedy
        decoding would emit a cycle. On sampled responses it is a lower figure than decoding by rejection reaches.
    """

    step: int
    loss: float
    position_accuracy: tuple[float, ...]
    accepted_length: float


@dataclass
class TrainReport:
    """What a training came to.

    Parameters
    ----------
    steps, gradient_tokens, seconds : optimiser steps, predicted tokens that weighed in, processor seconds of all runs together
    losses : training loss of every step, in nats a token
    evaluations : on held-out responses, the last one of the weights that are kept
    coverage : share of held-out response tokens that the drafter can propose at all
    stopped : "epochs" all were done; "budget" the time was over, the drafter may be short of its plateau; "flat" the held-out
        accepted length had stopped growing
    """

    steps: int = 0
    gradient_tokens: int = 0
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)
    evaluations: list[Evaluation] = field(default_factory=list)
    coverage: float = 1.0
    stopped: Stop = "epochs"

    @property
    def accepted_length(self) -> float:
        return self.evaluations[-1].accepted_length

    @property
    def position_accuracy(self) -> tuple[float, ...]:
        return self.evaluations[-1].position_accuracy


def draft_vocabulary(responses: Sequence[Response], size: int, vocabulary: int, known: Sequence[int] = ()) -> Tensor:
    """(size,) tokens to propose from: the most frequent of the responses, filled with `known` ones, then with the lowest ids.

    Byte-pair vocabularies number their merges by frequency, so low ids are frequent in any text. Known are those of a drafter that is
    trained further: few answers more must not take away what it can say.

    Examples
    --------
    >>> said = Response(np.array([9, 5, 7, 7, 5, 7]), 1, 0.0, "a")
    >>> draft_vocabulary([said], 4, 10).tolist()
    [0, 1, 5, 7]
    """
    seen: Counter[int] = Counter()
    for response in responses:
        seen.update(response.tokens[response.prompt_tokens :].tolist())
    chosen = [token for token, _ in seen.most_common(size)]
    filled = dict.fromkeys([*chosen, *known, *range(vocabulary)])
    return torch.tensor(sorted(list(filled)[:size]))


def coverage(responses: Sequence[Response], ids: Tensor) -> float:
    """Share of response tokens among `ids`; no drafter restricted to them can be accepted more often."""
    tokens = np.concatenate([response.tokens[response.prompt_tokens :] for response in responses])
    return float(np.isin(tokens, ids.cpu().numpy()).mean())


def part_by_group(responses: Sequence[Response], share: float = HELD_OUT) -> tuple[list[Response], list[Response]]:
    """Training and held-out responses; all of one group on one side.

    Raises
    ------
    ValueError
        If there are fewer than two groups.
    """
    groups = sorted({response.group for response in responses}, key=lambda name: hashlib.sha256(name.encode()).digest())
    if len(groups) < 2:
        raise ValueError(
            f"{len(responses)} responses of {len(groups)} group cannot be parted into training and held-out ones; give more prompts"
        )
    held = set(groups[: max(1, round(share * len(groups)))])
    return [r for r in responses if r.group not in held], [r for r in responses if r.group in held]


class DrafterTrainer:
    """Trains a drafter for its target (Chen, Liang & Liu 2026, appendix A.1). Embedding, head and target are frozen.

    Parameters
    ----------
    target : wrote the responses; on the drafter's device
    tokenizer : the target's; its length must not exceed the target's vocabulary
    drafter : a `DFlashDrafter`, or another `Trainable`; trained in place, in its own dtype
    data : responses by the target
    epochs, lr : passes over the data; peak of the cosine schedule, after 4 % warm-up
    anchors : blocks a response and pass
    gamma : decay of the loss weights; None takes 7, 5, 4 for blocks of 16, 10, 8; inf weighs all alike
    loss : "ce" on the target's tokens; "kl" to the target's law (forward divergence)
    weighting : "decay", or "dpace": also by how likely the drafter finds the tokens before, to the power 0.5
    features : "online", or "cached" in `folder`; or those of an earlier trainer of the same responses, taps and loss
    held_out : responses to judge by; None parts them off the data by group
    anchors_at : "random", or "grid" for the ablation
    batch : responses a step
    max_tokens : what of a response is used
    autocast : number format of the drafter's matrix products in training, bfloat16 where the hardware has it; None: its own
    folder : of checkpoints and cached states; a run that was interrupted goes on from there. None keeps nothing
    seconds : processor seconds of all runs together after which training stops
    patience : evaluations without a longer accepted length after which it is called flat
    evaluations : how many over the whole training
    seed : of order and anchors; step s draws the same whether or not the run was interrupted

    Raises
    ------
    ValueError
        If there is nothing to train on, tokenizer and target do not fit, or an option is unknown.
    """

    def __init__(
        self,
        target: PreTrainedModel,
        tokenizer: Any,
        drafter: DFlashDrafter | Trainable,
        data: Sequence[Response],
        *,
        epochs: int = 6,
        lr: float = 6e-4,
        anchors: int = 512,
        gamma: float | None = None,
        loss: Loss = "ce",
        weighting: Weighting = "decay",
        features: Literal["online", "cached"] | Features = "online",
        held_out: Sequence[Response] | None = None,
        anchors_at: Literal["random", "grid"] = "random",
        batch: int = 2,
        max_tokens: int = 3072,
        autocast: torch.dtype | None = None,
        folder: Path | None = None,
        seconds: float = math.inf,
        patience: int = 4,
        evaluations: int = 20,
        seed: int = 0,
        told: Callable[[TrainReport], None] | None = None,
    ) -> None:
        known = not isinstance(features, str) or features in ("online", "cached")
        if loss not in ("ce", "kl") or weighting not in ("decay", "dpace") or not known:
            raise ValueError(
                f"loss is ce or kl, weighting decay or dpace, features online or cached; got {loss}, {weighting}, {features}"
            )
        if features == "cached" and folder is None:
            raise ValueError("cached features need a folder to lie in; give one, or take features='online'")
        words = head_of(target).weight.shape[0]
        if tokenizer is not None and len(tokenizer) > words:
            raise ValueError(
                f"the tokenizer has {len(tokenizer)} tokens, the target {words}; take the target's own tokenizer"
            )
        usable = [_cut(response, max_tokens) for response in data]
        usable = [response for response in usable if len(response.tokens) - response.prompt_tokens >= 2]
        self.training, judged = (
            part_by_group(usable) if held_out is None else (usable, [_cut(r, max_tokens) for r in held_out])
        )
        self.held_out = [response for response in judged if len(response.tokens) - response.prompt_tokens >= 2]
        if not self.training or not self.held_out:
            raise ValueError(
                "no response has two tokens or more to learn from or to judge by; let the target answer more prompts"
            )
        self.target = target
        self.drafter: Trainable = BlockTrainable(drafter) if isinstance(drafter, DFlashDrafter) else drafter
        self.epochs, self.lr, self.anchors, self.loss, self.weighting = epochs, lr, anchors, loss, weighting
        self.anchors_at, self.batch, self.folder, self.seconds = anchors_at, batch, folder, seconds
        self.patience, self.seed, self.told, self.autocast = patience, seed, told, autocast
        self.steps = epochs * math.ceil(len(self.training) / batch)
        self.every = max(1, self.steps // evaluations)
        self.weights = loss_weights(self.drafter.block_size, gamma).to(target.device)
        every = [*self.training, *self.held_out]
        self.features = self._features(features, every)
        self.module = self.drafter.module
        self.dtype = next(self.module.parameters()).dtype

    def _features(self, asked: str | Features, every: Sequence[Response]) -> Features:
        if not isinstance(asked, str):
            return asked
        layers = [*self.drafter.taps]
        if self.loss == "kl":
            # The target's law is read off its last layer: kept beside the taps, it costs no forward a step.
            layers.append(len(decoder_layers(self.target)) - 1)
        if asked == "cached" and self.folder is not None:
            return CachedFeatures(self.folder / "states", self.target, layers, every)
        return OnlineFeatures(self.target, layers, every)

    def fit(self) -> TrainReport:
        """Train until the epochs are done, the time is over, or the held-out accepted length is flat; the best weights are kept."""
        report = TrainReport()
        trained = [p for p in self.module.parameters() if p.requires_grad]
        optimiser = torch.optim.AdamW(trained, lr=self.lr, weight_decay=0.0)
        best: dict[str, Tensor] = {}
        checkpoint = self._checkpoint()
        if checkpoint is not None:
            report, best = checkpoint["report"], checkpoint["best"]
            self.module.load_state_dict(checkpoint["module"])
            optimiser.load_state_dict(checkpoint["optimiser"])
        else:
            self._choose_vocabulary()
        self._read_head()
        report.coverage = coverage(self.held_out, self.ids)
        started, before = time.process_time(), report.seconds
        if not report.evaluations:
            report.evaluations.append(self.evaluate(0))
            best = self._weights()
        while (ended := self._ended(report)) is None:
            share = max(report.steps / self.steps, report.seconds / self.seconds)
            for group in optimiser.param_groups:
                group["lr"] = self.lr * schedule(share)
            self._step(report, optimiser, trained)
            report.seconds = before + time.process_time() - started
            if report.steps % self.every == 0 or report.steps == self.steps or report.seconds >= self.seconds:
                longest = max(evaluation.accepted_length for evaluation in report.evaluations)
                report.evaluations.append(self.evaluate(report.steps))
                if report.accepted_length >= longest:
                    best = self._weights()
                self._save(report, optimiser, best)
                if self.told:
                    self.told(report)
        report.stopped = ended
        self.module.load_state_dict(best)
        kept = max(report.evaluations, key=lambda evaluation: (evaluation.accepted_length, evaluation.step))
        if kept is not report.evaluations[-1]:
            report.evaluations.append(kept)
        return report

    def loss_of(self, numbers: Sequence[int], rng: np.random.Generator) -> tuple[Tensor, Tensor, Blocks]:
        """Equation (4) on some responses, (S, A, B - 1) whether the likeliest token is the target's, and the blocks."""
        responses = [self._response(number) for number in numbers]
        size = self.drafter.block_size
        placed = [draw_anchors(r, self.anchors, rng, block_size=size, at=self.anchors_at) for r in responses]
        blocks = Blocks.of(responses, placed, size).to(self.target.device)
        taps = nn.utils.rnn.pad_sequence([rows.to(self.dtype) for rows in self.features.of(numbers)], batch_first=True)
        width = len(self.drafter.taps) * taps.shape[-1] // (len(self.drafter.taps) + (self.loss == "kl"))
        taps, last = taps[..., :width], taps[..., width:]
        with torch.autocast(taps.device.type, dtype=self.autocast, enabled=self.autocast is not None):
            states = self.drafter.states(embedding_of(self.target), blocks, taps)
        rows = self.row_of[blocks.labels]
        counted = blocks.valid & (rows >= 0) if self.loss == "ce" else blocks.valid
        laws = self._target_laws(blocks, counted, last) if self.loss == "kl" else None
        # (nats, log-probability of the right token, hit), in chunks: logits of all blocks would not fit
        nats, sure, hit = self._scored(states[counted], rows[counted], laws)
        right = torch.zeros_like(counted).masked_scatter(counted, hit)
        weights = self.weights.expand(counted.shape)
        if self.weighting == "dpace":
            weights = weights * _prefix_weights(sure.detach(), counted)
        w = weights[counted].to(nats.dtype)
        return (w * nats).sum() / w.sum().clamp(min=1e-9), right, blocks

    @torch.no_grad()
    def evaluate(self, step: int) -> Evaluation:
        """On all held-out responses, always at the same anchors."""
        rng = np.random.default_rng([self.seed, 2])
        self.module.eval()
        losses, rights, valids = [], [], []
        for start in range(0, len(self.held_out), self.batch):
            numbers = range(
                len(self.training) + start, len(self.training) + min(start + self.batch, len(self.held_out))
            )
            loss, right, blocks = self.loss_of(list(numbers), rng)
            losses.append(loss.item())
            rights.append(right.flatten(0, 1).cpu())
            valids.append(blocks.valid.flatten(0, 1).cpu())
        right, valid = torch.cat(rights), torch.cat(valids)
        accuracy = tuple((right.sum(0) / valid.sum(0).clamp(min=1)).tolist())
        whole = valid.all(dim=1)
        led = right[whole].long().cumprod(dim=1).sum(dim=1).float()
        return Evaluation(step, float(np.mean(losses)), accuracy, 1 + led.mean().item() if len(led) else 1.0)

    def _step(self, report: TrainReport, optimiser: torch.optim.Optimizer, trained: Sequence[nn.Parameter]) -> None:
        epoch, place = divmod(report.steps, math.ceil(len(self.training) / self.batch))
        # Order and anchors depend on the step alone, so a run that goes on draws what it would have drawn.
        order = np.random.default_rng([self.seed, 0, epoch]).permutation(len(self.training))
        numbers = order[place * self.batch : (place + 1) * self.batch].tolist()
        self.module.train()
        loss, _, blocks = self.loss_of(numbers, np.random.default_rng([self.seed, 1, report.steps]))
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(trained, CLIP)
        optimiser.step()
        report.steps += 1
        report.losses.append(loss.item())
        report.gradient_tokens += int(blocks.valid.sum())

    def _scored(self, states: Tensor, rows: Tensor, laws: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        nats, sure, hit = [], [], []
        for start in range(0, len(states), CHUNK):
            part, right = states[start : start + CHUNK], rows[start : start + CHUNK]
            with torch.autocast(part.device.type, dtype=self.autocast, enabled=self.autocast is not None):
                logits = part @ self.head.T
            logs = logits.float().log_softmax(dim=-1)
            picked = logs.gather(1, right.clamp(min=0)[:, None])[:, 0]
            if laws is None:
                nats.append(-picked)
            else:
                nats.append(F.kl_div(logs, laws[start : start + CHUNK], reduction="none").sum(dim=-1))
            sure.append(picked)
            hit.append((logs.argmax(dim=-1) == right) & (right >= 0))
        return torch.cat(nats), torch.cat(sure), torch.cat(hit)

    @torch.no_grad()
    def _target_laws(self, blocks: Blocks, counted: Tensor, last: Tensor) -> Tensor:
        """The target's law of the token a + k, read at a + k - 1, over the tokens that the drafter can propose.

        Parameters
        ----------
        last : (S, n, D) what the target's last layer gave, before its final norm
        """
        at = blocks.anchors[..., None] + torch.arange(blocks.labels.shape[2], device=last.device)
        rows = at.clamp(max=last.shape[1] - 1).flatten(1)[..., None].expand(-1, -1, last.shape[2])
        picked = last.gather(1, rows).view(*at.shape, -1)[counted]
        states = final_norm(self.target)(picked.to(self.target.dtype)).to(self.dtype)
        with torch.autocast(states.device.type, dtype=self.autocast, enabled=self.autocast is not None):
            found: Tensor = states @ self.head.T
        return found.float().softmax(dim=-1)

    def _choose_vocabulary(self) -> None:
        module = self.module
        if isinstance(module, DFlashDrafter | Head) and (size := module.config.draft_vocab_size) is not None:
            known = module.draft_ids.tolist()
            module.use_vocabulary(draft_vocabulary(self.training, size, module.config.vocab_size, known))

    def _read_head(self) -> None:
        weight = head_of(self.target).weight.detach()
        ids = getattr(self.module, "draft_ids", None)
        limited = isinstance(ids, Tensor) and len(ids) < len(weight)
        self.ids = (
            ids.to(weight.device)
            if limited and isinstance(ids, Tensor)
            else torch.arange(len(weight), device=weight.device)
        )
        self.head = weight[self.ids].to(self.dtype)
        self.row_of = torch.full((len(weight),), -1, device=weight.device)
        self.row_of[self.ids] = torch.arange(len(self.ids), device=weight.device)

    def _response(self, number: int) -> Response:
        return self.training[number] if number < len(self.training) else self.held_out[number - len(self.training)]

    def _ended(self, report: TrainReport) -> Stop | None:
        if report.steps >= self.steps:
            return "epochs"
        if report.seconds >= self.seconds:
            return "budget"
        # A drafter that has only begun stands at 1 for a while: that is no plateau.
        young = max(report.steps / self.steps, report.seconds / self.seconds) < YOUTH
        # Nor is it one that a trained drafter stood higher at first: the learning rate begins anew, and costs some of that before it pays.
        lengths = [evaluation.accepted_length for evaluation in report.evaluations if evaluation.step]
        if young or report.evaluations[-1].step != report.steps or len(lengths) <= self.patience:
            return None
        return "flat" if max(lengths[-self.patience :]) <= max(lengths[: -self.patience]) else None

    def _weights(self) -> dict[str, Tensor]:
        return {name: value.detach().clone() for name, value in self.module.state_dict().items()}

    def _recipe(self) -> dict[str, Any]:
        return {
            "epochs": self.epochs, "lr": self.lr, "anchors": self.anchors, "loss": self.loss, "weighting": self.weighting,
            "anchors_at": self.anchors_at, "batch": self.batch, "seed": self.seed, "weights": self.weights.tolist(),
            "responses": len(self.training), "taps": list(self.drafter.taps),
        }  # fmt: skip

    def _save(self, report: TrainReport, optimiser: torch.optim.Optimizer, best: dict[str, Tensor]) -> None:
        if self.folder is None:
            return
        state = {
            "recipe": self._recipe(),
            "report": report,
            "module": self.module.state_dict(),
            "optimiser": optimiser.state_dict(),
            "best": best,
        }
        with whole_file(self.folder / "checkpoint.pt", "wb") as file:
            torch.save(state, file)

    def _checkpoint(self) -> dict[str, Any] | None:
        """What an interrupted run left.

        Raises
        ------
        ValueError
            If it was another training.
        """
        if self.folder is None or not (path := self.folder / "checkpoint.pt").is_file():
            return None
        with torch.serialization.safe_globals([TrainReport, Evaluation]):
            state: dict[str, Any] = torch.load(path, map_location=self.target.device, weights_only=True)
        other = sorted(name for name, value in self._recipe().items() if state["recipe"].get(name) != value)
        if other:
            raise ValueError(
                f"the folder {self.folder} holds another training ({', '.join(other)} differ); take another folder, or empty it"
            )
        return state


def schedule(share: float) -> float:
    """The learning rate's part of its peak: linear over the first 4 %, then a cosine to zero.

    Examples
    --------
    >>> [round(schedule(share), 3) for share in (0.02, 0.04, 0.52, 1.0)]
    [0.5, 1.0, 0.5, 0.0]
    """
    if share < WARM_UP:
        # Not from nothing: the first step would be lost.
        return max(share, WARM_UP / 100) / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (share - WARM_UP) / (1 - WARM_UP))))


def _prefix_weights(sure: Tensor, counted: Tensor) -> Tensor:
    """(S, A, B - 1): the drafter's probability of all tokens before k, to the power 0.5."""
    logs = torch.zeros(counted.shape, dtype=sure.dtype, device=sure.device).masked_scatter(counted, sure)
    return (PACE * (logs.cumsum(dim=-1) - logs)).exp()


def _cut(response: Response, longest: int) -> Response:
    if len(response.tokens) <= longest:
        return response
    return Response(
        response.tokens[:longest], min(response.prompt_tokens, longest), response.temperature, response.group
    )
