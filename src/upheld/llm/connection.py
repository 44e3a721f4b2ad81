"""The way to one OpenAI-compatible endpoint: what leaves for it, what is tried again, and how a failure is told.

The official client does the talking. What it would take from the environment by itself is settled here: keys (`upheld.llm.keys`), the
organisation and other headers, proxies, redirects; its own retries are off (`upheld.llm.retries` is the one policy).
"""

from __future__ import annotations

import email.utils
import json
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from threading import BoundedSemaphore, Event
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from upheld.llm.keys import checked_url, is_openai, is_this_machine, key_for, key_variable, quoted, redacted
from upheld.llm.model import ModelError
from upheld.llm.retries import Retries

if TYPE_CHECKING:
    import httpx2
    import openai

Reply = TypeVar("Reply")

CONNECT_S = 10.0
PASSING = {408, 409, 425, 429}  # beside every 5xx: what another try may mend
NEEDED = {
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "host",
    "user-agent",
    "x-stainless-raw-response",
}
"""Headers that a request needs, the last one to tell the client what to hand out.

Others (organisation, project, the client's account of this machine) go to OpenAI's own alone."""


TRANSPORT = ("connection", "http11", "http2", "proxy", "socks")
LOGGERS = ("openai", "openai._base_client", "httpx2", *(f"httpcore2.{name}" for name in TRANSPORT))
"""Who tells what went over the line; at DEBUG this takes in a server's headers, which may throw a key back."""


@dataclass(frozen=True)
class Trouble:
    """Why a try failed; `passing` if another may succeed, `after_s` if the server said when."""

    came: str
    advice: str = ""
    passing: bool = False
    after_s: float | None = None


