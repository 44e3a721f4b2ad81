from __future__ import annotations

import gzip
import json
import lzma
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from upheld.isotropy.data.files import read_responses, write_responses
from upheld.isotropy.data.responses import Responses, is_visible

TWO = [
    Responses("q1", "Where is Lima?", ("In Peru.", "In «Chile», they say."), factualities=(1, 0)),
    Responses("q2", "Where is\nOslo?", ("In Norway.", 'In "Sweden"\nor so.', "North."), factualities=(1, 0.5, None)),
]
LINES = [
    '{"id": "q1", "prompt": "Where is Lima?", "responses": ["In Peru.", "In «Chile», they say."], "factuality": [1, 0]}',
    '{"id": "q2", "prompt": "Where is\\nOslo?", "responses": ["In Norway.", "In \\"Sweden\\"\\nor so.", "North."],'
    ' "factuality": [1, 0.5, null], "extra": {"kept": "out"}}',
]
TABLE = (
    "id,prompt,response,factuality\n"
    "q1,Where is Lima?,In Peru.,1\n"
    'q1,Where is Lima?,"In «Chile», they say.",0\n'
    'q2,"Where is\nOslo?",In Norway.,1\n'
    'q2,"Where is\nOslo?","In ""Sweden""\nor so.",0.5\n'
    'q2,"Where is\nOslo?",North.,\n'
)


def written(folder: Path, content: str | bytes, name: str = "answers") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ValueError) as refused:
        list(read_responses(path))
    return str(refused.value).replace(str(path.parent) + "/", "")


# Formats


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        ('{"prompt": "", "responses": ["x", "y"]}\n\n{"id": 7, "prompt": "", "responses": ["x", "y"]}\n'
         '{"prompt": "", "responses": ["x", "y"]}', ["line 1", "7", "line 4"]),
        ('[{"prompt": "", "responses": ["x", "y"]}, {"prompt": "", "responses": ["x", "y"]}]', ["element 1", "element 2"]),
        ('{\n"prompt": "", "responses": ["x", "y"]}', ["the object"]),
    ],
)  # fmt: skip
def test_a_prompt_without_an_id_is_named_by_its_place(tmp_path, content, ids):
    assert [found.id for found in read_responses(written(tmp_path, content))] == ids


@pytest.mark.parametrize(
    "content",
    [
        "\n".join(LINES),
        "\n\n" + "\r\n\r\n".join(LINES) + "\r\n",
        "[" + ",\n".join(LINES) + "]\n",
        json.dumps([json.loads(line) for line in LINES], indent=2),
        TABLE,
        "\n" + TABLE,
    ],
    ids=["lines", "blank lines and CRLF", "list", "indented list", "table", "table behind a blank line"],
)
@pytest.mark.parametrize(
    "packed", [bytes, gzip.compress, lzma.compress, b"\xef\xbb\xbf".__add__], ids=["", "gzip", "xz", "mark"]
)
def test_formats_agree_whatever_the_name(tmp_path, content, packed):
    assert list(read_responses(written(tmp_path, packed(content.encode())))) == TWO


def test_table_with_crlf(tmp_path):
    content = "id,prompt,response\r\na,p,x\r\na,p,y\r\n"
    assert list(read_responses(written(tmp_path, content))) == [Responses("a", "p", ("x", "y"))]


def test_columns_may_stand_in_any_order_among_others(tmp_path):
    content = "model,Response,ID,prompt\nm,x,a,p\nm,y,a,p\n"
    assert list(read_responses(written(tmp_path, content))) == [Responses("a", "p", ("x", "y"))]


def test_one_indented_object(tmp_path):
    content = json.dumps(json.loads(LINES[0]), indent=1)
    assert list(read_responses(written(tmp_path, content))) == TWO[:1]


def test_whole_numbers_name_prompts_too(tmp_path):
    assert next(read_responses(written(tmp_path, '{"id": 7, "prompt": "", "responses": ["a", "b"]}'))).id == "7"


