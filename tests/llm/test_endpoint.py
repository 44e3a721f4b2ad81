"""Endpoints as they are met: over real HTTP, with a server that misbehaves on order."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import textwrap
import time
from email.utils import formatdate

import numpy as np
import pytest
from servers import (
    after,
    chat,
    completion,
    cut_short,
    data,
    dropped,
    echo,
    embeddings,
    events,
    raw,
    refusal,
    serving,
    slow,
)  # fmt: skip

from upheld.llm import Message, ModelError, Request, Sampling, Usage
from upheld.llm.endpoint import Endpoint, EndpointEmbedder
from upheld.llm.retries import Retries

QUICK = Retries(tries=4, first_s=0.001, longest_s=2.0)
HELLO = Request((Message("user", "Name a planet."),))


def endpoint(server, **options) -> Endpoint:
    return Endpoint("m", server.url, **{"retries": QUICK, "timeout_s": 5.0, **options})


def refused(call) -> str:
    """The message of the ModelError that `call` raises: one sentence that names endpoint and model, with nothing attached."""
    with pytest.raises(ModelError) as caught:
        call()
    error = caught.value
    message = str(error)
    assert message.startswith("m at 127.0.0.1:")
    assert "\n" not in message
    assert error.__context__ is None
    assert error.__cause__ is None
    return message


# -- answers


def test_a_chat_sends_the_conversation_and_every_parameter():
    with serving(chat("Saturn.", usage=(7, 3))) as server:
        sampling = Sampling(temperature=0.3, top_p=0.9, max_tokens=8, seed=11, stop=("\n",))
        answer = endpoint(server).chat("Name a planet.", system="Be brief.", sampling=sampling)
    assert (answer.text, answer.finish, answer.usage, answer.cached) == ("Saturn.", "stop", Usage(7, 3), False)
    [seen] = server.seen
    assert seen.path == "/v1/chat/completions"
    assert seen.body == {
        "model": "m", "temperature": 0.3, "top_p": 0.9, "max_tokens": 8, "seed": 11, "stop": ["\n"],
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Name a planet."}],
    }  # fmt: skip


def test_what_has_its_usual_value_is_not_sent():
    with serving(chat()) as server:
        endpoint(server).chat("x")
    assert set(server.seen[0].body) == {"model", "messages", "temperature", "max_tokens"}


def test_a_completion_goes_on_with_a_text_and_may_be_empty():
    with serving(completion(" Saturn"), completion("")) as server:
        model = endpoint(server)
        assert model.complete("The ringed planet is", Sampling(max_tokens=4)).text == " Saturn"
        assert model.complete("The end.").text == ""
    assert [seen.path for seen in server.seen] == ["/v1/completions"] * 2
    assert server.seen[0].body["prompt"] == "The ringed planet is"


def test_log_probabilities_of_a_chat():
    place = {
        "token": "Sa",
        "logprob": -0.5,
        "top_logprobs": [{"token": "Sa", "logprob": -0.5}, {"token": "Ma", "logprob": -1.5}],
    }
    with serving(chat("Sa", logprobs={"content": [place]})) as server:
        [token] = endpoint(server).chat("x", sampling=Sampling(logprobs=2)).tokens
    assert (token.text, token.logprob, token.alternatives) == ("Sa", -0.5, (("Sa", -0.5), ("Ma", -1.5)))
    assert server.seen[0].body["logprobs"] is True
    assert server.seen[0].body["top_logprobs"] == 2


@pytest.mark.parametrize(
    "logprobs",
    [
        {"tokens": [" a", "b"], "token_logprobs": [-0.5, -1.0], "top_logprobs": [{" a": -0.5}, {"b": -1.0}], "text_offset": [0, 2]},
        {"content": [{"token": " a", "logprob": -0.5, "top_logprobs": [{"token": " a", "logprob": -0.5}]},
                     {"token": "b", "logprob": -1.0, "top_logprobs": [{"token": "b", "logprob": -1.0}]}]},
    ],
    ids=["OpenAI's form", "the form of a chat"],
)  # fmt: skip
def test_log_probabilities_of_a_completion(logprobs):
    with serving(completion(" ab", logprobs=logprobs)) as server:
        tokens = endpoint(server).complete("x", Sampling(logprobs=1)).tokens
    assert [(token.text, token.logprob, token.alternatives) for token in tokens] == [
        (" a", -0.5, ((" a", -0.5),)),
        ("b", -1.0, (("b", -1.0),)),
    ]
    assert server.seen[0].body["logprobs"] == 1


def test_log_probabilities_that_do_not_come_are_missed():
    with serving(chat("Saturn.")) as server:
        message = refused(lambda: endpoint(server).chat("x", sampling=Sampling(logprobs=0)))
    assert "gave no log-probabilities" in message


@pytest.mark.parametrize(
    "logprobs", [{"content": [{"token": "a"}]}, {"content": [3]}, {"content": [{"token": "a", "logprob": None}]}]
)
def test_log_probabilities_of_another_form_are_refused(logprobs):
    with serving(chat("a", logprobs=logprobs)) as server:
        assert "another form" in refused(lambda: endpoint(server).chat("x", sampling=Sampling(logprobs=0)))


def test_a_stop_text_that_the_server_leaves_in_is_cut_with_its_tokens():
    places = [{"token": text, "logprob": -1.0} for text in ("one", "\n", "two")]
    with serving(chat("one\ntwo", finish="length", logprobs={"content": places})) as server:
        answer = endpoint(server).chat("x", sampling=Sampling(stop=("\n",), logprobs=0))
    assert (answer.text, answer.finish, [token.text for token in answer.tokens]) == ("one", "stop", ["one"])


@pytest.mark.parametrize(
    ("finish", "ours"), [("length", "length"), ("content_filter", "filtered"), ("eos", "unknown"), (None, "unknown")]
)
def test_why_it_ended(finish, ours):
    with serving(chat("Sat", finish=finish)) as server:
        assert endpoint(server).chat("x").finish == ours


def test_answers_keep_the_order_of_their_requests_whatever_the_order_of_arrival():
    with serving(after(0.2, echo), echo) as server:
        told = []
        requests = [Request((Message("user", str(i)),)) for i in range(12)]
        answers = endpoint(server, concurrency=3).answers(requests, lambda done, n: told.append((done, n)))
    assert [answer.text for answer in answers] == [f"You said: {i}" for i in range(12)]
    assert told == [(i, 12) for i in range(1, 13)]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_requests_at_a_time_than_allowed(concurrency):
    with serving(after(0.05, chat())) as server:
        endpoint(server, concurrency=concurrency).answers([HELLO] * 9)
    assert server.most_at_once == concurrency


def test_no_request_no_answer():
    with serving(chat()) as server:
        assert endpoint(server).answers([]) == []
    assert not server.seen


# -- what it costs


def test_tokens_and_cost_add_up():
    with serving(chat(usage=(1000, 100)), chat(usage=(3000, 200))) as server:
        model = endpoint(server, prices=(2.0, 10.0))
        assert model.chat("x").usage.cost == pytest.approx(0.003)  # 1000 * 2e-6 + 100 * 10e-6
        model.chat("x")
    assert (model.usage_.prompt_tokens, model.usage_.completion_tokens) == (4000, 300)
    assert model.usage_.cost == pytest.approx(0.011)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": "7"}, "many"])
def test_a_cost_that_is_not_known_is_not_zero(usage):
    with serving(chat(usage=usage)) as server:
        model = endpoint(server, prices=(2.0, 10.0))
        assert model.chat("x").usage.cost is None
    assert model.usage_.cost is None


def test_a_price_list_in_a_file(tmp_path):
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"m": [1, 1], "other": [9, 9]}))
    with serving(chat(usage=(10, 10))) as server:
        assert endpoint(server, prices=prices).chat("x").usage.cost == pytest.approx(20e-6)


@pytest.mark.parametrize(
    ("content", "said"),
    [("{", "is no JSON"), ("[" * 100_000, "is no JSON"),
     ("[]", "does not list 'm'"), ('{"n": [1, 2]}', "does not list 'm'"), ('{"m": [1]}', "two prices"),
     ('{"m": [1, -2]}', "at least 0"), ('{"m": [1, NaN]}', "at least 0"), ('{"m": "12"}', "two prices")],
)  # fmt: skip
def test_a_price_list_that_is_none(tmp_path, content, said):
    prices = tmp_path / "prices.json"
    prices.write_text(content)
    with pytest.raises(ValueError, match=said):
        Endpoint("m", "http://localhost/v1", prices=prices)


def test_a_price_list_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"missing\.json cannot be read: No such file"):
        Endpoint("m", "http://localhost/v1", prices=tmp_path / "missing.json")


# -- faults that pass


@pytest.mark.parametrize(
    "faults",
    [
        [refusal(429)],
        [refusal(429, Retry_After="0")],
        [refusal(500), refusal(500)],
        [refusal(503, Retry_After="soon")],
        [refusal(408), raw(b"<html>Bad gateway</html>", 502, "text/html"), dropped],
        [dropped],
        [cut_short],
        [slow],
    ],
    ids=[
        "429",
        "429 with Retry-After",
        "500 twice",
        "503 with nonsense",
        "three kinds",
        "dropped",
        "cut short",
        "slow",
    ],
)
def test_a_fault_that_passes_is_waited_out(faults):
    with serving(*faults, chat("Saturn.")) as server:
        assert endpoint(server, timeout_s=0.3 if slow in faults else 5).chat("x").text == "Saturn."
    assert len(server.seen) == len(faults) + 1
    assert all(seen.body == server.seen[0].body for seen in server.seen)


@pytest.mark.parametrize("header", ["seconds", "milliseconds", "date"])
def test_it_does_not_come_back_before_it_is_asked_to(header):
    asked = {"seconds": {"Retry_After": "0.4"}, "milliseconds": {"retry_after_ms": "400"},
             "date": {"Retry_After": formatdate(math.ceil(time.time()) + 1, usegmt=True)}}  # fmt: skip
    with serving(refusal(429, **asked[header]), chat()) as server:
        begin = time.monotonic()
        endpoint(server, retries=Retries(tries=2, first_s=0.001, longest_s=3)).chat("x")
    assert time.monotonic() - begin >= 0.4


def test_who_asks_to_wait_for_too_long_is_told_so():
    with serving(refusal(429, Retry_After="3600")) as server:
        message = refused(lambda: endpoint(server).chat("x"))
    assert "answered 429: 'no' (it asks to wait 3600 s)" in message
    assert len(server.seen) == 1


def test_a_failure_does_not_take_the_other_answers_along():
    with serving(after(0.1, chat("first")), refusal(400, "too long"), chat("never")) as server:
        found: list[str] = []
        with pytest.raises(ModelError, match="too long"):  # noqa: PT012
            for _, answer in endpoint(server, concurrency=2).each([HELLO] * 30):
                found.append(answer.text)
    assert found == ["first"]
    assert len(server.seen) <= 3


# -- faults that stay


@pytest.mark.parametrize(
    ("reply", "said", "tries"),
    [
        (refusal(500, "out of memory"), "answered 500: 'out of memory' (4 tries); see the endpoint's own log", 4),
        (refusal(429, "slow down"), "answered 429: 'slow down' (4 tries); lower the concurrency", 4),
        (refusal(429, "You exceeded your quota", "insufficient_quota"), "answered 429: 'You exceeded your quota'", 1),
        (refusal(500, "no use", x_should_retry="false"), "answered 500: 'no use'", 1),
        (dropped, "could not be reached or dropped the connection", 4),
        (refusal(400, "temperature must be 1"), "answered 400: 'temperature must be 1'; change what it objects to", 1),
        (data({"detail": "Unexpected fields"}, 422), "answered 422: 'Unexpected fields'", 1),
        (refusal(404, "no such model"), "answered 404: 'no such model'; check the model's name", 1),
        (raw(b"<html>Not here</html>", 404, "text/html"), "answered 404: '<html>Not here</html>'; check the model's name", 1),
        (raw(b"", 404), "answered 404; check the model's name", 1),
        (raw(b"", 307, location="http://elsewhere/v1"), "it has moved to 'http://elsewhere/v1'", 1),
        (raw(b'{"choices": [', 200), "answered with no JSON object (application/json: '{\"choices\": [')", 1),
        (raw(b"<html>Log in</html>", 200, "text/html"), "answered with no JSON object (text/html: '<html>Log in</html>')", 1),
        (raw(b"\xff\xfe", 200), "answered with no JSON object", 1),
        (data([1, 2]), "answered with no JSON object", 1),
        (data({"id": "1"}), "answered without choices (it holds fields 'id')", 1),
        (data({"error": {"message": "x"}}), "answered without choices (it holds an error)", 1),
        (data({"choices": []}), "answered without choices", 1),
        (data({"choices": [None]}), "answered without choices", 1),
        (data({"choices": [{"message": None}]}), "gave no text", 1),
        (chat(["a", "b"]), "another kind than text (list)", 1),
        (chat(""), "gave an empty answer", 1),
        (chat(None, finish="tool_calls"), "gave no text", 1),
        (chat("", finish="length"), "raise max_tokens", 1),
        (chat("", finish="content_filter"), "content filter", 1),
    ],
)  # fmt: skip
def test_a_fault_that_stays_is_told_in_a_sentence(reply, said, tries):
    with serving(reply) as server:
        message = refused(lambda: endpoint(server).chat("x"))
    assert said in message
    assert len(server.seen) == tries


def test_a_slow_server_is_given_up():
    with serving(slow) as server:
        message = refused(lambda: endpoint(server, timeout_s=0.2, retries=Retries(tries=2, first_s=0)).chat("x"))
    assert "gave no sign for 0.2 s (2 tries); allow it more time" in message


def test_nobody_there():
    with serving(chat()) as server:
        pass
    assert "Connection refused" in refused(lambda: endpoint(server).chat("x"))


def test_a_key_that_is_wanted_is_named_by_its_variable():
    with serving(refusal(401, "who are you?")) as server:
        message = refused(lambda: endpoint(server).chat("x"))
    assert "set UPHELD_API_KEY_127_0_0_1 to a key that is valid there" in message


def test_a_redirect_does_not_take_the_prompt_elsewhere():
    with serving(chat()) as elsewhere, serving(raw(b"", 307, location=elsewhere.url)) as server:
        refused(lambda: endpoint(server).chat("x"))
    assert not elsewhere.seen


def test_a_proxy_is_not_asked_for_the_way_to_this_machine(monkeypatch):
    with serving(chat("direct")) as server, serving(refusal(500, "the proxy")) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert endpoint(server).chat("x").text == "direct"
    assert not proxy.seen


def test_half_a_surrogate_pair_cannot_be_sent():
    with serving(chat()) as server, pytest.raises(ValueError, match="its character 3 is half a surrogate pair"):
        endpoint(server).chat("ab\udcff")


# -- streams


def pieces_of(model: Endpoint, request: Request = HELLO) -> list[str]:
    return list(model.stream(request))


def test_a_stream_comes_piece_by_piece_and_is_counted():
    with serving(events("Sat", "urn", ".", usage=(7, 3))) as server:
        model = endpoint(server, prices=(1.0, 1.0))
        assert pieces_of(model) == ["Sat", "urn", "."]
    assert model.usage_ == Usage(7, 3, pytest.approx(10e-6))
    assert server.seen[0].body["stream"] is True


def test_a_text_is_completed_in_a_stream():
    with serving(events(" Sat", "urn", of="completion")) as server:
        assert pieces_of(endpoint(server), Request(prompt="The ringed planet is")) == [" Sat", "urn"]
    assert server.seen[0].path == "/v1/completions"


def test_a_stream_ends_before_a_stop_text_that_comes_in_parts():
    with serving(events("one\n", "<en", "d> two")) as server:
        request = Request(HELLO.messages, sampling=Sampling(stop=("<end>",)))
        assert "".join(pieces_of(endpoint(server), request)) == "one\n"


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("drop", "dropped the connection"),
        ("eof", "the connection was dropped: its answer broke off after 6 characters"),
        ("wait", "gave no sign for 0.3 s: its answer broke off after 6 characters"),
        ('{"choices": [{"ind', "sent a piece that is no JSON: its answer broke off after 6 characters"),
        ('{"error": {"message": "out of memory"}}', "reported an error: 'out of memory': its answer broke off after 6 characters"),
        ('{"choices": [7]}', "the connection was dropped: its answer broke off after 6 characters"),
        ("7", "the connection was dropped: its answer broke off after 6 characters"),
    ],
)  # fmt: skip
def test_a_stream_that_breaks_off_says_how_much_had_come(end, said):
    with serving(events("Sat", "urn", end=end)) as server:
        stream = endpoint(server, timeout_s=0.3).stream(HELLO)
        assert [next(stream), next(stream)] == ["Sat", "urn"]
        message = refused(lambda: next(stream))
    assert said in message
    assert "after 6 characters; ask again" in message
    assert len(server.seen) == 1


def test_a_stream_that_cannot_begin_is_tried_again():
    with serving(refusal(429), refusal(500), events("Saturn.")) as server:
        assert pieces_of(endpoint(server)) == ["Saturn."]
    assert len(server.seen) == 3


def test_a_stream_of_nothing():
    with serving(events()) as server:
        assert "streamed an empty answer" in refused(lambda: pieces_of(endpoint(server)))


def test_a_stream_that_nobody_reads_to_its_end_is_closed():
    with serving(events("Sat", "urn", end="wait"), chat("next")) as server:
        model = endpoint(server, concurrency=1)
        stream = model.stream(HELLO)
        assert next(stream) == "Sat"
        assert model.chat("x").text == "next"  # an open stream keeps nobody from asking
        stream.close()


# -- embeddings


def embedder(server, **options) -> EndpointEmbedder:
    return EndpointEmbedder("m", server.url, **{"retries": QUICK, "timeout_s": 5.0, **options})


def test_texts_become_vectors_in_batches():
    texts = ["one", "eleven", "three", "", "ee"]
    with serving(echo) as server:
        told = []
        vectors = embedder(server, batch_size=2).embed(texts, lambda done, n: told.append((done, n)))
    np.testing.assert_array_equal(vectors, [[3, 1], [6, 3], [5, 2], [0, 0], [2, 2]])
    assert vectors.dtype == np.float32
    assert sorted(len(seen.body["input"]) for seen in server.seen) == [1, 2, 2]
    assert told[-1] == (5, 5)
    assert all(seen.body["encoding_format"] == "float" for seen in server.seen)


def test_vectors_find_their_texts_by_their_index():
    with serving(embeddings([1, 0], [2, 0], [3, 0], order=(2, 0, 1))) as server:
        np.testing.assert_array_equal(embedder(server).embed(["a", "b", "c"])[:, 0], [1, 2, 3])


def test_embedding_faults_that_pass_are_waited_out_and_tokens_counted():
    with serving(refusal(429), dropped, embeddings([1, 2])) as server:
        model = embedder(server, prices=(2.0, 0.0))
        assert model.embed(["a"]).shape == (1, 2)
    assert model.usage_ == Usage(5, 0, pytest.approx(10e-6))


def test_no_text_no_vector():
    with serving(echo) as server:
        assert embedder(server).embed([]).shape == (0, 0)
    assert not server.seen


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (embeddings([1, 2]), "gave 1 vectors for 2 texts"),
        (embeddings([1, 2], [1, 2], [1, 2]), "gave 3 vectors for 2 texts"),
        (embeddings([1, 2], [1, 2], order=(0, 0)), "cannot be told apart"),
        (embeddings([1, 2], [1, 2, 3]), "vectors of 2 and 3 numbers"),
        (embeddings([], []), "vectors of 0 numbers"),
        (embeddings(None, [1]), "vectors of 0 and 1 numbers"),
        (embeddings([1, 2], [1, math.nan]), "not finite (text 2 of 2)"),
        (embeddings([1, math.inf], [1, 2]), "not finite (text 1 of 2)"),
        (embeddings([1, 1e39], [1, 2]), "not finite (text 1 of 2)"),  # beyond float32
        (embeddings([1, 10**400], [1, 2]), "do not consist of numbers"),
        (embeddings([1, "x"], [1, 2]), "do not consist of numbers"),
        (data({"id": "1"}), "answered without data"),
        (data({"data": [1, 2]}), "answered without data"),
        (refusal(404, "no embeddings here"), "answered 404: 'no embeddings here'"),
    ],
)
def test_embeddings_that_are_none(reply, said):
    with serving(reply) as server:
        assert said in refused(lambda: embedder(server).embed(["a", "b"]))


def test_vectors_of_two_lengths_in_two_batches():
    with serving(embeddings([1, 2]), embeddings([1, 2, 3])) as server:
        assert "vectors of 2 and 3 numbers" in refused(lambda: embedder(server, batch_size=1).embed(["a", "b"]))


def test_one_text_is_not_taken_letter_by_letter():
    with serving(echo) as server, pytest.raises(TypeError, match="put it into a list"):
        embedder(server).embed("abc")


# -- what is wrong at the door


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": " "}, "model's name"),
        ({"model": "m@http://user:secret"}, "model's name"),
        ({"concurrency": 0}, "concurrency must be at least 1, got 0"),
        ({"timeout_s": 0}, "timeout_s must lie above 0, got 0"),
        ({"timeout_s": math.inf}, "timeout_s must lie above 0"),
        ({"prices": (1.0, -1.0)}, "at least 0"),
    ],
)
def test_options_that_cannot_be(options, said):
    given = {"model": "m", "url": "http://localhost/v1", **options}
    with pytest.raises(ValueError, match=said) as caught:
        Endpoint(**given)
    assert "secret" not in str(caught.value)


def test_the_client_is_loaded_with_the_first_request_and_not_before():
    code = """
        import sys
        from upheld.llm import CachedModel, Endpoint, EndpointEmbedder, Replay, CachedEmbedder
        Endpoint("m", "http://localhost/v1")
        print({"openai", "torch", "transformers", "httpx2"} & set(sys.modules))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "set()\n"
