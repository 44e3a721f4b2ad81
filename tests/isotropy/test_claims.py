"""The experiments: blocks that are what they say, and measurements that the rules can read."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from isotropy_toys import WordEmbedder
from scipy.optimize import brentq
from scripted_model import ScriptedModel
from tiny_models import tiny_nli

from upheld.claims import NotRun, Scale, Trial
from upheld.isotropy import claims, von_neumann_entropy
from upheld.isotropy.claims import CLAIMS, COUNTRIES, EMBEDDERS, SIGNALS, block_of
from upheld.isotropy.data.bioworld import generate
from upheld.isotropy.evaluation import r_squared
from upheld.isotropy.result import IsotropyWarning
from upheld.isotropy.rivals import chosen, stand_in
from upheld.isotropy.segments import JUDGES
from upheld.isotropy.semantic_isotropy import SemanticIsotropy


def trial(data: str, seed: int = 0, *, prompts: int = 6, answers: int = 5, **more) -> Trial:
    return Trial("isotropy.signals", {"data": data, "prompts": prompts, "answers": answers, **more}, seed, Scale.QUICK)


def test_blocks_of_countries_are_disjoint_and_equal():
    blocks = [block_of(trial(COUNTRIES, seed, prompts=22)) for seed in range(claims.BLOCKS)]
    prompts = [prompt for block in blocks for prompt in block.prompts]
    assert [len(block.prompts) for block in blocks] == [22] * 5
    assert len(set(prompts)) == len(prompts)
    assert all(len(answers) == 5 for block in blocks for answers in block.answers)
    assert all(len(each) == 5 for block in blocks for each in block.logprobs)


def test_more_answers_leave_the_first_and_every_embedder_reads_the_same():
    small, more = block_of(trial("biographies")), block_of(trial("biographies", answers=10))
    assert tuple(texts[:5] for texts in more.answers) == small.answers
    worlds = [block_of(trial("biographies", embedder=name)) for name in ("minilm", "smollm2")]
    assert worlds[0].answers == worlds[1].answers == small.answers
    assert block_of(trial("biographies", seed=1)).answers != small.answers


def test_modes_are_what_they_are_called():
    wording, shared = block_of(trial("wording alone")), block_of(trial("shared falsehoods", prompts=20))
    assert set(wording.factuality) == {1.0}
    assert set(shared.consistency) == {1.0}
    assert np.ptp(shared.factuality) > 0.3
    long = block_of(trial("biographies twice as long"))
    ratio = np.mean([len(text) for texts in long.answers for text in texts]) / np.mean(
        [len(text) for texts in wording.answers for text in texts]
    )
    assert 1.6 < ratio < 2.4


def test_every_signal_reads_the_same_answers(monkeypatch):
    """Ten answers are there, and five are used by all in the main rows."""
    seen = []
    real = claims.race

    def race(prompts, rivals):
        seen.extend(len(evidence.texts) for evidence in prompts)
        seen.extend(len(evidence.embeddings) for evidence in prompts)
        return real(prompts, rivals)

    monkeypatch.setattr(claims, "race", race)
    block = block_of(trial("biographies", answers=10))
    rng = np.random.default_rng(0)
    vectors = [rng.random((10, 8)) for _ in block.answers]
    found = claims.signals(block, vectors, claims.TEXT_RIVALS)
    assert set(seen) == {5}
    assert set(found) == {"isotropy", claims.OWN_ORDER_2, *claims.TEXT_RIVALS}
    assert all(scores.shape == (6,) for scores in found.values())


def test_a_rival_that_was_asked_for_and_cannot_answer_stops_the_trial():
    block = block_of(trial("biographies"))
    vectors = [np.eye(5) for _ in block.answers]
    with pytest.raises(NotRun, match="no NLI model"):
        claims.signals(block, vectors, claims.NLI_RIVALS)


def test_what_foretells_perfectly_and_what_does_not():
    factuality = np.linspace(0, 1, 10)
    found = claims.foretelling({"perfect": -factuality, "constant": np.ones(10)}, factuality)
    values = {(one.method, one.metric): one.value for one in found}
    assert values["perfect", "spearman"] == pytest.approx(-1)
    assert values["perfect", "R2"] == pytest.approx(1)
    assert values["constant", "R2"] == 0


def measured(measurements) -> dict[tuple[str, str], float]:
    return {(one.method, one.metric): one.value for one in measurements}


def straying(prompts: int, answers: int) -> list[np.ndarray]:
    """The last answer of prompt p strays by p steps; the others are the same."""
    angles = np.linspace(0, np.pi / 2, prompts)
    return [np.array([[1.0, 0.0]] * (answers - 1) + [[np.cos(a), np.sin(a)]]) for a in angles]


def test_fewer_answers_are_drawn_at_random_and_nested(monkeypatch):
    """The answer that tells all is the last: no first two or three answers could show anything."""
    block, vectors = block_of(trial("biographies", answers=10)), straying(6, 10)
    block = replace(block, factuality=np.linspace(1, 0, 6))
    drawn = []

    class Watched(SemanticIsotropy):
        def score_samples(self, groups, **more):
            drawn.append(np.asarray(groups))
            return super().score_samples(groups, **more)

    monkeypatch.setattr(claims, "SemanticIsotropy", Watched)
    found = measured(claims.fewer_answers(trial("biographies"), block, vectors))
    everything = r_squared(SemanticIsotropy().score_samples(vectors), block.factuality)
    assert found["isotropy", "R2 with all answers"] == pytest.approx(everything)
    assert 0 < found["isotropy", "R2 with 2 answers"] < everything
    assert [stack.shape[1] for stack in drawn] == [n for n in claims.SUBSAMPLES for _ in range(claims.DRAWS)] + [10]
    for fewer, more in zip(drawn, drawn[claims.DRAWS : -1], strict=False):
        assert np.array_equal(more[:, : fewer.shape[1]], fewer)


def test_the_figure_across_lengths_reads_as_many_prompts_of_each(monkeypatch):
    block = block_of(trial("biographies", prompts=20))
    vectors = straying(20, 5)
    monkeypatch.setattr(claims, "minilm", lambda: None)
    monkeypatch.setattr(claims, "vectors_of", lambda answers, by: vectors)
    found = measured(claims.measure_signals(trial("biographies", prompts=20)))
    scores = SemanticIsotropy().score_samples(vectors)
    assert found["isotropy", "R2"] == pytest.approx(r_squared(scores, block.factuality))
    assert found["isotropy", "R2 of the first 12"] == pytest.approx(r_squared(scores[:12], block.factuality[:12]))
    assert found["isotropy", "R2 of the first 12"] != pytest.approx(found["isotropy", "R2"])


class Company(WordEmbedder):
    """A text's vector leans towards those that it is embedded with."""

    def embed(self, texts, told=None):
        vectors = super().embed(texts)
        return vectors + vectors.mean(axis=0)


