"""The endpoint's client against a server that others wrote: `transformers serve`, with a model in a folder.

Chats, completions, streams, token counts, seeds (one request at a time: the server seeds PyTorch's global generator) and the cache
are tested against it. Log-probabilities and embeddings cannot be: it ignores `logprobs` and has no /v1/embeddings; what is told then
is tested here, the rest in `test_endpoint.py` with the server of these tests.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from servers import transformers_server

from upheld.llm import EmbeddedModel, Message, ModelError, Request, Sampling, conversation
from upheld.llm.cache import CachedModel
from upheld.llm.endpoint import Endpoint, EndpointEmbedder
from upheld.llm.replay import Replay

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(causal: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small random model; the server draws only where the model's own settings say so."""
    folder = tmp_path_factory.mktemp("served") / "causal"
    shutil.copytree(causal, folder)
    settings = folder / "generation_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "do_sample": True}))
    return folder


@pytest.fixture(scope="module")
def url(folder: Path, tmp_path_factory: pytest.TempPathFactory):
    with transformers_server(folder, tmp_path_factory.mktemp("log") / "serve.log") as url:
        yield url


@pytest.fixture
def model(folder: Path, url: str) -> Endpoint:
    return Endpoint(str(folder), url, concurrency=1)


def seeded(seed: int, **options) -> Sampling:
    return Sampling(**{"temperature": 1.0, "max_tokens": 12, "seed": seed, **options})


def test_a_chat_has_a_text_counts_and_the_same_answer_for_the_same_seed(model):
    first, same, other = (model.chat("Name a planet.", system="Be brief.", sampling=seeded(seed)) for seed in (3, 3, 4))
    assert first == same
    assert first.text != other.text
    assert first.finish in ("length", "stop")
    # The template writes "<system>Be brief.\n<user>Name a planet.\n<assistant>", and a token is a byte.
    assert first.usage.prompt_tokens == 18 + 21 + 11
    assert 1 <= first.usage.completion_tokens <= 12
    assert model.usage_.prompt_tokens == 3 * 50


def test_a_text_is_completed_greedily_as_the_embedded_model_does_it(model, folder):
    sampling = Sampling(temperature=0, max_tokens=16)
    ours = EmbeddedModel(folder)
    for prompt in ("Gravity is", "a"):
        assert model.complete(prompt, sampling).text == ours.complete(prompt, sampling).text


def test_a_stream_is_the_answer_in_pieces(model):
    request = Request(conversation("Name a planet."), sampling=seeded(3))
    pieces = list(model.stream(request))
    assert len(pieces) > 1
    # The server streams no character that is not complete, and a random model writes many halves.
    assert "".join(pieces).strip("\ufffd") == model.answers([request])[0].text.strip("\ufffd")
    assert model.usage_.completion_tokens > 0


def test_a_text_is_completed_in_a_stream(model):
    request = Request(prompt="Gravity is", sampling=seeded(3))
    assert "".join(model.stream(request)).strip("\ufffd") == model.answers([request])[0].text.strip("\ufffd")


def test_several_at_a_time(folder, url):
    requests = [Request(conversation(text), sampling=Sampling(temperature=0, max_tokens=6)) for text in "abcdef"]
    together = [answer.text for answer in Endpoint(str(folder), url, concurrency=4).answers(requests)]
    alone = [answer.text for answer in Endpoint(str(folder), url, concurrency=1).answers(requests)]
    assert together == alone


def test_what_it_does_not_have_is_told(model, url):
    with pytest.raises(ModelError, match="gave no log-probabilities though they were asked for"):
        model.chat("x", sampling=seeded(1, logprobs=1))
    with pytest.raises(ModelError, match="answered 404"):
        EndpointEmbedder("any", url).embed(["a"])


def test_another_model_than_it_serves(url):
    with pytest.raises(ModelError, match=r"answered 400: .*Server is pinned to"):
        Endpoint("another", url).chat("x")


def test_a_run_is_repeated_without_the_server(model, tmp_path, monkeypatch):
    # A seed stays with the server: what it draws unseeded after the same seeded request is the same again. So one that no test has.
    samplings = [Sampling(1.0, max_tokens=40), seeded(99), Sampling(0, max_tokens=6), Sampling(1.0, max_tokens=40)]
    requests = [Request((Message("user", "Name a planet."),), sampling=sampling) for sampling in samplings]
    first = [answer.text for answer in CachedModel(model, tmp_path / "cache.sqlite").answers(requests)]
    assert first[0] != first[3]  # two draws
    monkeypatch.setattr(
        model, "each", lambda requests: iter(()) if not requests else pytest.fail("the server was asked again")
    )
    cached = CachedModel(model, tmp_path / "cache.sqlite")
    assert [answer.text for answer in cached.answers(requests)] == first
    replay = Replay(cached.export(tmp_path / "run.jsonl"))
    assert [answer.text for answer in replay.answers(requests)] == first
    assert replay.id == model.id


def test_the_embedded_model_behind_the_server_says_what_it_says_here(smollm2_files, tmp_path):
    name, sampling = str(smollm2_files.folder), Sampling(temperature=0, max_tokens=24)
    with transformers_server(smollm2_files.folder, tmp_path / "serve.log") as url:
        there = Endpoint(name, url).chat("What is the capital of France?", sampling=sampling)
    here = EmbeddedModel(smollm2_files).chat("What is the capital of France?", sampling=sampling)
    assert there.text == here.text
    assert "Paris" in there.text
    assert (there.usage.prompt_tokens, there.usage.completion_tokens) == (
        here.usage.prompt_tokens,
        here.usage.completion_tokens,
    )
