from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import AutoModel

from upheld.llm import ModelError, encoder
from upheld.llm.encoder import Encoder
from upheld.llm.model_files import minilm

TEXTS = [
    "Oslo",
    "a cat",
    "The capital of Norway is Oslo.",
    "é",
    "x" * 30,
    "Fish, chips and peas",
    "日本語",
    "one more text",
]
CATS = [
    "The cat sat on the mat.",
    "A cat was sitting on the mat.",
    "Stock prices fell sharply on Monday after the central bank raised rates and investors fled to safer assets.",
]


@torch.inference_mode()
def states(folder, tokens: list[int]) -> torch.Tensor:
    """(L, D) states of one text alone, as transformers gives them: the judge."""
    network = AutoModel.from_pretrained(folder, dtype=torch.float32, local_files_only=True).eval()
    return network(input_ids=torch.tensor([tokens])).last_hidden_state[0]


def cosines(vectors):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return (unit @ unit.T)[np.triu_indices(len(unit), 1)]


# -- MiniLM: figures of the published model, found with transformers and NumPy alone


@pytest.fixture(scope="module")
def minilm_files():
    return minilm()


def test_minilm_gives_the_known_cosines_and_components(minilm_files):
    model = Encoder(minilm_files, device="cpu")
    vectors = model.embed(CATS)
    assert cosines(vectors) == pytest.approx([0.9491, -0.0113, 0.0003], abs=2e-4)
    first = vectors[0] / np.linalg.norm(vectors[0])
    assert first[:5] == pytest.approx([0.13024, -0.01577, -0.03672, 0.05799, -0.05979], abs=2e-5)
    assert (model.dimension, model.limit, model.extra_tokens, model.pooling) == (384, 256, 2, "mean")
    assert model.count_tokens(CATS).tolist() == [7, 8, 19]
    assert "|".join(CATS[1][begin:end] for begin, end in model.token_spans(CATS[1])) == "A|cat|was|sitting|on|the|mat|."


def test_minilm_with_the_padding_counted_gives_the_cosine_of_those_who_count_it(minilm_files):
    assert cosines(Encoder(minilm_files, pooling="unmasked_mean", device="cpu").embed(CATS))[0] == pytest.approx(
        0.9385, abs=2e-4
    )


def test_minilm_cuts_at_256_word_pieces(minilm_files):
    model = Encoder(minilm_files, device="cpu")
    text = "word " * 300
    assert model.count_tokens([text]).tolist() == [300]
    cut, fits = model.embed([text, "word " * 254])
    assert np.abs(cut - fits).max() < 1e-6


@pytest.mark.slow
def test_smollm2_as_an_embedder(smollm2_files):
    model = Encoder(smollm2_files, device="cpu")
    vectors = model.embed(CATS)
    assert vectors.shape == (3, 576)
    same, other, another = cosines(vectors)
    assert same > max(other, another)


# -- small random models


@pytest.mark.parametrize("folder", ["bert", "causal"])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "last"])
def test_a_vector_is_that_of_the_text_alone(folder, pooling, request):
    folder = request.getfixturevalue(folder)
    model = Encoder(folder, pooling=pooling, device="cpu", batch_size=3)
    for text, vector in zip(TEXTS, model.embed(TEXTS), strict=True):
        alone = states(folder, model.tokenizer(text)["input_ids"])
        expected = {"mean": alone.mean(0), "cls": alone[0], "max": alone.amax(0), "last": alone[-1]}[pooling]
        np.testing.assert_allclose(vector, expected.numpy(), atol=1e-5)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(company=st.lists(st.sampled_from(TEXTS), max_size=12), place=st.integers(0, 12), size=st.integers(1, 5))
def test_the_company_does_not_matter(small, company, place, size):
    small._batch_size = size
    texts = [*company[:place], "The text in question", *company[place:]]
    vector = small.embed(texts)[min(place, len(company))]
    assert np.abs(vector - small.embed(["The text in question"])[0]).max() < 1e-6


@pytest.fixture(scope="module")
def small(bert):
    return Encoder(bert, device="cpu")


def test_with_the_padding_counted_the_company_matters(bert):
    model = Encoder(bert, pooling="unmasked_mean", device="cpu", batch_size=2)
    alone, together = model.embed(["Oslo"])[0], model.embed(["Oslo", "x" * 30, "Oslo", "y"])
    np.testing.assert_allclose(alone, Encoder(bert, device="cpu").embed(["Oslo"])[0], atol=1e-6)
    assert np.abs(together[0] - alone).max() > 0.01
    # By twos in the order of arrival: the second Oslo stands beside a shorter text and is not padded.
    np.testing.assert_allclose(together[2], alone, atol=1e-5)


