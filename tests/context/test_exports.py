from __future__ import annotations

import pytest
import yaml
from context_samples import hashed

from upheld.context import Context, ContextFunction, Genes, Line, Sample, Task
from upheld.context.exports import as_agent_skill, as_dspy

TASK = Task([Sample("0", "q", "skin"), Sample("1", "q", "heart")], text='Sort complaints: "organ" # first.')


@pytest.fixture
def function(tmp_path) -> ContextFunction:
    context = Context.from_prompt("Be brief.", tmp_path / "c", 100)
    lines = [Line("case", "skin", "a rash"), Line("glossary", "skin", "itch mole"), Line("case", "heart", "a beat")]
    context.write(lines, Genes(k=1, budget=100))
    return ContextFunction(context, hashed, 100)


def test_a_folder_for_agents(tmp_path, function):
    folder = as_agent_skill(function, tmp_path / "learned-context", TASK)
    _, header, body = (folder / "SKILL.md").read_text().split("---\n", 2)
    assert yaml.safe_load(header) == {
        "name": "learned-context",
        "description": 'Sort complaints: "organ" # first. Use it for each text that is to be given a label.',
    }
    assert "Be brief." in body
    assert "- heart\n- skin" in body
    assert (folder / "references/cases.md").read_text() == (
        "## heart\n\n- a beat\n\n## skin\n\n- a rash\n- (glossary) itch mole\n"
    )
    with pytest.raises(ValueError, match="is not empty"):
        as_agent_skill(function, folder, TASK)


def test_files_of_a_context_that_a_model_wrote_are_taken_as_they_are(tmp_path, function):
    function.context.operator.write_text("def get_context(question, *, root, embed):\n    return ''\n")
    (function.context.root / "context/more").mkdir()
    (function.context.root / "context/more/notes.md").write_text("n")
    fresh = ContextFunction(function.context, hashed, 100)
    folder = as_agent_skill(fresh, tmp_path / "s", TASK)
    assert (folder / "references/more/notes.md").read_text() == "n"
    assert "- references/more/notes.md" in (folder / "SKILL.md").read_text()


def test_nothing_was_learned(tmp_path):
    folder = as_agent_skill(ContextFunction(Context(tmp_path / "none"), hashed), tmp_path / "s", TASK)
    assert "None: nothing was learned." in (folder / "SKILL.md").read_text()


@pytest.mark.parametrize("name", ["", "Big", "two words", "a--b", "x" * 65, "../up"])
def test_names_that_are_none(tmp_path, function, name):
    with pytest.raises(ValueError, match="a skill's name holds lower-case letters"):
        as_agent_skill(function, tmp_path / "s", TASK, name=name)


def test_a_module_of_dspy(function):
    dspy = pytest.importorskip("dspy")
    from dspy.utils import DummyLM

    model = DummyLM([{"label": "skin"}])
    with dspy.context(lm=model):
        assert as_dspy(function, TASK)(question="an itch").label == "skin"
    asked = str(model.history[-1]["messages"])
    assert function("an itch") in asked.replace("\\n", "\n")
    assert "The labels: heart, skin." in asked
    with dspy.context(lm=DummyLM([{"label": "skin"}])) as _:
        as_dspy(function, TASK)(question="an itch", own_context="since monday")
        assert "since monday\n\nan itch" in dspy.settings.lm.history[-1]["messages"][-1]["content"]
