from __future__ import annotations

import json

import pytest

from upheld.context import Sample, Task
from upheld.context.task import overlap


def test_reads_json_lines_and_the_reference_format(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text(
        '{"id": 7, "question": "a b", "context": "", "ground_truth": "x", "page": 3}\n\n{"question": "c", "target": "y"}\n'
    )
    samples = Task.from_jsonl(path).samples
    assert [(one.id, one.question, one.target) for one in samples] == [("7", "a b", "x"), ("3", "c", "y")]
    assert samples[0].extras == {"page": 3}


def test_a_sample_s_own_context_is_asked_with_its_question(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text(
        '{"id": 1, "question": "Was it late?", "context": "The train left at {context}.", "ground_truth": "x"}\n'
        '{"id": 2, "question": "Was it late?", "context": null, "ground_truth": "y"}\n'
    )
    task = Task.from_jsonl(path)
    first, second = task.samples
    assert (first.context, second.context, first.extras) == ("The train left at {context}.", "", {})
    assert task.prompt("C {question}", first.asked) == (
        "C {question}\n\nText: The train left at {context}.\n\nWas it late?\nLabel:"
    )
    assert overlap([first], [second]) == []  # the same question about something else
    assert overlap([first], [first]) == ["1"]
    path.write_text('{"question": "q", "context": ["a", "b"], "target": "x"}\n')
    with pytest.raises(ValueError, match="line 1: 'context' holds a list; write the sample's own context as text"):
        Task.from_jsonl(path)
    (tmp_path / "t.csv").write_text("context,tag\na,x\n")
    assert Task.read(tmp_path / "t.csv", question="context", target="tag").samples[0].asked == "a"


def test_reads_a_table(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text('text,tag\n"a, b",x\nc,y\n')
    assert [one.question for one in Task.read(path, question="text", target="tag").samples] == ["a, b", "c"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{not json", "line 1 is not JSON"),
        ('{"question": "a", "target": "b"}\n{"question": "a"}', "line 2 has no 'target'"),
        ('{"question": " ", "target": "b"}', "line 1 has no 'question'"),
        ("[1]", "line 1 holds no object"),
        ("", r"t\.jsonl holds no samples; write one a line"),
    ],
)
def test_malformed_lines_are_named(tmp_path, content, message):
    (tmp_path / "t.jsonl").write_text(content)
    with pytest.raises(ValueError, match=message):
        Task.from_jsonl(tmp_path / "t.jsonl")


@pytest.mark.parametrize(("name", "read"), [("t.jsonl", Task.from_jsonl), ("t.csv", Task.from_csv)])
def test_what_is_no_text_is_named(tmp_path, name, read):
    (tmp_path / name).write_bytes(b"question,target\n\xff\xfe,a\n")
    with pytest.raises(ValueError, match=r"t\.(jsonl|csv) is not UTF-8 text \(byte 17\)"):
        read(tmp_path / name)


def test_a_field_of_a_table_that_never_ends(tmp_path):
    (tmp_path / "t.csv").write_text('question,target\n"' + "a" * 140_000)
    with pytest.raises(ValueError, match="is no row of a table"):
        Task.from_csv(tmp_path / "t.csv")


def test_texts_may_hold_separators_of_lines(tmp_path):
    row = {"question": "one\u2028two\x85three", "target": "t"}
    (tmp_path / "t.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    assert Task.from_jsonl(tmp_path / "t.jsonl").samples[0].question == row["question"]
    (tmp_path / "t.csv").write_text(f"\ufeffquestion,target\n{row['question']},t\n", encoding="utf-8")
    assert Task.from_csv(tmp_path / "t.csv").samples[0].question == row["question"]


def test_an_empty_context_leaves_the_plain_prompt():
    task = Task([Sample("0", "q", "t")])
    assert task.prompt("", "q") == "Text: q\nLabel:"
    assert task.prompt("C", "q") == "C\n\nText: q\nLabel:"


def test_labels_of_several():
    assert Task([Sample("0", "q", "b; a"), Sample("1", "q", "c")], "micro-f1").labels() == ("a", "b", "c")


def test_overlap_sees_through_case_and_space():
    assert overlap([Sample("0", "One  Two", "t")], [Sample("9", "one two", "t"), Sample("8", "one", "t")]) == ["9"]


def test_a_template_needs_its_slots():
    with pytest.raises(ValueError, match=r"has no \{context\}"):
        Task([Sample("0", "q", "t")], template="{question}")