def test_more_texts_than_are_sorted_at_once_keep_their_order(small, monkeypatch):
    whole = small.embed(TEXTS)
    monkeypatch.setattr(encoder, "SORTED_TOGETHER", 3)
    told = []
    np.testing.assert_allclose(small.embed(TEXTS, told=lambda done, of: told.append((done, of))), whole, atol=1e-6)
    assert told[-1] == (8, 8)


def test_a_plain_models_limit_is_its_own(small):
    assert (small.limit, small.extra_tokens) == (40, 2)
    assert np.abs(np.subtract(*small.embed(["x" * 100, "x" * 38]))).max() < 1e-6
    assert small.count_tokens(["x" * 100, ""]).tolist() == [100, 0]


def test_no_text_no_vector(small):
    assert small.embed([]).shape == (0, 32)
    assert small.count_tokens([]).shape == (0,)


@given(text=st.text(max_size=20))
def test_the_spans_of_tokens_lie_in_the_text_in_order_and_are_as_many_as_counted(small, text):
    spans = small.token_spans(text)
    assert len(spans) == small.count_tokens([text])[0]
    assert spans == sorted(spans)
    assert set().union(*(range(*span) for span in spans)) == set(range(len(text)))


def test_it_says_nothing_and_asks_no_network(bert, capfd, no_network, recwarn):
    model = Encoder(bert, device="cpu")
    model.embed(TEXTS)
    model.token_spans("long " * 100)
    assert capfd.readouterr() == ("", "")
    assert [str(warning.message) for warning in recwarn] == []


def test_bad_input(bert, causal, tmp_path):
    model = Encoder(causal, device="cpu")
    with pytest.raises(TypeError, match="a list of texts, got a single one"):
        model.embed("Oslo")
    with pytest.raises(TypeError, match="entry 1 is a NoneType"):
        model.embed(["Oslo", None])
    with pytest.raises(ValueError, match="text 2 has no token"):
        model.embed(["Oslo", "Rome", ""])
    with pytest.raises(ValueError, match="pooling must be one of mean, cls, max, last, unmasked_mean, got 'median'"):
        Encoder(bert, pooling="median")
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        Encoder(bert, batch_size=0)


def test_weights_that_are_broken_give_no_vector(bert, tmp_path):
    from safetensors.torch import load_file

    folder = shutil.copytree(bert, tmp_path / "broken")
    weights = load_file(folder / "model.safetensors")
    weights["embeddings.word_embeddings.weight"][ord("x") - ord("!") + 3] = torch.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"broken@.* gave a vector that is not finite for text 1 \(1 of 3 in all\)"):
        Encoder(folder, device="cpu").embed(["yes", "x", "no"])


# -- folders of sentence-transformers


def sentence_folder(bert, folder, *, pooling, dense=False, max_seq_length=20, lower=False, extra=()):
    """As sentence-transformers writes it: the network in the root, a folder for each step behind it."""
    shutil.copytree(bert, folder)
    kinds = ["Transformer", "Pooling", *(["Dense"] if dense else []), *extra, "Normalize"]
    paths = ["", *(f"{place}_{kind}" for place, kind in enumerate(kinds) if place)]
    steps = [{"idx": k, "name": str(k), "path": path, "type": f"sentence_transformers.models.{kind}"}
             for k, (kind, path) in enumerate(zip(kinds, paths, strict=True))]  # fmt: skip
    (folder / "modules.json").write_text(json.dumps(steps))
    (folder / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": max_seq_length, "do_lower_case": lower})
    )
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, **pooling}))
    if dense:
        (folder / "2_Dense").mkdir()
        settings = {
            "in_features": 32,
            "out_features": 5,
            "bias": True,
            "activation_function": "torch.nn.modules.activation.Tanh",
        }
        (folder / "2_Dense" / "config.json").write_text(json.dumps(settings))
        weight = torch.randn(5, 32, generator=torch.Generator().manual_seed(1))
        save_file({"linear.weight": weight, "linear.bias": torch.arange(5.0)}, folder / "2_Dense" / "model.safetensors")
    return folder


@pytest.mark.parametrize(
    ("settings", "pooling"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_cls_token": False, "pooling_mode_lasttoken": True, "include_prompt": True}, "last"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode": "mean"}, "mean"),
    ],
)
def test_a_sentence_folder_says_how_it_pools(bert, tmp_path, settings, pooling):
    model = Encoder(sentence_folder(bert, tmp_path / "s", pooling=settings), device="cpu")
    assert (model.pooling, model.limit) == (pooling, 20)
    plain = Encoder(bert, pooling=pooling, device="cpu")
    np.testing.assert_allclose(model.embed(TEXTS[:3]), plain.embed([text[:18] for text in TEXTS[:3]]), atol=1e-6)


