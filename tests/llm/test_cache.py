"""What was answered once is kept, whatever happens to the process; no draw is given twice; an export repeats a run without the model."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from servers import counted, echo, refusal, serving

from upheld.llm import Answer, LanguageModel, Message, ModelError, Request, Sampling, Token, Usage, conversation
from upheld.llm.cache import CachedModel
from upheld.llm.cache_file import CacheError
from upheld.llm.endpoint import Endpoint
from upheld.llm.record import answer_of, answer_text, request_key
from upheld.llm.replay import Replay
from upheld.llm.retries import Retries


class Counting(LanguageModel):
    """Answers "draw 1", "draw 2", ... (or `word`); keeps what it was asked."""

    def __init__(self, id: str = "counting", fails_at: int | None = None, word: str = "draw") -> None:
        self.id = id
        self.asked: list[Request] = []
        self.fails_at = fails_at
        self.word = word

    def answers(self, requests: Sequence[Request], told=None) -> list[Answer]:
        return [self._answer(request) for request in requests]

    def each(self, requests: Sequence[Request]) -> Iterator[tuple[int, Answer]]:
        yield from ((place, self._answer(request)) for place, request in enumerate(requests))

    def stream(self, request: Request) -> Iterator[str]:
        answer = self._answer(request)
        yield answer.text[:3]
        yield answer.text[3:]

    def _answer(self, request: Request) -> Answer:
        if len(self.asked) + 1 == self.fails_at:
            self.fails_at = None
            raise ModelError("no more")
        self.asked.append(request)
        tokens = (Token("draw", -0.5, (("draw", -0.5), ("d", -2.0))),) if request.sampling.logprobs is not None else ()
        return Answer(f"{self.word} {len(self.asked)}", "stop", self.id, tokens, Usage(3, 2, 0.01))


SEEDED = Sampling(temperature=0.7, seed=5)
GREEDY = Sampling(temperature=0)
FRESH = Sampling(temperature=0.7)


def ask(text: str = "x", sampling: Sampling = SEEDED) -> Request:
    return Request(conversation(text), sampling=sampling)


def texts(model: LanguageModel, *requests: Request) -> list[str]:
    return [answer.text for answer in model.answers(requests)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite"


# -- kept


@pytest.mark.parametrize("sampling", [SEEDED, GREEDY, Sampling(temperature=0, seed=1, logprobs=1)])
def test_what_was_answered_is_not_asked_again(file, sampling):
    model = Counting()
    first = CachedModel(model, file).chat("x", sampling=sampling)
    again = CachedModel(model, file).chat("x", sampling=sampling)
    assert (first.cached, again.cached, len(model.asked)) == (False, True, 1)
    assert again == Answer(first.text, first.finish, first.model, first.tokens, first.usage, cached=True)


def test_the_same_request_twice_in_one_call_is_asked_once(file):
    model = Counting()
    assert texts(CachedModel(model, file), ask("a"), ask("b"), ask("a")) == ["draw 1", "draw 2", "draw 1"]
    assert len(model.asked) == 2


@pytest.mark.parametrize(
    "other",
    [
        ask("y"), ask(sampling=Sampling(0.7, seed=6)), ask(sampling=Sampling(0.8, seed=5)), ask(sampling=GREEDY),
        ask(sampling=Sampling(0.7, 0.9, seed=5)), ask(sampling=Sampling(0.7, max_tokens=9, seed=5)),
        ask(sampling=Sampling(0.7, seed=5, stop=("a",))), ask(sampling=Sampling(0.7, seed=5, logprobs=0)),
        Request(prompt="x", sampling=SEEDED), Request((Message("system", "x"),), sampling=SEEDED),
        Request(conversation("x", "be brief"), sampling=SEEDED),
        Request((*conversation("x"), Message("assistant", "")), sampling=SEEDED),
    ],
)  # fmt: skip
def test_whatever_differs_is_asked_for_itself(file, other):
    cached = CachedModel(Counting(), file)
    assert texts(cached, ask(), other) == ["draw 1", "draw 2"]


def test_another_model_has_answers_of_its_own(file):
    CachedModel(Counting("a"), file).chat("x", sampling=GREEDY)
    assert not CachedModel(Counting("b"), file).chat("x", sampling=GREEDY).cached


def test_a_temperature_of_0_is_one_temperature_however_it_is_written():
    keys = {request_key("m", ask(sampling=Sampling(temperature=zero))) for zero in (0, 0.0, -0.0)}
    assert len(keys) == 1


def test_a_key_is_what_it_was_in_the_first_release():
    """By `sha256sum` from {"messages": [["user", "x"]], "model": "m", "sampling": {"logprobs": null, "max_tokens": 512, "seed": 5,
    "stop": [], "temperature": 0.7, "top_p": 1.0}, "streamed": false}; another key would void everybody's caches."""
    assert request_key("m", ask()) == "d4359e40de740b665883fe8a1fc9f74d95e1b0d6a2fbe1f57c68ee86903a631a"


