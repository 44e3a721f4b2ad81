"""Models and embedders at an OpenAI-compatible endpoint: OpenAI's own, vLLM, llama.cpp, Ollama, `transformers serve`, and the like."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from upheld.llm.abreast import abreast
from upheld.llm.answer import Answer, Request, Sampling, Usage
from upheld.llm.connection import Connection, Trouble
from upheld.llm.model import Embedder, LanguageModel, Told, gathered
from upheld.llm.prices import Prices, prices_of
from upheld.llm.replies import Unusable, before, chat_answer, completion_answer, usage_of
from upheld.llm.retries import Retries
from upheld.llm.vectors import listed

if TYPE_CHECKING:
    import openai

Found = TypeVar("Found")

OPENAI = "https://api.openai.com/v1"


class Endpoint(LanguageModel):
    """A language model at an OpenAI-compatible endpoint.

    Chats go to ``/chat/completions``, texts to complete to ``/completions``. Keys come from the environment (`upheld.llm.keys`). Whether
    a seed is kept is the server's affair. `transformers serve` keeps it only for one request at a time, and what it draws unseeded after a
    seeded request is settled by that seed.

    Parameters
    ----------
    model : its name there
    url : address up to and with ``/v1``; None: ``OPENAI_BASE_URL``, else OpenAI's
    concurrency : requests at a time
    timeout_s : longest silence of the server, in seconds
    retries : when a request is tried again
    prices : what a million tokens cost, read and written, or a JSON file that lists it by model

    Attributes
    ----------
    usage_ : Usage
        Tokens and cost of all answers so far; the cost is None without prices, or when an answer came without counts.

    Raises
    ------
    ValueError
        If the URL is none or has room for a secret, the key must not be sent there, or the price list is none.

    Examples
    --------
    >>> model = Endpoint("my-model", "http://localhost:8000/v1", prices=(0.15, 0.60))    # doctest: +SKIP
    >>> model.chat("Name a planet.").text, model.usage_.cost                              # doctest: +SKIP
    ('Saturn.', 3.6e-06)
    """

    def __init__(
        self, model: str, url: str | None = None, *, concurrency: int = 4, timeout_s: float = 120.0,
        retries: Retries | None = None, prices: Prices | None = None,
    ) -> None:  # fmt: skip
        self._connection = Connection(model, _address(url), concurrency, timeout_s, retries or Retries())
        self._total = _Total(prices_of(model, prices))
        self.id = self._connection.id
        self.concurrency = concurrency

    @property
    def usage_(self) -> Usage:
        return self._total.usage

    def answers(self, requests: Sequence[Request], told: Told | None = None) -> list[Answer]:
        return gathered(self.each(requests), len(requests), told)

    def each(self, requests: Sequence[Request]) -> Iterator[tuple[int, Answer]]:
        return abreast(self._answer, requests, self.concurrency)

    def stream(self, request: Request) -> Iterator[str]:
        """The answer piece by piece.

        Raises
        ------
        ModelError
            Before the first piece for what `answers` raises too; later if the connection breaks off, saying how much had come. It is
            not asked for again then: another answer would not go on where this one ended.
        """
        chunks = self._connection.tried(self._sender(request, stream=True))
        come = 0
        with closing(self._pieces(chunks)) as pieces:
            for piece in before(pieces, request.sampling.stop):
                come += len(piece)
                yield piece
        if not come and request.prompt is None:
            raise self._connection.error(Trouble("streamed an empty answer", "ask with another seed or prompt"))

    def _answer(self, request: Request, stop: Event) -> Answer:
        reply = self._connection.json(self._sender(request), stop)
        read = chat_answer if request.messages else completion_answer
        answer = readable(
            self._connection, lambda: read(reply, request.sampling, self._connection.model, self._total.prices)
        )
        self._total.add(answer.usage)
        return answer

    def settings(self, sampling: Sampling, *, chat: bool = True) -> dict[str, Any]:
        """How a request names the model and says how its answer is drawn."""
        limit = "max_completion_tokens" if chat and self._connection.official else "max_tokens"
        asked: dict[str, Any] = {
            "model": self._connection.model,
            "temperature": sampling.temperature,
            limit: sampling.max_tokens,
        }
        if sampling.top_p < 1:
            asked["top_p"] = sampling.top_p
        if sampling.seed is not None:
            asked["seed"] = sampling.seed
        if sampling.stop:
            asked["stop"] = list(sampling.stop)
        return asked

    def _sender(self, request: Request, stream: bool = False) -> Callable[[openai.OpenAI], Any]:
        """What is asked of the client; what has its usual value is left out, since servers refuse what they do not know."""
        sampling = request.sampling
        asked = self.settings(sampling, chat=bool(request.messages))
        if stream:
            asked |= {"stream": True, "stream_options": {"include_usage": True}}
        elif sampling.logprobs is not None:
            asked |= (
                {"logprobs": True, "top_logprobs": sampling.logprobs}
                if request.messages
                else {"logprobs": sampling.logprobs}
            )
        if request.messages:
            asked["messages"] = [{"role": turn.role, "content": sendable(turn.content)} for turn in request.messages]
        else:
            asked["prompt"] = sendable(request.prompt or "")

        def send(client: openai.OpenAI) -> Any:
            path: Any = client.chat.completions if request.messages else client.completions
            return (path if stream else path.with_raw_response).create(**asked)

        return send

    def _pieces(self, chunks: Any) -> Generator[str]:
        """Texts of the chunks, up to the one that says why the answer ends; a stream without it broke off."""
        import openai

        come, finished, usage = 0, False, Usage()
        trouble = Trouble("the connection was dropped")
        try:
            for chunk in chunks:
                if hasattr(getattr(chunk, "usage", None), "to_dict"):
                    usage = usage_of({"usage": chunk.usage.to_dict()}, self._total.prices)
                for choice in getattr(chunk, "choices", None) or ():
                    piece = getattr(choice, "text", None) or getattr(getattr(choice, "delta", None), "content", None)
                    finished = finished or bool(getattr(choice, "finish_reason", None))
                    if isinstance(piece, str) and piece:
                        come += len(piece)
                        yield piece
        except openai.APIError as error:
            trouble = self._connection.trouble(error)
        except ValueError:
            trouble = Trouble("sent a piece that is no JSON")
        finally:
            chunks.close()
            self._total.add(usage)
        if not finished:
            raise self._connection.error(
                Trouble(f"{trouble.came}: its answer broke off after {come} characters", "ask again")
            )


class EndpointEmbedder(Embedder):
    """An embedding model at an OpenAI-compatible endpoint (``/embeddings``).

    Parameters
    ----------
    batch_size : texts in a request
    model, url, concurrency, timeout_s, retries, prices : as for `Endpoint`

    Attributes
    ----------
    usage_ : Usage
        Tokens and cost of all texts so far.

    Examples
    --------
    >>> EndpointEmbedder("my-embedder", "http://localhost:8000/v1").embed(["a planet"]).shape      # doctest: +SKIP
    (1, 384)
    """

    def __init__(
        self, model: str, url: str | None = None, *, batch_size: int = 64, concurrency: int = 4, timeout_s: float = 120.0,
        retries: Retries | None = None, prices: Prices | None = None,
    ) -> None:  # fmt: skip
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        self._connection = Connection(model, _address(url), concurrency, timeout_s, retries or Retries())
        self._total = _Total(prices_of(model, prices))
        self.id = self._connection.id
        self.batch_size = batch_size
        self.concurrency = concurrency

    @property
    def usage_(self) -> Usage:
        return self._total.usage

    def embed(self, texts: Sequence[str], told: Told | None = None) -> NDArray[np.float32]:
        """(n, D) vectors as the endpoint gives them; (0, 0) for no text.

        Raises
        ------
        ModelError
            If the endpoint cannot be reached, or gives another number of vectors than texts, vectors of different lengths, or a
            value that is not finite.
        """
        texts = listed(texts)
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        blocks = [texts[start : start + self.batch_size] for start in range(0, len(texts), self.batch_size)]
        found: dict[int, NDArray[np.float32]] = {}
        for place, vectors in abreast(self._vectors, blocks, self.concurrency):
            found[place] = vectors
            if told is not None:
                told(sum(map(len, found.values())), len(texts))
        lengths = {vectors.shape[1] for vectors in found.values()}
        if len(lengths) > 1:
            raise self._connection.error(_odd(f"gave vectors of {_listed(lengths)} numbers for texts of one call"))
        return np.concatenate([found[place] for place in range(len(blocks))])

    def _vectors(self, texts: Sequence[str], stop: Event) -> NDArray[np.float32]:
        asked = [sendable(text) for text in texts]
        reply = self._connection.json(
            lambda client: client.embeddings.with_raw_response.create(
                model=self._connection.model, input=asked, encoding_format="float"
            ),
            stop,
        )
        vectors = readable(self._connection, lambda: embedding_vectors(reply, len(texts)))
        self._total.add(usage_of(reply, self._total.prices))
        return vectors


def embedding_vectors(reply: dict[str, Any], n: int) -> NDArray[np.float32]:
    """(n, D) vectors of a reply of ``/embeddings``, in the order of their texts."""
    data = reply.get("data")
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise Unusable("answered without data; check that the endpoint serves /embeddings for this model")
    if len(data) != n:
        raise Unusable(f"gave {len(data)} vectors for {n} texts; check the endpoint's log")
    places = [item.get("index", place) for place, item in enumerate(data)]
    if any(isinstance(place, bool) or not isinstance(place, int) for place in places) or sorted(places) != list(
        range(n)
    ):
        raise Unusable(f"gave vectors that cannot be told apart (indices {places[:8]}); check the endpoint's log")
    rows = [data[places.index(place)].get("embedding") for place in range(n)]
    lengths = {len(row) if isinstance(row, list) else 0 for row in rows}
    if len(lengths) != 1 or lengths == {0}:
        raise Unusable(f"gave vectors of {_listed(lengths)} numbers; check that it is an embedding model")
    try:
        exact = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise Unusable("gave vectors that do not consist of numbers; check that it is an embedding model") from None
    with np.errstate(over="ignore"):  # too large for float32 is not finite, and said below
        vectors: NDArray[np.float32] = exact.astype(np.float32)
    if not np.isfinite(vectors).all():
        bad = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise Unusable(
            f"gave a vector with a value that is not finite (text {bad + 1} of {n}); shorten or drop that text"
        )
    return vectors


class _Total:
    """Usage so far, counted by several threads."""

    def __init__(self, prices: tuple[float, float] | None) -> None:
        self.prices = prices
        self.usage = Usage(cost=None if prices is None else 0.0)
        self._lock = Lock()

    def add(self, usage: Usage) -> None:
        with self._lock:
            self.usage = self.usage + usage


def _address(url: str | None) -> str:
    return url if url is not None else os.environ.get("OPENAI_BASE_URL", "").strip() or OPENAI


def readable(connection: Connection, read: Callable[[], Found]) -> Found:
    """What `read` finds in a reply; what is wrong with the reply becomes the connection's error."""
    try:
        return read()
    except Unusable as error:
        unusable = Trouble(str(error))
    raise connection.error(unusable)


def sendable(text: str) -> str:
    """The text itself; half a surrogate pair (from a file's name, or text cut in the middle) cannot be sent."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"a text cannot be sent, its character {error.start + 1} is half a surrogate pair; decode it with errors='replace'"
        ) from None
    return text


def _odd(came: str) -> Trouble:
    return Trouble(came, "check the endpoint's log")


def _listed(lengths: set[int]) -> str:
    return " and ".join(map(str, sorted(lengths)))
