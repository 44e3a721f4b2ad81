"""Which key goes where, and that none goes anywhere else: headers as a server saw them, and everything that a run writes."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pickle
import subprocess
import sys
import textwrap
import traceback
from pathlib import Path

import pytest
from servers import chat, completion, cut_short, data, dropped, embeddings, events, raw, refusal, serving, slow

from upheld.llm import ModelError, Request, Sampling, conversation
from upheld.llm.cache import CachedModel
from upheld.llm.endpoint import Endpoint, EndpointEmbedder
from upheld.llm.keys import checked_url, is_openai, is_this_machine, key_for, key_variable, quoted, redacted
from upheld.llm.retries import Retries

OURS = "sk-planted-0123456789abcdef"
THEIRS = "other-planted-9876543210"
QUICK = Retries(tries=2, first_s=0.001, longest_s=1.0)


def sent_to(server, **options) -> dict[str, str]:
    Endpoint("m", server.url, retries=QUICK, **options).chat("x")
    return server.seen[-1].headers


# -- as a server sees it


def test_without_a_key_for_its_host_a_server_gets_none(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", OURS)
    monkeypatch.setenv("OPENAI_ADMIN_KEY", OURS)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-planted")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-planted")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"Authorization: Bearer {OURS}\nX-Team: team-planted")
    monkeypatch.setenv("UPHELD_API_KEY_LLM_EXAMPLE_ORG", THEIRS)
    with serving(chat()) as server:
        headers = sent_to(server)
    assert "authorization" not in headers
    assert "planted" not in json.dumps(headers)
    assert not {name for name in headers if name.startswith(("openai-", "x-"))} - {"x-stainless-raw-response"}


def test_the_key_that_bears_its_name_goes_to_a_host(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", OURS)
    monkeypatch.setenv("UPHELD_API_KEY_127_0_0_1", f" {THEIRS}\n")
    with serving(chat()) as server:
        assert sent_to(server)["authorization"] == f"Bearer {THEIRS}"


def test_the_address_that_the_user_gives_for_openai_gets_its_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", OURS)
    with serving(chat()) as server, serving(chat()) as other:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert sent_to(server)["authorization"] == f"Bearer {OURS}"
        assert "authorization" not in sent_to(other)  # the same host, another port
        Endpoint("m").chat("x")  # no URL: that of the environment
        assert len(server.seen) == 2


def test_without_any_key_none_is_made_up(monkeypatch):
    with serving(chat()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert "authorization" not in sent_to(server)


def test_a_key_that_comes_later_is_used_and_one_that_goes_is_forgotten(monkeypatch):
    with serving(chat()) as server:
        model = Endpoint("m", server.url)
        model.chat("x")
        monkeypatch.setenv("UPHELD_API_KEY_127_0_0_1", THEIRS)
        model.chat("x")
        monkeypatch.delenv("UPHELD_API_KEY_127_0_0_1")
        model.chat("x")
    assert [seen.headers.get("authorization") for seen in server.seen] == [None, f"Bearer {THEIRS}", None]


# -- the rule


@pytest.mark.parametrize(
    ("url", "base", "expected"),
    [
        ("https://api.openai.com/v1", None, OURS),
        ("https://eu.api.openai.com/v1", None, OURS),
        ("https://API.OpenAI.com:443/v1", None, OURS),
        ("http://api.openai.com/v1", None, None),
        ("https://api.openai.com.evil.org/v1", None, None),
        ("https://evilapi.openai.com/v1", None, None),
        ("https://evil.org/api.openai.com", None, None),
        ("http://localhost:8000/v1", None, None),
        ("https://proxy.lab.org/v1", "https://proxy.lab.org", OURS),
        ("https://proxy.lab.org:443/other", "https://proxy.lab.org/v1", OURS),
        ("http://proxy.lab.org/v1", "https://proxy.lab.org/v1", None),
        ("https://proxy.lab.org:8443/v1", "https://proxy.lab.org/v1", None),
        ("https://sub.proxy.lab.org/v1", "https://proxy.lab.org/v1", None),
        ("http://10.0.0.5:8000/v1", "http://10.0.0.5:8000/v1", OURS),
        ("https://x.org/v1", "https://x.org:port", None),
        ("https://x.org/v1", "nonsense", None),
    ],
)
def test_where_the_openai_key_goes(monkeypatch, url, base, expected):
    monkeypatch.setenv("OPENAI_API_KEY", OURS)
    if base is not None:
        monkeypatch.setenv("OPENAI_BASE_URL", base)
    assert key_for(url) == expected


@pytest.mark.parametrize(
    ("url", "variable"),
    [
        ("https://llm.my-lab.org/v1", "UPHELD_API_KEY_LLM_MY__LAB_ORG"),
        ("http://localhost:8000/v1", "UPHELD_API_KEY_LOCALHOST"),
        ("http://127.0.0.1:8000/v1", "UPHELD_API_KEY_127_0_0_1"),
        ("http://my_service:8000/v1", None),
        ("http://[::1]:8000/v1", None),
    ],
)
def test_the_variable_of_a_host(url, variable):
    assert key_variable(url) == variable


def test_hosts_that_look_alike_have_variables_of_their_own():
    hosts = ["a.b.c", "a-b.c", "a.b-c", "a-b-c", "a--b.c", "ab.c", "a.bc"]
    assert len({key_variable(f"https://{host}/v1") for host in hosts}) == len(hosts)


def test_a_key_does_not_cross_the_network_in_clear_text(monkeypatch):
    monkeypatch.setenv("UPHELD_API_KEY_LLM_LAB_ORG", THEIRS)
    assert key_for("https://llm.lab.org/v1") == THEIRS
    with pytest.raises(
        ValueError, match="the key in UPHELD_API_KEY_LLM_LAB_ORG would cross the network in clear text"
    ) as caught:
        Endpoint("m", "http://llm.lab.org/v1")
    assert THEIRS not in str(caught.value)


@pytest.mark.parametrize(
    "key", ["two words", "line\nbreak-in-the-midst", "clé-avec-accent", '"quoted-key-value"', "a=b=c-not-a-token"]
)
def test_what_is_no_key_is_not_sent_and_not_shown(monkeypatch, key):
    monkeypatch.setenv("UPHELD_API_KEY_LOCALHOST", key)
    with pytest.raises(ValueError, match="UPHELD_API_KEY_LOCALHOST holds characters that no key has") as caught:
        Endpoint("m", "http://localhost/v1")
    assert key not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("url", "yes"),
    [("http://localhost:1/v1", True), ("http://127.9.9.9/v1", True), ("http://[::1]/v1", True), ("http://a.localhost/v1", True),
     ("http://10.0.0.1/v1", False), ("http://localhost.evil.org/v1", False), ("http://127.0.0.1.evil.org/v1", False)],
)  # fmt: skip
def test_what_is_this_machine(url, yes):
    assert is_this_machine(url) is yes
    assert not is_openai(url)


# -- addresses with room for a secret


@pytest.mark.parametrize(
    "url",
    ["https://user:hunter2@host/v1", "https://hunter2@host/v1", "https://host/v1?key=hunter2", "https://host/v1#hunter2",
     "http://user:hun/ter2@host/v1", "https://host\\@hunter2/v1", "https://host/v1 hunter2", "https://host/v1\nhunter2"],
)  # fmt: skip
def test_an_address_with_a_secret_is_refused_without_repeating_it(url):
    with pytest.raises(ValueError, match="put the key into the environment") as caught:
        Endpoint("m", url)
    assert "ter2" not in "".join(traceback.format_exception(caught.value)).replace(repr(url), "")
    assert "ter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://host/v1", "https://", "https:///v1", "http://host:port/v1", "http://hôst/v1"]
)
def test_what_is_no_address(url):
    with pytest.raises(ValueError, match="looks like https://HOST/v1"):
        Endpoint("m", url)


def test_a_slash_at_the_end_makes_no_difference():
    assert checked_url("https://host/v1/") == "https://host/v1"
    assert Endpoint("m", "https://host/v1/").id == Endpoint("m", "https://host/v1").id == "openai:m@https://host/v1"


# -- texts


def test_known_keys_are_blanked_and_placeholders_are_not(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "EMPTY")
    monkeypatch.setenv("UPHELD_API_KEY_A_B", OURS)
    monkeypatch.setenv("UPHELD_API_KEY_C_D", f"{OURS}-longer")
    assert redacted(f"EMPTY {OURS} and {OURS}-longer!") == "EMPTY [key] and [key]!"


def test_what_a_server_says_is_cut_and_cleared_of_what_looks_like_a_key():
    said = quoted(
        "Incorrect API key provided: sk-proj-********abcd.\n  Authorization: Bearer abc.def was sent " + "x" * 300
    )
    assert "abcd" not in said
    assert "abc.def" not in said
    assert "\n" not in said
    assert len(said) < 210


# -- a planted key in everything that a run writes


def echo_key(handler) -> None:
    """A server that throws the key back in its refusal."""
    refusal(400, f"bad request with {handler.headers['authorization']}", x_key=handler.headers["authorization"])(
        handler
    )


def answer_key(handler) -> None:
    chat(f"Your key is {handler.headers['authorization']}.")(handler)


REPLIES = [
    chat("fine"), chat("also fine"), completion("on"), answer_key, echo_key, refusal(401, f"Incorrect API key: {OURS}"), refusal(429),
    refusal(500), dropped, cut_short, slow, raw(b'{"choices": ['), raw(OURS.encode(), kind="text/plain"), data({"choices": []}), chat(""),
    data({"error": OURS, OURS: 1}), raw(b"", 307, location=f"http://elsewhere/{OURS}"), events("a", "b"), events("a", end="drop"),
    events("a", end=json.dumps({"error": {"message": f"key {OURS}"}})), embeddings([1, 2]), embeddings([float("nan"), 1]),
]  # fmt: skip


@pytest.mark.slow
def test_a_planted_key_is_in_nothing_that_a_run_writes(monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("UPHELD_API_KEY_127_0_0_1", OURS)
    log = logging.FileHandler(tmp_path / "everything.log")
    loggers = [
        logging.getLogger(name) for name in (None, "openai", "httpx", "httpx2", "httpcore", "httpcore2", "upheld")
    ]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    loggers[0].addHandler(log)
    texts: list[str] = []
    seen = 0
    try:
        for number, reply in enumerate(REPLIES):
            with serving(reply) as server:
                texts += run_with(server.url, number, tmp_path)
            seen += sum(one.headers.get("authorization") == f"Bearer {OURS}" for one in server.seen)
    finally:
        loggers[0].removeHandler(log)
        log.close()
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
    texts += capfd.readouterr()
    assert seen >= 4 * len(REPLIES)  # it was sent each time
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(written) == 2 * len(REPLIES) + 2
    assert b"HTTP" in written["everything.log"]
    assert b"it failed" in written["everything.log"]
    assert b"fine" in written["cache.sqlite"]
    for secret in (OURS, OURS.removeprefix("sk-")):
        assert [name for name, content in written.items() if secret.encode() in content] == []
        assert [text[:300] for text in texts if secret in text] == []


def run_with(url: str, number: int, folder: Path) -> list[str]:
    """Everything that is asked of an endpoint, its failures caught; returns what could be shown of it."""
    model = Endpoint("m", url, retries=QUICK, timeout_s=0.3, concurrency=2)
    cached = CachedModel(model, folder / "cache.sqlite")
    embedder = EndpointEmbedder("m", url, retries=QUICK, timeout_s=0.3)
    request = Request(conversation(f"{number}: what is {OURS}?"), sampling=Sampling(seed=number))
    texts = []
    for call in (
        lambda: cached.answers([request, request]),
        lambda: cached.complete("on and", Sampling(seed=number)),
        lambda: list(model.stream(Request(prompt="on and"))),
        lambda: list(cached.stream(request)),
        lambda: embedder.embed(["a"]),
    ):
        try:
            texts.append(repr(call()))
        except ModelError as error:
            texts += [repr(error), repr(error.args), *traceback.format_exception(error)]
            logging.getLogger("upheld").exception("it failed")
    texts += [
        repr(model),
        str(vars(model)),
        str(vars(model._connection)),
        str(vars(model._connection.client)),
        model.id,
    ]
    texts += [
        path.read_bytes().decode("latin-1") for path in folder.glob("cache.sqlite-*")
    ]  # the WAL, before it is folded in
    assert (folder / "cache.sqlite-wal").exists()
    cached.export(folder / f"{number}.jsonl")
    cached.export(folder / f"all-{number}.jsonl", everything=True)
    cached.close()
    return texts


def test_an_endpoint_cannot_carry_a_key_into_a_pickle(monkeypatch):
    monkeypatch.setenv("UPHELD_API_KEY_127_0_0_1", OURS)
    with serving(chat()) as server:
        model = Endpoint("m", server.url)
        model.chat("x")
        with contextlib.suppress(TypeError):
            assert OURS.encode() not in pickle.dumps(model)


def test_an_uncaught_failure_of_a_script_does_not_print_the_key(tmp_path):
    with serving(refusal(500, f"the key {OURS} is fine, I am not")) as server:
        code = f"""
            import logging
            logging.basicConfig(level=logging.DEBUG)
            from upheld.llm import Endpoint
            from upheld.llm.retries import Retries
            Endpoint("m", {server.url!r}, retries=Retries(tries=2, first_s=0)).chat("x")
        """
        environment = {**os.environ, "UPHELD_API_KEY_127_0_0_1": OURS, "OPENAI_LOG": "debug"}
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True, timeout=60
        )
        assert server.seen[0].headers["authorization"] == f"Bearer {OURS}"
    assert done.returncode == 1
    assert "answered 500" in done.stderr
    assert OURS not in done.stdout + done.stderr
    assert not list(Path(tmp_path).iterdir())