# -- draws


def test_an_unseeded_request_is_drawn_anew_each_time(file):
    """Or the dispersion of several answers would be 0 by construction."""
    model = Counting()
    cached = CachedModel(model, file)
    assert texts(cached, *[ask(sampling=FRESH)] * 3) == ["draw 1", "draw 2", "draw 3"]
    assert cached.chat("x", sampling=FRESH).text == "draw 4"
    assert not any(answer.cached for answer in cached.answers([ask(sampling=FRESH)] * 2))
    assert len(model.asked) == 6


def test_a_second_run_repeats_the_first_draw_by_draw_and_goes_on_with_new_ones(file):
    texts(CachedModel(Counting(), file), *[ask(sampling=FRESH)] * 3)
    model = Counting()
    again = CachedModel(model, file).answers([ask(sampling=FRESH)] * 5)
    assert [(answer.text, answer.cached) for answer in again] == [
        ("draw 1", True), ("draw 2", True), ("draw 3", True), ("draw 1", False), ("draw 2", False),
    ]  # fmt: skip
    assert len(model.asked) == 2


def test_draws_that_failed_are_drawn_by_the_next_call(file):
    model = Counting(fails_at=2)
    cached = CachedModel(model, file)
    with pytest.raises(ModelError, match="no more"):
        cached.answers([ask(sampling=FRESH)] * 3)
    assert texts(cached, *[ask(sampling=FRESH)] * 2) == ["draw 2", "draw 3"]
    assert texts(CachedModel(Counting(), file), *[ask(sampling=FRESH)] * 3) == ["draw 1", "draw 2", "draw 3"]


def test_many_threads_are_never_given_the_same_draw(file):
    with serving(counted()) as server:
        cached = CachedModel(Endpoint("m", server.url), file)
        found: list[str] = []
        threads = [Thread(target=lambda: found.extend(texts(cached, *[ask(sampling=FRESH)] * 5))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 20
    assert len(set(found)) == len(server.seen)  # those that the model gave, none of them twice
    assert len(set(found)) == 20


# -- failures and kills


def test_what_came_before_a_failure_is_kept(file):
    requests = [ask(str(i)) for i in range(5)]
    model = Counting(fails_at=4)
    with pytest.raises(ModelError):
        CachedModel(model, file).answers(requests)
    assert [answer.cached for answer in CachedModel(model, file).answers(requests)] == [True, True, True, False, False]


def test_an_endpoint_that_fails_midway_loses_nothing(file):
    requests = [ask(str(i)) for i in range(8)]
    with serving(echo, echo, echo, refusal(400), echo) as server:
        model = Endpoint("m", server.url, concurrency=2, retries=Retries(tries=1))
        with pytest.raises(ModelError):
            CachedModel(model, file).answers(requests)
        before = len(server.seen)
        answers = CachedModel(model, file).answers(requests)
        assert [answer.text for answer in answers] == [f"You said: {i}" for i in range(8)]
        assert len(server.seen) - before == 8 - (before - 1)  # all but the one that failed had been kept


@pytest.mark.slow
def test_a_killed_run_loses_nothing(file):
    code = f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_cache import CachedModel, Counting, ask
        for place, answer in CachedModel(Counting(), {str(file)!r}).each([ask(str(i)) for i in range(100)]):
            if place == 41:
                os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    model = Counting()
    assert sum(answer.cached for answer in CachedModel(model, file).answers([ask(str(i)) for i in range(100)])) == 42


@pytest.mark.slow
def test_processes_share_a_file_from_its_creation_on(file):
    code = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_cache import CachedModel, Counting, ask
        cached = CachedModel(Counting(word=sys.argv[1]), {str(file)!r})
        print("ready", flush=True)
        sys.stdin.readline()
        print(*[answer.text for answer in cached.answers([ask(str(i)) for i in range(60)])], sep=",")
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "abc"
    ]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 3
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=60)[0].strip().split(",") for process in processes]
    assert said[0] == said[1] == said[2]  # whoever answered first is believed by all
    assert len(said[0]) == 60
    assert texts(CachedModel(Counting(), file), *[ask(str(i)) for i in range(60)]) == said[0]


