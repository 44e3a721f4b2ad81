"""Several guesses for a place at once: a tree of drafts from the block's marginal laws, verified in one forward.

The block gives independent laws q_1, ..., q_(B-1), so a path d_1 ... d_k is as likely as the product of its q. The tree holds
the likeliest paths under a budget of nodes (best first); each node sees its ancestors alone. The target then chooses a token at
the root, walks to the child that bears it, chooses again there, and so on: what is written is what the target chose, so the
law is its own whatever the tree.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from upheld.speculative.decoder import Cycle, SpeculativeDecoder
from upheld.speculative.drafter import DFlashDrafter
from upheld.speculative.proposals import BlockProposer
from upheld.speculative.reading import Reader
from upheld.speculative.stats import clock_of
from upheld.speculative.verification import Sampling, draw


@dataclass(frozen=True)
class Tree:
    """Drafts below an anchor; node 0 is the anchor.

    Parameters
    ----------
    tokens : of nodes 1, 2, ...; a parent comes before its children
    parents : node number of each one's parent
    depths : 1 for the children of the anchor
    """

    tokens: list[int]
    parents: list[int]
    depths: list[int]

    def ancestors(self) -> Tensor:
        """(n + 1, n + 1) whether the row's node may look at the column's: itself and what is above it."""
        seen = torch.eye(len(self.tokens) + 1, dtype=torch.bool)
        for node, parent in enumerate(self.parents, start=1):
            seen[node] |= seen[parent]
        return seen

    def children(self, node: int) -> dict[int, int]:
        """Token -> node, of a node's children."""
        return {self.tokens[n - 1]: n for n, parent in enumerate(self.parents, start=1) if parent == node}


def best_first(law: Tensor, nodes: int, *, top: int = 10) -> Tree:
    """The `nodes` likeliest paths under independent laws.

    Parameters
    ----------
    law : (k, K) probabilities of the tokens at depths 1 to k
    top : how many tokens of a depth are considered

    Examples
    --------
    >>> tree = best_first(torch.tensor([[0.6, 0.4], [0.9, 0.1]]), 3)
    >>> tree.tokens, tree.parents
    ([0, 0, 1], [0, 1, 0])
    """
    if nodes < 1:
        raise ValueError(f"a tree needs at least one node below its anchor, got {nodes}")
    chances, places = law.topk(min(top, law.shape[-1]), dim=-1)
    logs, tokens = chances.log().tolist(), places.tolist()
    tree = Tree([], [], [])
    # Of siblings only the likeliest waits in the heap; taking one lets in its next sibling and its first child.
    waiting = [(-logs[0][0], 0, 1, 0, 0.0)]
    while waiting and len(tree.tokens) < nodes:
        cost, parent, depth, rank, above = heapq.heappop(waiting)
        if cost == float("inf"):
            break
        tree.tokens.append(tokens[depth - 1][rank])
        tree.parents.append(parent)
        tree.depths.append(depth)
        if rank + 1 < len(logs[depth - 1]):
            heapq.heappush(waiting, (above - logs[depth - 1][rank + 1], parent, depth, rank + 1, above))
        if depth < len(logs):
            heapq.heappush(waiting, (cost - logs[depth][0], len(tree.tokens), depth + 1, 0, cost))
    return tree


class TreeDecoder(SpeculativeDecoder):
    """Decodes with draft trees; what is written is the target's own text, as with `SpeculativeDecoder`.

    Parameters
    ----------
    nodes : drafts verified in a cycle; B - 1 is as wide as the chain
    top : tokens considered at a depth

    Raises
    ------
    ValueError
        If the drafter proposes token by token, or the target's attention slides (the tree would push the window).
    """

    def __init__(
        self, target: PreTrainedModel, drafter: DFlashDrafter, *, nodes: int, top: int = 10, **options: Any
    ) -> None:
        super().__init__(target, drafter, **options)
        if not isinstance(self.proposer, BlockProposer) or drafter.config.autoregressive:
            raise ValueError("a tree is grown from the laws of a whole block; this drafter proposes token by token")
        check_tree(target, nodes)
        self.nodes, self.top = nodes, top

    def _cycle(
        self,
        reader: Reader,
        ids: Tensor,
        states: Tensor | None,
        size: int,
        sampling: Sampling,
        generator: torch.Generator | None,
    ) -> Cycle:
        if size == 1:
            return super()._cycle(reader, ids, states, size, sampling, generator)
        seconds = clock_of(self.target.device)
        clock = seconds()
        tree = self._grow(ids, states, size, sampling)
        drafted = seconds()
        start, seen = reader.length, tree.ancestors().to(ids.device)
        nodes = torch.tensor([tree.tokens], device=ids.device)
        mask = torch.zeros(1, 1, len(seen), start + len(seen), dtype=self.target.dtype, device=ids.device)
        mask[..., start:].masked_fill_(~seen, torch.finfo(mask.dtype).min)
        positions = start + torch.tensor([[0, *tree.depths]], device=ids.device)
        logits, states = reader.read(torch.cat([ids[:, -1:], nodes], dim=1), mask=mask, positions=positions)
        path, tokens, scores = walk(tree, ids, logits, sampling, generator)
        places = torch.tensor(path, device=ids.device)
        reader.keep(start, places)
        assert states is not None
        return Cycle(tokens, states[:, places], scores, drafted - clock, seconds() - drafted)

    def _grow(self, ids: Tensor, states: Tensor | None, size: int, sampling: Sampling) -> Tree:
        assert isinstance(self.proposer, BlockProposer)
        logits = self.proposer.logits(ids, states, size - 1)[0]
        law = sampling.law(logits) if sampling.do_sample else logits.float().softmax(-1)
        tree = best_first(law, self.nodes, top=self.top)
        if self.proposer.ids is None:
            return tree
        known = self.proposer.ids
        return Tree([int(known[token]) for token in tree.tokens], tree.parents, tree.depths)


def check_tree(target: PreTrainedModel, nodes: int) -> None:
    """Refuse a target that cannot verify trees, and a tree of nothing.

    Raises
    ------
    ValueError
        As said.
    """
    if Reader(target).slides:
        raise ValueError("trees need a target that looks at the whole text; this one's attention slides")
    if nodes < 1:
        raise ValueError(f"a tree needs at least one node below its anchor, got {nodes}")


def walk(
    tree: Tree, ids: Tensor, logits: Tensor, sampling: Sampling, generator: torch.Generator | None
) -> tuple[list[int], Tensor, Tensor]:
    """From the anchor down, as the target chooses: nodes passed, tokens written, the scores each was chosen by."""
    node, path, rows, text = 0, [0], [], ids
    while True:
        scores = sampling.rows(text, text[:, :0], logits[:, node : node + 1])
        token = draw(sampling.law(scores), generator) if sampling.do_sample else scores.argmax(-1)
        rows.append(scores)
        text = torch.cat([text, token], dim=1)
        following = tree.children(node).get(int(token))
        if following is None:
            return path, text[0, ids.shape[1] :], torch.cat(rows, dim=1)
        node = following
        path.append(node)
