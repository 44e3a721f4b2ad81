"""Servers on loopback for the tests: one that misbehaves on order, and transformers' own."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

Reply = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Seen:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class FaultServer:
    """Gives the replies of a plan in turn, the last one over and over; keeps what it saw."""

    plan: Sequence[Reply]
    seen: list[Seen] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    def __post_init__(self) -> None:
        self._lock = Lock()
        self.over = Event()  # ends replies that wait

    def start(self) -> None:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            faults = server

            def do_POST(self) -> None:
                server.answer(self)

            def log_message(self, *_: object) -> None: ...

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that hang up are part of the plan
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        self.port = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        with self._lock:
            number = len(self.seen)
            headers = {name.lower(): value for name, value in handler.headers.items()}
            self.seen.append(Seen(handler.path, headers, json.loads(body or b"{}")))
            handler.body = self.seen[-1].body  # type: ignore[attr-defined]
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            self.plan[min(number, len(self.plan) - 1)](handler)
        finally:
            with self._lock:
                self.at_once -= 1

    def stop(self) -> None:
        self.over.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@contextmanager
def serving(*plan: Reply) -> Iterator[FaultServer]:
    server = FaultServer(plan)
    server.start()
    try:
        yield server
    finally:
        server.stop()


# -- replies


def raw(content: bytes, status: int = 200, kind: str = "application/json", **headers: str) -> Reply:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(content)

    return reply


def data(body: object, status: int = 200, **headers: str) -> Reply:
    return raw(json.dumps(body).encode(), status, **headers)


def refusal(status: int, message: str = "no", code: str | None = None, **headers: str) -> Reply:
    return data({"error": {"message": message, "type": "error", "code": code}}, status, **headers)


def chat(text: str | None = "Saturn.", finish: str = "stop", usage: object = (7, 3), logprobs: object = None) -> Reply:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": finish,
        "logprobs": logprobs,
    }
    return data({"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": _usage(usage)})


def completion(text: str = " Saturn", finish: str = "stop", usage: object = (7, 3), logprobs: object = None) -> Reply:
    choice = {"index": 0, "text": text, "finish_reason": finish, "logprobs": logprobs}
    return data({"id": "1", "object": "text_completion", "model": "m", "choices": [choice], "usage": _usage(usage)})


def embeddings(*vectors: object, order: Sequence[int] | None = None) -> Reply:
    order = range(len(vectors)) if order is None else order
    items = [{"object": "embedding", "index": place, "embedding": vectors[place]} for place in order]
    return data({"object": "list", "data": items, "model": "m", "usage": {"prompt_tokens": 5, "total_tokens": 5}})


def echo(handler: BaseHTTPRequestHandler) -> None:
    """Answers a chat or a prompt with its own text, and embeds a text as its length and its number of e's."""
    body = handler.body  # type: ignore[attr-defined]
    if "input" in body:
        return embeddings(*[[len(text), text.count("e")] for text in body["input"]])(handler)
    if "messages" in body:
        return chat(f"You said: {body['messages'][-1]['content']}")(handler)
    return completion(f" after {body['prompt']}")(handler)


def counted() -> Reply:
    """Answers 1, 2, 3, ...: no two draws are equal."""
    numbers = itertools.count(1)
    return lambda handler: chat(f"draw {next(numbers)}")(handler)


def dropped(handler: BaseHTTPRequestHandler) -> None:
    """Hangs up without a word."""
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def cut_short(handler: BaseHTTPRequestHandler) -> None:
    """Promises more than it sends."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [{"index": 0')
    handler.wfile.flush()
    dropped(handler)


def slow(handler: BaseHTTPRequestHandler) -> None:
    """Says nothing until the test is over."""
    handler.faults.over.wait(20)  # type: ignore[attr-defined]
    handler.close_connection = True


def after(seconds: float, reply: Reply) -> Reply:
    def later(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(seconds)
        reply(handler)

    return later


def events(*pieces: object, end: str = "done", usage: object = None, of: str = "chat") -> Reply:
    """A stream of pieces; `end`: "done" as it should be, "drop" in the midst of a chunk, "eof" cleanly but without a finish,
    "wait" silence, or raw text that is sent as the last event."""

    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()

        def send(text: str) -> None:
            block = f"data: {text}\n\n".encode()
            handler.wfile.write(f"{len(block):x}\r\n".encode() + block + b"\r\n")
            handler.wfile.flush()

        for piece in pieces:
            part = {"delta": {"content": piece}} if of == "chat" else {"text": piece}
            send(json.dumps({"id": "1", "choices": [{"index": 0, **part, "finish_reason": None}]}))
        if end == "wait":
            return slow(handler)
        if end == "drop":
            handler.wfile.write(b"fff\r\ndata: {")
            handler.wfile.flush()
            return dropped(handler)
        if end == "done":
            part = {"delta": {}} if of == "chat" else {"text": ""}
            send(json.dumps({"id": "1", "choices": [{"index": 0, **part, "finish_reason": "stop"}]}))
            if usage is not None:
                send(json.dumps({"id": "1", "choices": [], "usage": _usage(usage)}))
            send("[DONE]")
        elif end != "eof":
            send(end)
        handler.wfile.write(b"0\r\n\r\n")
        return None

    return reply


def _usage(usage: object) -> object:
    if not isinstance(usage, tuple):
        return usage
    return {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}


# -- transformers' own server


@contextmanager
def transformers_server(folder: Path, log: Path) -> Iterator[str]:
    """URL of `transformers serve` with the model in a folder; nothing but the folder is read."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(folder), "--host", "127.0.0.1", "--port", str(port),
               "--device", "cpu", "--dtype", "float32"]  # fmt: skip
    with log.open("w") as out:
        process = subprocess.Popen(command, env={**os.environ, **quiet}, stdout=out, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
                    break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"transformers serve did not start:\n{log.read_text()[-3000:]}") from None
                time.sleep(0.3)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