def create_caches(folder: Path, together) -> None:
    for number in range(50):
        together.wait()
        CachedModel(Counting(), folder / f"{number}.sqlite").close()


@pytest.mark.slow
def test_processes_that_create_a_file_at_the_same_moment_wait_for_each_other(tmp_path):
    """SQLite alone would refuse one of them now and then: in 6 of 240 creations by four processes."""
    fork = multiprocessing.get_context("fork")
    together = fork.Barrier(4, timeout=60)
    processes = [fork.Process(target=create_caches, args=(tmp_path, together)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 4


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_file_that_may_not_be_written(file):
    file.touch(0o444)
    with pytest.raises(CacheError, match="readonly database"):
        CachedModel(Counting(), file)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_has_a_connection_of_its_own(file):
    cached = CachedModel(Counting(), file)
    cached.chat("x", sampling=GREEDY)
    connection = cached._file._db
    child = os.fork()
    if not child:
        ok = cached.chat("x", sampling=GREEDY).cached and not cached.chat("of the child", sampling=GREEDY).cached
        os._exit(
            0 if ok and cached._file._db is not connection else 1
        )  # SQLite forbids to use one on both sides of a fork
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert cached.chat("of the child", sampling=GREEDY).cached


# -- streams


def test_a_stream_is_kept_when_it_has_come_to_its_end(file):
    model = Counting()
    cached = CachedModel(model, file)
    assert list(cached.stream(ask())) == ["dra", "w 1"]
    assert list(cached.stream(ask())) == ["draw 1"]
    assert len(model.asked) == 1


def test_a_stream_that_is_left_is_not_kept(file):
    cached = CachedModel(Counting(), file)
    stream = cached.stream(ask(sampling=FRESH))
    next(stream)
    stream.close()
    assert "".join(cached.stream(ask(sampling=FRESH))) == "draw 2"
    assert (
        "".join(CachedModel(Counting(), file).stream(ask(sampling=FRESH))) == "draw 2"
    )  # it is the first draw of the file


def test_a_streamed_answer_does_not_stand_in_for_one_with_counts(file):
    cached = CachedModel(Counting(), file)
    list(cached.stream(ask()))
    assert cached.answers([ask()])[0].usage == Usage(3, 2, 0.01)


# -- export and replay


def run(model: LanguageModel) -> list[Answer | str]:
    """A run with everything in it."""
    requests = [ask("a"), *[ask("b", FRESH)] * 3, ask("c", Sampling(temperature=0, logprobs=1)), ask("a")]
    return [
        *model.answers(requests),
        "".join(model.stream(ask("s"))),
        model.complete("p", FRESH),
        model.complete("p", FRESH),
    ]


def plain(found: list[Answer | str]) -> list[object]:
    return [one if isinstance(one, str) else (one.text, one.finish, one.model, one.tokens, one.usage) for one in found]


def test_an_export_repeats_a_run_without_the_model(file, tmp_path):
    cached = CachedModel(Counting(), file)
    first = run(cached)
    replay = CachedModel.replay(cached.export(tmp_path / "run.jsonl"))
    assert isinstance(replay, Replay)
    assert replay.id == "counting"
    again = run(replay)
    assert plain(again) == plain(first)
    assert all(answer.cached for answer in again if isinstance(answer, Answer))
    told = []
    Replay(tmp_path / "run.jsonl").answers([ask("a"), ask("a")], lambda done, n: told.append((done, n)))
    assert told == [(1, 2), (2, 2)]


def test_equal_runs_give_equal_files(tmp_path):
    exports = []
    for name in ("one", "two"):
        cached = CachedModel(Counting(), tmp_path / f"{name}.sqlite")
        run(cached)
        exports.append(cached.export(tmp_path / f"{name}.jsonl").read_bytes())
    assert exports[0] == exports[1]


def test_an_export_holds_this_run_and_everything_holds_all_of_this_model(file, tmp_path):
    CachedModel(Counting("another"), file).chat("of another model", sampling=GREEDY)
    CachedModel(Counting(), file).chat("of an earlier run", sampling=GREEDY)
    cached = CachedModel(Counting(), file)
    cached.chat("of this run", sampling=GREEDY)
    own = cached.export(tmp_path / "own.jsonl").read_text()
    everything = cached.export(tmp_path / "all.jsonl", everything=True).read_text()
    assert ("this run" in own, "earlier" in own, "another model" in own) == (True, False, False)
    assert ("this run" in everything, "earlier" in everything, "another model" in everything) == (True, True, False)
    assert json.loads(own.splitlines()[1])["request"]["messages"] == [["user", "of this run"]]


def test_answers_from_the_cache_are_exported_too(file, tmp_path):
    run(CachedModel(Counting(), file))
    cached = CachedModel(Counting(), file)
    first = run(cached)
    assert plain(run(Replay(cached.export(tmp_path / "run.jsonl")))) == plain(first)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (ask("Where is it?"), "'Where is it?' (temperature 0.7, at most 512 tokens, seed 5)"),
        (ask("a", Sampling(0.7, seed=6)), "'a' (temperature 0.7, at most 512 tokens, seed 6)"),
        (Request(prompt="y" * 90, sampling=GREEDY), f"'{'y' * 60}…'"),
        (ask("b", FRESH), "'b' (temperature 0.7, at most 512 tokens, draw 4)"),
    ],
)
def test_what_an_export_does_not_hold_is_named(file, tmp_path, request_, said):
    cached = CachedModel(Counting(), file)
    run(cached)
    replay = Replay(cached.export(tmp_path / "run.jsonl"))
    replay.answers([ask("b", FRESH)] * 3)
    for _ in range(2):  # a draw that was missing is still the next
        with pytest.raises(ModelError) as caught:
            replay.answers([ask("a"), request_])
        assert f"run.jsonl holds no answer of counting to {said}" in str(caught.value)
    with pytest.raises(ModelError, match="holds no answer"):
        list(replay.stream(ask("never streamed")))


