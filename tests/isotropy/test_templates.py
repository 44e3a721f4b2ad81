"""What the embedder reads."""

from __future__ import annotations

import pytest

from upheld.isotropy.templates import wrapper


def test_no_template_is_the_answer_alone():
    assert wrapper(None, "Ada", "nomic-embed-text-v1")("She wrote.") == "She wrote."


def test_the_excerpt_names_the_prompt_before_the_answer():
    text = wrapper("excerpt", "Ada Lovelace", "minilm")("She wrote.")
    assert text.endswith("\n\nShe wrote.")
    assert "Ada Lovelace" in text.splitlines()[0]
    assert wrapper("excerpt", "Ada Lovelace", "nomic-ai/Nomic-embed")("She wrote.") == f"clustering: {text}"


@pytest.mark.parametrize("prompt", [None, "  "])
def test_the_excerpt_wants_a_prompt(prompt):
    with pytest.raises(ValueError, match="names the prompt of every group; give them as `prompts`"):
        wrapper("excerpt", prompt, "minilm")


def test_an_unknown_template():
    with pytest.raises(ValueError, match="template must be None or 'excerpt', got 'quote'"):
        wrapper("quote", "x", "minilm")