class Connection:
    """One model at one endpoint.

    Parameters
    ----------
    model : its name there
    url : address up to and with ``/v1``
    concurrency : requests at a time, whatever the number of threads that ask
    timeout_s : longest silence of the server in seconds
    retries : when a request is tried again

    Raises
    ------
    ValueError
        If the address is none or has room for a secret, or the key for its host must not be sent there.
    """

    def __init__(self, model: str, url: str, concurrency: int, timeout_s: float, retries: Retries) -> None:
        if not isinstance(model, str) or not model.strip() or "://" in model:
            raise ValueError(
                "a model's name must be some text and no address; give the address of its endpoint as the URL"
            )
        if concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, got {concurrency}")
        if not 0 < timeout_s < math.inf:
            raise ValueError(f"timeout_s must lie above 0, got {timeout_s}")
        self.model = model
        self.url = checked_url(url)
        self.timeout_s = timeout_s
        self.retries = retries
        self.id = f"openai:{model}@{self.url}"
        self._room = BoundedSemaphore(concurrency)
        key_for(self.url)  # what is wrong with the key is said now

    @property
    def official(self) -> bool:
        """Whether OpenAI itself answers, whose newer models know ``max_completion_tokens`` only."""
        return (urlsplit(self.url).hostname or "").endswith("api.openai.com")

    @cached_property
    def client(self) -> openai.OpenAI:
        import httpx2
        import openai

        for name in LOGGERS:
            logging.getLogger(name).addFilter(_without_keys)
        http = httpx2.Client(
            timeout=httpx2.Timeout(self.timeout_s, connect=min(self.timeout_s, CONNECT_S)),
            limits=httpx2.Limits(max_connections=None),
            event_hooks={"request": [_own_headers]},
            follow_redirects=False,  # a prompt goes where the user said
            trust_env=not is_this_machine(self.url),  # a proxy is for the way out
        )
        return openai.OpenAI(api_key="none", admin_api_key="", base_url=self.url, max_retries=0, http_client=http)

    def json(self, send: Callable[[openai.OpenAI], Any], stop: Event | None = None) -> dict[str, Any]:
        """The JSON object that a raw reply of the client holds."""
        reply = self.tried(send, stop)
        try:
            found = json.loads(reply.content)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            kind = quoted(reply.headers.get("content-type", "") or "no content type", 40)
            start = quoted(reply.content[:400].decode(errors="replace"), 80)
            raise self.error(
                Trouble(
                    f"answered with no JSON object ({kind}: {start!r})",
                    "check that the URL leads to an OpenAI-compatible /v1",
                )
            )
        return found

    def tried(self, send: Callable[[openai.OpenAI], Reply], stop: Event | None = None) -> Reply:
        """What `send` gets from the client, after as many tries as `retries` allows.

        Raises
        ------
        ModelError
            If it gets nothing; the error holds neither the request nor a header.
        """
        import openai

        stop = stop or Event()
        failed = 0
        while True:
            try:
                with self._room:
                    return send(self.client)
            except openai.APIError as error:
                trouble = self.trouble(error)
            failed += 1
            wait = self.retries.wait(failed, trouble.after_s) if trouble.passing else None
            if wait is None or stop.wait(wait):
                # Raised outside the except clause: the client's error holds the request with its headers and must not stay attached.
                raise self.error(trouble, failed)

    def trouble(self, error: openai.APIError) -> Trouble:
        """What an error of the client means."""
        import openai

        if isinstance(error, openai.APITimeoutError):
            return Trouble(
                f"gave no sign for {self.timeout_s:g} s",
                "allow it more time (timeout_s) or ask for less (max_tokens)",
                passing=True,
            )
        if isinstance(error, openai.APIConnectionError):
            reason = quoted(str(error.__cause__ or "").rstrip("."), 120) or type(error.__cause__ or error).__name__
            return Trouble(
                f"could not be reached or dropped the connection ({reason})",
                "check that it runs and that the URL is right",
                passing=True,
            )
        if isinstance(error, openai.APIStatusError):
            return self._refusal(error.status_code, _said(error), error.response.headers, error.code)
        return Trouble(f"reported an error: {quoted(error.message)!r}", "see the endpoint's own log")

    def error(self, trouble: Trouble, tries: int = 1) -> ModelError:
        """One sentence: who, what came, what to do."""
        often = f" ({tries} tries)" if tries > 1 else ""
        advice = f"; {trouble.advice}" if trouble.advice else ""
        return ModelError(f"{self.model} at {urlsplit(self.url).netloc} {trouble.came}{often}{advice}")

    def _refusal(self, status: int, said: str, headers: httpx2.Headers, code: str | None) -> Trouble:
        came = f"answered {status}" + (f": {said!r}" if said else "")
        passing = (
            (status in PASSING or status >= 500)
            and headers.get("x-should-retry") != "false"
            and code != "insufficient_quota"
        )
        after_s = _retry_after(headers) if passing else None
        if status in (401, 403):
            variable = key_variable(self.url)
            names = " or ".join(name for name in (variable, "OPENAI_API_KEY" if is_openai(self.url) else None) if name)
            return Trouble(
                came, f"set {names} to a key that is valid there" if names else "no key can be named for this host"
            )
        if 300 <= status < 400:
            return Trouble(
                came, f"it has moved to {quoted(headers.get('location', ''))!r}: give that URL if you trust it"
            )
        if status == 404:
            return Trouble(
                came,
                "check the model's name, that the URL ends where /chat/completions begins (usually /v1), and what the endpoint serves",
            )
        if status == 429:
            asked = f" (it asks to wait {after_s:.0f} s)" if after_s is not None else ""
            return Trouble(came + asked, "lower the concurrency, or wait and start again", passing, after_s)
        if status >= 500 or passing:
            return Trouble(came, "see the endpoint's own log, or try later", passing, after_s)
        return Trouble(came, "change what it objects to")


def _without_keys(record: logging.LogRecord) -> bool:
    """A filter that lets every record pass, blanked."""
    message = record.getMessage()
    blanked = redacted(message)
    if blanked != message:
        record.msg, record.args = blanked, ()
    return True


def _own_headers(request: httpx2.Request) -> None:
    """The last word before a request leaves: the key for where it goes, and nothing that is meant for somebody else."""
    url = str(request.url)
    key = key_for(url)
    request.headers.pop("authorization", None)
    if not is_openai(url):
        for name in set(request.headers) - NEEDED:
            del request.headers[name]
    if key is not None:
        request.headers["authorization"] = f"Bearer {key}"


def _said(error: openai.APIStatusError) -> str:
    """The server's own words, out of the shapes in which servers put them."""
    body = error.body
    if isinstance(body, dict):
        body = body.get("message") or body.get("detail") or body.get("error") or body
    return quoted(body if isinstance(body, str) else json.dumps(body) if body is not None else error.response.text)


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds that the server asks to wait: a number or a date (RFC 9110, section 10.2.3), or milliseconds in OpenAI's own header."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            asked = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if math.isfinite(asked) and asked >= 0:
            return asked
    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - datetime.now(UTC).timestamp())