def test_a_sentence_folder_with_a_dense_layer_and_lower_case(bert, tmp_path):
    folder = sentence_folder(bert, tmp_path / "s", pooling={"pooling_mode_cls_token": True}, dense=True, lower=True)
    model = Encoder(folder, device="cpu")
    first = states(bert, model.tokenizer("oslo")["input_ids"])[0]
    weight = torch.randn(5, 32, generator=torch.Generator().manual_seed(1))
    expected = torch.tanh(weight @ first + torch.arange(5.0))
    np.testing.assert_allclose(model.embed(["OSLO"])[0], expected.numpy(), atol=1e-5)
    assert model.embed([]).shape == (0, 5)


def test_a_sentence_folder_that_sets_something_before_every_text(bert, tmp_path):
    folder = sentence_folder(bert, tmp_path / "s", pooling={"pooling_mode": "mean"})
    settings = {"prompts": {"query": "q: ", "document": "d: "}, "default_prompt_name": "query"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    model = Encoder(folder, device="cpu")
    assert (model.extra_tokens, model.count_tokens(["Oslo"])[0]) == (5, 4)
    np.testing.assert_allclose(model.embed(["Oslo"]), Encoder(bert, device="cpu").embed(["q: Oslo"]), atol=1e-6)


def test_a_sentence_folder_that_pools_as_nobody_here_does(bert, tmp_path):
    both = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}
    folder = sentence_folder(bert, tmp_path / "s", pooling=both)
    with pytest.raises(
        ValueError, match=r"asks for the pooling cls with mean; known are mean, cls, max, lasttoken: pass pooling="
    ):
        Encoder(folder)
    assert Encoder(folder, pooling="max", device="cpu").pooling == "max"
    odd = sentence_folder(bert, tmp_path / "t", pooling={"pooling_mode": "mean"}, extra=["WordWeights"])
    with pytest.raises(ValueError, match=r"lists the steps Transformer, Pooling, WordWeights, Normalize; known are"):
        Encoder(odd)


# -- folders that are not whole


def spoiled(bert, folder, spoil):
    """A copy of the folder with other weights."""
    shutil.copytree(bert, folder)
    weights = load_file(folder / "model.safetensors")
    spoil(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


WORDS = "embeddings.word_embeddings.weight"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda weights: weights.pop(WORDS), f"1 are missing or of another shape, {WORDS} first"),
        (lambda weights: weights.update({WORDS: weights[WORDS][:9].clone()}), f"1 are missing or of another shape, {WORDS} first"),
    ],
)  # fmt: skip
def test_weights_that_transformers_would_draw_at_random_are_refused(bert, tmp_path, spoil, message):
    with pytest.raises(ValueError, match=message):
        Encoder(spoiled(bert, tmp_path / "bert", spoil), device="cpu")


def test_a_folder_without_a_pooler_does(bert, tmp_path):
    def spoil(weights):
        for name in [name for name in weights if "pooler" in name]:
            del weights[name]

    whole = Encoder(bert, device="cpu").embed(TEXTS)
    assert np.array_equal(Encoder(spoiled(bert, tmp_path / "bert", spoil), device="cpu").embed(TEXTS), whole)


def test_half_a_file_of_weights_is_called_so(bert, tmp_path):
    shutil.copytree(bert, tmp_path / "bert")
    file = tmp_path / "bert" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"transformers cannot load a model from .*; is the folder complete"):
        Encoder(tmp_path / "bert", device="cpu")


def test_a_folder_without_a_vocabulary_is_refused(bert, tmp_path):
    """transformers makes an empty one, to which all texts are the same."""
    shutil.copytree(bert, tmp_path / "bert", ignore=shutil.ignore_patterns("tokenizer*", "special*"))
    with pytest.raises(ValueError, match="holds no vocabulary"):
        Encoder(tmp_path / "bert", device="cpu")


def test_steps_that_are_none_are_refused(bert, tmp_path):
    shutil.copytree(bert, tmp_path / "bert")
    for text, message in (('{"a": 1}', "is no list of steps"), ("{", "is no JSON")):
        (tmp_path / "bert" / "modules.json").write_text(text)
        with pytest.raises(ValueError, match=message):
            Encoder(tmp_path / "bert", device="cpu")


def test_devices_that_are_not_there(bert):
    with pytest.raises(ValueError, match="device 'nosuch' is none that PyTorch knows"):
        Encoder(bert, device="nosuch")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="device 'cuda' is not there"):
            Encoder(bert, device="cuda")


def test_an_iterator_of_texts_is_read_once(bert):
    model = Encoder(bert, device="cpu")
    assert np.array_equal(model.embed(iter(TEXTS)), model.embed(TEXTS))


def test_unknown_tokens_are_counted(minilm_files):
    model = Encoder(minilm_files, device="cpu")
    vocabulary = set((minilm_files.folder / "vocab.txt").read_text().split())
    chinese = "利马是秘鲁的首都。"  # every sign a word of its own
    unknown = sum(sign not in vocabulary for sign in chinese)
    assert model.count_unknown(["Lima is in Peru.", "😀 and 🎉", chinese]).tolist() == [0, 2, unknown]
    assert model.count_unknown([]).tolist() == []