@pytest.mark.parametrize(("embedder", "depends"), [(WordEmbedder(), False), (Company(), True)])
def test_a_score_that_depends_on_its_company_is_found_out(embedder, depends, monkeypatch):
    monkeypatch.setattr(claims, "minilm", lambda: embedder)
    found = measured(claims.measure_static(trial("biographies")))
    assert (found["isotropy", "difference alone to among others"] > 1e-6) == depends
    assert found["isotropy", "attributes left by fit"] == 0


def test_what_fit_leaves_behind_is_counted(monkeypatch):
    class Fitted(SemanticIsotropy):
        def fit(self, X=None, y=None):
            self.mean_ = float(np.mean(y))
            self.jitter = 1e-3
            return self

    monkeypatch.setattr(claims, "minilm", WordEmbedder)
    monkeypatch.setattr(claims, "SemanticIsotropy", Fitted)
    assert measured(claims.measure_static(trial("biographies")))["isotropy", "attributes left by fit"] == 2


def test_a_jitter_that_changes_ranks_is_found_out(monkeypatch):
    """One answer beside four, against five apart: what lies in one direction against four, where the jitter lifts those that are empty."""
    apart = np.linalg.cholesky(np.full((5, 5), 1 - 5e-6) + 5e-6 * np.eye(5))

    def beside(angle: float) -> np.ndarray:
        return np.array([[1.0, 0.0]] * 4 + [[np.cos(angle), np.sin(angle)]])

    def ahead(angle: float) -> float:
        return von_neumann_entropy(beside(angle), jitter=0.75e-6) - von_neumann_entropy(apart, jitter=0.75e-6)

    figure = ("isotropy", "rank agreement under another jitter")
    monkeypatch.setattr(claims, "minilm", WordEmbedder)
    for angle, agreement in ((brentq(ahead, 1e-4, 0.1), -1), (0.1, 1)):
        monkeypatch.setattr(claims, "vectors_of", lambda answers, by, angle=angle: [beside(angle), apart])
        assert measured(claims.measure_static(trial("biographies", prompts=2)))[figure] == pytest.approx(agreement)


