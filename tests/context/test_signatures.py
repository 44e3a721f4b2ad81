"""Interfaces of a context beside get_context, and a consumer of two steps that calls them."""

from __future__ import annotations

import pytest
from context_samples import drawn, hashed

from upheld.context import Answered, Context, ContextEngineer, ContextFunction, RolloutCache, Task, evaluate
from upheld.context.confined import InSandbox
from upheld.context.signatures import FIRST, Signature, signatures
from upheld.context.step import failing
from upheld.sandbox import protections

PLAN = "get_plan(question: str, steps: int) -> str"
PROGRAMS = {
    "get_context": "def get_context(question, *, root, embed):\n    return 'notes'\n",
    "get_plan": "def get_plan(question, steps, *, root, embed):\n    return 'think ' * steps + open(root + '/context/a.md').read()\n",
}
strong = pytest.mark.skipif(not protections().strong, reason="this machine cannot confine a program")


def folder(tmp_path, **programs: str) -> Context:
    (tmp_path / "context").mkdir()
    (tmp_path / "context/a.md").write_text("hard")
    (tmp_path / "interfaces").mkdir()
    for name, text in {**PROGRAMS, **programs}.items():
        (tmp_path / f"interfaces/{name}.py").write_text(text)
    return Context(tmp_path)


@pytest.fixture(scope="module")
def confined():
    runner = InSandbox()
    yield runner
    runner.close()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("get_plan", "is no signature; write it like 'get_context"),
        ("get plan() -> str", "is no signature"),
        ("_hidden() -> str", "is no signature"),
        ("get_plan(q: str)", "must return text; end its signature"),
        ("get_plan(q: str) -> int", "must return text"),
        ("get_plan(q) -> str", "argument q of get_plan has the type 'of nothing'"),
        ("get_plan(q: Path) -> str", "argument q of get_plan has the type 'Path'"),
        ("get_plan(root: str) -> str", "neither root nor embed"),
        ("get_plan(q: str = 'x') -> str", "plain arguments only"),
        ("get_plan(*q: str) -> str", "plain arguments only"),
        ("f() -> str: ...\nimport os\ndef g() -> str", "is no signature"),
    ],
)
def test_signatures_that_are_none(text, message):
    with pytest.raises(ValueError, match=message):
        Signature.parse(text)


def test_the_first_is_the_context_and_names_differ():
    assert [one.name for one in signatures([FIRST, PLAN])] == ["get_context", "get_plan"]
    for wrong, message in (
        ((PLAN, FIRST), "the first interface"),
        ((), "the first interface"),
        ((FIRST, PLAN, PLAN), "the same name"),
    ):
        with pytest.raises(ValueError, match=message):
            Task(drawn(3, 0), signatures=wrong)


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("x = (", "interfaces/get_plan.py is no Python"),
        ("def other(question, steps): ...", "defines no function get_plan"),
        (
            "def get_plan(question, *, root, embed): ...",
            "takes (question); it must take (question, steps, *, root, embed)",
        ),
    ],
)
def test_what_an_interface_lacks_is_told_to_the_base_agent(tmp_path, program, problem):
    context = folder(tmp_path, get_plan=program)
    task = Task(drawn(3, 0), signatures=(FIRST, PLAN))
    assert problem in failing(task, context, [], lambda c: ContextFunction(c, hashed))
    (tmp_path / "interfaces/get_plan.py").unlink()
    assert "there is no interfaces/get_plan.py" in failing(task, context, [], lambda c: ContextFunction(c, hashed))


@strong
def test_an_interface_is_called_in_the_sandbox_within_the_budget(tmp_path, confined):
    function = ContextFunction(folder(tmp_path), hashed, 4, confined)
    plan = function.interface(PLAN)
    assert plan("q", 2) == "think think hard"
    assert plan("q", 9) == ""  # one line of ten tokens, shown whole or not at all
    with pytest.raises(TypeError, match=r"get_plan takes \(question: str, steps: int\), got str, str"):
        plan("q", "2")
    with pytest.raises(ValueError, match=r"there is no interfaces/get_more\.py"):
        function.interface("get_more() -> str")
    with pytest.raises(ValueError, match="runs in a sandbox only"):
        ContextFunction(function.context, hashed).interface(PLAN)
    (tmp_path / "b").mkdir()
    failed = folder(tmp_path / "b", get_plan="def get_plan(question, steps, *, root, embed):\n    return steps\n")
    with pytest.raises(ValueError, match="get_plan returned int instead of text"):
        ContextFunction(failed, hashed, 4, confined).interface(PLAN)("q", 2)


@strong
def test_a_consumer_of_two_steps_calls_them_itself(tmp_path, confined):
    class TwoSteps:
        id, reads_order = "two", True

        def run(self, context, questions):
            plan = context.interface(PLAN)
            return [Answered("heart" if plan(q, 1) == "think hard" else "", 0.0, 2) for q in questions]

    task, cache = Task(drawn(6, 0), signatures=(FIRST, PLAN)), RolloutCache()
    found = evaluate(task, task.samples, ContextFunction(folder(tmp_path), hashed, 9, confined), TwoSteps(), cache)
    assert [one.is_correct for one in found] == [sample.target == "heart" for sample in task.samples]
    assert cache.spent == 6
    assert found[0].tokens == 2


def test_programs_write_one_interface_only():
    task = Task(drawn(3, 0), signatures=(FIRST, PLAN))
    with pytest.raises(ValueError, match="programs write get_context alone"):
        ContextEngineer(task, embed=hashed).fit(
            [one.question for one in drawn(20, 0)], [one.target for one in drawn(20, 0)]
        )
