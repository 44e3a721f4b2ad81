from __future__ import annotations

import pytest

from upheld.speculative.data import FAMILIES, TOPICS, built_in, read_prompts, topics_of, training_set


class Letters:
    """A tokenizer of letters, with a template or without."""

    def __init__(self, template: str | None) -> None:
        self.chat_template = template

    def __call__(self, text: str) -> dict[str, list[int]]:
        return {"input_ids": [ord(letter) for letter in text]}

    def apply_chat_template(self, turns, **_):
        return self("".join(f"<{turn['role']}>{turn['content']}" for turn in turns) + "<assistant>")


def test_no_topic_is_in_two_parts():
    parts = [topics_of(built_in(part)) for part in ("train", "validation", "test")]
    assert [len(part) for part in parts] == [35, 5, 10]
    assert len(set.union(*parts)) == 50
    assert topics_of(training_set()) == parts[0]


def test_test_topics_are_not_even_named_in_training_prompts():
    training = " ".join(prompt.text for prompt in training_set())
    assert not [topic for topic in TOPICS["test"] if f" {topic} " in training]


def test_at_least_600_prompts_all_different_in_three_families():
    every = [*built_in("train"), *built_in("validation"), *built_in("test")]
    assert len({prompt.text for prompt in every}) == len(every) >= 600
    for part in ("train", "validation", "test"):
        assert {prompt.family for prompt in built_in(part)} == set(FAMILIES)


def test_training_set_begins_with_single_topics_and_each_part_is_varied_from_its_start():
    asked = training_set()
    assert {prompt.text for prompt in asked[:630]} == {prompt.text for prompt in built_in("train")}
    for start in (0, 630):
        beginning = asked[start : start + 300]
        assert {prompt.family for prompt in beginning} == set(FAMILIES)
        assert topics_of(beginning) == set(TOPICS["train"])
    assert training_set() == asked


def test_a_text_file_is_a_prompt_a_line(tmp_path):
    path = tmp_path / "asked.txt"
    path.write_text("Why is it so?\n\nAnd why not?\n")
    prompts = read_prompts(path, chat=True)
    assert [prompt.messages for prompt in prompts] == [(("user", "Why is it so?"),), (("user", "And why not?"),)]
    assert {prompt.family for prompt in prompts} == {"asked"}
    assert read_prompts(path, chat=False)[0].messages == ()


def test_json_lines_hold_conversations_and_texts(tmp_path):
    path = tmp_path / "asked.jsonl"
    path.write_text('{"messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi"}], "family": "chat"}\n'
                    '{"prompt": "def f("}\n')  # fmt: skip
    talk, text = read_prompts(path, chat=False)
    assert talk.family == "chat"
    assert talk.text == "Hi"
    assert talk.ids(Letters("a template")) == [ord(letter) for letter in "<system>Be short.<user>Hi<assistant>"]
    assert text.ids(Letters(None)) == [ord(letter) for letter in "def f("]


def test_what_other_editors_write_is_read(tmp_path):
    """A mark at the beginning, two characters at a line's end, and a separator of lines that JSON lets stand."""
    path = tmp_path / "asked.jsonl"
    path.write_bytes('\ufeff{"prompt": "one\u2028two"}\r\n{"prompt": "three"}'.encode())
    assert [prompt.text for prompt in read_prompts(path, chat=False)] == ["one\u2028two", "three"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n \n", "holds no prompt"),
        ('{"prompt": "a"}\n{"prompt": \n', r"asked.jsonl, line 2 is not JSON"),
        ('{"text": "a"}\n', r'line 1 needs either "prompt" or "messages"'),
        ('{"prompt": " "}\n', "must be a text that is not empty"),
        ('{"messages": []}\n', "at least one turn"),
        ('{"messages": [{"role": "user"}]}\n', 'needs "role" and "content"'),
    ],
)
def test_a_bad_file_is_named_by_line(tmp_path, content, message):
    path = tmp_path / "asked.jsonl"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_prompts(path, chat=True)


def test_messages_need_a_chat_template():
    with pytest.raises(ValueError, match="no chat template"):
        built_in("test")[0].ids(Letters(None))
    with pytest.raises(ValueError, match="gives no token"):
        read_prompts_of_nothing().ids(Letters(None))


def read_prompts_of_nothing():
    from upheld.speculative.data import Prompt

    return Prompt((), "", "x", "x")
