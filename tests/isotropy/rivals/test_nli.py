"""The cross-encoder from a folder: a tiny one with random weights, made here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from upheld.isotropy.rivals.nli import NLI, class_columns
from upheld.isotropy.rivals.stand_in import SHAPE, seconds_a_pair

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WORDS = ["he", "she", "was", "born", "in", "lima", "peru", "quito", "paris", ".", "a", "b", "c", "d", "e", "f", "g"]
PAIRS = [
    ("he was born in lima .", "he was born in peru ."),
    ("a b c", "d"),
    ("she was born in paris .", "she was born in paris in a b c d e f g"),
    ("d", "a b c"),
    ("e f g", "he was born in lima ."),
]
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def save_tokenizer(folder: Path, limit: int = 40) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=limit,
    ).save_pretrained(folder)


def save_model(folder: Path, labels: list[str], seed: int = 0, **config: object) -> Path:
    """A BERT of two narrow layers whose random weights are large enough to tell pairs apart."""
    torch.manual_seed(seed)
    model = transformers.BertForSequenceClassification(
        transformers.BertConfig(
            vocab_size=4 + len(WORDS),
            max_position_embeddings=64,
            id2label=dict(enumerate(labels)),
            label2id={label: i for i, label in enumerate(labels)},
            initializer_range=0.5,
            **SMALL,
            **config,
        )
    )
    model.save_pretrained(folder)
    save_tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("nli"), ["ENTAILMENT", "NEUTRAL", "CONTRADICTION"])


def test_is_the_softmax_of_the_model_in_our_order(folder):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    log_p = NLI(folder, device="cpu").log_probabilities(PAIRS)
    for (premise, hypothesis), row in zip(PAIRS, log_p, strict=True):
        with torch.inference_mode():
            logits = model(**tokenizer(premise, hypothesis, return_tensors="pt")).logits
        entailment, neutral, contradiction = torch.softmax(logits.double(), dim=-1)[0].tolist()
        np.testing.assert_allclose(np.exp(row), [contradiction, neutral, entailment], rtol=1e-4)
    assert np.ptp(log_p[:, 0]) > 0.1  # the pairs differ, or nothing is tested


def test_order_of_the_labels_is_read(folder, tmp_path):
    other = save_model(tmp_path / "other", ["contradiction", "entailment", "neutral"])
    first, second = NLI(folder, device="cpu"), NLI(other, device="cpu")
    # The same weights under other names: what the first calls entailment, the second calls contradiction.
    np.testing.assert_allclose(
        first.log_probabilities(PAIRS)[:, [2, 1, 0]], second.log_probabilities(PAIRS)[:, [0, 2, 1]], atol=1e-6
    )


def test_direction_matters(folder):
    log_p = NLI(folder, device="cpu").log_probabilities([("a b", "c d"), ("c d", "a b")])
    assert np.abs(log_p[0] - log_p[1]).max() > 1e-3


@pytest.mark.parametrize("batch_size", [1, 2, 50])
def test_company_does_not_matter(folder, batch_size):
    nli = NLI(folder, batch_size=batch_size, device="cpu")
    together = nli.log_probabilities(PAIRS)
    alone = np.concatenate([nli.log_probabilities([pair]) for pair in PAIRS])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_no_pairs_is_no_rows(folder):
    assert NLI(folder, device="cpu").log_probabilities([]).shape == (0, 3)


def test_pairs_and_cuts_are_counted(folder):
    nli = NLI(folder, device="cpu")
    assert nli.max_tokens == 40  # the tokenizer's, which is below the model's 64
    nli.log_probabilities([*PAIRS, ("a " * 50, "b"), ("a " * 36, "b")])
    assert (nli.n_pairs, nli.n_cut) == (7, 1)  # 36 + 1 + 3 = 40 words and special tokens fit
    assert NLI(folder, max_tokens=8, device="cpu").max_tokens == 8


def test_the_longer_text_is_cut(folder):
    nli = NLI(folder, max_tokens=10, device="cpu")
    long, short = "a b c d e f g a b c d e f g", "he was"
    np.testing.assert_allclose(
        nli.log_probabilities([(long, short)]), nli.log_probabilities([("a b c d e", short)]), atol=1e-5
    )


def test_two_classes_have_no_neutral(tmp_path):
    folder = save_model(tmp_path, ["LABEL_0", "LABEL_1"])
    with pytest.raises(ValueError, match="called LABEL_0, LABEL_1; which is entailment"):
        NLI(folder, device="cpu")
    log_p = NLI(folder, labels=["entailment", "contradiction"], device="cpu").log_probabilities(PAIRS)
    assert (log_p[:, 1] == -np.inf).all()
    np.testing.assert_allclose(np.exp(log_p[:, [0, 2]]).sum(axis=1), 1)


@pytest.mark.parametrize(
    "labels",
    [
        {0: "entailment", 1: "not_entailment"},
        {0: "neutral", 1: "entailment"},
        {0: "entailment", 1: "entailment", 2: "contradiction"},
        {0: "POSITIVE", 1: "NEGATIVE"},
    ],
)
def test_labels_that_do_not_say_are_refused(labels):
    with pytest.raises(ValueError, match="Name them in order with labels="):
        class_columns(labels)


def test_labels_given_must_be_as_many_as_the_outputs(folder):
    with pytest.raises(ValueError, match=r"labels names 2 classes, but the model in .* has 3"):
        NLI(folder, labels=["entailment", "contradiction"], device="cpu")


def test_a_name_is_no_folder_and_nothing_is_downloaded(tmp_path):
    with pytest.raises(ValueError, match=r"no NLI model in 'some/model'.*nothing is downloaded"):
        NLI("some/model", device="cpu")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="cannot be loaded"):
        NLI(tmp_path, device="cpu")


def test_an_encoder_without_a_trained_classifier_is_refused(tmp_path):
    config = transformers.BertConfig(
        vocab_size=30, id2label=dict(enumerate(["entailment", "neutral", "contradiction"])), **SMALL
    )
    transformers.BertModel(config).save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    with pytest.raises(ValueError, match=r"is no trained classifier: its weights lack classifier\.bias"):
        NLI(tmp_path, device="cpu")


def test_batches_must_hold_something(folder):
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        NLI(folder, batch_size=0)


def test_shape_of_the_stand_in_is_debertas():
    """The published size of DeBERTa-v3-base is 86 million weights in the backbone and 98 million in the embedding."""
    with torch.device("meta"):
        model = transformers.AutoModelForSequenceClassification.from_config(transformers.DebertaV2Config(**SHAPE))
    embedding = model.deberta.embeddings.word_embeddings.weight.numel()
    assert round(embedding / 1e6) == 98
    assert round((sum(p.numel() for p in model.parameters()) - embedding) / 1e6) == 86


def test_every_pair_is_timed():
    shape = {**SHAPE, **SMALL, "hidden_size": 16, "pooler_hidden_size": 16}
    model = transformers.AutoModelForSequenceClassification.from_config(transformers.DebertaV2Config(**shape)).eval()
    seconds = seconds_a_pair(model, rng=np.random.default_rng(0), n_pairs=3, n_tokens=20)
    assert len(seconds) == 3
    assert min(seconds) > 0
