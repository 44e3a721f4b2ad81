"""Adaptive sampling stops as soon as the interval clears the threshold, at figures that compare between numbers of answers."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scripted_model import ScriptedModel

from upheld.isotropy.adaptive import look_at, sample_until, subsets_of, vectors_with
from upheld.isotropy.entropy import von_neumann_entropy
from upheld.isotropy.result import IsotropyWarning
from upheld.isotropy.semantic_isotropy import SemanticIsotropy

# so small a number of dimensions has opposite vectors now and then, which is what the scorer then remarks on
pytestmark = pytest.mark.filterwarnings("ignore:two answers of group:upheld.isotropy.result.IsotropyWarning")


def numbered():
    """A model whose answer i is "i", and an embedder that gives row i of vectors."""
    return ScriptedModel(lambda request: f"<answer>{request.sampling.seed}</answer>")


def scorer(vectors, **settings):
    return SemanticIsotropy(lambda texts: vectors[[int(text) for text in texts]], **settings)


def around(rng, n, noise, dimensions=8):
    """Answers scattered about one direction."""
    return np.eye(dimensions)[0] + noise * rng.normal(size=(n, dimensions))


def test_a_plain_case_costs_the_smallest_number_of_answers():
    model = numbered()
    done = sample_until(model, scorer(around(np.random.default_rng(0), 20, 1e-3)), "Who?", 0.5, 3, 20, seed=0)
    assert done.verdict == "below"
    assert done.result.n == len(done.responses) == len(model.asked) == 3
    assert done.calls_saved == 17
    assert (done.score, done.se) == (done.result.score, done.result.se)
    orthogonal = sample_until(numbered(), scorer(np.eye(20)), "Who?", 0.5, 3, 20, seed=0)
    assert (orthogonal.verdict, orthogonal.score, orthogonal.calls_saved) == ("above", pytest.approx(1), 17)


def test_a_threshold_in_the_midst_costs_all_answers_one_after_the_other():
    vectors = around(np.random.default_rng(1), 9, 0.5)
    expected = np.mean([von_neumann_entropy(vectors[list(a)], normalize=True) for a in combinations(range(9), 3)])
    model = numbered()
    done = sample_until(model, scorer(vectors), "Who?", expected, 3, 9, seed=0)
    assert (done.verdict, done.calls_saved) == ("undecided", 0)
    assert [look.n for look in done.looks] == list(range(3, 10))
    assert done.score == pytest.approx(expected)
    assert done.responses.texts == tuple("012345678")
    assert done.responses.seeds == tuple(range(9))
    assert model.calls == 7


def test_the_figure_does_not_drift_with_the_number_of_answers_as_the_score_does():
    """Over 300 prompts: mean U_9 equals the mean score of 3 answers, while the score of 9 answers lies far from it."""
    rng = np.random.default_rng(2)
    of_3, of_9, u_9, errors = [], [], [], []
    for _ in range(300):
        vectors = around(rng, 9, 0.4)
        scores = scorer(vectors)
        look = look_at(scores.explain([str(i) for i in range(9)]), scores, 3)
        u_9.append(look.score)
        errors.append(look.se)
        of_3.append(von_neumann_entropy(vectors[:3], normalize=True))
        of_9.append(von_neumann_entropy(vectors, normalize=True))
    standard_error = np.std(np.subtract(u_9, of_3)) / math.sqrt(300)
    assert abs(np.mean(u_9) - np.mean(of_3)) < 3 * standard_error
    assert abs(np.mean(of_9) - np.mean(of_3)) > 6 * standard_error
    # the jackknife of a U-statistic errs upwards (Efron & Stein 1981), and not by much here
    assert 1 <= np.sqrt(np.mean(np.square(errors))) / np.std(u_9) < 1.4


def test_leave_one_out_of_all_but_one_is_the_jackknife_of_the_scores():
    """n = m + 1: U_(-i) is the score without answer i."""
    vectors = around(np.random.default_rng(3), 5, 0.5)
    scores = scorer(vectors)
    look = look_at(scores.explain(list("01234")), scores, 4)
    left_out = [von_neumann_entropy(np.delete(vectors, i, axis=0), normalize=True) for i in range(5)]
    assert look.score == pytest.approx(np.mean(left_out))
    assert look.se == pytest.approx(math.sqrt(4 / 5 * 5 * np.var(left_out)))


def test_the_scorers_own_settings_hold_in_the_subsets():
    vectors = around(np.random.default_rng(4), 6, 0.5)
    scores = scorer(vectors, jitter=1e-2, normalize=False)
    expected = np.mean([von_neumann_entropy(vectors[list(a)], jitter=1e-2) for a in combinations(range(6), 4)])
    assert look_at(scores.explain(list("012345")), scores, 4).score == pytest.approx(expected)


def test_subsets_are_all_or_a_repeatable_choice_that_leaves_each_out_about_equally_often():
    assert subsets_of(5, 3) == list(combinations(range(5), 3))
    many = subsets_of(20, 10)
    assert many == subsets_of(20, 10)
    assert len(many) == 2000
    assert all(len(set(subset)) == 10 for subset in many)
    # binomial(2000, 1/2): five standard deviations
    assert np.abs(np.bincount(np.ravel(many)) - 1000).max() < 5 * math.sqrt(500)


def test_vectors_have_the_cosines_that_were_given():
    E = around(np.random.default_rng(5), 6, 0.7, dimensions=3)
    K = (E @ E.T) / np.linalg.norm(E, axis=1) / np.linalg.norm(E, axis=1)[:, None]
    V = vectors_with(K)
    np.testing.assert_allclose(V @ V.T, K, atol=1e-12)


@pytest.mark.filterwarnings("always:two answers of group:upheld.isotropy.result.IsotropyWarning")
def test_what_the_scorer_remarks_is_said_once_an_answer_not_once_a_subset(recwarn):
    vectors = np.array([[1.0, 0.1], [-1.0, 0.1], [1, 0.2], [0.9, 0.4], [1, 0.5]])
    sample_until(numbered(), scorer(vectors), "Who?", 0.3, 3, 5, level=0.9999, seed=0)
    assert {str(warning.message) for warning in recwarn if warning.category is IsotropyWarning}
    assert all("group 0" in str(warning.message) for warning in recwarn if warning.category is IsotropyWarning)


def test_identical_answers_decide_at_once_and_are_remarked_on():
    same = ScriptedModel(lambda _: "<answer>0</answer>")
    with pytest.warns(IsotropyWarning, match="identical byte for byte"):
        done = sample_until(same, scorer(np.eye(2)), "Who?", 0.3)
    assert (done.verdict, done.score, done.se, done.calls_saved) == ("below", 0, 0, 17)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_min": 2}, "n_min must be at least 3 and at most n_max, got n_min = 2 and n_max = 20"),
        ({"n_min": 9, "n_max": 8}, "got n_min = 9 and n_max = 8"),
        ({"threshold": math.nan}, "threshold is NaN"),
        ({"level": 1}, "level must lie strictly between 0 and 1"),
        ({"temperature": 0}, "temperature 0 gives the same answer"),
    ],
)
def test_bad_input(arguments, message):
    model = numbered()
    with pytest.raises(ValueError, match=message):
        sample_until(model, scorer(np.eye(20)), "Who?", **({"threshold": 0.5} | arguments))
    assert model.asked == []


def test_a_scorer_that_takes_some_of_the_answers_is_refused():
    with pytest.raises(ValueError, match="took 3 of 4 answers"):
        sample_until(numbered(), scorer(np.eye(20), n_samples=3), "Who?", 0.5, 4, seed=0)