def test_an_export_of_several_models_asks_which(file, tmp_path):
    lines = []
    for name in ("one", "two"):
        cached = CachedModel(Counting(name), file)
        cached.chat("x", sampling=GREEDY)
        lines += cached.export(tmp_path / "x.jsonl").read_text().splitlines()[len(lines) > 0 :]
    (tmp_path / "both.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(CacheError, match="holds answers of one, two; name one"):
        Replay(tmp_path / "both.jsonl")
    assert Replay(tmp_path / "both.jsonl", "two").chat("x", sampling=GREEDY).model == "two"
    with pytest.raises(CacheError, match="holds no answer of 'three', but of one, two"):
        Replay(tmp_path / "both.jsonl", "three")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "damaged in line 1"), ("[]\n", "no export of answers that this version reads"),
        ('{"format": "upheld answers", "version": 2}\n', "no export of answers that this version reads"),
        ("HEAD{", "damaged in line 2"), ('HEAD{"key": "k"}', "damaged in line 2"), ("HEAD", "holds no answer"),
        ('HEAD{"key": "k", "draw": 0, "model": "m", "request": {}, "answer": {"text": 3}}', "damaged in line 2"),
        ("HEAD7", "damaged in line 2"),
    ],
)  # fmt: skip
def test_what_is_no_export(tmp_path, content, said):
    path = tmp_path / "run.jsonl"
    path.write_text(content.replace("HEAD", '{"format": "upheld answers", "version": 1}\n'))
    with pytest.raises(CacheError, match=said):
        Replay(path)


def test_an_export_that_is_not_there(tmp_path):
    with pytest.raises(CacheError, match=r"cannot read .*none\.jsonl: No such file"):
        Replay(tmp_path / "none.jsonl")


def test_an_export_that_cannot_be_written_leaves_what_was_there(file, tmp_path):
    cached = CachedModel(Counting(), file)
    cached.chat("x", sampling=GREEDY)
    place = tmp_path / "run.jsonl"
    place.mkdir()
    with pytest.raises(CacheError, match=r"cannot write .*run\.jsonl"):
        cached.export(place)
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("cache")) == ["run.jsonl"]


def test_a_damaged_answer_spoils_no_earlier_export(file, tmp_path):
    cached = CachedModel(Counting(), file)
    cached.chat("x", sampling=GREEDY)
    before = cached.export(tmp_path / "run.jsonl").read_bytes()
    with sqlite3.connect(file) as db:
        db.execute("UPDATE answer SET answer = '{'")
    with pytest.raises(CacheError, match="damaged"):
        cached.export(tmp_path / "run.jsonl")
    assert (tmp_path / "run.jsonl").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir() if "jsonl" in path.name} == {"run.jsonl"}