def test_folder(tmp_path):
    for name, text in {
        "b/prompt.txt": "Why?\n",
        "b/2.txt": "second\r\nline",
        "b/1.txt": "\ufefffirst",
        "b/notes.md": "",
        "a/x.txt": "x",
        "a/y.txt": "y",
        ".git/z.txt": "z",
        "top.txt": "t",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    assert list(read_responses(tmp_path)) == [
        Responses("a", "", ("x", "y")),
        Responses("b", "Why?", ("first", "second\nline")),
    ]


def test_segment_score_marks_are_averaged(tmp_path):
    def answer(text, *marks):
        return {
            "response": text,
            "logprobs": [-0.1, -0.2],
            "statements": [{"text": "s", "class": mark} for mark in marks],
        }

    one = {
        "index": 3,
        "idx_cat": "val",
        "entity": "Ada",
        "responses": [answer("x", 1, 1, 0, 0), answer("y", 1, 0, 1)],
    }
    other = {
        "entity": "Bo",
        "responses": [{"response": "x", "statements": []}, {"response": "y", "statements": [{"class": 1}]}],
    }
    items = list(read_responses(written(tmp_path, json.dumps([one, other]))))
    assert [item.id for item in items] == ["Ada [3-val]", "Bo"]
    assert items[0].prompt == "Ada"
    assert items[0].factualities == (0.5, pytest.approx(2 / 3))
    assert items[0].logprobs == ((-0.1, -0.2),) * 2
    assert items[1].factualities == (None, 1)
    assert items[1].logprobs is None


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.jsonl.xz"])
def test_round_trip(tmp_path, name):
    items = [*TWO, Responses("q3", "", ("a", "b"), factuality=0.25, logprobs=((-0.5,), (-1.0, 0.0)))]
    assert write_responses(tmp_path / name, items) == 3
    assert list(read_responses(tmp_path / name)) == items


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00")).filter(is_visible)
ids = st.text(st.characters(codec="utf-8", exclude_categories=("Cc",))).filter(lambda text: text.strip())


@given(
    st.lists(
        st.tuples(ids, texts, st.lists(texts, min_size=2, max_size=4)), min_size=1, max_size=4, unique_by=lambda t: t[0]
    )
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_text_survives_the_round_trip(tmp_path, rows):
    items = [Responses(id_, prompt, tuple(answers)) for id_, prompt, answers in rows]
    write_responses(tmp_path / "x", items)
    assert list(read_responses(tmp_path / "x")) == items


# Bad input

GOOD = LINES[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "answers is empty"),
        (" \n\n", "answers is empty"),
        ("[]", "answers holds no answers"),
        (GOOD + "\n{oops}", "line 2 of answers is no JSON"),
        (GOOD + "\n\n\n3", "line 4 of answers is a JSON number, no object"),
        (GOOD + "\n" + GOOD, "line 2 of answers: the id 'q1' was there before"),
        ('{"id": "a", "prompt": "", "responses": ["x"]}', "line 1 of answers: 'a' has 1 answer(s)"),
        ('{"id": "a", "prompt": "", "responses": ["x", "  "]}', "line 1 of answers: answer 2 of 'a' is empty"),
        ('{"id": "a", "prompt": "", "responses": "xy"}', "line 1 of answers: the responses of 'a' must be a list, got str"),
        ('{"id": "a", "prompt": "", "responses": [1, 2]}', "answer 1 of 'a' must be text, got int"),
        ('{"id": "a", "prompt": "", "response": ["x", "y"]}', "there is no field 'responses'; did you mean 'response'?"),
        ('{"idx": "a", "prompt": "", "responses": ["x", "y"]}', "there is no field 'id'; did you mean 'idx'?"),
        ('{"id": "line 2", "prompt": "", "responses": ["x", "y"]}\n{"prompt": "", "responses": ["x", "y"]}',
         "line 2 of answers: the id 'line 2' was there before"),
        ('{"id": true, "prompt": "", "responses": ["x", "y"]}', "the id must be text or a whole number, got true or false"),
        ('{"id": "a", "prompt": "", "responses": ["x", "y"], "factuality": 2}', "the factuality of 'a' is 2"),
        ('{"id": "a", "prompt": "", "responses": ["x", "y"], "factuality": [1]}', "has 2 answers, but 1 times a factuality"),
        ('{"id": "a", "prompt": "", "responses": ["x", "y"], "factuality": NaN}', "finite"),
        ('{"id": "a", "prompt": "", "responses": ["x", "y"], "factuality": 1' + "0" * 5000 + "}", "cannot be read as JSON"),
        ('{"id": "a", "prompt": "", "responses": ["x", "\\u0000"]}', "holds '\\x00'"),
        ('{"id": "a", "prompt": "", "responses": ["x", "\\ud800"]}', "holds '\\ud800'"),
        ('{"id": "a", "prompt": "", "responses": ["x", "\\u200b\\ufeff"]}', "answer 2 of 'a' is empty"),
        ('{"id": "a", "responses": ["v", "w"], "responses": ["x", "y"]}', "the field 'responses' occurs twice in one object"),
        ('[{"id": "a", "prompt": "", "prompt": "p"}]', "the field 'prompt' occurs twice in one object"),
        ('{"id": "a', "line 1 of answers is no JSON: unterminated string starting at character 8;"),
        ('{"id": ' + "[" * 100_000, "line 1 of answers cannot be read as JSON"),
        (GOOD.encode() + b'\n{"id": "\xff"}', "line 2 of answers is no text in UTF-8 (byte 9 of it)"),
        (GOOD.encode() + b"\n\x00\x00", "line 2 of answers holds a NUL byte"),
        (GOOD.encode("utf-16"), "answers is text in UTF-16"),
        ("[" + GOOD, "element 1 of answers is followed by ''"),
        ("[" + GOOD + ", 3]", "element 2 of answers is a JSON number"),
        ("[" + GOOD + ", {]", "element 2 of answers is no JSON"),
        ("[" + GOOD + ",]", "element 2 of answers is no JSON"),
        ("[" + GOOD + "] and", "goes on after the end of its list"),
        (b"[" + GOOD.encode() + b', "\xff"]', "answers is no text in UTF-8"),
        ('{"entity": "e", "responses": ["x", "y"]}', "'responses' must be a list of objects"),
        ('{"entity": "e", "responses": [{"response": "x", "statements": [{"class": 2}]}, {"response": "y"}]}', "class 2; a class is"),
        ('{"entity": "e", "responses": [{"response": "x", "statements": [{}]}, {"response": "y"}]}', "no field 'class'"),
        ("id,prompt,answer\na,p,x\n", "it has no column 'response'"),
        ("just some words\n", "answers is neither JSON nor CSV with columns id, prompt and response"),
        ("id;prompt;response\n", "answers is separated by ';'"),
        ("id,prompt,response,id\n", "column 'id' occurs 2 times"),
        ("id,prompt,response\n", "answers holds no answers"),
        ("id,prompt,response\na,p,x\n", "line 2 of answers: 'a' has 1 answer(s)"),
        ("id,prompt,response\na,p,x\nb,p,x\nb,p,y\na,p,y\n", "must stand together (sort the file by id)"),
        ("id,prompt,response\na,p,x\na,p,x\nb,p,x\nb,p,y\na,p,y\na,p,z\n", "lines 6 to 7 of answers: the id 'a' was there before"),
        ("id,prompt,response\na,p,x\na,p, \n", "line 3 of answers: the response of 'a' is empty"),
        ("id,prompt,response\na,p,x\na,p\n", "line 3 of answers has 2 cells"),
        ("id,prompt,response\na,p,x\na,p,y, and z\n", "line 3 of answers has 4 cells, more than its header; put a text that holds a comma"),
        ("id,prompt,response\ra,p,x\ra,p,y\r", "answers ends its lines with a carriage return alone; save it with line feeds"),
        ("id,prompt,response,factuality\na,p,x,0_5\na,p,y,1\n", "line 2 of answers: the factuality '0_5' is no number"),
        ("id,prompt,response\na,p,x\na,q,y\n", "line 3 of answers: the prompt of 'a' is not that of line 2"),
        ("id,prompt,response,factuality\na,p,x,high\na,p,y,1\n", "line 2 of answers: the factuality 'high' is no number"),
        ("id,prompt,response,factuality\na,p,x,1.5\na,p,y,1\n", "the factuality of answer 1 of 'a' is 1.5"),
        ("id,prompt,response,factuality\na,p,x,nan\na,p,y,1\n", "finite"),
        ('id,prompt,response\na,p,"x\na,p,y\n', "is not well-formed CSV"),
        (b"id,prompt,response\na,p,\xff\n", "line 2 of answers is no text in UTF-8"),
        (b"id,prompt,response\na,p,\x00\n", "line 2 of answers holds a NUL byte"),
        ('id,prompt,response\na,p,"' + "x" * 200_000 + '"\na,p,y\n', "use JSON Lines for answers that long"),
        (gzip.compress(GOOD.encode())[:-9], "answers is cut short or badly compressed"),
        (lzma.compress(GOOD.encode())[:-9], "answers is cut short or badly compressed"),
        (gzip.compress(GOOD.encode())[:3] + b"nonsense", "answers is cut short or badly compressed"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path, content, message):
    assert message in refusal(written(tmp_path, content))


def test_what_came_before_the_fault_was_read(tmp_path):
    reader = read_responses(written(tmp_path, GOOD + "\n{oops}"))
    assert next(reader) == TWO[0]
    with pytest.raises(ValueError, match="line 2"):
        next(reader)


def test_empty_cells_beyond_the_header_are_no_text(tmp_path):
    [item] = read_responses(written(tmp_path, "id,prompt,response\na,p,x,,\na,p,y\n"))
    assert item.responses == ("x", "y")


def test_a_pipe_is_called_so(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "pipe is a pipe or a device, and answers are read twice; write them to a file first" in refusal(
        tmp_path / "pipe"
    )


def test_answers_of_a_folder_are_in_the_order_of_their_numbers(tmp_path):
    for prompt in ("q10", "q9"):
        (tmp_path / prompt).mkdir()
        for number in (10, 9, 1, 2):
            (tmp_path / prompt / f"{number}.txt").write_text(f"answer {number}")
    (tmp_path / "q9" / "._1.txt").write_bytes(b"\x00")  # as macOS leaves beside its files
    assert [item.id for item in read_responses(tmp_path)] == ["q9", "q10"]
    assert {item.responses for item in read_responses(tmp_path)} == {("answer 1", "answer 2", "answer 9", "answer 10")}


def test_an_answer_of_a_folder_that_leads_nowhere_is_not_passed_over(tmp_path):
    (tmp_path / "a").mkdir()
    for name in ("1.txt", "2.txt"):
        (tmp_path / "a" / name).write_text(name)
    (tmp_path / "a" / "3.txt").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match=r"3\.txt"):
        list(read_responses(tmp_path))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file or folder .*nowhere\.jsonl"):
        list(read_responses(tmp_path / "nowhere.jsonl"))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no folders"),
        ({"a/x.txt": b"x"}, "the folder a: 'a' has 1 answer(s)"),
        ({"a/x.txt": b"x", "a/y.txt": b" "}, "the answer y.txt is empty"),
        ({"a/x.txt": b"x", "a/y.txt": b"\xff"}, "y.txt is no text in UTF-8"),
        ({"a/x.txt": b"x", "a/y.txt": b"\x00"}, "y.txt holds a NUL byte"),
    ],
)
def test_folders_that_do_not_do(tmp_path, files, message):
    root = tmp_path / "root"
    root.mkdir()
    for name, content in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(content)
    with pytest.raises(ValueError) as refused:
        list(read_responses(root))
    assert message in str(refused.value).replace(str(root) + "/", "")


