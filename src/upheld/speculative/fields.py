"""The fields of a request as OpenAI's clients send them, each read or refused by its name.

All raise `ValueError` where a value is none that the field can have.
"""

from __future__ import annotations

import math
from typing import Any

MOST_TEMPERATURE = 2.0
"""As in OpenAI's own interface; hotter text is noise."""


def number(body: dict[str, Any], name: str, default: float, *, low: float, high: float) -> float:
    """A number from `low` to `high`."""
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}")
    return float(value)


def whole(body: dict[str, Any], name: str, *, low: float, high: float = math.inf) -> int | None:
    """A whole number of at least `low` and at most `high`; None where none is given."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        most = "" if math.isinf(high) else f" and at most {high:g}"
        raise ValueError(f"{name} must be a whole number of at least {low:g}{most}, got {value!r}")
    return value


def truth(body: dict[str, Any], name: str) -> bool:
    """true or false; false where it is not given."""
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, got {value!r}")
    return bool(value)


def texts(body: dict[str, Any], name: str) -> tuple[str, ...]:
    """A text or a list of texts, none of them empty."""
    value = body.get(name)
    given = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not all(isinstance(one, str) and one for one in given):
        raise ValueError(f"{name} must be a text or a list of texts that are not empty, got {value!r}")
    return tuple(given)


def options(body: dict[str, Any], name: str) -> dict[str, Any]:
    """An object; an empty one where none is given."""
    value = body.get(name)
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"{name} must be an object, got {value!r}")
    return value or {}


def conversation(value: Any) -> list[dict[str, str]]:
    """Messages with a role and a content: a text, or parts of text, which are put together."""
    if not isinstance(value, list) or not value:
        raise ValueError("messages must be a list of at least one message with role and content")
    found = []
    for place, message in enumerate(value):
        content = _content(message.get("content")) if isinstance(message, dict) else None
        if content is None or not isinstance(message.get("role"), str):
            raise ValueError(f"message {place} must have a role and a content that is text")
        found.append({"role": message["role"], "content": content})
    return found


def _content(value: Any) -> str | None:
    """A text as it is, parts of text put together; None: neither."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        return None
    parts = [part["text"] for part in value if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return "".join(parts) if len(parts) == len(value) else None
