"""A consumer that never writes: a causal language model says how likely each label is after the prompt.

::

    score(y) = sum_t log p(y_t | prompt(c(x), x), y_<t)   [ - the same sum for a content-free question without context ]

All tokens of a label count, since labels may share their first ones. The part of the prompts that is the same for several questions,
such as a context that all of them see, is read once: its keys and values are kept (KV cache), and those of a prompt serve all labels.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from upheld.context.consumers import Answered, several
from upheld.context.task import Sample, Task
from upheld.llm.batching import batches

if TYPE_CHECKING:
    from torch import Tensor

    from upheld.llm import EmbeddedModel, LanguageModel

CONTENT_FREE = "N/A"
"""A question that asks nothing (Zhao, Wallace, Feng, Klein, Singh: Calibrate Before Use, 2021)."""
CALIBRATIONS = ("empty", "prior", "off")
SHOWN, TUNED = 8, 32
LEAST_SHARED = 8
"""Tokens; a shorter beginning is read again with each prompt."""


class LabelLM:
    """A causal language model that scores every label.

    Parameters
    ----------
    task : its labels are all that can be answered, in the order of ties
    model : ``"embedded"`` (SmolLM2-135M-Instruct), a folder with a causal model, or an `EmbeddedModel`
    calibrate : whether the scores of a content-free question, asked without a context, are subtracted: ``"empty"``, where the context is
        empty; ``"prior"``, always; ``"off"``, never. Scores under the same context are never subtracted: with them would go the labels
        that its lines name, which are the signal.
    batch_tokens : bound on prompts at once, times labels, times the longest of them; with SmolLM2 a thousand are 46 MB

    Attributes
    ----------
    id : model, labels, metric and calibration
    delta : with several labels an answer, those within `delta` (natural logarithm) of the best one are given

    Raises
    ------
    ValueError
        If the samples have one label only, the model answers at an endpoint, or `calibrate` is none of the three.

    Examples
    --------
    >>> consumer = LabelLM(task)                                                                        # doctest: +SKIP
    >>> consumer.answer(["Solve a system of linear equations."], [""])[0].text                          # doctest: +SKIP
    'linalg'
    """

    reads_order = True
    temperature = 1.0
    """Scores are log-likelihoods: their softmax is the model's own law over the labels."""

    def __init__(
        self, task: Task, model: str | LanguageModel = "embedded", *, calibrate: str = "empty", batch_tokens: int = 8192
    ) -> None:
        from upheld.llm import EmbeddedModel, language_model

        if calibrate not in CALIBRATIONS:
            raise ValueError(f"calibrate is {calibrate!r}; choose {', '.join(CALIBRATIONS)}")
        self.task, self.labels, self.calibrate, self.delta = task, task.labels(), calibrate, 0.0
        if len(self.labels) < 2:
            raise ValueError(f"the samples have one label only, {self.labels[0]!r}; a model needs two to choose from")
        found = language_model(model)
        if not isinstance(found, EmbeddedModel):
            raise ValueError(
                f"{found.id} does not say how likely a label is; take GenerateLM, or a model on this machine"
            )
        self.model: EmbeddedModel = found
        self.batch_tokens = batch_tokens
        self._name = f"label-lm:{found.id}/{calibrate}/{task.metric}/{'|'.join(self.labels)}"
        parameters = inspect.signature(found.network.forward).parameters
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"  # its name in older releases
        self._label_tokens = [self._encoded(label if self._opens_line else f" {label}") for label in self.labels]

    @property
    def id(self) -> str:
        return f"{self._name}/delta={self.delta:.3f}" if self.delta else self._name

    def prompt(self, context: str, question: str) -> str:
        """The text that a label follows. A blank at its end belongs to the label, as tokenizers have it."""
        return self.task.prompt(context, question).rstrip(" ")

    def scores(self, questions: Sequence[str], contexts: Sequence[str]) -> NDArray[np.float64]:
        """(questions, labels) log-likelihoods (natural), calibrated.

        Raises
        ------
        ValueError
            If a prompt with its label is longer than the model reads.
        """
        scores = self.raw_scores([self.prompt(c, q) for q, c in zip(questions, contexts, strict=True)])
        if self.calibrate == "off":
            return scores
        subtracted = np.array([self.calibrate == "prior" or not context for context in contexts], dtype=bool)
        if subtracted.any():
            scores[subtracted] -= self.prior
        return scores

    @cached_property
    def prior(self) -> NDArray[np.float64]:
        """(labels,) how likely each label is after nothing: a content-free question without a context."""
        found: NDArray[np.float64] = self.raw_scores([self.prompt("", CONTENT_FREE)])[0]
        return found

    def raw_scores(self, prompts: Sequence[str]) -> NDArray[np.float64]:
        """(prompts, labels) sums of the log-probabilities of every label's tokens."""
        encoded = [self._encoded(prompt, opening=True) for prompt in prompts]
        for place, tokens in enumerate(encoded):
            whole = len(tokens) + max(map(len, self._label_tokens))
            if self.model.limit is not None and whole > self.model.limit:
                raise ValueError(
                    f"the prompt of question {place} is {whole} tokens long with its label, and {self.model.id} reads "
                    f"{self.model.limit}; lower the token budget"
                )
        scores = np.empty((len(prompts), len(self.labels)))
        for places, shared in alike(encoded):
            kept = self._read([encoded[places[0]][:shared]])[1] if shared else None
            for block in self._blocks(places, encoded):
                rest = [encoded[place][shared:] for place in block]
                scores[block] = self._label_sums(encoded[block[0]][:shared], rest, kept)
        return scores

    def answer(self, questions: Sequence[str], contexts: Sequence[str]) -> list[Answered]:
        """The likeliest label of each question; the margin is natural log-likelihood, the tokens are the model's own."""
        scores = self.scores(questions, contexts)
        ranked = np.sort(scores, axis=1)
        lengths = [
            len(self._encoded(self.prompt(c, q), opening=True)) for q, c in zip(questions, contexts, strict=True)
        ]
        return [
            Answered(several(row, self.labels, self._cut), float(best - second), length)
            for row, (second, best), length in zip(scores, ranked[:, -2:], lengths, strict=True)
        ]

    @property
    def _cut(self) -> float | None:
        return self.delta if self.task.scoring.multilabel else None

    def tune(self, samples: Sequence[Sample]) -> None:
        """Set delta on training samples, where an answer may hold several labels: each of at most 32 is read with 8 others as its
        context, by the task's metric."""
        if not self.task.scoring.multilabel:
            return
        asked = list(samples[:TUNED])
        cases = [f"- {one.target}: {' '.join(one.question.split())}" for one in samples]
        contexts = [
            "\n".join(cases[(place + step) % len(cases)] for step in range(1, 1 + min(SHOWN, len(cases) - 1)))
            for place in range(len(asked))
        ]
        scores = self.scores([one.asked for one in asked], contexts)
        targets = [one.target for one in asked]
        cuts = np.linspace(0, 6, 25).tolist()
        values = [self.task.scoring([several(row, self.labels, cut) for row in scores], targets) for cut in cuts]
        self.delta = float(cuts[int(np.argmax(values))])

    # -- the model

    @property
    def _opens_line(self) -> bool:
        """Whether labels begin a line, and so without a blank."""
        return self.task.template.endswith("\n")

    def _encoded(self, text: str, *, opening: bool = False) -> list[int]:
        return list(self.model.tokenizer(text, add_special_tokens=opening, verbose=False)["input_ids"])

    def _blocks(self, places: Sequence[int], encoded: Sequence[Sequence[int]]) -> Iterator[list[int]]:
        """Questions that are read at once, of about the same length."""
        longest = max(map(len, self._label_tokens))
        weights = [(len(encoded[place]) + longest) * len(self.labels) for place in places]
        for block in batches(weights, tokens=self.batch_tokens):
            yield [places[number] for number in block]

    def _label_sums(self, shared: Sequence[int], rest: Sequence[Sequence[int]], kept: Any) -> NDArray[np.float64]:
        """(questions, labels): the prompts' last logits give the labels' first tokens, a second pass those that follow."""
        cache = copy.deepcopy(kept)
        if cache is not None:
            cache.batch_repeat_interleave(len(rest))
        logits, cache, mask = self._read(rest, cache, len(shared))
        first = logits[:, -1].log_softmax(dim=-1)
        sums = np.array([[float(row[label[0]]) for label in self._label_tokens] for row in first])
        long = [place for place, label in enumerate(self._label_tokens) if len(label) > 1]
        n = max(1, self.batch_tokens // (len(rest) * (mask.shape[1] + max(map(len, self._label_tokens)))))
        for start in range(0, len(long), n):
            self._add_rest(sums, long[start : start + n], cache, mask, last=start + n >= len(long))
        return sums

    def _add_rest(
        self, sums: NDArray[np.float64], labels: Sequence[int], cache: Any, mask: Tensor, *, last: bool
    ) -> None:
        """Add the log-probabilities of these labels' second and later tokens, all labels of all questions at once."""
        import torch

        asked = [self._label_tokens[place] for place in labels]
        width = max(map(len, asked)) - 1
        ids = torch.zeros(len(asked), width, dtype=torch.long)
        for row, tokens in zip(ids, asked, strict=True):
            row[: len(tokens) - 1] = torch.tensor(tokens[:-1])  # what follows a label cannot change it
        spread = cache if last else copy.deepcopy(cache)
        spread.batch_repeat_interleave(len(asked))
        whole = mask.repeat_interleave(len(asked), dim=0)
        whole = torch.cat([whole, whole.new_ones(len(whole), width)], dim=1)
        logits, _ = self._forward(ids.repeat(len(sums), 1).to(mask.device), whole, spread, keep=width)
        logprobs = logits.log_softmax(dim=-1).reshape(len(sums), len(asked), width, -1)
        for column, (place, tokens) in enumerate(zip(labels, asked, strict=True)):
            found = logprobs[:, column, range(len(tokens) - 1), tokens[1:]]
            sums[:, place] += found.sum(dim=-1).double().cpu().numpy()

    def _read(self, rows: Sequence[Sequence[int]], cache: Any = None, before: int = 0) -> tuple[Tensor, Any, Tensor]:
        """Last logits, keys and values, and mask of rows that go on from `before` kept tokens; shorter ones begin with a gap."""
        import torch

        longest = max(map(len, rows))
        ids = torch.zeros(len(rows), longest, dtype=torch.long)
        mask = torch.zeros(len(rows), before + longest, dtype=torch.long)
        mask[:, :before] = 1
        for place, tokens in enumerate(rows):
            ids[place, longest - len(tokens) :] = torch.tensor(tokens)
            mask[place, before + longest - len(tokens) :] = 1
        device = self.model.network.device
        logits, cache = self._forward(ids.to(device), mask.to(device), cache, keep=1)
        return logits, cache, mask.to(device)

    def _forward(self, ids: Tensor, mask: Tensor, cache: Any, *, keep: int) -> tuple[Tensor, Any]:
        """(B, keep, V) logits at the last `keep` places, and the keys and values of all."""
        import torch

        places = (mask.cumsum(dim=-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        options: dict[str, Any] = {self._cache_name: cache, "position_ids": places, "logits_to_keep": keep}
        with torch.inference_mode():
            out = self.model.network(input_ids=ids, attention_mask=mask, use_cache=True, **options)
        return out.logits[:, -keep:].float(), out[self._cache_name]


def alike(encoded: Sequence[Sequence[int]]) -> list[tuple[list[int], int]]:
    """Places of prompts in groups, and how many tokens the prompts of a group begin with alike; the last token is never among them."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, tokens in enumerate(encoded):
        groups.setdefault(tuple(tokens[:LEAST_SHARED]), []).append(place)
    found, alone = [], []
    for places in groups.values():
        rows = [list(encoded[place]) for place in places]
        first, last = min(rows), max(rows)  # in the order of lists, between which all others lie
        differing = (place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1])
        shared = min(next(differing, len(first)), min(map(len, rows)) - 1)
        if len(places) > 1 and shared >= LEAST_SHARED:
            found.append((places, shared))
        else:
            alone += places
    return [*found, (alone, 0)] if alone else found
