from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from transformers import RepetitionPenaltyLogitsProcessor

from upheld.speculative.verification import Draft, Sampling, greedy, match, rejection, residual

P = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=torch.float64)
Q = torch.tensor([0.25, 0.25, 0.4, 0.1], dtype=torch.float64)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def one_draft(n, seed=0, law=Q):
    drafts = torch.multinomial(law.expand(n, 4), 1, generator=seeded(seed))
    return Draft(drafts, law.expand(n, 1, 4)), P.expand(n, 2, 4)


def test_acceptance_is_one_minus_total_variation():
    draft, target = one_draft(200_000)
    accepted, _ = rejection(draft, target, seeded(1))
    assert accepted.double().mean().item() == pytest.approx(0.70, abs=0.004)


def test_acceptance_of_match_is_the_chance_to_agree():
    draft, target = one_draft(200_000)
    accepted, _ = match(draft, target, seeded(1))
    assert accepted.double().mean().item() == pytest.approx(0.265, abs=0.004)


@pytest.mark.parametrize("verify", [rejection, match])
def test_no_drafts_give_one_draw_of_the_target(verify):
    n = 100_000
    accepted, after = verify(Draft(torch.empty(n, 0, dtype=torch.long)), P.expand(n, 1, 4), seeded())
    assert accepted.shape == (n,)
    assert not accepted.any()
    torch.testing.assert_close(torch.bincount(after, minlength=4).double() / n, P, atol=0.006, rtol=0)


def test_residual_by_hand():
    draft, target = one_draft(1)
    found = residual(target[:, 0], draft, torch.tensor([0]), torch.tensor([0]))[0]
    torch.testing.assert_close(found, torch.tensor([5 / 6, 1 / 6, 0, 0], dtype=torch.float64))


def test_residual_of_equal_laws_is_the_law():
    draft = Draft(torch.tensor([[0]]), P[None, None])
    torch.testing.assert_close(residual(P[None], draft, torch.tensor([0]), torch.tensor([0]))[0], P)


def test_point_mass_is_accepted_with_its_probability_and_leaves_the_rest():
    n = 100_000
    accepted, after = rejection(Draft(torch.full((n, 1), 1)), P.expand(n, 2, 4), seeded())
    assert accepted.double().mean().item() == pytest.approx(0.3, abs=0.005)
    assert not bool((after[accepted == 0] == 1).any())
    share = torch.bincount(after[accepted == 0], minlength=4).double() / int((accepted == 0).sum())
    torch.testing.assert_close(share, torch.tensor([0.5, 0, 0.15, 0.05], dtype=torch.float64) / 0.7, atol=0.01, rtol=0)


def test_draft_vocabulary_is_a_law_with_zeros():
    ids, small = torch.tensor([1, 2]), torch.tensor([0.4, 0.6], dtype=torch.float64)
    whole = torch.tensor([0, 0.4, 0.6, 0], dtype=torch.float64)
    tokens = ids[torch.multinomial(small.expand(5000, 2), 1, generator=seeded())]
    part = rejection(Draft(tokens, small.expand(5000, 1, 2), ids), P.expand(5000, 2, 4), seeded(1))
    full = rejection(Draft(tokens, whole.expand(5000, 1, 4)), P.expand(5000, 2, 4), seeded(1))
    assert torch.equal(part[0], full[0])
    assert torch.equal(part[1], full[1])


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_greedy_accepts_the_common_prefix_and_adds_the_next_choice(seed, k):
    logits = torch.randn(1, k + 1, 3, generator=seeded(seed))
    drafts = torch.randint(3, (1, k), generator=seeded(seed + 1))
    accepted, after = greedy(drafts, logits)
    choices = logits[0].argmax(-1).tolist()
    common = sum(
        1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(drafts[0].tolist(), choices, strict=False))
    )
    assert int(accepted) == common
    assert int(after) == choices[common]


# The law of a whole text, by enumeration: 8 tokens, texts of 3, blocks of 4.

V, LENGTH, B = 8, 3, 4
PREFIXES = [(), *itertools.product(range(V), repeat=1), *itertools.product(range(V), repeat=2)]
PLACE = {prefix: number for number, prefix in enumerate(PREFIXES)}


def tables(seed, warp):
    """Target laws after each of the 73 prefixes of at most 2 tokens, and the three laws a block after it draws from."""
    target = warp.law(torch.randn(len(PREFIXES), V, generator=seeded(seed), dtype=torch.float64) * 2)
    drafter = warp.law(torch.randn(len(PREFIXES), B - 1, V, generator=seeded(seed + 1), dtype=torch.float64) * 2)
    return target, drafter


def texts(target, drafter, verify, n, generator):
    """n texts of 3 tokens, block after block, by the decoder's own verification."""
    text = torch.full((n, LENGTH + B), -1)
    done = torch.zeros(n, dtype=torch.long)
    while bool((done < LENGTH).any()):
        for length in range(LENGTH):
            rows = (done == length).nonzero()[:, 0]
            if not len(rows):
                continue
            law = drafter[place(text[rows], length)]
            tokens = torch.multinomial(law.flatten(0, 1), 1, generator=generator).view(len(rows), B - 1)
            ahead = torch.cat([text[rows, :length], tokens], dim=1)
            # Past the third token nothing is kept: any law will do there.
            p = torch.stack([target[place(ahead, min(length + k, LENGTH - 1))] for k in range(B)], dim=1)
            accepted, after = verify(Draft(tokens, law), p, generator)
            for k in range(B):
                standing = rows[accepted >= k] if k < B - 1 else rows[:0]
                text[standing, length + k] = tokens[accepted >= k, k] if k < B - 1 else text[standing, length + k]
            text[rows, length + accepted] = after
            done[rows] += accepted + 1
    return text[:, :LENGTH]


