from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from upheld.llm.drawing import draw, gumbel, noise_source, nucleus

LOGITS = torch.tensor([1.0, 0.0, -1.0, 2.0, 0.5, -30.0])


def drawn(temperature: float, top_p: float, n: int = 20_000) -> np.ndarray:
    rng = np.random.default_rng(5)
    rows = 100
    counts = np.zeros(len(LOGITS), dtype=int)
    for _ in range(n // rows):
        tokens = draw(LOGITS.expand(rows, -1), [temperature] * rows, [top_p] * rows, [rng] * rows)
        counts += np.bincount(tokens, minlength=len(LOGITS))
    return counts


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
def test_the_law_is_the_softmax_at_the_temperature(temperature):
    counts = drawn(temperature, 1.0)
    weights = np.exp(LOGITS.double().numpy() / temperature)
    expected = counts.sum() * weights / weights.sum()
    assert counts[5] <= 1
    assert stats.chisquare(counts[:5], expected[:5] * counts[:5].sum() / expected[:5].sum()).pvalue > 1e-3


def test_top_p_draws_among_the_likeliest_that_reach_it_with_their_own_odds():
    """Probabilities 0.563, 0.207, 0.126, 0.076, 0.028: the first two reach 0.77, so 0.75 needs both and 0.8 a third."""
    assert set(np.flatnonzero(drawn(1.0, 0.75))) == {3, 0}
    counts = drawn(1.0, 0.8)
    assert set(np.flatnonzero(counts)) == {3, 0, 4}
    odds = np.exp([1.0, 0.5, 2.0])
    assert stats.chisquare(counts[[0, 4, 3]], counts.sum() * odds / odds.sum()).pvalue > 1e-3


def test_the_nucleus_is_never_empty():
    assert torch.isfinite(nucleus(LOGITS, 1.0, 1e-9)).tolist() == [False, False, False, True, False, False]


def test_at_temperature_zero_it_is_the_likeliest_and_no_noise_is_spent():
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert draw(LOGITS[None], [0.0], [0.5], [rng]).tolist() == [3]
    assert rng.bit_generator.state == before


def test_a_row_draws_the_same_whatever_its_neighbours_are():
    rows = torch.randn(6, 50, generator=torch.Generator().manual_seed(0))
    alone = [draw(row[None], [0.9], [0.8], [np.random.default_rng(k)]).item() for k, row in enumerate(rows)]
    together = draw(rows, [0.9] * 6, [0.8] * 6, [np.random.default_rng(k) for k in range(6)])
    assert together.tolist() == alone


def test_the_noise_is_standard_gumbel_and_finite():
    noise = gumbel(np.random.default_rng(0), 200_000).numpy()
    assert np.isfinite(noise).all()
    assert stats.kstest(noise[:20_000], "gumbel_r").pvalue > 1e-3


def test_a_seed_is_of_its_prompt():
    def first(seed, prompt):
        return noise_source(seed, prompt).integers(2**60)

    assert first(1, [5, 6]) == first(1, [5, 6])
    assert len({first(1, [5, 6]), first(2, [5, 6]), first(1, [5, 7]), first(-1, [5, 6]), first(2**64 + 2, [6])}) == 5
    assert first(None, [5]) != first(None, [5])
