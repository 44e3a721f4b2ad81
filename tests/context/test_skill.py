from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.context.skill import VALUES, Genes, Skill, program

GENES = st.builds(
    Genes, **{name: st.sampled_from(values) for name, values in VALUES.items()}, budget=st.integers(1, 9999)
)


@given(GENES)
def test_a_program_survives_its_text(genes):
    assert program(Skill.of(genes, "Why.").text, "here") == genes


def test_a_skill_survives_its_folder(tmp_path):
    skill = Skill("# S\n\n## Skill Overview\n\nDo it.\n\n## More\n\ntext\n", files={"scripts/a.py": "print(1)\n"})
    skill.save(tmp_path)
    assert Skill.load(tmp_path) == skill
    assert skill.overview == "Do it."


def test_without_its_heading():
    with pytest.raises(ValueError, match="no heading '## Skill Overview'"):
        Skill("# Overview")


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("k: 4", "gene k is 4; choose one of 1, 3, 5"),
        ("kk: 4", "holds kk; its genes are"),
        ("- a", "no list of genes"),
        ("a: [", "is not YAML"),
    ],
)
def test_malformed_programs(block, message):
    with pytest.raises(ValueError, match=message):
        program(f"## Skill Overview\n\n## Program\n\n```yaml\n{block}\n```\n", "SKILL.md")


def test_a_budget_of_nothing():
    with pytest.raises(ValueError, match="gene budget is 0"):
        Genes(budget=0)
