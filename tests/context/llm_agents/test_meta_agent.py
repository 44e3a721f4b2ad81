"""The meta agent against a scripted model over real HTTP."""

from __future__ import annotations

import json

import pytest
from context_samples import drawn, hashed
from scripted_agent import DONE, acting, calling, in_turn, refusing, results
from servers import refusal, slow

from upheld.context import Entry, Genes, History, Skill, Task
from upheld.context.llm_agents import LLMMetaAgent
from upheld.llm import ModelError
from upheld.llm.retries import Retries
from upheld.llm.tool_endpoint import ToolEndpoint

TASK = Task(drawn(9, 0), text="Sort complaints by organ.")
GOOD = "# Mine\n\n## Skill Overview\n\nLook at errors.\n"


def history() -> History:
    shared = {"malformed": 0.0, "longest": 9, "rollouts": 33, "seconds": 0.0}
    made = History()
    made.append(Entry(0, None, None, 0.25, (), (), tokens=0.0, accepted=True, folder="iterations/00", **shared))
    skill = Skill.of(Genes(), "Take all cases.")
    wrong = (("bone", "skin", 4), ("heart", "", 2))
    made.append(Entry(1, skill, 0.9, 0.5, (1.0,), wrong, tokens=42.0, accepted=True, folder="iterations/01", **shared))
    return made


def agent(server, tmp_path, sandbox, **options) -> LLMMetaAgent:
    (tmp_path / "iterations/01/skill").mkdir(parents=True)
    (tmp_path / "iterations/01/skill/SKILL.md").write_text("# earlier")
    (tmp_path / "run.json").write_text('{"validation": "v0 is heart"}')
    model = ToolEndpoint("m", server.url, retries=Retries(tries=2, first_s=0.01), **options)
    return LLMMetaAgent(model, tmp_path, sandbox=sandbox, embed=hashed)


def test_it_reads_everything_and_writes_a_skill(tmp_path, sandbox):
    script = in_turn(
        calling(("list", {}), ("read", {"path": "iterations/01/skill/SKILL.md"}), ("read", {"path": "run.json"})),
        calling(("write", {"path": "iterations/01/skill/SKILL.md", "text": "x"})),
        calling(("write", {"path": "skills/02/SKILL.md", "text": GOOD}), ("write", {"path": "skills/02/scripts/a.py", "text": "1"})),
        DONE,
    )  # fmt: skip
    with acting(script) as server:
        meta = agent(server, tmp_path, sandbox)
        skill = meta.propose(TASK, history())
    assert skill == Skill(GOOD, files={"scripts/a.py": "1"})
    listed, read, hidden, refused, *_ = results(server.seen[-1].body["messages"])
    assert listed == "iterations/01/skill/SKILL.md  9 bytes"
    assert read == "# earlier"
    assert hidden.startswith("error: there is no run.json")  # questions to choose by, with their labels
    assert refused.startswith("error: iterations/01/skill/SKILL.md cannot be written")
    assert (meta.usage.prompt_tokens, meta.usage.completion_tokens) == (40, 17)


def test_what_it_is_told(tmp_path, sandbox):
    with acting(in_turn(calling(("write", {"path": "skills/02/SKILL.md", "text": GOOD})), DONE)) as server:
        agent(server, tmp_path, sandbox).propose(TASK, history())
    system, user = (one["content"] for one in server.seen[0].body["messages"])
    assert "no numbers of iterations" in " ".join(system.split())
    for told in (
        "Sort complaints by organ.", "get_context(question: str) -> str", "skills/02/", "train 0.900, validation 0.500, 42 tokens",
        "33 rollouts so far", "bone taken for skin (4); heart taken for nothing (2)", "Take all cases.", "iterations/01/",
        "learned its batch by heart", "Example of a skill: direct curation", "Example of a skill: reflection with the help of a model",
    ):  # fmt: skip
        assert told in user
    assert not any(f'"{one.id}"' in user or one.question in user for one in TASK.samples)
    log = [json.loads(line) for line in (tmp_path / "agents/meta-02-1.jsonl").read_text().splitlines()]
    assert [next(iter(step)) for step in log] == ["Message", "Message", "Turn", "ToolResult", "Turn"]


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        (DONE, "holds no SKILL.md; a skill is a folder with that file."),
        (calling(("write", {"path": "skills/02/SKILL.md", "text": "# no heading"})), "SKILL.md has no heading '## Skill Overview'"),
        (calling(("write", {"path": "skills/02/SKILL.md", "text": GOOD + "\n## Program\n\n```yaml\nk: 4\n```\n"})), "gene k is 4"),
        (refusing(), "The attempt ended early: m at 127.0.0.1"),
        (calling(("write", "{malformed")), "holds no SKILL.md"),
    ],
)  # fmt: skip
def test_it_is_told_what_is_wrong_and_tries_again(tmp_path, sandbox, first, problem):
    def script(messages):
        if "What is wrong now" not in messages[1]["content"]:
            return first if not results(messages) else DONE
        return calling(("write", {"path": "skills/02/SKILL.md", "text": GOOD})) if not results(messages) else DONE

    with acting(script) as server:
        assert agent(server, tmp_path, sandbox).propose(TASK, history()).text == GOOD
    [mending] = {
        one.body["messages"][1]["content"] for one in server.seen if "wrong now" in one.body["messages"][1]["content"]
    }
    assert problem in mending.partition("# What is wrong now")[2]


def test_after_three_attempts_it_is_direct_curation_and_says_so(tmp_path, sandbox):
    with acting(in_turn(DONE)) as server:
        skill = agent(server, tmp_path, sandbox).propose(TASK, history())
    assert len(server.seen) == 3
    assert skill.overview.startswith(
        "(The model wrote no skill that can be read in 3 attempts; this is direct curation."
    )
    assert "holds no SKILL.md" in skill.overview


def test_an_endless_talker_is_stopped(tmp_path, sandbox):
    with acting(in_turn(calling(("list", {})))) as server:
        meta = agent(server, tmp_path, sandbox)
        meta.max_turns = 4
        skill = meta.propose(TASK, history())
    assert len(server.seen) == 12
    assert "took all of its 4 turns" in skill.overview


def test_a_conversation_that_outgrows_the_model_ends_the_attempt(tmp_path, sandbox):
    script = in_turn(calling(("list", {})), refusal(400, "maximum context length is 10"), DONE)
    with acting(script) as server:
        skill = agent(server, tmp_path, sandbox).propose(TASK, history())
    assert len(server.seen) == 4
    assert "holds no SKILL.md" in skill.overview


@pytest.mark.parametrize(
    ("reply", "said"), [(refusal(503), "answered 503"), (slow, "gave no sign for"), (refusal(400), "answered 400")]
)
def test_a_model_that_cannot_be_had_stops_the_run(tmp_path, sandbox, reply, said):
    with acting(in_turn(reply)) as server, pytest.raises(ModelError, match=said):
        agent(server, tmp_path, sandbox, timeout_s=0.3).propose(TASK, history())


def test_it_begins_with_a_skill_that_is_given(tmp_path, sandbox):
    meta = LLMMetaAgent("openai:m@http://127.0.0.1:9/v1", tmp_path, sandbox=sandbox, embed=hashed, first=Skill(GOOD))
    start = History((history()[0],))
    assert meta.propose(TASK, start) == Skill(GOOD)
