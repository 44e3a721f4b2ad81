"""What the embedder reads of an answer: the answer alone, or the answer under a line that names its prompt.

Shared words raise every cosine, so scores under different templates never compare; each result carries its template's name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

Template = Literal["excerpt"] | None
Wrap = Callable[[str], str]

TEMPLATES: tuple[Template, ...] = (None, "excerpt")


def wrapper(template: Template, prompt: str | None, embedder_id: str) -> Wrap:
    """How an answer to `prompt` is put before the embedder.

    None gives the answer alone. "excerpt" follows the paper's repository: a line that names the prompt or entity goes before
    the answer, and "clustering: " before all of it for a nomic embedder, which was trained with such task names. The line is
    worded anew here, so scores agree with the repository's in kind, not to the last digit.

    Raises
    ------
    ValueError
        If there is no template of that name, or the template names a prompt and none is given.

    Examples
    --------
    >>> wrapper("excerpt", "Ada Lovelace", "nomic-embed-text-v1")("She was born in 1815.")
    'clustering: Part of a text on: Ada Lovelace\\n\\nShe was born in 1815.'
    """
    if template is None:
        return lambda text: text
    if template != "excerpt":
        raise ValueError(f"template must be None or 'excerpt', got {template!r}")
    if prompt is None or not prompt.strip():
        raise ValueError("the template 'excerpt' names the prompt of every group; give them as `prompts`")
    task = "clustering: " if "nomic" in embedder_id.lower() else ""
    return lambda text: f"{task}Part of a text on: {prompt}\n\n{text}"
