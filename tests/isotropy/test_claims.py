"""The experiments: blocks that are what they say, and measurements that the rules can read."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.claims import NotRun, Scale, Trial
from upheld.isotropy import claims
from upheld.isotropy.claims import CLAIMS, COUNTRIES, EMBEDDERS, SIGNALS, block_of
from upheld.isotropy.data.bioworld import generate
from upheld.isotropy.rivals import chosen


def trial(data: str, seed: int = 0, *, prompts: int = 6, answers: int = 5, **more) -> Trial:
    return Trial("isotropy.signals", {"data": data, "prompts": prompts, "answers": answers, **more}, seed, Scale.QUICK)


def test_blocks_of_countries_are_disjoint_and_equal():
    blocks = [block_of(trial(COUNTRIES, seed, prompts=14)) for seed in range(claims.BLOCKS)]
    prompts = [prompt for block in blocks for prompt in block.prompts]
    assert [len(block.prompts) for block in blocks] == [14] * 8
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
