"""The scorer: what it gives, that nothing is kept, streaming, remarks, and errors that name the place."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isotropy_toys import WordEmbedder
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from tiny_models import word_bert

from upheld.isotropy import IsotropyWarning, SemanticIsotropy, von_neumann_entropy

AGREE = ["the river is long", "the river is quite long", "the long river is here", "here the river is long"]
DIFFER = ["cats sleep", "prices fell sharply", "seven planets orbit", "she writes poems"]
LONG = "One two three four five. Six seven eight nine ten."


@pytest.mark.parametrize(
    "check",
    [
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_get_params_invariance",
        "check_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_valid_tag_types",
        "check_do_not_raise_errors_in_init_or_set_params",
    ],
)
def test_scikit_learn_conventions(check):
    """Those of its checks that do not feed a table of numbers."""
    getattr(estimator_checks, check)("SemanticIsotropy", SemanticIsotropy())


def test_fit_leaves_no_state():
    scorer = SemanticIsotropy(n_samples=3)
    before = dict(vars(scorer))
    assert scorer.fit([DIFFER], [1]) is scorer
    assert vars(scorer) == before
    assert make_pipeline(scorer).fit(None).score_samples([np.eye(3)]) == pytest.approx(1)


def test_clones_and_pickles_score_the_same():
    scorer = SemanticIsotropy(WordEmbedder(), jitter=1e-6, random_state=3, n_samples=3)
    for other in (clone(scorer), pickle.loads(pickle.dumps(scorer))):
        assert other.score_samples([DIFFER]) == scorer.score_samples([DIFFER])


def test_disagreement_scores_higher():
    low, high = SemanticIsotropy(WordEmbedder()).score_samples([AGREE, DIFFER])
    assert 0 < low < high / 2
    assert high > 0.9


def test_texts_and_their_vectors_score_the_same():
    embedder = WordEmbedder()
    scorer = SemanticIsotropy(embedder)
    groups = [AGREE, DIFFER]
    vectors = [embedder.embed(group) for group in groups]
    for other in (
        vectors,
        np.stack(vectors),
        [vector.tolist() for vector in vectors],
        [AGREE, vectors[1]],
        iter(groups),
    ):
        np.testing.assert_allclose(scorer.score_samples(other), scorer.score_samples(groups), atol=1e-12)
    assert SemanticIsotropy().explain(vectors[0]).embedder_id == "vectors"


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(2, 5), st.integers(2, 9)), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
@pytest.mark.filterwarnings("ignore::upheld.isotropy.IsotropyWarning")
def test_a_prompt_scores_the_same_alone_and_among_others(shapes, seed):
    rng = np.random.default_rng(seed)
    groups = [rng.normal(size=shape) for shape in shapes]
    scorer = SemanticIsotropy(n_samples=2, random_state=seed)
    for one in (SemanticIsotropy(), SemanticIsotropy(normalize=False, jitter=1e-3), scorer):
        together, results = one.score_samples(groups), list(one.explain_all(groups))
        alone = [one.score_samples([group])[0] for group in groups]
        np.testing.assert_allclose(together, alone, atol=1e-12)
        np.testing.assert_allclose([result.score for result in results], alone, atol=1e-12)


def test_an_explanation_says_what_each_answer_does():
    group = [*AGREE, "prices fell sharply"]
    result = SemanticIsotropy(WordEmbedder(), random_state=0).explain(group)
    assert result.score == pytest.approx(result.raw / np.log(5))
    assert result.trust == pytest.approx(1 - result.score)
    assert result.effective_samples == pytest.approx(np.exp(result.raw))
    assert result.influence.argmax() == 4
    assert result.influence[4] > 0.1 > result.influence[:4].max()
    assert result.medoid in range(4)
    assert 0 < result.se < 1
    assert (result.n, result.template, result.embedder_id, result.truncated_share) == (5, None, "words", 0)
    np.testing.assert_array_equal(result.answers, np.arange(5))


def test_nats_instead_of_a_share():
    X = np.random.default_rng(0).uniform(size=(6, 9))
    share, nats = SemanticIsotropy().explain(X), SemanticIsotropy(normalize=False).explain(X)
    assert nats.score == nats.raw == share.raw == von_neumann_entropy(X)
    assert nats.se == pytest.approx(share.se * np.log(6))
    assert nats.influence == pytest.approx(share.influence * np.log(6))
    assert nats.trust == share.trust


def test_all_answers_of_many_prompts_are_embedded_at_once_and_a_repeated_text_once():
    embedder = WordEmbedder()
    SemanticIsotropy(embedder).score_samples([AGREE, DIFFER, [AGREE[0], *DIFFER[:3]]])
    assert embedder.calls == 1
    assert set(embedder.read.values()) == {1}


def test_results_stream_in_bounded_memory(monkeypatch):
    monkeypatch.setattr("upheld.isotropy.semantic_isotropy.CHUNK_ANSWERS", 8)
    taken, heard = [], []

    def groups():
        for number in range(1000):
            taken.append(number)
            yield np.random.default_rng(number).uniform(size=(4, 5))

    results = SemanticIsotropy().explain_all(groups(), told=lambda done, total: heard.append((done, total)))
    first = next(results)
    assert len(taken) <= 3
    assert first.score == pytest.approx(
        von_neumann_entropy(np.random.default_rng(0).uniform(size=(4, 5)), normalize=True)
    )
    assert heard == [(2, 0)]
    assert sum(1 for _ in results) == 999


def test_progress_is_told():
    heard = []
    SemanticIsotropy().score_samples([np.eye(3)] * 3, told=lambda done, total: heard.append((done, total)))
    assert heard == [(3, 3)]
    assert SemanticIsotropy().score_samples([]).shape == (0,)


# --- which answers are used


def test_some_answers_are_drawn_the_same_everywhere_and_nested():
    X = np.random.default_rng(0).uniform(size=(10, 4))
    used = [set(SemanticIsotropy(n_samples=n, random_state=5).explain(X).answers) for n in (3, 5, 10)]
    assert [len(one) for one in used] == [3, 5, 10]
    assert used[0] < used[1] < used[2]
    result = SemanticIsotropy(n_samples=3, random_state=5).explain(X)
    assert result.score == pytest.approx(von_neumann_entropy(X[result.answers], normalize=True))
    assert result.medoid in result.answers
    assert set(SemanticIsotropy(n_samples=3, random_state=6).explain(X).answers) != used[0]


def test_the_medoid_is_an_index_of_the_group_as_given():
    X = np.vstack([np.eye(9)[:7], np.ones((1, 9)), np.eye(9)[7:]])
    for seed in range(20):
        result = SemanticIsotropy(n_samples=4, random_state=seed).explain(X)
        if 7 in result.answers:
            assert result.medoid == 7
            break
    else:
        pytest.fail("answer 7 was never drawn")


# --- long answers and templates


def test_windows_are_averaged_by_their_tokens_as_unit_vectors():
    embedder = WordEmbedder(limit=7)
    two = "a b c d e. f g."
    result = SemanticIsotropy(embedder).explain([two, "x y z"])
    parts = embedder.embed(["a b c d e.", "f g."]).astype(float)
    parts /= np.linalg.norm(parts, axis=1, keepdims=True)
    expected = 5 * parts[0] + 2 * parts[1]
    other = embedder.embed(["x y z"])[0].astype(float)
    cosine = expected @ other / np.linalg.norm(expected) / np.linalg.norm(other)
    assert result.cosines[0, 1] == pytest.approx(cosine, abs=1e-6)
    assert result.truncated_share == 0


def test_truncation_tells_the_share_and_windows_see_the_end():
    ends_differ = ["one two three four five. six seven eight.", "one two three four five. nine ten eleven."]
    cut = SemanticIsotropy(WordEmbedder(limit=7), long_text="truncate").explain(ends_differ)
    assert cut.score == pytest.approx(0, abs=1e-9)
    assert cut.truncated_share == pytest.approx(6 / 16)
    assert SemanticIsotropy(WordEmbedder(limit=7), long_text="window").explain(ends_differ).score > 0.1
    # Without a limit there is nothing to cut.
    assert SemanticIsotropy(WordEmbedder(), long_text="error").explain(ends_differ).truncated_share == 0


def test_a_long_answer_may_be_an_error():
    scorer = SemanticIsotropy(WordEmbedder(limit=7), long_text="error")
    with pytest.raises(ValueError, match="answer 1 of group 1 is 10 tokens long and the embedder words reads 5"):
        scorer.score_samples([["a b", "c d"], ["a b", LONG]])


def test_the_template_is_read_and_stored():
    embedder = WordEmbedder()
    scorer = SemanticIsotropy(embedder, template="excerpt")
    result = scorer.explain(DIFFER, prompt="Ada Lovelace")
    assert result.template == "excerpt"
    assert all("Ada Lovelace" in text for text in embedder.read)
    assert result.score < SemanticIsotropy(embedder).explain(DIFFER).score  # shared words raise every cosine
    assert [one.score for one in scorer.explain_all([DIFFER], prompts=["Ada Lovelace"])] == [result.score]


def test_every_window_bears_the_template():
    embedder = WordEmbedder(limit=16)
    SemanticIsotropy(embedder, template="excerpt").explain([f"{LONG} Eleven twelve thirteen.", "x y"], prompt="Ada")
    assert len(embedder.read) == 3
    assert all(text.startswith("Part of a text on: Ada") and len(text.split()) <= 14 for text in embedder.read)


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        (None, "names the prompt of every group"),
        (["a"], "1 prompts for more groups"),
        (["a", "b", "c"], "3 prompts for 2 groups"),
    ],
)
def test_prompts_that_do_not_fit(prompts, message):
    with pytest.raises(ValueError, match=message):
        SemanticIsotropy(WordEmbedder(), template="excerpt").score_samples([AGREE, DIFFER], prompts=prompts)


# --- remarks


def remarks(groups, **settings):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        SemanticIsotropy(WordEmbedder(), **settings).score_samples(groups)
    return [str(remark.message) for remark in heard if issubclass(remark.category, IsotropyWarning)]


def test_nothing_is_remarked_where_all_is_well():
    assert remarks([AGREE, DIFFER]) == []


def test_opposite_answers_are_remarked():
    X = np.array([[1.0, 0.0, 0.0], [-0.9, 0.1, 0.0], [0.0, 0.0, 1.0]])
    [remark] = remarks([np.eye(3), X, X])
    assert "two answers of group 1 have cosine -0.99" in remark
    assert remarks([np.array([[1.0, 0.0], [-0.19, 1.0]])]) == []


def test_identical_answers_are_remarked_once():
    [remark] = remarks([DIFFER, [AGREE[0], AGREE[1], AGREE[0], AGREE[0]], [AGREE[0]] * 4])
    assert remark.startswith("2 of the answers of group 1 are identical byte for byte")


def test_mixed_numbers_of_answers_are_remarked_unless_the_same_number_is_drawn():
    [remark] = remarks([AGREE, DIFFER, DIFFER[:3]])
    assert "group 2 holds 3 answers and group 0 4" in remark
    assert "set n_samples" in remark
    assert "purity_unbiased" in remark
    assert remarks([AGREE, DIFFER, DIFFER[:3]], n_samples=3, random_state=0) == []


# --- bad input


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        ([AGREE, AGREE[:1]], ValueError, "group 1 holds 1 answer: a spread needs at least 2"),
        ([[]], ValueError, "group 0 holds 0 answers"),
        ([AGREE, ["x", " \n"]], ValueError, "answer 1 of group 1 is empty"),
        ([["x", ""]], ValueError, "answer 1 of group 0 is empty"),
        ([["x", None]], TypeError, "answer 1 of group 0 is a NoneType, not a text"),
        (AGREE, TypeError, "group 0 is one text; give a list of the answers"),
        ("text", TypeError, "groups is one text"),
        ([[{}, {}]], TypeError, "group 0 is neither a list of texts nor an array of vectors"),
        ([[1.0, 2.0]], ValueError, r"vectors of group 0 must be of shape \(answers, dimensions\), got \(2,\)"),
        ([np.eye(2), [[1.0, 0.0], [0.0, 0.0]]], ValueError, "vector 1 of group 1 is zero"),
        ([[[1.0, 0.0], [np.nan, 0.0]]], ValueError, "vector 1 of group 0 is not finite"),
    ],
)
def test_bad_groups(groups, error, message):
    with pytest.raises(error, match=message):
        SemanticIsotropy(WordEmbedder()).score_samples(groups)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"long_text": "cut"}, "long_text must be one of 'window', 'truncate', 'error', got 'cut'"),
        ({"template": "quote"}, "template must be one of None, 'excerpt', got 'quote'"),
        ({"n_samples": 1}, "n_samples must be at least 2, got 1"),
        ({"n_samples": 5}, "group 0 holds 4 answers and n_samples asks for 5"),
        ({"jitter": -1}, "jitter must be a number of at least 0"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        SemanticIsotropy(WordEmbedder(), **settings).score_samples([AGREE])


class Zero(WordEmbedder):
    def _vector(self, text):
        return np.zeros(3) if "zero" in text else np.ones(3)


class TooFew(WordEmbedder):
    def embed(self, texts, told=None):
        return super().embed(texts[1:])


def test_a_zero_vector_is_named_by_answer():
    with pytest.raises(ValueError, match="answer 2 of group 1 is zero and has no direction"):
        SemanticIsotropy(Zero()).score_samples([AGREE, ["a", "b", "zero"]])
    with pytest.raises(ValueError, match="window 1 of answer 1 of group 0 is zero"):
        SemanticIsotropy(Zero(limit=4)).score_samples([["a", "b c. zero.", "d"]])


def test_a_drawn_answer_is_named_by_its_place_in_the_group():
    for seed in range(30):
        drawn = set(SemanticIsotropy(n_samples=3, random_state=seed).explain(np.eye(10)).answers)
        if max(drawn) == 9:
            break
    moved = [text if place != 9 else "zero" for place, text in enumerate(map(str, range(10)))]
    with pytest.raises(ValueError, match="answer 9 of group 0 is zero"):
        SemanticIsotropy(Zero(), n_samples=3, random_state=seed).score_samples([moved])


def test_an_embedder_that_loses_texts():
    with pytest.raises(ValueError, match=r"the embedder words returned an array of shape \(3, 512\) for 4 texts"):
        SemanticIsotropy(TooFew()).score_samples([AGREE])


# --- embedders of every kind


def lengths(texts):
    return [[len(text), text.count("e"), 1] for text in texts]


def test_a_function_is_an_embedder_with_one_id():
    scorer = SemanticIsotropy(lengths, batch_size=3)
    result = scorer.explain(AGREE)
    assert result.score == pytest.approx(von_neumann_entropy(lengths(AGREE), normalize=True), abs=1e-6)
    assert result.embedder_id == scorer.explain(DIFFER).embedder_id


def test_an_unknown_embedder_lists_the_choices():
    with pytest.raises(ValueError, match="there is no embedder 'gpt'; choose minilm"):
        SemanticIsotropy("gpt").score_samples([AGREE])


CATS = [
    "The cat sat on the mat.",
    "A cat was sitting on the mat.",
    "Stock prices fell sharply on Monday after the central bank raised rates and investors fled to safer assets.",
]


@pytest.mark.slow
def test_minilm_anchor():
    """Cosines and entropy of an independent computation with transformers."""
    result = SemanticIsotropy().explain(CATS)
    assert result.cosines[[0, 0, 1], [1, 2, 2]] == pytest.approx([0.9491, -0.0113, 0.0003], abs=2e-4)
    assert result.raw == pytest.approx(0.71546, abs=5e-4)
    unmasked = SemanticIsotropy(pooling="unmasked_mean").explain(CATS)
    assert unmasked.cosines[0, 1] == pytest.approx(0.9385, abs=2e-4)
    assert unmasked.raw == pytest.approx(0.72802, abs=5e-4)


@pytest.mark.slow
def test_minilm_scores_a_prompt_the_same_alone_and_among_others():
    rng = np.random.default_rng(0)
    words = " ".join(CATS).split()
    groups = [[" ".join(rng.choice(words, size)) for size in rng.integers(3, 400, 4)] for _ in range(8)]
    scorer = SemanticIsotropy()
    alone = [scorer.score_samples([group])[0] for group in groups]
    np.testing.assert_allclose(scorer.score_samples(groups), alone, atol=1e-6)


@pytest.mark.parametrize(
    ("group", "error", "message"),
    [
        (
            {"cats sleep": 1, "dogs bark": 2},
            TypeError,
            "group 0 is a dict, which has no order; give a list of its answers",
        ),
        ({"cats sleep", "dogs bark"}, TypeError, "group 0 is a set, which has no order"),
        (np.eye(3) + 1j, TypeError, "group 0 is neither a list of texts nor an array of vectors"),
        (
            ["cats sleep", "dogs\ud800"],
            ValueError,
            r"answer 1 of group 0 holds '\\ud800' at character 5, which is no text",
        ),
        (["cats sleep", "\u200b"], ValueError, "answer 1 of group 0 is empty"),
    ],
)
def test_groups_that_would_be_read_wrongly_are_refused(group, error, message):
    with pytest.raises(error, match=message):
        SemanticIsotropy(WordEmbedder()).score_samples([group])


def test_a_table_of_vectors_is_no_list_of_its_columns():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(np.eye(3), columns=["cats sleep", "dogs bark", "prices fell"])
    assert SemanticIsotropy(WordEmbedder()).score_samples([table]) == pytest.approx(1)


@pytest.mark.parametrize("fields", [{"n_samples": 2.5}, {"n_samples": 2, "random_state": np.random.default_rng(0)}])
def test_what_draws_answers_is_a_whole_number(fields):
    with pytest.raises(TypeError, match="must be a whole number"):
        SemanticIsotropy(WordEmbedder(), **fields).score_samples([DIFFER])


def test_a_function_without_a_hash_is_one_embedder():
    class Letters:
        __hash__ = None  # as of a dataclass

        def __call__(self, texts):
            return np.array([[text.count("a"), text.count("e")] for text in texts], dtype=float)

    scorer = SemanticIsotropy(Letters())
    first, second = (scorer.explain(["a", "e"]) for _ in range(2))
    assert first.score == 1
    assert first.embedder_id == second.embedder_id != SemanticIsotropy(Letters()).explain(["a", "e"]).embedder_id


def test_tokens_that_the_embedder_lacks_are_remarked_on(tmp_path):
    scorer = SemanticIsotropy(str(word_bert(tmp_path)))
    with pytest.warns(IsotropyWarning, match="the embedder's vocabulary lacks 75 % of the tokens of group 0"):
        assert scorer.explain(["😀 seen", "🎉 🎉"]).unknown_share == 0.75
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scorer.explain(["seen", "seen seen"]).unknown_share == 0
