"""An embedder on the own machine: the one that comes as a package, a sentence-transformers folder, any other model's folder.

>>> from upheld.llm import Encoder                              # doctest: +SKIP
>>> from upheld.llm.model_files import minilm
>>> Encoder(minilm()).embed(["The cat sat on the mat.", "Stock prices fell sharply."]).shape        # doctest: +SKIP
(2, 384)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from upheld.llm.batching import batches
from upheld.llm.loading import device_for, load_network, load_tokenizer
from upheld.llm.model import Embedder, Told
from upheld.llm.model_files import ModelFiles, local
from upheld.llm.pooling import POOLINGS, Pooling, pool
from upheld.llm.sentence_folder import read_folder
from upheld.llm.vectors import listed, proper

SORTED_TOGETHER = 4096
"""Texts that are tokenised at once and sorted by length: enough to pad next to nothing, few enough to hold of any number."""


class Encoder(Embedder):
    """A network whose token states are pooled to one vector a text, in float32.

    A vector does not depend, beyond rounding, on which texts are embedded beside it; with ``unmasked_mean`` it does, which is
    why that one is for parity with others' figures only.

    Parameters
    ----------
    files : a model package's files, or a folder: of sentence-transformers, or of any model that `transformers.AutoModel` loads,
        causal ones as well
    pooling : ``mean`` over a text's tokens, ``cls``, ``max``, ``last``, ``unmasked_mean``; by default what the folder says, else
        ``mean``
    device : as PyTorch names it; by default a CUDA device where there is one, else the processor
    batch_size : most texts at once
    batch_tokens : bound on texts at once times the longest of them

    Attributes
    ----------
    network : the `transformers.PreTrainedModel`, ready for use, no gradients
    tokenizer : the `transformers.PreTrainedTokenizerBase` that belongs to it
    pooling : the one in use
    dimension : D, of a vector

    Raises
    ------
    ValueError
        If the folder holds no encoder, or `pooling` is none of the above.
    """

    network: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase

    def __init__(
        self,
        files: ModelFiles | str | Path,
        *,
        pooling: Pooling | None = None,
        device: str | torch.device | None = None,
        batch_size: int = 32,
        batch_tokens: int = 8192,
    ) -> None:
        if pooling is not None and pooling not in POOLINGS:
            raise ValueError(f"pooling must be one of {', '.join(POOLINGS)}, got {pooling!r}")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        files = files if isinstance(files, ModelFiles) else local(files)
        layout = read_folder(files.folder, pooling)
        where = device_for(device)
        self.tokenizer = load_tokenizer(layout.network)
        self.network = load_network(transformers.AutoModel, layout.network, dtype=torch.float32, device=where)
        self.network.config.use_cache = False  # a causal model would keep keys and values that nobody reads
        if self.network.config.is_encoder_decoder:
            raise ValueError(
                f"{files.name} is an encoder with a decoder, whose states are no vectors of its texts; choose an encoder"
            )
        self.pooling: Pooling = layout.pooling
        self.limit = layout.limit or _longest(self.network, self.tokenizer)
        self.dimension: int = layout.dimension or self.network.config.hidden_size
        self.id = f"{files.id}:{self.pooling}:{self.limit}"
        self.extra_tokens = self.tokenizer.num_special_tokens_to_add() + len(self.token_spans(layout.prefix))
        self._dense = nn.Sequential(*layout.dense).to(where)
        self._lower_case, self._prefix = layout.lower_case, layout.prefix
        self._batch_size, self._batch_tokens = batch_size, batch_tokens

    def embed(self, texts: Sequence[str], told: Told | None = None) -> NDArray[np.float32]:
        """(n, D) vectors, not normalised; texts beyond `limit` are cut.

        Raises
        ------
        ValueError
            If a text has no token at all.
        ModelError
            If a vector is not finite.
        """
        texts = listed(texts)
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        done = 0
        for begin in range(0, len(texts), SORTED_TOGETHER):
            tokens = self._tokens(texts[begin : begin + SORTED_TOGETHER], begin)
            for batch in self._batches([len(ids) for ids in tokens]):
                vectors[[begin + place for place in batch]] = self._forward([tokens[place] for place in batch])
                done += len(batch)
                if told:
                    told(done, len(texts))
        return proper(vectors, len(texts), self.id)

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """(n,) length of every text, however long, special tokens not counted."""
        return np.array([len(tokens) for tokens in self._plain_tokens(texts)], dtype=np.int64)

    def count_unknown(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """(n,) how many of them the vocabulary lacks."""
        if (unknown := self.tokenizer.unk_token_id) is None:
            return super().count_unknown(texts)
        return np.array([tokens.count(unknown) for tokens in self._plain_tokens(texts)], dtype=np.int64)

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Where every token of a text, however long, begins and ends in it, special tokens left out."""
        found = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return [(begin, end) for begin, end in found["offset_mapping"]]

    def _plain_tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Without special tokens, and as long as the texts are."""
        texts = [self._cased(text) for text in listed(texts)]
        ids: list[list[int]] = (
            self.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"] if texts else []
        )
        return ids

    def _batches(self, lengths: Sequence[int]) -> list[list[int]]:
        if self.pooling == "unmasked_mean":  # the figure to match depends on the company in which a text came
            return [list(range(len(lengths)))[begin : begin + self._batch_size]
                    for begin in range(0, len(lengths), self._batch_size)]  # fmt: skip
        return batches(lengths, tokens=self._batch_tokens, rows=self._batch_size)

    def _tokens(self, texts: list[str], begin: int) -> list[list[int]]:
        cut = {"truncation": True, "max_length": self.limit} if self.limit else {}
        given = [self._prefix + self._cased(text) for text in texts]
        tokens: list[list[int]] = self.tokenizer(given, verbose=False, **cut)["input_ids"]
        for number, ids in enumerate(tokens):
            if not ids:
                raise ValueError(f"text {begin + number} has no token, so it has no vector; leave empty texts out")
        return tokens

    def _cased(self, text: str) -> str:
        return text.lower() if self._lower_case else text

    @torch.inference_mode()
    def _forward(self, rows: list[list[int]]) -> NDArray[np.float32]:
        """(B, D) vectors of texts in tokens, padded on the right."""
        longest = max(map(len, rows))
        ids = torch.full((len(rows), longest), self.tokenizer.pad_token_id or 0)
        mask = torch.zeros_like(ids)
        for row, tokens in enumerate(rows):
            ids[row, : len(tokens)] = torch.tensor(tokens)
            mask[row, : len(tokens)] = 1
        mask = mask.to(self.network.device)
        states: Tensor = self.network(input_ids=ids.to(self.network.device), attention_mask=mask).last_hidden_state
        vectors: NDArray[np.float32] = self._dense(pool(states, mask, self.pooling)).cpu().numpy()
        return vectors


def _longest(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Longest text that a plain model reads; a tokenizer that does not know says so with an astronomical number."""
    known = [getattr(network.config, "max_position_embeddings", None), tokenizer.model_max_length]
    return min((length for length in known if length is not None and 0 < length < 10**9), default=None)
