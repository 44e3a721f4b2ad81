"""Every rival under one interface: the same orientation, the same answers, and a reason where it cannot run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from isotropy_toys import WordEmbedder
from scripted_model import ScriptedModel

from upheld.isotropy.rivals import RIVALS, Rival, chosen, race
from upheld.isotropy.rivals.evidence import Evidence, Need
from upheld.llm import Answer, Token

AGREEING = [
    "Ada Lovelace was born in London. She wrote the first program.",
    "Ada Lovelace was born in London. She wrote the first program.",
    "She wrote the first program. Ada Lovelace was born in London.",
]
UNRELATED = [
    "Ada Lovelace was born in London. She wrote the first program.",
    "Quito lies high above sea level! Its old town is famous.",
    "Herring swim north every spring; fishermen follow them there.",
]
SINGLE_ANSWER = {"perplexity", "token-entropy", "p-true", "verbalised"}


class WordInference:
    """Entails what holds no new word, contradicts the more the more new words there are."""

    def log_probabilities(self, pairs):
        known = np.array([len(words(h) & words(p)) / len(words(h)) for p, h in pairs])
        return np.log(np.column_stack([1 - 0.98 * known, np.full(len(pairs), 0.05), 0.02 + 0.98 * known]) / 1.07)


def words(text):
    return set(text.lower().replace(".", "").split())


def model_of(p_true, percent):
    def script(request):
        if request.sampling.logprobs is None:
            return f"{percent}%"
        alternatives = (("True", math.log(p_true)), ("False", math.log(1 - p_true)))
        return Answer("True", "length", "m", (Token("True", math.log(p_true), alternatives),))

    return ScriptedModel(script)


def evidence(texts, sure):
    """All that rivals need; a model that is sure of its tokens and answers, or not."""
    p = 0.95 if sure else 0.4
    place = {"a": math.log(p), "b": math.log(1 - p)}
    return Evidence(
        texts,
        prompt="Who was Ada?",
        embeddings=WordEmbedder().embed(texts),
        nli=WordInference(),
        logprobs=[[math.log(p)] * 4 for _ in texts],
        alternatives=[[place] * 4 for _ in texts],
        model=model_of(p, round(100 * p)),
    )


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
def test_high_means_less_trustworthy(rival):
    low, high = rival.measure(evidence(AGREEING, sure=True)), rival.measure(evidence(UNRELATED, sure=False))
    assert np.isfinite([low, high]).all()
    assert low < high - 0.02


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
def test_two_answers_are_enough(rival):
    low = rival.measure(evidence(AGREEING[:2], sure=True))
    high = rival.measure(evidence(UNRELATED[:2], sure=False))
    assert np.isfinite([low, high]).all()
    assert low < high


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
def test_order_of_the_answers_does_not_matter(rival):
    # SelfCheckGPT checks the first answer, and stays so; here only the others change places.
    texts = [UNRELATED[0], AGREEING[2], UNRELATED[1], "She wrote a program in Quito.", AGREEING[0]]
    order = [0, 3, 1, 4, 2] if rival.name == "selfcheck-nli" else [3, 0, 4, 2, 1]
    expected = rival.measure(evidence(texts, sure=True))
    assert rival.measure(evidence([texts[i] for i in order], sure=True)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "floor"),
    [
        ("cosine", 0),
        ("lexical", 0),
        ("jaccard-degree", 0),
        ("jaccard-eccentricity", 0),
        ("jaccard-eigv", 1),
        ("nli-degree", 0),
        ("nli-eccentricity", 0),
        ("nli-eigv", 1),
        ("semantic-entropy", 0),
    ],
)
def test_one_answer_four_times_is_the_floor(name, floor):
    (rival,) = chosen([name])
    assert rival.measure(evidence([AGREEING[0]] * 4, sure=True)) == pytest.approx(floor, abs=1e-6)


def test_only_what_is_lacking_is_not_run():
    prompts = [Evidence(AGREEING), Evidence(UNRELATED)]
    signals = {signal.rival.name: signal for signal in race(prompts)}
    assert {name for name, signal in signals.items() if signal.values is not None} == {
        "lexical",
        "jaccard-degree",
        "jaccard-eccentricity",
        "jaccard-eigv",
    }
    assert signals["cosine"].not_run == "no embeddings"
    assert signals["luq"].not_run == "no NLI model"
    assert signals["perplexity"].not_run == "no log-probabilities"
    assert signals["token-entropy"].not_run == "no log-probabilities of alternative tokens"
    assert signals["p-true"].not_run == "no language model"
    for signal in signals.values():
        assert (signal.values is None) == (signal.not_run is not None)


def test_what_is_lacking_for_some_prompts_is_counted():
    prompts = [evidence(AGREEING, sure=True), Evidence(UNRELATED)]
    (signal,) = race(prompts, chosen(["luq"]))
    assert signal.values is None
    assert signal.not_run == "no NLI model for 1 of 2 prompts"


def test_race_gives_each_prompt_its_number_and_tells_how_far_it_is():
    prompts = [evidence(AGREEING, sure=True), evidence(UNRELATED, sure=False)]
    heard = []
    signals = race(prompts, chosen(["lexical", "luq"]), told=lambda done, of: heard.append((done, of)))
    assert heard == [(1, 2), (2, 2)]
    for signal in signals:
        assert signal.values == pytest.approx([signal.rival.measure(each) for each in prompts], abs=1e-9)


def test_what_is_equal_ties():
    """All eigenvectors count here, so eccentricity is sqrt(N - 1); and a kernel does not care which answer is which."""
    texts = [f"Ada {' '.join(rest)}" for rest in (["was", "born"], ["was", "read"], ["went", "born"], ["went", "far"])]
    prompts = [evidence([texts[i] for i in order], sure=True) for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 0, 3, 1])]
    for signal in race(prompts, chosen(["jaccard-eccentricity", "kle", "nli"])):
        assert len(set(signal.values)) == 1
    assert race(prompts, chosen(["jaccard-eccentricity"]))[0].values[0] == pytest.approx(np.sqrt(3))


def test_nli_is_asked_once_for_all_rivals_of_a_matrix():
    class Counting(WordInference):
        pairs = 0

        def log_probabilities(self, pairs):
            self.pairs += len(pairs)
            return super().log_probabilities(pairs)

    model = Counting()
    prompt = Evidence(UNRELATED, nli=model)
    race([prompt], chosen(["nli", "semantic-entropy", "kle"]))
    assert model.pairs == 3 * 2
    race([prompt], chosen(["luq", "selfcheck-nli"]))
    assert model.pairs == 3 * 2 + 2 * (2 + 2 + 1)  # each sentence against the two other answers


def test_names_and_first_words():
    assert [rival.name for rival in chosen(["luq", "kle"])] == ["kle-heat", "kle-matern", "kle-heat-tested", "luq"]
    with pytest.raises(ValueError, match="no rival 'jacard'; there are cosine, eigenscore, lexical"):
        chosen(["jacard"])


def test_names_are_distinct():
    assert len({rival.name for rival in RIVALS}) == len({rival.title for rival in RIVALS}) == len(RIVALS)


def test_a_model_that_says_nothing_of_use_gives_nan():
    prompt = Evidence(AGREEING, prompt="Who?", model=ScriptedModel(lambda request: "I cannot say."))
    (signal,) = race([prompt], chosen(["verbalised"]))
    assert np.isnan(signal.values).all()


def test_an_answer_of_which_the_model_says_nothing_is_left_out():
    replies = iter(["90%", "no idea", "70%"])
    prompt = Evidence(AGREEING, prompt="Who?", model=ScriptedModel(lambda request: next(replies)))
    assert race([prompt], chosen(["verbalised"]))[0].values == pytest.approx([0.2])


def test_asked_directly_a_rival_names_what_it_lacks():
    with pytest.raises(ValueError, match="no NLI model; give it, or leave this rival out"):
        chosen(["luq"])[0].measure(Evidence(AGREEING))


def test_a_rival_of_ones_own_joins():
    mine = Rival(
        "shortest", "Words in the shortest answer", lambda e: min(len(t.split()) for t in e.texts), (Need.NLI,)
    )
    assert race([Evidence(AGREEING)], [mine])[0].not_run == "no NLI model"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"texts": "one text"}, TypeError, "must be a list of answers, got one text"),
        ({"texts": ["one"]}, ValueError, r"1 answer\(s\): whether answers agree needs at least 2"),
        ({"texts": ["one", "  "]}, ValueError, "answer 1 is '  '; drop it"),
        ({"texts": ["one", None]}, ValueError, "answer 1 is None"),
        (
            {"texts": ["a", "b"], "embeddings": np.ones((3, 4))},
            ValueError,
            "embeddings are given for 3 answers, but there are 2",
        ),
        ({"texts": ["a", "b"], "logprobs": [[-1.0]]}, ValueError, "logprobs are given for 1 answers, but there are 2"),
    ],
)
def test_evidence_that_is_none_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        Evidence(**arguments)


def test_a_zero_embedding_is_named():
    prompt = Evidence(["a", "b"], embeddings=np.array([[1.0, 0.0], [0.0, 0.0]]))
    with pytest.raises(ValueError, match="1"):
        race([prompt], chosen(["cosine"]))
