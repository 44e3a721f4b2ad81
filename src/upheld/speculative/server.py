"""A server that speaks as OpenAI's does, and decodes speculatively.

    upheld run speculative serve --model smollm2 --drafter DIR

answers ``/v1/models``, ``/v1/completions`` and ``/v1/chat/completions``, streaming too, one text at a time.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from threading import Event
from typing import Any

import torch
from jinja2 import TemplateError
from transformers import GenerationConfig, PreTrainedTokenizerBase

from upheld.llm.transcript import Transcript
from upheld.speculative import fields
from upheld.speculative.decoder import SpeculativeDecoder
from upheld.speculative.verification import LEAST_TEMPERATURE

DEFAULT_MAX_TOKENS = 256
LEAST_TOP_P = 1e-9
SEEDS = 2**63 - 1
"""What a generator can be seeded with."""

UNDERSTOOD = {
    "model", "prompt", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_p", "stop", "stream",
    "stream_options", "seed", "n", "user", "response_format",
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """A request that was understood."""

    ids: torch.Tensor
    config: GenerationConfig
    stop: tuple[str, ...]
    stream: bool
    include_usage: bool
    seed: int | None


@dataclass(frozen=True)
class Piece:
    """What a cycle added to an answer.

    Parameters
    ----------
    text : it may be empty, while a character or a stop string is not whole
    finish : why the answer ended: "stop" or "length"; None: it goes on
    written : tokens so far
    """

    text: str
    finish: str | None
    written: int


class Service:
    """One decoder, one text at a time.

    Parameters
    ----------
    decoder : decodes
    tokenizer : the target's
    name : as the model is called to clients

    Attributes
    ----------
    stopping : once set, texts that are under way end where they are
    """

    def __init__(self, decoder: SpeculativeDecoder, tokenizer: PreTrainedTokenizerBase, name: str) -> None:
        self.decoder, self.tokenizer, self.name = decoder, tokenizer, name
        self.stopping = Event()

    def understand(self, body: Any, *, chat: bool) -> Asked:
        """
        Raises
        ------
        ValueError
            If the request is none, or asks for what is not done here.
        """
        if not isinstance(body, dict):
            raise ValueError("the body must be a JSON object")
        unknown = sorted(name for name in set(body) - UNDERSTOOD if body[name] not in (None, 0, False))
        if unknown:
            raise ValueError(f"the field {unknown[0]} is not understood here; leave it out")
        if body.get("response_format") not in (None, {"type": "text"}):
            raise ValueError("response_format must be text; no other is followed here")
        if body.get("n", 1) not in (None, 1):
            raise ValueError("n must be 1; ask once for every answer")
        ids = self._chat(body.get("messages")) if chat else self._text(body.get("prompt"))
        most = fields.whole(body, "max_completion_tokens", low=1) or fields.whole(body, "max_tokens", low=1)
        limit = getattr(self.decoder.target.config, "max_position_embeddings", None)
        if limit is not None and len(ids) >= limit:
            raise ValueError(f"the prompt has {len(ids)} tokens, and the model reads {limit}; shorten it")
        most = most or DEFAULT_MAX_TOKENS
        temperature = fields.number(body, "temperature", 1.0, low=0, high=fields.MOST_TEMPERATURE)
        top_p = fields.number(body, "top_p", 1.0, low=LEAST_TOP_P, high=1)
        sampled: dict[str, Any] = {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": top_p}
        config = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=most if limit is None else min(most, limit - len(ids)),
            **(sampled if temperature >= LEAST_TEMPERATURE else {"do_sample": False}),
        )
        return Asked(
            ids=torch.tensor([ids], device=self.decoder.target.device),
            config=config,
            stop=fields.texts(body, "stop"),
            stream=fields.truth(body, "stream"),
            include_usage=fields.truth(fields.options(body, "stream_options"), "include_usage"),
            seed=fields.whole(body, "seed", low=-SEEDS, high=SEEDS),
        )

    def pieces(self, asked: Asked) -> Generator[Piece, None, None]:
        """The answer as it comes; where the server stops, no piece tells an end."""
        source = None
        if asked.seed is not None:
            source = torch.Generator(self.decoder.target.device).manual_seed(asked.seed)
        ends = self.decoder.target.generation_config.eos_token_id
        stops = {ends} if isinstance(ends, int) else set(ends or ())
        transcript, written, given = Transcript(self.tokenizer, asked.stop), 0, 0
        finish: str | None = None
        for emitted in self.decoder.stream(asked.ids, asked.config, generator=source):
            if self.stopping.is_set():
                return
            for token in emitted.tolist():
                written += 1
                if token in stops:
                    finish = "stop"
                else:
                    transcript.add(token)
                    finish = "stop" if transcript.stopped else None
                if finish:
                    break
            if finish:
                break
            text = transcript.settled
            yield Piece(text[given:], None, written)
            given = len(text)
        transcript.end()
        yield Piece(transcript.text[given:], finish or "length", written)

    def _chat(self, messages: Any) -> list[int]:
        said = fields.conversation(messages)
        if not self.tokenizer.chat_template:
            raise ValueError(f"{self.name} has no chat template, so it cannot chat; ask /v1/completions")
        try:
            encoded: Any = self.tokenizer.apply_chat_template(said, add_generation_prompt=True, return_dict=True)
        except TemplateError as refused:  # a template may refuse a role, or an order of roles
            raise ValueError(f"the chat template of {self.name} refuses these messages: {refused}") from refused
        return list(encoded["input_ids"])

    def _text(self, prompt: Any) -> list[int]:
        if not isinstance(prompt, str) or not prompt:
            raise ValueError("prompt must be a text that is not empty")
        return list(self.tokenizer(prompt, verbose=False)["input_ids"])


def application(service: Service) -> Any:
    """The server as an ASGI application.

    Raises
    ------
    ImportError
        If `starlette` is not installed; the message holds the line that installs it.
    """
    try:
        from starlette.applications import Starlette
        from starlette.requests import Request
        from starlette.responses import JSONResponse, StreamingResponse
        from starlette.routing import Route
    except ImportError as missing:
        raise ImportError('a server needs starlette and uvicorn; pip install "upheld[speculative]"') from missing
    answers = Answers(service)

    def answered(chat: bool) -> Any:
        async def answer(request: Request) -> Any:
            try:
                asked = service.understand(parsed(await request.body()), chat=chat)
            except ValueError as wrong:
                return JSONResponse(refusal(str(wrong), "invalid_request_error"), status_code=400)
            if asked.stream:
                return StreamingResponse(answers.streamed(asked, chat), media_type="text/event-stream")
            body, status = await answers.collected(asked, chat, request.is_disconnected)
            return JSONResponse(body, status_code=status)

        return answer

    async def models(_request: Request) -> Any:
        return JSONResponse({"object": "list", "data": [{"id": service.name, "object": "model", "owned_by": "upheld"}]})

    return Starlette(
        routes=[
            Route("/v1/models", models),
            Route("/v1/completions", answered(False), methods=["POST"]),
            Route("/v1/chat/completions", answered(True), methods=["POST"]),
        ]
    )


class Answers:
    """Texts of a service for many clients, one text at a time."""

    def __init__(self, service: Service) -> None:
        self.service = service
        # Who waits here waits in no thread: those that wait could take all threads there are, and none be left to the one who decodes.
        self._alone = asyncio.Lock()

    async def pieces(self, asked: Asked) -> AsyncGenerator[Piece, None]:
        from anyio.to_thread import run_sync

        async with self._alone:
            found = self.service.pieces(asked)
            try:
                while (piece := await run_sync(next, found, None)) is not None:
                    yield piece
            finally:  # a client may leave in the middle: the text is given up, and the next one begins
                with suppress(ValueError):  # the loop was torn down under a cycle, which ends by itself
                    found.close()

    async def streamed(self, asked: Asked, chat: bool) -> AsyncIterator[str]:
        """As server-sent events; where the server stops, the last of them are missing."""
        events = Events(self.service, asked, chat)
        async for piece in self.pieces(asked):
            if piece.text or piece.finish:
                yield events.of(piece)
            if piece.finish:
                yield events.end(piece)

    async def collected(
        self, asked: Asked, chat: bool, gone: Callable[[], Awaitable[bool]]
    ) -> tuple[dict[str, Any] | None, int]:
        """In one piece, and the status; nothing for a client that is gone."""
        found = []
        async with aclosing(self.pieces(asked)) as coming:
            async for piece in coming:
                found.append(piece)
                if await gone():
                    return None, 499
        if not found or found[-1].finish is None:
            return refusal("the server stops; ask again when it is back", "server_error"), 503
        return whole(self.service, asked, chat, found), 200


def refusal(message: str, kind: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def parsed(body: bytes) -> Any:
    """
    Raises
    ------
    ValueError
        If it is no JSON.
    """
    try:
        return json.loads(body)
    except ValueError as error:
        raise ValueError(f"the body is not JSON ({error}); send an object") from error


def whole(service: Service, asked: Asked, chat: bool, pieces: Sequence[Piece]) -> dict[str, Any]:
    """The answer in one piece."""
    text, last = "".join(piece.text for piece in pieces), pieces[-1]
    said = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    head = _head(service, "chat.completion" if chat else "text_completion", chat)
    choice = {"index": 0, **said, "finish_reason": last.finish, "logprobs": None}
    return {**head, "choices": [choice], "usage": _usage(asked, last.written)}


class Events:
    """The answer piece by piece, as server-sent events."""

    def __init__(self, service: Service, asked: Asked, chat: bool) -> None:
        self.asked, self.chat, self.first = asked, chat, True
        self.head = _head(service, "chat.completion.chunk" if chat else "text_completion", chat)

    def of(self, piece: Piece) -> str:
        role = {"role": "assistant"} if self.first else {}
        delta = {"delta": {"content": piece.text} | role} if self.chat else {"text": piece.text}
        self.first = False
        return self._event([{"index": 0, **delta, "finish_reason": piece.finish, "logprobs": None}])

    def end(self, last: Piece) -> str:
        usage = self._event([], usage=_usage(self.asked, last.written)) if self.asked.include_usage else ""
        return f"{usage}data: [DONE]\n\n"

    def _event(self, choices: list[dict[str, Any]], **more: Any) -> str:
        return f"data: {json.dumps({**self.head, 'choices': choices, **more})}\n\n"


def _head(service: Service, kind: str, chat: bool) -> dict[str, Any]:
    number = ("chatcmpl-" if chat else "cmpl-") + uuid.uuid4().hex
    return {"id": number, "object": kind, "created": int(time.time()), "model": service.name}


def _usage(asked: Asked, written: int) -> dict[str, int]:
    read = asked.ids.shape[1]
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def listen(service: Service, host: str, port: int, note: str = "") -> None:
    """Serve until stopped; the note is told once it listens.

    Raises
    ------
    ImportError
        If `starlette` or `uvicorn` is not installed.
    ValueError
        If nothing can listen there.
    """
    found = application(service)
    try:
        import uvicorn
    except ImportError as missing:
        raise ImportError('a server needs starlette and uvicorn; pip install "upheld[speculative]"') from missing

    class Stopping(uvicorn.Server):
        """Ends the texts that are under way: uvicorn waits for them, however long they are."""

        def handle_exit(self, sig: int, frame: Any) -> None:
            service.stopping.set()
            super().handle_exit(sig, frame)

    # Bound here: what uvicorn says of a port that is taken, it says in its log alone.
    try:
        door = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        why = str(error.strerror or error).partition(" (while")[0]
        raise ValueError(
            f"nothing can listen at {host}, port {port} ({why}); take another --port (0: a free one), or another --host"
        ) from error
    with door:
        server = Stopping(uvicorn.Config(found, log_level="warning"))
        print(f"listening at http://{host}:{door.getsockname()[1]}/v1 as {service.name}", flush=True)
        if note:
            print(note, flush=True)
        server.run(sockets=[door])
