"""Draft trees of the EAGLE-style head, grown as EAGLE-2 and 3 grow theirs (Li et al. 2024, 2025).

B - 1 steps. A step runs the head on the `top` likeliest open nodes together, each seeing the text and its own ancestors; each
gives its `top` likeliest children, and the `top` likeliest of all of them are the next step's. In the end the `nodes` likeliest
paths of all that were seen are verified.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from upheld.speculative.decoder import SpeculativeDecoder
from upheld.speculative.heads import EagleHead, HeadProposer
from upheld.speculative.trees import Tree, TreeDecoder, check_tree
from upheld.speculative.verification import Sampling


@dataclass(frozen=True)
class Candidates:
    """All paths seen so far; entry i stands for the path that ends in it.

    Parameters
    ----------
    tokens : (n,) places among the head's tokens
    parents : (n,) entry numbers, -1 for children of the anchor
    depths, logs : (n,) length and log-probability of the path
    """

    tokens: Tensor
    parents: Tensor
    depths: Tensor
    logs: Tensor

    def with_(self, tokens: Tensor, parents: Tensor, depth: int, logs: Tensor) -> Candidates:
        depths = torch.full_like(tokens, depth)
        found = [
            torch.cat(pair)
            for pair in ((self.tokens, tokens), (self.parents, parents), (self.depths, depths), (self.logs, logs))
        ]
        return Candidates(*found)

    def best(self, nodes: int) -> Tree:
        """The likeliest `nodes`: a path's beginnings are at least as likely as it is, so they are among them."""
        order = torch.argsort(self.logs, descending=True, stable=True)[:nodes]
        # Entries are in the order of their steps, so a parent's number is below its children's.
        kept = order.sort().values.tolist()
        place = {-1: 0, **{entry: node for node, entry in enumerate(kept, start=1)}}
        parents = [place[int(self.parents[entry])] for entry in kept]
        return Tree([int(self.tokens[e]) for e in kept], parents, [int(self.depths[e]) for e in kept])


class EagleTreeDecoder(TreeDecoder):
    """Decodes with the head's trees; the text is the target's own.

    Parameters
    ----------
    nodes : drafts verified in a cycle
    top : open nodes a step, and children of each

    Raises
    ------
    ValueError
        If `nodes` is below 1, or the target's attention slides.
    """

    def __init__(self, target: PreTrainedModel, head: EagleHead, *, nodes: int, top: int = 10, **options: Any) -> None:
        SpeculativeDecoder.__init__(self, target, HeadProposer(target, head), **options)
        check_tree(target, nodes)
        self.nodes, self.top = nodes, top

    def _grow(self, ids: Tensor, states: Tensor | None, size: int, sampling: Sampling) -> Tree:
        assert isinstance(self.proposer, HeadProposer)
        assert isinstance(self.proposer.head, EagleHead)
        assert states is not None
        tree = self._candidates(self.proposer, self.proposer.head, ids, states, size - 1, sampling).best(self.nodes)
        if self.proposer.ids is None:
            return tree
        return Tree([int(self.proposer.ids[token]) for token in tree.tokens], tree.parents, tree.depths)

    def _candidates(
        self, proposer: HeadProposer, head: EagleHead, ids: Tensor, states: Tensor, steps: int, sampling: Sampling
    ) -> Candidates:
        new, end, cache = states.shape[1], ids.shape[1] - 1, proposer.cache
        x = head.inputs(proposer.embedding(ids[:, end - new + 1 :]), head.feature(states))
        positions = torch.arange(end - new, end, device=ids.device)[None]
        state = head.layer(x[:, -1:], x[:, :-1], positions, cache)
        cache.length += 1
        committed = cache.length
        none = torch.zeros(0, dtype=torch.long, device=ids.device)
        found = Candidates(none, none, none, torch.zeros(0, device=ids.device))
        above, parents = torch.zeros(1, device=ids.device), torch.full((1,), -1, device=ids.device)
        # Which of the nodes run so far each open node may look at: its ancestors and itself.
        seen = torch.zeros(0, 0, dtype=torch.bool, device=ids.device)
        for depth in range(1, steps + 1):
            logs, tokens = self._children(head.norm(state)[0] @ proposer.rows.T, above, sampling)
            first = len(found.tokens)
            found = found.with_(tokens.flatten(), parents.repeat_interleave(tokens.shape[1]), depth, logs.flatten())
            if depth == steps:
                break
            open_entries = first + logs.flatten().topk(min(self.top, logs.numel())).indices
            row = (open_entries - first) // tokens.shape[1]
            above, parents = found.logs[open_entries], open_entries
            seen = self._sight(seen, row, len(open_entries))
            drafted = found.tokens[open_entries]
            known = drafted if proposer.ids is None else proposer.ids[drafted]
            current = head.inputs(proposer.embedding(known)[None], state[:, row])
            mask = torch.cat([seen.new_ones(len(row), committed), seen], dim=1)[None, None]
            place = torch.full((1, len(row)), end - 1 + depth, device=ids.device)
            state = head.layer(current, x[:, :0], place, cache, mask)
            cache.length += len(row)
            proposer.forwards += 1
        proposer.forwards += 1
        cache.crop(committed - cache.length)
        return found

    def _children(self, logits: Tensor, above: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor]:
        law = sampling.law(logits) if sampling.do_sample else logits.float().softmax(-1)
        chances, tokens = law.topk(min(self.top, law.shape[-1]), dim=-1)
        return above[:, None] + chances.log(), tokens

    @staticmethod
    def _sight(seen: Tensor, row: Tensor, many: int) -> Tensor:
        """(open, run so far + open): the parent's sight, and the node itself."""
        before = seen[row] if seen.shape[1] else seen.new_zeros(many, 0)
        return torch.cat([before, torch.eye(many, dtype=torch.bool, device=seen.device)], dim=1)
