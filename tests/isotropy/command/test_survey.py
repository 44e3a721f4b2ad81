"""Many prompts: the same scores as one by one, the worst of them kept, and memory that does not grow with their number."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from isotropy_toys import WordEmbedder

from upheld.isotropy import SemanticIsotropy
from upheld.isotropy.calibration import ScoreSetting, TrustCalibrator
from upheld.isotropy.command import survey
from upheld.isotropy.command.survey import Digest, Reading, look_through, runnable, scored
from upheld.isotropy.data.responses import Responses
from upheld.isotropy.rivals import chosen
from upheld.isotropy.rivals.evidence import Need
from upheld.llm import CallableEmbedder, ModelError

WORDS = ["red", "green", "blue", "one", "two", "three", "four", "five", "six", "seven"]


def prompts(n: int, answers: int = 4, seed: int = 0) -> list[Responses]:
    rng = np.random.default_rng(seed)
    return [
        Responses(f"p{k}", f"prompt {k}", [" ".join(rng.choice(WORDS, 5)) for _ in range(answers)], factuality=k / n)
        for k in range(n)
    ]


def given(items):
    return ((item, None) for item in items)


def test_scores_are_those_of_the_scorer_on_each_group():
    items = prompts(300)
    found = list(scored(given(items), Reading(WordEmbedder())))
    assert [one.item.id for one in found] == [item.id for item in items]
    for place in (0, 127, 128, 299):  # chunks hold 128 prompts of 4 answers
        alone = SemanticIsotropy(WordEmbedder()).explain(items[place].responses)
        own = found[place].result
        np.testing.assert_allclose(
            [own.score, own.se, own.purity_unbiased], [alone.score, alone.se, alone.purity_unbiased]
        )
        np.testing.assert_allclose(own.cosines, alone.cosines)
        assert (own.medoid, own.embedder_id, own.truncated_share) == (alone.medoid, "words", 0.0)


def test_a_part_of_the_answers_keeps_their_numbers():
    items = prompts(5, answers=6)
    found = list(scored(given(items), Reading(WordEmbedder(), n_samples=3, seed=4)))
    for one, item in zip(found, items, strict=True):
        alone = SemanticIsotropy(WordEmbedder(), n_samples=3, random_state=4).explain(item.responses)
        assert one.result.answers.tolist() == alone.answers.tolist()
        assert one.result.medoid == alone.medoid
        assert one.odd is None or one.odd in alone.answers
        assert one.result.n == 3


def test_the_odd_one_out_adds_most_and_is_none_where_none_does():
    odd = Responses("a", "", ["red green blue", "red green blue one", "seven six five"])
    same = Responses("b", "", ["red green"] * 3)
    two = Responses("c", "", ["red", "green"])
    found = list(scored(given([odd, same, two]), Reading(WordEmbedder())))
    assert [one.odd for one in found] == [2, None, None]
    assert np.isnan(found[2].se)
    assert not found[2].overlaps(found[0])
    assert found[0].overlaps(found[0])


def test_rivals_see_the_same_answers():
    items = [Responses("a", "", ["red green", "red green", "blue one"]), Responses("b", "", ["red green"] * 3)]
    rivals = chosen(["lexical", "cosine"])
    first, second = scored(given(items), Reading(WordEmbedder(), rivals=rivals))
    assert first.rivals["lexical"] == pytest.approx(2 / 3)  # of the three pairs one agrees
    assert first.rivals["cosine"] == pytest.approx(first.result.mean_cosine_distance)
    assert second.rivals == {"lexical": 0.0, "cosine": 0.0}


def test_rivals_that_cannot_run_say_why():
    can, absent = runnable(chosen(["lexical", "luq", "perplexity", "p-true"]), {Need.LOGPROBS: 3, Need.MODEL: 5}, 5)
    assert [rival.name for rival in can] == ["lexical", "p-true"]
    assert absent == {"luq": "no NLI model", "perplexity": "no log-probabilities for 2 of 5 prompts"}


def test_an_embedder_s_faults_name_the_prompt_and_the_answer():
    def embed(texts):
        return [[0.0, 0.0] if "zero" in text else [1.0, np.nan if "nan" in text else len(text)] for text in texts]

    def reading():
        return Reading(CallableEmbedder(embed))

    items = [Responses("fine", "", ["a", "b"]), Responses("bad", "", ["a", "zero"])]
    with pytest.raises(ValueError, match="answer 2 of 'bad'"):
        list(scored(given(items), reading()))
    items[1] = Responses("worse", "", ["a", "nan"])
    with pytest.raises(ModelError, match=r"not finite .* belongs to an answer to 'worse'"):
        list(scored(given(items), reading()))


def test_the_worst_are_kept_in_order_whatever_the_order_of_the_file():
    items = prompts(60)
    everything = sorted(scored(given(items), Reading(WordEmbedder())), key=lambda one: -one.score)
    for order in (items, items[::-1]):
        digest = Digest(7)
        for one in scored(given(order), Reading(WordEmbedder())):
            digest.add(one)
        assert [one.score for one in digest.worst] == pytest.approx([one.score for one in everything[:7]])
        assert (digest.prompts, digest.answers, digest.histogram.sum()) == (60, 240, 60)


def test_of_equal_scores_the_first_is_worse():
    digest = Digest(2)
    items = [Responses(name, "", ["red", "green"]) for name in "abc"]
    for one in scored(given(items), Reading(WordEmbedder())):
        digest.add(one)
    assert [one.item.id for one in digest.worst] == ["a", "b"]


def test_labels_are_kept_with_every_signal():
    digest = Digest(1, ["lexical"])
    items = [*prompts(9), Responses("no label", "", ["red", "blue"])]
    for one in scored(given(items), Reading(WordEmbedder(), rivals=chosen(["lexical"]))):
        digest.add(one)
    assert digest.factuality.tolist() == [k / 9 for k in range(9)]
    assert set(digest.values()) == {"isotropy", "1 - unbiased purity", "lexical"}
    assert all(len(values) == 9 for values in digest.values().values())


def test_of_more_labelled_prompts_a_uniform_sample_is_kept(monkeypatch):
    monkeypatch.setattr(survey, "JUDGED", 50)
    items = prompts(400, answers=2)
    found = list(scored(given(items), Reading(WordEmbedder(D=8))))
    means = []
    for seed in range(40):
        digest = Digest(1, seed=seed)
        for one in found:
            digest.add(one)
        assert (digest.labelled, len(digest.factuality)) == (400, 50)
        means.append(digest.factuality.mean())
    # 40 means of 50 draws from 0, 1/400, ..., without replacement: sd of their mean 0.288 sqrt(7/8) / sqrt(2000) = 0.006
    assert np.mean(means) == pytest.approx(0.49875, abs=0.025)


def test_remarks_count_the_prompts():
    digest = Digest(1)
    items = [Responses("same", "", ["red green", "red green"]), *prompts(3)]
    reading = Reading(WordEmbedder(limit=5), long_text="truncate")
    for one in scored(given([*items, Responses("long", "", ["red green blue one", "one two"])]), reading):
        digest.add(one)
    identical, cut = digest.remarks()
    assert identical.startswith("1 of 5 prompts have answers that are identical byte for byte, 'same' first")
    assert cut.startswith("the embedder did not read all of the answers of 4 of 5 prompts")
    opposite = CallableEmbedder(lambda texts: [[1.0 if "a" in text else -1.0, 0.0] for text in texts])
    digest = Digest(1)
    for one in scored(given([Responses("x", "", ["a", "b"])]), Reading(opposite)):
        digest.add(one)
    assert "two answers of cosine below -0.2, 'x' first" in digest.remarks()[0]


def test_a_calibration_gives_the_expected_factuality_and_refuses_its_own_prompts():
    items = prompts(40)
    found = list(scored(given(items), Reading(WordEmbedder())))
    calibrator = TrustCalibrator(random_state=0).fit(
        [one.result for one in found], [one.item.factuality for one in found], [one.item.id for one in found]
    )
    new = [Responses(f"new {item.id}", item.prompt, item.responses) for item in items]
    again = list(scored(given(new), Reading(WordEmbedder(), calibrator=calibrator)))
    expected, low, high = calibrator.predict([one.result for one in found])
    np.testing.assert_allclose([one.expected for one in again], np.stack([expected, low, high], axis=1))
    with pytest.raises(ValueError, match="took part in the calibration, among them 'p0'"):
        list(scored(given(items), Reading(WordEmbedder(), calibrator=calibrator)))
    with pytest.raises(ValueError, match="such scores cannot be compared"):
        list(scored(given(new), Reading(WordEmbedder(), n_samples=3, calibrator=calibrator)))
    assert survey.one_setting(again) == ScoreSetting("words", None, 4)


def test_a_first_look_counts_without_embedding():
    items = [*prompts(3), Responses("x", "", ["a", "b"], logprobs=[[-1.0], [-2.0]])]
    overview = look_through(iter(items))
    assert (overview.prompts, overview.answers, overview.labelled, overview.with_logprobs) == (4, 14, 3, 1)
    assert (overview.smallest, overview.smallest_id, overview.largest, overview.largest_id) == (2, "x", 4, "p0")
    assert overview.promptless_id == "x"


MANY = """
import resource
from hashlib import blake2b
import numpy as np
from upheld.isotropy.data.responses import Responses
from upheld.isotropy.rivals import chosen
from upheld.isotropy.command.survey import Digest, Reading, scored
from upheld.llm import CallableEmbedder

def hashed(texts):
    return [np.frombuffer(blake2b(text.encode()).digest(), dtype=np.uint8) - 127.5 for text in texts]

digest = Digest(10, ["cosine"])
items = (Responses(f"p{k}", "", [f"answer {k} {i}" for i in range(5)], factuality=0.5) for k in range(12_500))
for one in scored(((item, None) for item in items), Reading(CallableEmbedder(hashed), rivals=chosen(["cosine"]))):
    digest.add(one)
    if digest.prompts in (2_500, 12_500):
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_prompts():
    """Of 62,500 answers; the sample of labelled prompts is full after a sixth of them, and nothing else may stay."""
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, check=True, timeout=280)
    few, many = map(int, done.stdout.split())
    assert (
        many < few + 10_000
    )  # kilobytes; what was found out about a prompt is about 2 of them, and 10,000 prompts came after the first figure
