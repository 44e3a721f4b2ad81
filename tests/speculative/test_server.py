from __future__ import annotations

import asyncio
import sys
import threading
import time
from pathlib import Path

import openai
import pytest
import torch
import uvicorn
from transformers import GenerationConfig

from upheld.speculative import SpeculativeDecoder
from upheld.speculative.server import Answers, Service, application

sys.path.insert(0, str(Path(__file__).parent))
from drafters import Told
from tokenizers_of_bytes import byte_tokenizer


@pytest.fixture(scope="module")
def served(tiny):
    """A real server on a free port; its client, and what decodes beside it."""
    tokenizer = byte_tokenizer()
    service = Service(SpeculativeDecoder(tiny, Told(tiny)), tokenizer, "tiny")
    server = uvicorn.Server(uvicorn.Config(application(service), port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0) as client:
        yield client, tokenizer
    server.should_exit = True
    thread.join()


def plain(tiny, tokenizer, text, count):
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    config = GenerationConfig(max_new_tokens=count, pad_token_id=0)
    out = tiny.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)
    return tokenizer.decode(out[0, ids.shape[1] :]), ids.shape[1]


def test_completion_is_the_targets_text(tiny, served):
    client, tokenizer = served
    text, read = plain(tiny, tokenizer, "Once upon", 20)
    answer = client.completions.create(model="tiny", prompt="Once upon", max_tokens=20, temperature=0)
    assert answer.choices[0].text == text
    assert answer.choices[0].finish_reason == "length"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (read, 20)


def test_chat_streams_the_same_text_in_pieces(tiny, served):
    client, tokenizer = served
    text, _ = plain(tiny, tokenizer, "user:hello\n", 20)
    stream = client.chat.completions.create(
        model="tiny", messages=[{"role": "user", "content": "hello"}], max_tokens=20, temperature=0, stream=True,
        stream_options={"include_usage": True},
    )  # fmt: skip
    chunks = list(stream)
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert "".join(pieces) == text
    assert len(pieces) > 2
    assert chunks[-2].choices[0].finish_reason == "length"
    assert chunks[-1].usage.completion_tokens == 20


def test_stop_string_is_cut_off(tiny, served):
    client, tokenizer = served
    text, _ = plain(tiny, tokenizer, "Once upon", 20)
    stop = next(text[k : k + 2] for k in range(6, len(text)) if "\ufffd" not in text[k : k + 2])
    answer = client.completions.create(model="tiny", prompt="Once upon", max_tokens=20, temperature=0, stop=stop)
    assert answer.choices[0].text == text[: text.index(stop)]
    assert answer.choices[0].finish_reason == "stop"


def test_seed_repeats_a_sampled_answer(served):
    client, _ = served
    one, two, three = (
        client.completions.create(model="tiny", prompt="Once", max_tokens=12, temperature=1.5, seed=seed)
        .choices[0]
        .text
        for seed in (1, 1, 2)
    )
    assert one == two != three


def test_models(served):
    assert [model.id for model in served[0].models.list()] == ["tiny"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prompt": ""}, "prompt must be a text that is not empty"),
        ({"prompt": "a", "n": 2}, "n must be 1"),
        ({"prompt": "a", "logprobs": 3}, "the field logprobs is not understood"),
        ({"prompt": "a" * 600}, "the prompt has 600 tokens, and the model reads 512"),
    ],
)
def test_bad_requests_are_told_why(served, given, message):
    with pytest.raises(openai.BadRequestError, match=message):
        served[0].completions.create(model="tiny", **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"temperature": "hot"}, "temperature must be a number from 0 to 2, got 'hot'"),
        ({"temperature": -1}, "temperature must be a number from 0 to 2, got -1"),
        ({"temperature": True}, "temperature must be a number"),
        ({"top_p": 0}, "top_p must be a number from 1e-09 to 1, got 0"),
        ({"top_p": 2}, "top_p must be a number"),
        ({"max_tokens": 0}, "max_tokens must be a whole number of at least 1, got 0"),
        ({"max_tokens": 2.5}, "max_tokens must be a whole number"),
        ({"max_completion_tokens": -3}, "max_completion_tokens must be a whole number of at least 1, got -3"),
        ({"seed": "s"}, "seed must be a whole number"),
        ({"seed": 2**64}, "seed must be a whole number"),
        ({"stop": 5}, "stop must be a text or a list of texts that are not empty, got 5"),
        ({"stop": [""]}, "stop must be a text or a list of texts that are not empty"),
        ({"stream": "yes"}, "stream must be true or false, got 'yes'"),
        ({"stream_options": "x"}, "stream_options must be an object"),
        ({"response_format": {"type": "json_object"}}, "response_format must be text"),
        ({"messages": [{"role": 3, "content": "x"}]}, "message 0 must have a role and a content that is text"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "message 0 must have a role"),
        ({"messages": ["a"]}, "message 0 must have a role"),
        ({"messages": [{"role": "nobody", "content": "x"}]}, "refuses these messages: no such role"),
    ],
)
def test_every_field_is_checked_before_anything_is_decoded(tiny, given, message):
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = (
        "{% for m in messages %}{% if m.role == 'nobody' %}{{ raise_exception('no such role') }}{% endif %}"
        "{{ m.content }}{% endfor %}"
    )
    service = Service(SpeculativeDecoder(tiny, None), tokenizer, "tiny")
    with pytest.raises(ValueError, match=message):
        service.understand({"messages": [{"role": "user", "content": "a"}], **given}, chat=True)


