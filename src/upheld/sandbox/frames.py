"""Messages over a stream: four bytes of length, then JSON. Never pickle: what comes back was written by the program."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from typing import Any

LENGTH = struct.Struct(">I")


class Forged(ValueError):
    """What came over the stream is no message that an honest worker sends."""


def packed(message: Any) -> bytes:
    """Raises TypeError or ValueError if the message has no form in JSON."""
    body = json.dumps(message, allow_nan=True).encode()
    return LENGTH.pack(len(body)) + body


def parsed(body: bytes | bytearray) -> Any:
    """Raises Forged if `body` is not JSON, is nested too deeply, or holds an absurd number."""
    try:
        return json.loads(body.decode())
    except (ValueError, RecursionError) as wrong:
        raise Forged(f"the program sent something other than JSON: {wrong}") from None


class Inbox:
    """Messages out of the bytes that arrived so far, none longer than `longest` bytes."""

    def __init__(self, longest: int):
        self.longest = longest
        self._bytes = bytearray()

    def add(self, chunk: bytes) -> Iterator[Any]:
        """Yield the messages that `chunk` completes. Raises Forged for what is no message, or one too long."""
        self._bytes += chunk
        while len(self._bytes) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._bytes)
            if length > self.longest:
                raise Forged(
                    f"the program sent a value of {length:,} bytes; {self.longest:,} are allowed (Limits.value)"
                )
            if len(self._bytes) < LENGTH.size + length:
                return
            body = self._bytes[LENGTH.size : LENGTH.size + length]
            del self._bytes[: LENGTH.size + length]
            yield parsed(body)


def receive(line: socket.socket) -> Any:
    """The next message, waiting for it. Raises EOFError when the other side is gone."""
    (length,) = LENGTH.unpack(_exactly(line, LENGTH.size))
    return parsed(_exactly(line, length))


def receive_with_files(line: socket.socket, most: int) -> tuple[Any, list[int]]:
    """The next message and the files that came with it. Raises EOFError when the other side is gone."""
    head, files, _, _ = socket.recv_fds(line, LENGTH.size, most)
    if not head:
        raise EOFError
    (length,) = LENGTH.unpack(head + _exactly(line, LENGTH.size - len(head)))
    return parsed(_exactly(line, length)), files


def _exactly(line: socket.socket, size: int) -> bytes:
    got = bytearray()
    while len(got) < size:
        chunk = line.recv(min(size - len(got), 1 << 20))
        if not chunk:
            raise EOFError
        got += chunk
    return bytes(got)
