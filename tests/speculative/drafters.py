"""Drafters that a decoder must survive: they know everything, nothing, or the opposite."""

from __future__ import annotations

import torch

from upheld.speculative.verification import Draft


class Told:
    """Drafts from a text it is told beforehand, token by token, passed through `twist`."""

    def __init__(self, target, block_size=4, twist=lambda tokens: tokens, taps=(0,)):
        self.target, self.block_size, self.twist, self.taps = target, block_size, twist, taps
        self.seen = 0

    def begin(self, room):
        self.seen = 0

    def propose(self, ids, states, count, sampling, generator):
        # It is told the states of every position once, and of no other.
        self.seen += states.shape[1]
        assert self.seen == ids.shape[1] - 1
        text = ids
        for _ in range(count):
            following = self.target(input_ids=text).logits[:, -1].argmax(-1, keepdim=True)
            text = torch.cat([text, following], dim=1)
        return Draft(self.twist(text[:, ids.shape[1] :]))

    def nbytes(self):
        return 0


class Random(Told):
    def propose(self, ids, states, count, sampling, generator):
        law = torch.rand(1, count, self.target.config.vocab_size, dtype=sampling.dtype)
        law = law / law.sum(-1, keepdim=True)
        return Draft(torch.multinomial(law[0], 1).view(1, count), law)


class Constant(Told):
    def propose(self, ids, states, count, sampling, generator):
        return Draft(torch.full((1, count), 7))