# Whatever it is, it is read or refused

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(["id", "prompt", "responses", "factuality", "logprobs", "entity", "response",
                                       "statements", "class", "index"]), inner, max_size=6),
    max_leaves=14,
)  # fmt: skip
pieces = st.sampled_from(
    [*(line.encode() for line in LINES), TABLE.encode(), b"id,prompt,response\n", b"a,p,x\n", b'"', b"[", b"]", b"{", b"}", b",", b"\n",
     b"\r\n", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b", b"\xfd7zXZ\x00", b'{"id": 1}', b"null", b"1e999"]
)  # fmt: skip


def read_or_refused(path: Path) -> None:
    """Either there are answers, or one sentence says why not; any other exception is a fault."""
    items, refusal = [], ""
    try:
        items = list(read_responses(path))
    except ValueError as error:
        refusal = str(error)
    assert bool(items) != bool(refusal.strip())
    assert all(isinstance(item, Responses) for item in items)
    assert "\n" not in refusal.strip()


fuzz = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@given(st.binary(max_size=200))
@fuzz
def test_any_bytes(tmp_path, content):
    read_or_refused(written(tmp_path, content))


@given(st.lists(pieces, max_size=8).map(b"".join), st.sampled_from([bytes, gzip.compress, lzma.compress]))
@fuzz
def test_anything_made_of_pieces_of_the_formats(tmp_path, content, packed):
    read_or_refused(written(tmp_path, packed(content)))


@given(st.lists(json_values, min_size=1, max_size=3), st.booleans())
@fuzz
def test_any_json(tmp_path, values, listed):
    text = json.dumps(values) if listed else "\n".join(map(json.dumps, values))
    read_or_refused(written(tmp_path, text))


@given(
    st.lists(
        st.lists(st.sampled_from(["a", "b", "p", "x", "", " ", "0.5", "2", '"', 'q"q', "\r", "y\nz"]), max_size=5),
        max_size=6,
    )
)
@fuzz
def test_any_table(tmp_path, rows):
    text = "id,prompt,response,factuality\n" + "\n".join(",".join(row) for row in rows)
    read_or_refused(written(tmp_path, text))


@given(st.dictionaries(st.sampled_from(["prompt.txt", "1.txt", "2.txt", "3.md"]), st.binary(max_size=6), max_size=4))
@settings(parent=fuzz, max_examples=50)
def test_any_folder(tmp_path_factory, files):
    root = tmp_path_factory.mktemp("root")
    (root / "a").mkdir()
    for name, content in files.items():
        (root / "a" / name).write_bytes(content)
    read_or_refused(root)


# Memory


def lines_of(path: Path, n: int, form: str) -> None:
    answer = "An answer of about four hundred tokens. " * 60
    with path.open("w") as file:
        file.write({"csv": "id,prompt,response\n", "list": "[", "lines": ""}[form])
        for i in range(n):
            if form == "csv":
                file.write("".join(f"{i},Prompt {i},{k} {answer}\n" for k in range(5)))
            else:
                end = {"lines": "\n", "list": "]" if i == n - 1 else ",\n"}[form]
                file.write(
                    json.dumps({"id": i, "prompt": f"Prompt {i}", "responses": [f"{k} {answer}" for k in range(5)]})
                    + end
                )


@pytest.mark.slow
@pytest.mark.parametrize("form", ["lines", "list", "csv"])
def test_memory_holds_a_prompt_and_the_ids_not_the_file(tmp_path, form):
    """50,000 answers, over 100 MB: what is held stays below 8 MB, of which 10,000 ids take more than one."""
    path = tmp_path / "many"
    lines_of(path, 10_000, form)
    assert path.stat().st_size > 100e6
    tracemalloc.start()
    try:
        count = sum(len(item.responses) for item in read_responses(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 50_000
    assert peak < 8e6