def test_the_cost_of_checking_is_a_pair_by_their_exact_number(monkeypatch):
    """LUQ asks of every sentence whether each of the four other answers bears it out."""
    texts = ["One is here. Two is here. Three is here."] * 2 + ["Only one."] * 3
    monkeypatch.setattr(claims, "long_answers", lambda trial: texts)
    monkeypatch.setattr(claims, "minilm", WordEmbedder)
    monkeypatch.setattr(claims, "cross_encoder", lambda: None)
    monkeypatch.setattr(stand_in, "seconds_a_pair", lambda model, *, rng, n_pairs: [0.25])
    with pytest.warns(IsotropyWarning, match="identical"):
        found = measured(claims.measure_cost(Trial("isotropy.cost", {}, 0, Scale.QUICK)))
    assert found["luq, untrained base model", "model calls"] == (3 + 3 + 1 + 1 + 1) * 4
    assert found["luq, untrained base model", "seconds"] == 36 * 0.25
    assert found["isotropy", "model calls"] == found["segment judge", "model calls"] == 5
    assert found["segment judge", "tokens written"] == 9 + 9 + 2 + 2 + 2


def test_windows_moved_by_half_read_all_of_an_answer(monkeypatch):
    """Twenty words in windows of eight: the first half window is the same in all, and what follows differs."""
    embedder = WordEmbedder(limit=10)
    monkeypatch.setattr(claims, "minilm", lambda: embedder)
    words = [f"w{i}" for i in range(60)]
    long = [" ".join([*words[:4], *words[a : a + 16]]) for a in (4, 20, 36)]
    start, moved = claims.shifted_scores(long)
    assert moved > 0.5
    assert moved != pytest.approx(start, abs=1e-6)
    assert max(len(text.split()) for text in embedder.read) == 8
    short = [" ".join(words[a : a + 4]) for a in (0, 2, 4)]
    assert claims.shifted_scores(short)[0] == pytest.approx(claims.shifted_scores(short)[1])


def test_three_judges_of_one_answer_and_their_spread(monkeypatch):
    """One wording of the judge marks all as true, one nothing, and one cannot be read."""

    def reply(request) -> str:
        system, user = (message.content for message in request.messages[:2])
        answer = re.search(r"<answer>\n(.*)\n</answer>", user, re.DOTALL)[1]
        marks = dict(zip((judge.text for judge in JUDGES), (1, 0, None), strict=True))
        mark = marks[system]
        return "I cannot." if mark is None else json.dumps([{"segment": answer, "mark": mark}])

    judge = ScriptedModel(reply)
    monkeypatch.setenv("UPHELD_JUDGE", "openai:judge@http://localhost:1/v1")
    monkeypatch.setattr(claims, "language_model", lambda where: judge)
    monkeypatch.setattr(claims, "minilm", lambda: WordEmbedder(limit=40))
    found = measured(claims.measure_judge(Trial("isotropy.judge", {"attributes": 7}, 0, Scale.QUICK)))
    assert found["segment judge", "share unlabelled"] == pytest.approx(1 / 3)
    assert found["segment judge", "sd of an answer's factuality"] == pytest.approx(np.sqrt(0.5))
    assert found["isotropy", "sd of the score"] > 0


def test_rivals_of_the_rules_exist():
    for names in (claims.TEXT_RIVALS, claims.NLI_RIVALS, claims.LIKELIHOOD, claims.SELF_REPORTS):
        assert [rival.name for rival in chosen(names)] == [name for name in names if name]


@pytest.mark.parametrize(
    ("measure", "message", "variable"),
    [
        (claims.measure_nli, "set UPHELD_NLI", "UPHELD_NLI"),
        (claims.measure_judge, "set UPHELD_JUDGE", "UPHELD_JUDGE"),
    ],
)
def test_what_needs_a_model_of_the_users_says_how_to_give_it(measure, message, variable, monkeypatch):
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(NotRun, match=message):
        list(measure(trial("biographies", attributes=7)))


