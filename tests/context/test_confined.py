from __future__ import annotations

import pytest
from context_samples import hashed

from upheld.context import Context, ContextFunction, Genes, Line
from upheld.context.confined import InSandbox
from upheld.sandbox import protections

pytestmark = pytest.mark.skipif(not protections().strong, reason="this machine cannot confine a program")


@pytest.fixture(scope="module")
def confined():
    runner = InSandbox()
    yield runner
    runner.close()


def with_program(tmp_path, program: str) -> Context:
    context = Context(tmp_path)
    context.write(
        [Line("case", label, f"{label} number {i}") for i in range(6) for label in ("red", "blue")], Genes(k=3)
    )
    context.operator.write_text(program)
    return context


def test_the_template_says_the_same_in_the_sandbox(tmp_path, confined):
    context = with_program(tmp_path, "")
    context.write(context.lines(), Genes(k=3))
    questions = ["red number 3", "blue", "number"]
    here = [made.text for made in ContextFunction(context, hashed).many(questions)]
    assert [made.text for made in confined(context.root, questions, hashed)] == here
    assert all(here)


def test_a_learned_program_runs_and_is_bounded(tmp_path, confined):
    program = "def get_context(question, *, root, embed):\n    return 'line one\\n' * 50 + question + str(len(embed([question])[0]))\n"
    made = ContextFunction(with_program(tmp_path, program), hashed, 10, confined).many(["q"])[0]
    assert (made.text, made.tokens) == ("\n".join(["line one"] * 5), 10)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("def get_context(question, *, root, embed):\n    return 3\n", "returned int instead of text"),
        ("def get_context(question, *, root, embed):\n    return open('/etc/passwd').read()\n", "get_context failed"),
        ("def get_context(question, *, root, embed):\n    return embed(3)\n", "embed takes a list"),
        ("x = (", "get_context failed"),
    ],
)
def test_what_fails_is_an_empty_context_with_its_reason(tmp_path, confined, program, why):
    made = ContextFunction(with_program(tmp_path, program), hashed, 100, confined).many(["q"])[0]
    assert made.text == ""
    assert why in made.problem
