"""Prompts to train a drafter on and to test it on: built in, three families, parted by topic; or the user's own.

A drafter learns the target's way of answering, and answers to one topic resemble each other whatever form the request takes. So the
built-in prompts are parted by *topic*: no topic of a test prompt occurs in training, nor in what training is stopped by. Families:

- ``prose``: explanations, stories, letters, advice;
- ``structured``: lists, tables, JSON, sums, questions with answers;
- ``code``: small programs and pages about the topic.

>>> from upheld.speculative.data import built_in
>>> test = built_in("test")
>>> len(test), sorted({prompt.family for prompt in test})
(180, ['code', 'prose', 'structured'])
>>> test[0].text
'Explain in a few sentences what one should know about glaciers.'
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

Part = Literal["train", "validation", "test"]

FAMILIES = ("prose", "structured", "code")

TOPICS: Mapping[Part, tuple[str, ...]] = {
    "train": (
        "volcanoes", "honey bees", "the Roman Empire", "black holes", "chess", "coffee", "photosynthesis", "bicycles", "the human heart",
        "jazz music", "penguins", "railways", "chocolate", "earthquakes", "the printing press", "yoga", "whales", "electric cars",
        "vaccines", "football", "rainforests", "the moon", "libraries", "sleep", "cheese", "robots", "the Silk Road", "clouds", "gardening",
        "money", "bridges", "dinosaurs", "photography", "rivers", "cooking",
    ),
    "validation": ("lighthouses", "swimming", "magnets", "bread", "satellites"),
    "test": ("glaciers", "elephants", "the French Revolution", "tea", "violins", "solar panels", "maps", "owls", "running", "castles"),
}  # fmt: skip

FORMS: Mapping[str, tuple[str, ...]] = {
    "prose": (
        "Explain in a few sentences what one should know about {a}.",
        "Write a short story in which {a} plays a part.",
        "Write a letter to a friend about {a}.",
        "Why do people care about {a}?",
        "Describe {a} to a child of eight.",
        "Give some advice to somebody who wants to learn about {a}.",
        "How has our view of {a} changed over the last hundred years?",
        "Write a dialogue between two people who talk about {a}.",
    ),
    "structured": (
        "Give a numbered list of ten facts about {a}.",
        "Give a JSON object that describes {a}, with the keys name, category, description and examples.",
        "Make a Markdown table with five rows about {a}.",
        "A museum of {a} sells {n} tickets at {m} dollars each. How much does it take? Show each step.",
        "Write five questions about {a} with their answers.",
        "List the advantages and the disadvantages of {a} as bullet points.",
    ),
    "code": (
        "Write a Python function that prints three facts about {a}.",
        "Write a Python class that stores data about {a}, with an example of its use.",
        "Write a small HTML page about {a}.",
        "Write a SQL table for a collection about {a} and insert four rows.",
    ),
}

PAIR_FORMS: Mapping[str, tuple[str, ...]] = {
    "prose": (
        "Compare {a} with {b}.",
        "Write a short story about {a} and {b}.",
        "What could somebody who knows {a} teach us about {b}?",
        "Write a dialogue between somebody who loves {a} and somebody who prefers {b}.",
    ),
    "structured": (
        "Make a Markdown table that compares {a} with {b}.",
        "Give a numbered list of things that {a} and {b} have in common.",
        "Give a JSON list with one object for {a} and one for {b}, each with the keys name, description and examples.",
        "A shop sells {n} books about {a} at {m} dollars each and {m} books about {b} at {n} dollars each. "
        "How much does it take? Show each step.",
    ),
    "code": (
        "Write a Python function that decides whether a text is about {a} or about {b}.",
        "Write a Python dictionary with facts about {a} and {b}, and a loop that prints them.",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Prompt:
    """A request to the target.

    Parameters
    ----------
    messages : turns of a conversation, each (role, content); empty for a text that is simply gone on with
    text : the last turn's content, or the text to go on with
    family : ``prose``, ``structured``, ``code``, or what the user's own file is called
    group : prompts of one group are never parted between training and testing; built-in prompts: the topics
    """

    messages: tuple[tuple[str, str], ...]
    text: str
    family: str
    group: str

    def ids(self, tokenizer: Any) -> list[int]:
        """Tokens of the prompt, up to where the answer begins.

        Raises
        ------
        ValueError
            If it is a conversation and the tokenizer has no chat template, or no token comes of it.
        """
        if not self.messages:
            found = list(tokenizer(self.text)["input_ids"])
        elif not tokenizer.chat_template:
            raise ValueError(
                "the tokenizer has no chat template, so it cannot read messages; give each prompt as a text"
            )
        else:
            turns = [{"role": role, "content": content} for role, content in self.messages]
            found = list(
                tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=True)["input_ids"]
            )
        if not found:
            raise ValueError(f"the prompt {self.text[:40]!r} gives no token; leave it out, or say something in it")
        return found


def built_in(part: Part) -> list[Prompt]:
    """Every form about every topic of one part: 630 to train on, 90 to stop by, 180 to test on."""
    found = []
    for family in FAMILIES:
        for form in FORMS[family]:
            found += [_asked(form, family, topic) for topic in TOPICS[part]]
    return found


def training_set() -> list[Prompt]:
    """The built-in training prompts, then those about two training topics at once, each in a mixed order that is always the same.

    Requests about one thing are what most people write, so they come first. Any beginning of either is about as varied as the whole: a set
    of responses may be cut off anywhere.
    """
    pairs = [
        _asked(form, family, a, b)
        for a, b in combinations(TOPICS["train"], 2)
        for family in FAMILIES
        for form in PAIR_FORMS[family]
    ]
    return [
        prompt for part in (built_in("train"), pairs) for prompt in sorted(part, key=lambda each: _digest(each.text))
    ]


def read_prompts(path: Path, *, chat: bool) -> list[Prompt]:
    """The user's own prompts.

    Parameters
    ----------
    path : a text file with a prompt a line, or JSON lines (``.jsonl``) with ``{"prompt": "..."}`` or ``{"messages": [{"role": "user",
        "content": "..."}]}``; a ``"family"`` may stand beside it
    chat : texts are the user's turn in a conversation (a model with a chat template), else are gone on with as they are

    Raises
    ------
    ValueError
        If the file holds no prompt, or a line is empty of text or cannot be read; the line is named.
    """
    try:
        # Lines end with line feeds alone: a JSON text may hold the other characters that `splitlines` takes for ends.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8") from None
    read = _json_line if path.suffix == ".jsonl" else _text_line
    found = [
        read(line, f"{path.name}, line {number}", path.stem, chat)
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    if not found:
        raise ValueError(f"{path.name} holds no prompt; write one a line")
    return found


def _text_line(line: str, place: str, family: str, chat: bool) -> Prompt:
    text = line.strip()
    return Prompt((("user", text),) if chat else (), text, family, _digest(text))


def _json_line(line: str, place: str, family: str, chat: bool) -> Prompt:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{place} is not JSON ({error.msg}); write one object a line") from None
    if not isinstance(record, dict) or ("prompt" in record) == ("messages" in record):
        raise ValueError(f'{place} needs either "prompt" or "messages"; write {{"prompt": "your text"}}')
    family = str(record.get("family", family))
    if "prompt" in record:
        if not isinstance(record["prompt"], str) or not record["prompt"].strip():
            raise ValueError(f'{place}: "prompt" must be a text that is not empty')
        return _text_line(record["prompt"], place, family, chat)
    turns = tuple(_turns(record["messages"], place))
    return Prompt(turns, turns[-1][1], family, _digest(json.dumps(turns)))


def _turns(messages: Any, place: str) -> Iterator[tuple[str, str]]:
    if not isinstance(messages, list) or not messages:
        raise ValueError(f'{place}: "messages" must be a list with at least one turn')
    for turn in messages:
        if not isinstance(turn, dict) or not all(isinstance(turn.get(key), str) for key in ("role", "content")):
            raise ValueError(f'{place}: each turn needs "role" and "content", both texts')
        yield turn["role"], turn["content"]


def _asked(form: str, family: str, *topics: str) -> Prompt:
    # Sums need numbers: any will do as long as a prompt is the same every time.
    number = int(_digest(form + "|".join(topics)), 16)
    text = form.format(**dict(zip("ab", topics, strict=False)), n=11 + number % 83, m=3 + number // 83 % 17)
    return Prompt((("user", text),), text, family, " & ".join(topics))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def topics_of(prompts: Sequence[Prompt]) -> set[str]:
    """All topics that built-in prompts speak of."""
    return {topic for prompt in prompts for topic in prompt.group.split(" & ")}