def test_the_race_against_a_model_of_inference_of_the_users(tmp_path, monkeypatch):
    """All of its signals are judged beside the score; its weights are random, so none of them needs to foretell anything."""
    monkeypatch.setenv("UPHELD_NLI", str(tiny_nli(tmp_path)))
    monkeypatch.setattr(claims, "minilm", WordEmbedder)
    found = measured(claims.measure_nli(trial("biographies", prompts=3, answers=2)))
    assert {method for method, metric in found if metric == "R2"} == {
        "isotropy",
        claims.OWN_ORDER_2,
        *claims.NLI_RIVALS,
    }
    assert all(0 <= value <= 1 + 1e-9 for (_, metric), value in found.items() if metric == "R2")
    assert found["luq", "R2"] != found["luq-pair", "R2"]


def test_long_answers_have_five_hundred_words():
    texts = claims.long_answers(Trial("isotropy.cost", {}, 0, Scale.QUICK))
    assert [len(text.split()) for text in texts] == [500] * 5


def test_words_alone_are_a_floor_with_a_vector_for_each_answer():
    people = generate(np.random.default_rng(0), persons=3, answers=4)
    vectors = claims.word_vectors([person.answers for person in people])
    assert [v.shape[0] for v in vectors] == [4, 4, 4]
    assert all(np.linalg.norm(v, axis=1).min() > 0 for v in vectors)


@pytest.mark.slow
def test_a_smoke_run_measures_what_the_rules_read():
    """Every rule finds its cells; what needs a model of the user's aside."""
    import pandas as pd

    from upheld.claims.measurements import Measurements

    for experiment in (SIGNALS, EMBEDDERS):
        rows = [
            {
                **one.condition,
                "seed": one.seed,
                "method": m.method,
                "metric": m.metric,
                "item": m.item,
                "value": m.value,
            }
            for one in experiment.trials(Scale.SMOKE)
            for m in experiment.measure(one)
        ]
        data = Measurements(pd.DataFrame(rows), experiment.units)
        for claim in CLAIMS:
            if claim.experiment is experiment:
                judged = claim.rule.judge(data)
                assert judged.findings, claim.id
                assert all(np.isfinite(finding.estimate) for finding in judged.findings), claim.id


def test_answers_cut_after_a_share_of_their_words_keep_the_label_of_the_whole(monkeypatch):
    """At 100 percent the figure is that of the whole answers; before, the embedder sees the first words and nothing else."""
    seen: list[list[str]] = []
    stand_in_block = claims.Block(
        (("aa bb cc dd", "aa bb cc ee"), ("ff gg hh ii", "jj kk ll mm"), ("nn oo pp qq", "nn oo rr ss")),
        np.array([0.9, 0.1, 0.6]),
        ("x", "y", "z"),
    )
    monkeypatch.setattr(claims, "block_of", lambda trial: stand_in_block)
    monkeypatch.setattr(claims, "minilm", lambda: None)

    def vectors(answers, by):
        seen.append([text for group in answers for text in group])
        return claims.word_vectors(answers)

    monkeypatch.setattr(claims, "vectors_of", vectors)

    def measured(percent):
        cut = Trial("isotropy.lengths", {"data": "SegmentScore", "percent": percent}, 0, Scale.FULL)
        return {one.metric: one.value for one in claims.measure_shortened(cut)}

    whole = measured(100)
    scores = SemanticIsotropy().score_samples(claims.word_vectors(stand_in_block.answers))
    assert whole["R2"] == pytest.approx(r_squared(scores, stand_in_block.factuality))
    measured(50)
    measured(25)
    assert seen[1] == ["aa bb", "aa bb", "ff gg", "jj kk", "nn oo", "nn oo"]
    assert seen[2] == ["aa", "aa", "ff", "jj", "nn", "nn"]


def test_answers_are_cut_at_full_scale_and_there_alone():
    trials = [one.condition["percent"] for one in claims.LENGTHS.trials(Scale.FULL)]
    assert sorted(set(trials)) == [25, 50, 100]
    assert len(trials) == 3 * claims.BLOCKS
    assert not list(claims.LENGTHS.trials(Scale.STANDARD))
