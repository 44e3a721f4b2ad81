from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from upheld.llm import CallableEmbedder, Endpoint, EndpointEmbedder, embedder, language_model
from upheld.llm.embedded import EmbeddedModel
from upheld.llm.encoder import Encoder

NOWHERE = "http://localhost:9/v1"


def test_nothing_heavy_comes_with_the_names():
    code = "import upheld.llm, sys; print({'torch', 'transformers', 'openai'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_every_public_name_is_there():
    import upheld.llm

    assert all(getattr(upheld.llm, name) for name in upheld.llm.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Endpiont'"):
        upheld.llm.Endpiont  # noqa: B018


def test_a_folder_is_a_model(causal):
    model = language_model(causal, device="cpu", dtype="bfloat16", batch_tokens=512)
    assert isinstance(model, EmbeddedModel)
    assert model.id.endswith(":bfloat16")
    assert language_model(str(causal), device="cpu").id.endswith(":float32")
    assert language_model(model) is model


@pytest.mark.slow
def test_the_embedded_models_by_their_names(smollm2_files, monkeypatch):
    monkeypatch.setattr("upheld.llm.model_files.smollm2", lambda: smollm2_files)
    assert language_model("embedded").id.startswith("SmolLM2-135M-Instruct@")
    found = embedder("smollm2", pooling="last")
    assert found.id.startswith("SmolLM2-135M-Instruct@")
    assert found.pooling == "last"


def test_embedders_by_their_names(bert, monkeypatch):
    assert embedder("minilm", device="cpu").id.startswith("all-MiniLM-L6-v2@")
    folder = embedder(bert, pooling="cls", device="cpu")
    assert isinstance(folder, Encoder)
    assert folder.pooling == "cls"
    assert embedder(folder) is folder
    function = embedder(lambda texts: np.ones((len(texts), 2)))
    assert isinstance(function, CallableEmbedder)


@pytest.mark.parametrize("model", ["qwen2.5:0.5b", "team/model@v2", "a@b@c"])
def test_an_endpoint_is_named_with_its_model(model):
    found = language_model(f"openai:{model}@{NOWHERE}", timeout_s=3)
    assert isinstance(found, Endpoint)
    assert model in found.id
    assert "localhost" in found.id
    vectors = embedder(f"openai:{model}@{NOWHERE}", batch_size=7)
    assert isinstance(vectors, EndpointEmbedder)
    assert vectors.batch_size == 7


def test_an_unknown_name_lists_the_choices():
    with pytest.raises(ValueError, match=r"'gpt-9'; choose embedded, a folder, or openai:MODEL@URL"):
        language_model("gpt-9")
    with pytest.raises(
        ValueError, match=r"'nomic'; choose minilm, smollm2, a folder, openai:MODEL@URL, or give a function"
    ):
        embedder("nomic")
    with pytest.raises(ValueError, match="there is no language model 'openai:m@localhost:9/v1'"):
        language_model("openai:m@localhost:9/v1")


@pytest.mark.parametrize("given", [{"pooling": "mean"}, {"device": "cpu"}])
def test_options_that_would_change_nothing_are_refused(given):
    for name in (len, CallableEmbedder(len), f"openai:m@{NOWHERE}"):
        with pytest.raises(ValueError, match=r"has no effect on .*; leave it out"):
            embedder(name, **given)
    with pytest.raises(ValueError, match="dtype='float32' has no effect on openai:m@"):
        language_model(f"openai:m@{NOWHERE}", dtype="float32")


@pytest.mark.parametrize("thing", [None, 3, [1, 2], b"minilm"])
def test_what_is_no_name_is_refused(thing):
    with pytest.raises(TypeError, match="an embedder is a name, a folder, a function, or an Embedder, got"):
        embedder(thing)
    with pytest.raises(TypeError, match="a language model is a name, a folder, or a LanguageModel, got"):
        language_model(thing)