def place(text, length):
    offset = sum(V**k for k in range(length))
    code = torch.zeros(len(text), dtype=torch.long)
    for column in range(length):
        code = code * V + text[:, column]
    return offset + code


def enumerated(target):
    law = torch.zeros(V**LENGTH, dtype=torch.float64)
    for number, text in enumerate(itertools.product(range(V), repeat=LENGTH)):
        chance = 1.0
        for k in range(LENGTH):
            chance *= float(target[PLACE[text[:k]], text[k]])
        law[number] = chance
    return law.numpy()


def chi_square(drawn, law):
    """p-value that the texts have this law, cells that expect fewer than 5 pooled; 0 if one came that cannot."""
    code = drawn[:, 0] * V * V + drawn[:, 1] * V + drawn[:, 2]
    counts, expected = torch.bincount(code, minlength=V**LENGTH).numpy(), law * len(drawn)
    if counts[law == 0].sum():
        return 0.0
    small = expected < 5
    counts = [*counts[~small], counts[small].sum()]
    expected = [*expected[~small], expected[small].sum()]
    if expected[-1] == 0:
        counts, expected = counts[:-1], expected[:-1]
    return stats.chisquare(counts, expected).pvalue


@pytest.mark.parametrize("verify", [rejection, match])
@pytest.mark.parametrize(
    "warp",
    [
        Sampling(do_sample=True, temperature=0.5, dtype=torch.float64),
        Sampling(do_sample=True, dtype=torch.float64),
        Sampling(do_sample=True, temperature=1.5, dtype=torch.float64),
        Sampling(do_sample=True, top_k=3, dtype=torch.float64),
        Sampling(do_sample=True, top_p=0.9, dtype=torch.float64),
    ],
    ids=["cold", "plain", "hot", "top-k", "top-p"],
)
def test_texts_have_the_targets_law(verify, warp):
    target, drafter = tables(3, warp)
    assert chi_square(texts(target, drafter, verify, 100_000, seeded(5)), enumerated(target)) > 0.001


def test_the_token_after_a_block_that_stands_has_the_law_of_its_own_row():
    """Texts above end where a whole block does, so they do not see it."""
    target = torch.tensor([[0.1, 0.2, 0.7, 0.0], [0.4, 0.1, 0.0, 0.5]], dtype=torch.float64).expand(100_000, -1, -1)
    law = target[:, :1]
    tokens = torch.multinomial(law[:, 0], 1, generator=seeded(1))
    accepted, after = rejection(Draft(tokens, law), target, seeded(2))
    assert bool((accepted == 1).all())
    share = torch.bincount(after, minlength=4) / len(after)
    torch.testing.assert_close(share.double(), target[0, 1], atol=0.01, rtol=0)


def without_residual(draft, target, generator=None):
    """Wrong on purpose: at a rejection it draws from the target's whole law."""
    accepted, _ = rejection(draft, target, generator)
    after = target[torch.arange(len(accepted)), accepted]
    return accepted, torch.multinomial(after, 1, generator=generator)[:, 0]


def sharper(draft, target, generator=None):
    """Wrong on purpose: accepts whatever the target finds more likely than a half of what the drafter does."""
    return rejection(Draft(draft.tokens, draft.law / 2), target, generator)


@pytest.mark.parametrize("wrong", [without_residual, sharper])
def test_a_wrong_verifier_is_caught(wrong):
    target, drafter = tables(3, Sampling(do_sample=True, dtype=torch.float64))
    assert chi_square(texts(target, drafter, wrong, 100_000, seeded(5)), enumerated(target)) < 1e-6


def test_rows_see_the_drafts_before_them():
    """The penalty of row k counts the first k drafts, as if the text had been read token by token."""
    sampling = Sampling(repetition_penalty=1.7, dtype=torch.float64)
    logits, text, drafts = (
        torch.randn(1, 4, 9, generator=seeded(), dtype=torch.float64),
        torch.tensor([[1, 2]]),
        torch.tensor([[3, 1, 4]]),
    )
    rows = sampling.rows(text, drafts, logits)
    one_by_one = RepetitionPenaltyLogitsProcessor(1.7)
    for k in range(4):
        seen = torch.cat([text, drafts[:, :k]], dim=1)
        assert torch.equal(rows[:, k], one_by_one(seen, logits[:, k].clone()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"do_sample": True, "temperature": 0.0}, "temperature must be a number of at least 1e-06 to sample"),
        ({"top_p": 0.0}, r"top_p must lie in \(0, 1\]"),
        ({"top_k": -1}, "top_k be 0 or more"),
        ({"repetition_penalty": 0.0}, "repetition_penalty must be positive"),
    ],
)
def test_impossible_settings(options, message):
    with pytest.raises(ValueError, match=message):
        Sampling(**options)
