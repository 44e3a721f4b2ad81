"""What the repository's faulty rivals give: closed forms that show each fault."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.isotropy.rivals import RIVALS, race
from upheld.isotropy.rivals.entailment import CERTAIN, entailment_similarity
from upheld.isotropy.rivals.evidence import Evidence
from upheld.isotropy.rivals.graphs import eccentricity
from upheld.isotropy.rivals.published import (
    AS_PUBLISHED,
    eccentricity_of_rows,
    kle_of_every_pair,
    selfcheck_twice_exponentiated,
)

AGREE = np.tile(CERTAIN, (4, 4, 1))
CONTRADICT = np.where(np.eye(4)[:, :, None] == 1, CERTAIN, CERTAIN[::-1])


def test_kle_is_that_of_the_complete_graph():
    # The closed form of the complete graph with weights 1: all cosines r, r = (1 - q) / (1 + (N-1) q), q = exp(-0.3 N).
    N, q = 5, np.exp(-0.3 * 5)
    r = (1 - q) / (1 + (N - 1) * q)
    lam = np.array([(1 + (N - 1) * r) / N] + [(1 - r) / N] * (N - 1))
    assert kle_of_every_pair(N) == pytest.approx(-(lam * np.log(lam)).sum() / np.log(N))


def test_kle_does_not_look_at_the_answers():
    kle = AS_PUBLISHED[0]
    same, other = Evidence(["Yes.", "Yes.", "Yes."]), Evidence(["Yes.", "No.", "Lima"])
    assert kle.measure(same) == kle.measure(other)


def test_selfcheck_is_inverted_and_squeezed():
    # e^0 / (e^0 + e^1) = 0.2689 for agreement; the answer against itself always agrees.
    low = 1 / (1 + np.e)
    assert selfcheck_twice_exponentiated(AGREE) == pytest.approx(1 - low)
    assert selfcheck_twice_exponentiated(CONTRADICT) == pytest.approx(1 - (0.25 * low + 0.75 * (1 - low)))
    assert selfcheck_twice_exponentiated(CONTRADICT) < selfcheck_twice_exponentiated(AGREE)


def test_eccentricity_depends_on_the_order_of_the_answers_and_ours_does_not():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1, 1], (6, 6))
    P[np.arange(6), np.arange(6)] = [0, 0, 1]
    with np.errstate(divide="ignore"):
        W = entailment_similarity(np.log(P))
    orders = [rng.permutation(6) for _ in range(6)]
    theirs = [eccentricity_of_rows(W[np.ix_(order, order)]) for order in orders]
    ours = [eccentricity(W[np.ix_(order, order)]) for order in orders]
    assert np.ptp(theirs) > 0.01
    assert np.ptp(ours) < 1e-9


@pytest.mark.parametrize("r", [0.1, 0.5, 0.9])
def test_eccentricity_of_two_answers_says_nothing_of_their_likeness(r):
    # The first row of ((1, 1), (1, -1)) / sqrt(2), with signs as the solver likes: after centring 0 or 1, whatever r.
    value = eccentricity_of_rows(np.array([[1, r], [r, 1]]))
    assert min(value, abs(value - 1)) < 1e-12


def test_they_are_shown_beside_and_not_among_the_rivals():
    names = {rival.name for rival in RIVALS}
    assert not names & {rival.name for rival in AS_PUBLISHED}
    kle, *others = race([Evidence(["Yes.", "No."])], AS_PUBLISHED)
    assert kle.values is not None
    assert {signal.not_run for signal in others} == {"no NLI model"}
