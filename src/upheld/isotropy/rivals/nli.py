"""A cross-encoder of natural-language inference from a folder on disk: P(contradiction, neutral, entailment) of pairs of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Pair = tuple[str, str]

CLASSES = ("contradiction", "neutral", "entailment")
FALLBACK_LIMIT = 512  # where neither tokenizer nor model states one
NO_LIMIT = 100_000  # a tokenizer that knows none says 10^30


class NLI:
    """Natural-language inference by a sequence classifier, without any network.

    Parameters
    ----------
    path : folder with the model and its tokenizer, as `save_pretrained` writes them
    labels : what the classifier's outputs stand for, in order, from contradiction, neutral and entailment; by default as the
        model's ``config.id2label`` says. A model of two classes has no neutral.
    max_tokens : longest pair, special tokens included; longer ones lose the end of the longer text. By default the limit that model
        or tokenizer state. Beyond the model's own limit only models with relative positions (DeBERTa) make sense.
    batch_size : pairs judged at once, those of like length together
    device : where it runs; by default a GPU if there is one

    Attributes
    ----------
    n_pairs, n_cut : how many pairs were judged so far, and how many of them had to be cut

    Raises
    ------
    ValueError
        If `path` is no folder with such a model, or its labels do not say which class is which.

    Examples
    --------
    >>> nli = NLI("models/deberta-v3-large-mnli")                                         # doctest: +SKIP
    >>> np.exp(nli.log_probabilities([("He was born in Lima.", "He was born in Peru.")]))  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | Path,
        *,
        labels: Sequence[str] | None = None,
        max_tokens: int | None = None,
        batch_size: int = 16,
        device: str | None = None,
    ) -> None:
        import torch

        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.tokenizer, model = _loaded(path)
        self.model = model.to(self.device).eval()
        self.columns = class_columns(dict(enumerate(labels)) if labels is not None else model.config.id2label)
        outputs = int(model.config.num_labels)
        if len(self.columns) != outputs:
            raise ValueError(
                f"labels names {len(self.columns)} classes, but the model in {path} has {outputs}; name each"
            )
        self.max_tokens = max_tokens or _limit(self.tokenizer, model.config)
        self.batch_size = batch_size
        self.n_pairs = self.n_cut = 0

    def log_probabilities(self, pairs: Sequence[Pair]) -> FloatArray:
        """(n, 3) log-probabilities of contradiction, neutral and entailment, one row a (premise, hypothesis).

        A softmax of the logits in float64; neutral is -inf where the model has no such class. A pair's numbers do not depend on
        which pairs are judged beside it, up to the rounding of float32.
        """
        lengths = self._lengths(pairs)
        self.n_pairs += len(pairs)
        self.n_cut += int(np.sum(lengths > self.max_tokens))
        logits = np.empty((len(pairs), len(self.columns)))
        order = np.argsort(-lengths, kind="stable")
        for start in range(0, len(pairs), self.batch_size):
            batch = order[start : start + self.batch_size]
            logits[batch] = self._logits([pairs[i] for i in batch])
        return self._ordered(logits)

    def _lengths(self, pairs: Sequence[Pair]) -> NDArray[np.int64]:
        if not len(pairs):
            return np.empty(0, dtype=np.int64)
        ids = self.tokenizer([p for p, _ in pairs], [h for _, h in pairs], truncation=False, verbose=False)["input_ids"]
        return np.array([len(each) for each in ids], dtype=np.int64)

    def _logits(self, pairs: Sequence[Pair]) -> FloatArray:
        import torch

        inputs = self.tokenizer(
            [premise for premise, _ in pairs],
            [hypothesis for _, hypothesis in pairs],
            truncation="longest_first",
            max_length=self.max_tokens,
            padding=True,
            return_tensors="pt",
        ).to(self.device)
        with torch.inference_mode():
            logits: FloatArray = self.model(**inputs).logits.double().cpu().numpy()
        return logits

    def _ordered(self, logits: FloatArray) -> FloatArray:
        """log softmax, with the classes in the order of `CLASSES`."""
        log_p = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        ordered = np.full((len(logits), len(CLASSES)), -np.inf)
        for name, column in self.columns.items():
            ordered[:, CLASSES.index(name)] = log_p[:, column]
        return ordered


def class_columns(labels: Mapping[int, str]) -> dict[str, int]:
    """Which output stands for which class, of a model's `id2label`.

    >>> class_columns({0: "ENTAILMENT", 1: "NEUTRAL", 2: "CONTRADICTION"})
    {'entailment': 0, 'neutral': 1, 'contradiction': 2}
    """
    columns = {str(label).lower(): int(column) for column, label in labels.items()}
    if len(columns) < len(labels) or not {"entailment", "contradiction"} <= set(columns) <= set(CLASSES):
        raise ValueError(
            f"the classes of the NLI model are called {', '.join(str(label) for label in labels.values())}; which is entailment and which "
            f"contradiction? Name them in order with labels=, from {', '.join(CLASSES)}"
        )
    return columns


def _loaded(path: str | Path) -> tuple[Any, Any]:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = Path(path)
    if not (folder / "config.json").is_file():
        raise ValueError(
            f"no NLI model in {str(path)!r}: give a folder with config.json, weights and tokenizer (nothing is downloaded)"
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model, loading = AutoModelForSequenceClassification.from_pretrained(
            folder, local_files_only=True, output_loading_info=True
        )
    except (OSError, ImportError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(f"the NLI model in {str(path)!r} cannot be loaded: {reason}") from error
    if missing := sorted(loading["missing_keys"]):
        # A plain encoder loads too, under a classifier of random weights that would judge at random.
        raise ValueError(
            f"the model in {str(path)!r} is no trained classifier: its weights lack {', '.join(missing[:3])}"
        )
    return tokenizer, model


def _limit(tokenizer: Any, config: Any) -> int:
    stated = [getattr(tokenizer, "model_max_length", None), getattr(config, "max_position_embeddings", None)]
    return min((int(limit) for limit in stated if limit and 0 < limit < NO_LIMIT), default=FALLBACK_LIMIT)