def test_parts_of_text_are_one_text(tiny):
    service = Service(SpeculativeDecoder(tiny, None), byte_tokenizer(), "tiny")
    parts = [{"type": "text", "text": "he"}, {"type": "text", "text": "llo"}]
    asked = [
        service.understand({"messages": [{"role": "user", "content": content}], "response_format": {"type": "text"}}, chat=True)
        for content in (parts, "hello")
    ]  # fmt: skip
    assert torch.equal(asked[0].ids, asked[1].ids)


def test_messages_are_checked(served, tiny):
    with pytest.raises(openai.BadRequestError, match="at least one message"):
        served[0].chat.completions.create(model="tiny", messages=[])
    service = Service(SpeculativeDecoder(tiny, None), byte_tokenizer(chat=False), "tiny")
    with pytest.raises(ValueError, match="no chat template"):
        service.understand({"messages": [{"role": "user", "content": "a"}]}, chat=True)


def test_a_client_that_leaves_does_not_block_the_next(served):
    client, _ = served
    stream = client.completions.create(model="tiny", prompt="Once", max_tokens=200, temperature=0, stream=True)
    next(iter(stream))
    stream.close()
    assert (
        client.completions.create(model="tiny", prompt="Once", max_tokens=2, temperature=0).usage.completion_tokens == 2
    )


def test_more_clients_than_threads_are_answered(served):
    """Forty threads serve the loop; who waits for a turn must hold none of them."""
    client, _ = served
    answers = []

    def ask():
        asked = {"model": "tiny", "prompt": "Once", "max_tokens": 1, "temperature": 0, "timeout": 60, "stream": True}
        answers.append("".join(event.choices[0].text for event in client.completions.create(**asked)))

    threads = [threading.Thread(target=ask) for _ in range(48)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 48
    assert len(set(answers)) == 1


@pytest.fixture
def answers(tiny):
    """Answers of a service that notes how many tokens were decoded."""
    service = Service(SpeculativeDecoder(tiny, Told(tiny)), byte_tokenizer(), "tiny")
    written, stream = [], service.decoder.stream

    def noted(*given, **options):
        for emitted in stream(*given, **options):
            written.append(len(emitted))
            yield emitted

    service.decoder.stream = noted
    asked = service.understand({"prompt": "Once", "max_tokens": 200, "temperature": 0}, chat=False)
    return Answers(service), asked, written


def test_a_whole_answer_that_nobody_waits_for_is_given_up(answers):
    made, asked, written = answers

    async def gone():
        return len(written) == 3

    assert asyncio.run(made.collected(asked, False, gone)) == (None, 499)
    assert sum(written) < 20


def test_a_server_that_stops_gives_up_its_texts_and_says_so(answers):
    made, asked, written = answers

    async def stay():
        if len(written) == 3:
            made.service.stopping.set()
        return False

    async def listened():
        return [line async for line in made.streamed(asked, False)]

    body, status = asyncio.run(made.collected(asked, False, stay))
    assert (status, body["error"]["message"]) == (503, "the server stops; ask again when it is back")
    assert asyncio.run(listened()) == []
    assert sum(written) < 30
