"""A server that speaks as OpenAI's does, and decodes speculatively.

    upheld run speculative serve --model smollm2 --drafter DIR

answers ``/v1/models``, ``/v1/completions`` and ``/v1/chat/completions``, streaming too, one text at a time.
"""

from __future__ import annotations

import json
import socket
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from threading import Lock
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


class Service:
    """One decoder, one text at a time.

    Parameters
    ----------
    decoder : decodes
    tokenizer : the target's
    name : as the model is called to clients
    """

    def __init__(self, decoder: SpeculativeDecoder, tokenizer: PreTrainedTokenizerBase, name: str) -> None:
        self.decoder, self.tokenizer, self.name = decoder, tokenizer, name
        self._alone = Lock()

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
        config = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=most if limit is None else min(most, limit - len(ids)),
            do_sample=temperature >= LEAST_TEMPERATURE, top_k=0,
            top_p=fields.number(body, "top_p", 1.0, low=LEAST_TOP_P, high=1), temperature=max(temperature, LEAST_TEMPERATURE),
        )  # fmt: skip
        return Asked(
            ids=torch.tensor([ids], device=self.decoder.target.device),
            config=config,
            stop=fields.texts(body, "stop"),
            stream=fields.truth(body, "stream"),
            include_usage=fields.truth(fields.options(body, "stream_options"), "include_usage"),
            seed=fields.whole(body, "seed", low=-SEEDS, high=SEEDS),
        )

    def pieces(self, asked: Asked) -> Iterator[tuple[str, str | None, int]]:
        """New text, why it ended (None: it goes on), and tokens written so far."""
        source = None
        if asked.seed is not None:
            source = torch.Generator(self.decoder.target.device).manual_seed(asked.seed)
        ends = self.decoder.target.generation_config.eos_token_id
        stops = {ends} if isinstance(ends, int) else set(ends or ())
        transcript, written, given = Transcript(self.tokenizer, asked.stop), 0, 0
        finish: str | None = None
        with self._alone:
            for emitted in self.decoder.stream(asked.ids, asked.config, generator=source):
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
                if len(text := transcript.settled) > given:
                    yield text[given:], None, written
                    given = len(text)
        transcript.end()
        yield transcript.text[given:], finish or "length", written

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
        from anyio.to_thread import run_sync
        from starlette.applications import Starlette
        from starlette.requests import Request
        from starlette.responses import JSONResponse, StreamingResponse
        from starlette.routing import Route
    except ImportError as missing:
        raise ImportError('a server needs starlette and uvicorn; pip install "upheld[speculative]"') from missing

    async def told(lines: Iterator[str]) -> AsyncIterator[str]:
        # A client may leave in the middle: the text is then given up at once, and the next one begins.
        try:
            while (line := await run_sync(next, lines, None)) is not None:
                yield line
        finally:
            lines.close()  # type: ignore[attr-defined]

    def answered(chat: bool) -> Any:
        async def answer(request: Request) -> Any:
            try:
                asked = service.understand(json.loads(await request.body()), chat=chat)
            except ValueError as wrong:  # a body that is no JSON too
                error = {"message": str(wrong), "type": "invalid_request_error", "param": None, "code": None}
                return JSONResponse({"error": error}, status_code=400)
            if asked.stream:
                return StreamingResponse(told(events(service, asked, chat)), media_type="text/event-stream")
            return JSONResponse(await run_sync(whole, service, asked, chat))

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


def whole(service: Service, asked: Asked, chat: bool) -> dict[str, Any]:
    """The answer in one piece."""
    pieces = list(service.pieces(asked))
    text, (_, finish, written) = "".join(piece for piece, _, _ in pieces), pieces[-1]
    said = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    head = _head(service, "chat.completion" if chat else "text_completion", chat)
    choice = {"index": 0, **said, "finish_reason": finish, "logprobs": None}
    return {**head, "choices": [choice], "usage": _usage(asked, written)}


def events(service: Service, asked: Asked, chat: bool) -> Iterator[str]:
    """The answer piece by piece, as server-sent events."""
    head = _head(service, "chat.completion.chunk" if chat else "text_completion", chat)
    first, total = True, 0
    for piece, finish, written in service.pieces(asked):
        total = written
        delta = {"delta": {"content": piece} | ({"role": "assistant"} if first else {})} if chat else {"text": piece}
        first = False
        choice = {"index": 0, **delta, "finish_reason": finish, "logprobs": None}
        yield f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"
    if asked.include_usage:
        yield f"data: {json.dumps({**head, 'choices': [], 'usage': _usage(asked, total)})}\n\n"
    yield "data: [DONE]\n\n"


def _head(service: Service, kind: str, chat: bool) -> dict[str, Any]:
    number = ("chatcmpl-" if chat else "cmpl-") + uuid.uuid4().hex
    return {"id": number, "object": kind, "created": int(time.time()), "model": service.name}


def _usage(asked: Asked, written: int) -> dict[str, int]:
    read = asked.ids.shape[1]
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def listen(service: Service, host: str, port: int) -> None:
    """Serve until stopped.

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
    # Bound here: what uvicorn says of a port that is taken, it says in its log alone.
    try:
        door = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        why = str(error.strerror or error).partition(" (while")[0]
        raise ValueError(
            f"nothing can listen at {host}, port {port} ({why}); take another --port (0: a free one), or another --host"
        ) from error
    with door:
        server = uvicorn.Server(uvicorn.Config(found, log_level="warning"))
        print(f"listening at http://{host}:{door.getsockname()[1]}/v1 as {service.name}", flush=True)
        server.run(sockets=[door])
