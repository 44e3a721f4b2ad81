from __future__ import annotations

import importlib.util
import shutil

import pytest
from context_samples import hashed
from hypothesis import given
from hypothesis import strategies as st

from upheld.context import Context, ContextFunction, Genes, Line
from upheld.context.assembly import count_tokens
from upheld.context.skill import VALUES

LINES = [Line("case", label, f"{label} number {i} " + "x " * i, born=i) for i in range(12) for label in ("red", "blue")]


@given(
    st.sampled_from(VALUES["retrieve"]), st.sampled_from(VALUES["k"]), st.sampled_from(VALUES["order"]),
    st.sampled_from(VALUES["format"]), st.integers(1, 120), st.text(max_size=60),
)  # fmt: skip
def test_never_beyond_the_budget_and_never_mid_line(tmp_path_factory, retrieve, k, order, style, budget, question):
    context = Context(tmp_path_factory.mktemp("c"))
    genes = Genes(retrieve=retrieve, k=k, order=order, format=style, budget=budget)
    context.write(LINES, genes)
    text = ContextFunction(context, hashed, budget)(question)
    assert count_tokens(text) <= budget
    assert all(any(line.text.strip() in shown for line in LINES) for shown in text.splitlines())


def test_moved_and_loaded_it_says_the_same(tmp_path):
    context = Context(tmp_path / "a")
    context.write(LINES, Genes(k=3, budget=77))
    before = ContextFunction(context, hashed, 77)("red number 3")
    shutil.move(tmp_path / "a", tmp_path / "b")
    loaded = ContextFunction.load(tmp_path / "b", embed=hashed)
    assert loaded("red number 3") == before != ""
    assert loaded.budget == 77


def test_the_copied_program_says_what_runs_in_process(tmp_path):
    context = Context(tmp_path)
    for retrieve in VALUES["retrieve"]:
        context.write(LINES, Genes(retrieve=retrieve, k=3))
        spec = importlib.util.spec_from_file_location("copied", context.operator)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        questions = ["red number 3", "blue x x", ""]
        alone = [module.get_context(question, root=tmp_path, embed=hashed) for question in questions]
        assert alone == [made.text for made in ContextFunction(context, hashed).many(questions)]


def test_somebody_elses_program_is_not_run_here(tmp_path):
    context = Context(tmp_path)
    context.write(LINES, Genes())
    context.operator.write_text("raise SystemExit\n")
    with pytest.raises(ValueError, match="is a program of somebody else's; give a sandbox"):
        ContextFunction(context, hashed)("q")


def test_a_folder_without_a_program_is_nobody_s_own(tmp_path):
    assert not ContextFunction(Context(tmp_path), hashed).own


def test_an_empty_folder_is_the_empty_context(tmp_path):
    assert ContextFunction(Context(tmp_path), hashed)("anything") == ""
    with pytest.raises(ValueError, match=r"holds no interfaces/get_context\.py"):
        ContextFunction.load(tmp_path, embed=hashed)


def test_lines_survive_their_file_and_malformed_ones_are_named(tmp_path):
    context = Context(tmp_path)
    odd = [Line("case", 'a "b", c', "text, with\ttabs; and 'quotes'", 1, 2, 3)]
    context.write(odd, Genes())
    assert context.lines() == odd
    (tmp_path / "context" / "lines.csv").write_text("kind,label,text\ncase,a,b\n")
    with pytest.raises(ValueError, match=r"lines.csv has a row without"):
        context.lines()


def test_two_stage_shows_three_labels_at_most(tmp_path):
    context = Context(tmp_path)
    context.write([Line("case", f"l{i}", f"word{i} common") for i in range(9)], Genes(retrieve="two-stage", k=16))
    assert len(ContextFunction(context, hashed)("word4 common").splitlines()) == 3


def test_diff_names_what_is_new(tmp_path):
    a, b = Context(tmp_path / "a"), Context(tmp_path / "b")
    a.write(LINES[:2], Genes())
    b.write(LINES[:3], Genes())
    assert "+case red: red number 1" in ContextFunction(a, hashed).diff(ContextFunction(b, hashed))
