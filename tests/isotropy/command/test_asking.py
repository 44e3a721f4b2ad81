"""Prompts of a file are asked as the sampler asks them, in their order, several at a time, and what it cost is counted."""

from __future__ import annotations

import threading

import pytest
from isotropy_toys import WordEmbedder
from scripted_model import ScriptedModel

from upheld.isotropy import SemanticIsotropy
from upheld.isotropy.command.asking import Asking, Meter, asked, read_prompts
from upheld.isotropy.sampling import draw_responses
from upheld.llm import CachedModel, Usage

PROMPTS = [(str(k), f"prompt {k}") for k in range(11)]


def answer(request):
    prompt = request.messages[-1].content
    return f"<answer>{prompt} seed {request.sampling.seed} word{request.sampling.seed * 7 % 5}</answer>"


def scorer():
    return SemanticIsotropy(WordEmbedder())


@pytest.mark.parametrize("concurrency", [1, 20])
def test_answers_are_those_of_the_sampler_in_the_order_of_the_prompts(concurrency):
    heard = []
    found = list(
        asked(
            PROMPTS,
            ScriptedModel(answer),
            Asking(3, seed=5, concurrency=concurrency),
            scorer(),
            lambda *n: heard.append(n),
        )
    )
    assert [one.item.id for one in found] == [id_ for id_, _ in PROMPTS]
    for one, (_, prompt) in zip(found, PROMPTS, strict=True):
        assert one.item.prompt == prompt
        assert one.item.responses == draw_responses(ScriptedModel(answer), prompt, 3, seed=5).texts
        assert one.adaptive is None
    assert heard == [(n, 11) for n in range(1, 12)]


def test_several_prompts_are_asked_at_a_time():
    inside, most, lock, met = 0, 0, threading.Lock(), threading.Event()

    def slow(request):
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
            if inside > 1:
                met.set()
        met.wait(5)
        with lock:
            inside -= 1
        return answer(request)

    list(asked(PROMPTS[:4], ScriptedModel(slow), Asking(2, concurrency=4), scorer()))
    assert most == 2


def test_drawn_until_a_decision():
    found = list(asked(PROMPTS[:2], ScriptedModel(answer), Asking(3, threshold=0.9, n_max=8), scorer()))
    for one in found:
        assert one.adaptive is not None
        assert one.adaptive.verdict == "below"
        assert len(one.item.responses) == 8 - one.adaptive.calls_saved
        assert one.item.responses == one.adaptive.responses.texts


def test_a_meter_counts_what_is_new_and_what_was_kept(tmp_path):
    for kept in (False, True):
        meter = Meter(CachedModel(ScriptedModel(answer), tmp_path / "answers.sqlite"))
        list(asked(PROMPTS[:2], meter, Asking(3), scorer()))
        assert (meter.fresh, meter.kept) == ((0, 6) if kept else (6, 0))
        # 10 tokens read for each, 5 words written
        assert meter.usage == (Usage(0, 0, 0.0) if kept else Usage(60, 30, 0.0))
    assert meter.id == "scripted"


def test_prompts_of_a_file(tmp_path):
    path = tmp_path / "prompts.txt"
    path.write_text("\ufeffWho was Ada?  \n\n  Zwölf Boxkämpfer\r\n", encoding="utf-8")
    assert read_prompts(path) == [("1", "Who was Ada?"), ("3", "Zwölf Boxkämpfer")]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "holds no prompt"),
        (b" \n\n", "holds no prompt"),
        (b"a\nb\n a \n", "line 3 of .* repeats the prompt of line 1"),
        (b"a\n\xff\n", r"no text in UTF-8 \(byte 3\)"),
        (b"a\nb\x00c\n", "line 2 of .* holds a NUL byte"),
    ],
)
def test_bad_files_of_prompts(tmp_path, content, sentence):
    path = tmp_path / "prompts.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        read_prompts(path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_prompts(tmp_path / "no.txt")
