"""Which key goes to which endpoint. Keys come from the environment alone, are read when a request leaves, and are kept nowhere.

- ``UPHELD_API_KEY_<HOST>`` holds the key for one host: its name in capitals, a dot as ``_`` and a hyphen as ``__``
  (``UPHELD_API_KEY_LLM_MY__LAB_ORG`` for ``llm.my-lab.org``), so that no two hosts share a variable. It is sent over https, and over
  http to this machine.
- ``OPENAI_API_KEY`` goes to ``https://api.openai.com`` (and its regions), and to the origin that ``OPENAI_BASE_URL`` names. It is never
  sent anywhere else.
- Other endpoints get no key.
"""

from __future__ import annotations

import ipaddress
import os
import re
from urllib.parse import SplitResult, urlsplit

OFFICIAL = "api.openai.com"
SHORTEST = 8
"""A value below this length is a placeholder ("none", "EMPTY") rather than a secret; blanking it would garble ordinary words."""

_HOST = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*")
_KEY = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # what RFC 6750 lets a bearer token consist of


def checked_url(url: str) -> str:
    """The address of an endpoint, without a slash at its end.

    Raises
    ------
    ValueError
        If it is no http(s) address, or has room for a secret (a user's name, a query, a fragment). The message does not repeat it.
    """
    if set(url) & set("@?#\\") or not url.isprintable() or " " in url:
        raise ValueError(
            "an endpoint's URL must hold no '@', '?', '#', backslash or blank, since user:password@ and ?key= would end up in files; "
            f"write https://HOST/v1 and put the key into the environment ({_named('HOST')})"
        )
    parts = _split(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or not parts.netloc.isascii():
        raise ValueError(
            f"an endpoint's URL looks like https://HOST/v1 or http://localhost:8000/v1, got {redacted(url)!r}"
        )
    return url.rstrip("/")


def key_for(url: str) -> str | None:
    """The key that a request to `url` carries, if the environment holds one for its host.

    Raises
    ------
    ValueError
        If the key is no bearer token, or would cross the network in clear text. The message names the variable, never its value.
    """
    parts = urlsplit(url)
    variable = key_variable(url)
    if variable and os.environ.get(variable, "").strip():
        if parts.scheme == "http" and not is_this_machine(url):
            raise ValueError(
                f"the key in {variable} would cross the network in clear text; use https, or, on a network of yours, name this URL in "
                "OPENAI_BASE_URL and put the key into OPENAI_API_KEY"
            )
        return _value(variable)
    return _value("OPENAI_API_KEY") if is_openai(url) else None


def key_variable(url: str) -> str | None:
    """Name of the variable for the host of `url`; None for a host that no variable can name without ambiguity."""
    host = urlsplit(url).hostname or ""
    return _named(host) if _HOST.fullmatch(host) else None


def is_openai(url: str) -> bool:
    """Whether ``OPENAI_API_KEY`` and the other ``OPENAI_*`` settings are meant for `url`."""
    host = urlsplit(url).hostname or ""
    if urlsplit(url).scheme == "https" and (host == OFFICIAL or host.endswith(f".{OFFICIAL}")):
        return True
    base = _split(os.environ.get("OPENAI_BASE_URL", "").strip())
    return base is not None and bool(base.hostname) and _origin(base) == _origin(urlsplit(url))


def is_this_machine(url: str) -> bool:
    """Whether `url` leads to the loopback interface."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def redacted(text: str) -> str:
    """`text` with every key of the environment blanked."""
    for secret in sorted(_secrets(), key=len, reverse=True):
        text = text.replace(secret, "[key]")
    return text


def quoted(text: str, longest: int = 200) -> str:
    """What a server said, fit for an error: one line, cut, without the keys that we know and without what looks like one."""
    line = re.sub(r"\bsk-[\w*.-]{6,}|\b(Bearer|Basic)\s+\S+", "[key]", redacted(" ".join(text.split())))
    return line if len(line) <= longest else f"{line[:longest]}…"


def _secrets() -> set[str]:
    values = [
        value
        for name, value in os.environ.items()
        if name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_WEBHOOK_SECRET") or name.startswith("UPHELD_API_KEY_")
    ]
    values += os.environ.get("OPENAI_CUSTOM_HEADERS", "").split()
    return {value.strip() for value in values if len(value.strip()) >= SHORTEST}


def _value(variable: str) -> str | None:
    value = os.environ.get(variable, "").strip()
    if value and not _KEY.fullmatch(value):
        raise ValueError(
            f"{variable} holds characters that no key has (a blank, a quote, a line break?); set it to the key alone"
        )
    return value or None


def _named(host: str) -> str:
    return f"UPHELD_API_KEY_{host.upper().replace('-', '__').replace('.', '_')}"


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (raises where it is no number)
    except ValueError:
        return None
    return parts


def _origin(parts: SplitResult) -> tuple[str, str | None, int]:
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