# -- files that are none


def test_a_file_of_another_kind_is_left_alone(file):
    file.write_text("not a database at all, but long enough to be looked at as one " * 20)
    before = file.read_bytes()
    with pytest.raises(CacheError, match=r"cache\.sqlite is no cache of answers, or it is damaged"):
        CachedModel(Counting(), file)
    assert file.read_bytes() == before


def test_another_database_is_left_alone(file):
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE trial (id INTEGER)")
    with pytest.raises(CacheError, match="is a database, but no cache of answers"):
        CachedModel(Counting(), file)


def test_a_newer_cache(file):
    CachedModel(Counting(), file).close()
    with sqlite3.connect(file) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(CacheError, match=r"written by a newer upheld \(version 99\)"):
        CachedModel(Counting(), file)


def test_a_cache_that_is_overwritten_in_the_midst(file):
    cached = CachedModel(Counting(), file)
    for i in range(300):
        cached.chat(f"{i} " + "x" * 200, sampling=GREEDY)
    cached.close()
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xaa" * (len(content) - 4096)
    file.write_bytes(content)
    with pytest.raises(CacheError, match=r"cache\.sqlite is no cache of answers, or it is damaged"):
        CachedModel(Counting(), file).chat("1 " + "x" * 200, sampling=GREEDY)


@pytest.mark.parametrize("text", ["{", "3", '{"text": "x"}', "null"])
def test_an_answer_that_is_none(file, text):
    cached = CachedModel(Counting(), file)
    cached.chat("x", sampling=GREEDY)
    with sqlite3.connect(file) as db:
        db.execute("UPDATE answer SET answer = ?", (text,))
    with pytest.raises(CacheError, match="is damaged"):
        cached.chat("x", sampling=GREEDY)


def test_a_place_where_no_file_can_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError, match="cannot be made"):
        CachedModel(Counting(), tmp_path / "file" / "cache.sqlite")
    with pytest.raises(CacheError, match="is a folder"):
        CachedModel(Counting(), tmp_path)


# -- round trips

LETTERS = st.text(st.characters(codec=None), max_size=20)  # half surrogates too
LOGPROBS = st.floats(max_value=0, allow_nan=False)
TOKENS = st.builds(Token, LETTERS, LOGPROBS, st.lists(st.tuples(LETTERS, LOGPROBS), max_size=2).map(tuple))
USAGES = st.builds(Usage, st.integers(0), st.integers(0), st.none() | st.floats(0, allow_infinity=False))
FINISHES = st.sampled_from(["stop", "length", "filtered", "unknown"])
ANSWERS = st.builds(Answer, LETTERS, FINISHES, LETTERS, st.lists(TOKENS, max_size=2).map(tuple), USAGES, st.just(True))


@given(ANSWERS)
def test_an_answer_is_what_it_was(answer):
    assert answer_of(answer_text(answer)) == answer


SAMPLINGS = st.builds(
    Sampling, st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.5, 1.0]), st.integers(1, 3), st.none() | st.integers(0, 2),
    st.lists(st.sampled_from(["a", "b", "ab"]), max_size=2).map(tuple), st.none() | st.integers(0, 2),
)  # fmt: skip
REQUESTS = st.builds(Request, prompt=st.sampled_from(["a", "b", '"', "a b"]), sampling=SAMPLINGS) | st.builds(
    lambda texts, sampling: Request(tuple(Message("user", text) for text in texts), sampling=sampling),
    st.lists(st.sampled_from(["a", "b", "ab", '","']), min_size=1, max_size=2),
    SAMPLINGS,
)


@given(REQUESTS, REQUESTS)
@settings(max_examples=300)
def test_requests_have_one_key_exactly_when_they_are_equal(one, other):
    assert (request_key("m", one) == request_key("m", other)) == (one == other)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_a_run_cut_into_calls_anywhere_gives_the_same_answers(tmp_path_factory, which, cut):
    folder = tmp_path_factory.mktemp("cut")
    requests = [ask(str(i), FRESH if i % 2 else SEEDED) for i in which]
    whole = texts(CachedModel(Counting(), folder / "cache.sqlite"), *requests)
    parts = CachedModel(Counting(), folder / "cache.sqlite")
    blocks = [requests[start : start + cut] for start in range(0, len(requests), cut)]
    assert list(itertools.chain.from_iterable(texts(parts, *block) for block in blocks)) == whole
