"""One conversation of an agent, kept as it goes, and what it came to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from upheld.context.generate_lm import unanswered
from upheld.llm.answer import Message, Sampling, Usage
from upheld.llm.tools import Step, Tool, ToolModel, Turn, converse

if TYPE_CHECKING:
    from upheld.llm import LanguageModel

TOO_LONG = ("answered 400", "answered 413", "answered 422")
"""How servers say that a conversation has outgrown the model; said of its first turn it means something else."""


@dataclass(frozen=True)
class Held:
    """How a conversation went: its turns, what they cost, and why it did not come to its own end, if it did not."""

    turns: int
    usage: Usage
    problem: str


def speakers(model: str | LanguageModel | ToolModel) -> tuple[ToolModel, LanguageModel]:
    """A model that can be offered tools, and one that answers questions: the same, by its name or as it is.

    ``"openai:MODEL@URL"`` is given tools as the endpoint's protocol has them; any other model is told of them in words.

    Raises
    ------
    ValueError
        If there is no such model.
    """
    from upheld.llm import language_model
    from upheld.llm.choose import ENDPOINT
    from upheld.llm.spoken_tools import SpokenTools
    from upheld.llm.tool_endpoint import ToolEndpoint

    if isinstance(model, ToolEndpoint):
        return model, model
    if isinstance(model, SpokenTools):
        return model, model.model
    if isinstance(model, ToolModel):
        raise TypeError(f"{model.id} cannot answer call_llm; give a ToolEndpoint, a LanguageModel, or a name")
    if isinstance(model, str) and (named := ENDPOINT.fullmatch(model)):
        agent = ToolEndpoint(named["model"], named["url"])
        return agent, agent
    found = language_model(model)
    return SpokenTools(found), found


def hold(
    model: ToolModel, messages: Sequence[Message], tools: Sequence[Tool], max_turns: int, log: Path, sampling: Sampling | None = None
) -> Held:  # fmt: skip
    """Let the model work. Every step is appended to `log`, a line of JSON each.

    Raises
    ------
    ModelError
        If the model cannot be had. One that refuses, answers with nothing or outgrows its window has had its say: `Held.problem`.
    """
    from upheld.llm import ModelError

    turns: list[Turn] = []
    log.parent.mkdir(parents=True, exist_ok=True)

    def hear(step: Step) -> None:
        turns.extend([step] if isinstance(step, Turn) else [])
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps({type(step).__name__: asdict(step)}, ensure_ascii=False) + "\n")

    for message in messages:
        hear(message)
    try:
        held = converse(model, messages, tools, max_turns=max_turns, sampling=sampling, told=hear)
        problem = "" if held.finished else f"it took all of its {max_turns} turns"
    except ModelError as error:
        grown = bool(turns) and any(said in str(error) for said in TOO_LONG)
        if not (grown or no_turn(error)):
            raise
        problem = str(error)
    except ValueError as error:  # a model on this machine says so that its window is full
        if not turns:
            raise
        problem = str(error)
    total = Usage(cost=0.0)
    for turn in turns:
        total = total + turn.usage
    return Held(len(turns), total, problem)


def no_turn(error: OSError) -> bool:
    """Whether the model was reached and gave neither words nor a call."""
    return unanswered(error) or any(said in str(error) for said in (" refused: ", "gave neither text nor a tool call"))
