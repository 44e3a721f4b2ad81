"""Several texts at once: every row accepts as many drafts as its own stand.

Rows that accept fewer leave holes in the common cache: columns that their later tokens do not look at. Columns that no row
keeps are cropped, rows that have ended leave the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel

from upheld.speculative.decoder import Criterion, Ending, check_pair, choose, cut, prompt_rows, settings
from upheld.speculative.drafter import ContextCache, DFlashDrafter
from upheld.speculative.proposals import BlockProposer
from upheld.speculative.reading import Reader
from upheld.speculative.stats import SpecStats, clock_of
from upheld.speculative.verification import VERIFIERS, Draft, Sampling, Verify, Warper


@dataclass
class _Batch:
    """Rows under way; column c of the caches holds a token of row r if seen[r, c]."""

    places: list[int]
    ids: list[Tensor]
    seen: Tensor
    states: Tensor
    new: Tensor


class BatchedDecoder:
    """Decodes a batch of prompts together, with a block drafter.

    Parameters
    ----------
    target, drafter, verify, block_size : as `SpeculativeDecoder`

    Raises
    ------
    ValueError
        If the drafter is no block drafter with features as keys and values, or the target's attention slides.
    """

    def __init__(
        self,
        target: PreTrainedModel,
        drafter: DFlashDrafter,
        *,
        verify: Verify = "rejection",
        block_size: int | None = None,
    ) -> None:
        check_pair(target, drafter)
        if drafter.config.injection != "kv" or drafter.config.autoregressive or drafter.config.context_window:
            raise ValueError("batches are decoded by a block drafter with injection='kv' and no context window only")
        if Reader(target).slides:
            raise ValueError(
                "holes in the cache would push the window of a target whose attention slides; decode row by row"
            )
        self.block_size = block_size or drafter.config.block_size
        if not 2 <= self.block_size <= drafter.config.block_size:
            raise ValueError(f"block_size must lie in 2 to {drafter.config.block_size}, got {block_size}")
        self.target, self.proposer = target, BlockProposer(target, drafter)
        self._verify = VERIFIERS[verify]

    @torch.inference_mode()
    def generate(
        self,
        input_ids: Tensor,
        generation_config: GenerationConfig | None = None,
        *,
        attention_mask: Tensor | None = None,
        stopping_criteria: Sequence[Criterion] | None = None,
        logits_processor: Sequence[Warper] | None = None,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, list[SpecStats]]:
        """(b, n) prompts -> prompts and texts as `SpeculativeDecoder.generate` gives them, and what each row took.

        Seconds are those of the whole batch, in every row's record.
        """
        rows = prompt_rows(input_ids, attention_mask)
        ending, sampling, pad = settings(
            self.target, generation_config, stopping_criteria, logits_processor, prompt=input_ids.shape[1]
        )
        stats = [SpecStats() for _ in rows]
        texts = self._write(rows, ending, sampling, generator, stats)
        out = torch.full((len(rows), max(map(len, texts))), pad, dtype=torch.long, device=input_ids.device)
        for place, text in enumerate(texts):
            out[place, : len(text)] = text
            stats[place].tokens = len(text)
        return torch.cat([input_ids, out], dim=1), stats

    def _write(
        self,
        prompts: list[Tensor],
        ending: Ending,
        sampling: Sampling,
        generator: torch.Generator | None,
        stats: list[SpecStats],
    ) -> list[Tensor]:
        lengths = [prompt.shape[1] for prompt in prompts]
        texts: list[Tensor] = [prompt[0, :0] for prompt in prompts]
        with Reader(self.target, self.proposer.taps) as reader:
            now = clock_of(self.target.device)
            clock = now()
            batch, logits = self._prefill(reader, prompts)
            drafts = Draft(batch.ids[0].new_empty(len(prompts), 0))
            scores = self._rows(batch, drafts.tokens, logits, sampling)
            accepted, after = choose(drafts, scores, sampling, self._verify, generator)
            self.proposer.cache = ContextCache(self.proposer.drafter.config.num_hidden_layers)
            seconds = now() - clock
            for one in stats:
                one.prefill_s = seconds
            while True:
                over = self._commit(batch, drafts.tokens, accepted, after, scores, ending, lengths, texts, stats)
                self._leave(reader, batch, over)
                if not batch.places:
                    return texts
                drafts, logits = self._cycle(reader, batch, sampling, generator, stats)
                scores = self._rows(batch, drafts.tokens, logits, sampling)
                accepted, after = choose(drafts, scores, sampling, self._verify, generator)
                self._crop(reader, batch, accepted)

    def _prefill(self, reader: Reader, prompts: list[Tensor]) -> tuple[_Batch, Tensor]:
        longest = max(prompt.shape[1] for prompt in prompts)
        ids = prompts[0].new_zeros(len(prompts), longest)
        seen = torch.zeros_like(ids, dtype=torch.bool)
        for row, prompt in enumerate(prompts):
            ids[row, longest - prompt.shape[1] :] = prompt[0]
            seen[row, longest - prompt.shape[1] :] = True
        positions = (seen.cumsum(1) - 1).clamp(min=0)
        logits, states = reader.read(ids, keep=1, mask=seen.long(), positions=positions)
        assert states is not None
        # What stands in a padded column may be anything, NaN too, and weighs nothing only if it is a number.
        states = states.masked_fill(~seen[..., None], 0)
        return _Batch(list(range(len(prompts))), [p[0] for p in prompts], seen, states, seen), logits

    def _cycle(
        self,
        reader: Reader,
        batch: _Batch,
        sampling: Sampling,
        generator: torch.Generator | None,
        stats: list[SpecStats],
    ) -> tuple[Draft, Tensor]:
        """Draft for all rows and read the blocks; `batch.seen` is lengthened once it is known what stands."""
        now = clock_of(self.target.device)
        size, clock = self.block_size, now()
        anchors = torch.stack([ids[-1] for ids in batch.ids])
        ends = torch.tensor([len(ids) - 1 for ids in batch.ids], device=anchors.device)
        block = ends[:, None] + torch.arange(size, device=anchors.device)
        ones = torch.ones(len(anchors), size, dtype=torch.bool, device=anchors.device)
        new = (ends[:, None] - batch.new.flip(1).cumsum(1).flip(1)).clamp(min=0)
        drafter = self.proposer.drafter
        hidden = drafter(
            drafter.block_inputs(anchors, self.proposer.embedding, size),
            batch.states,
            torch.cat([new, block], dim=1),
            self.proposer.cache,
            torch.cat([batch.seen, ones], dim=1)[:, None].expand(-1, size, -1),
        )
        draft = self.proposer._drawn(hidden[:, 1:] @ self.proposer.head.T, sampling, generator)
        drafted = now()
        tokens = torch.cat([anchors[:, None], draft.tokens], dim=1)
        logits, states = reader.read(tokens, mask=torch.cat([batch.seen, ones], dim=1).long(), positions=block)
        assert states is not None
        batch.states = states
        for place in batch.places:
            stats[place].cycles += 1
            stats[place].draft_s += drafted - clock
            stats[place].verify_s += now() - drafted
        return draft, logits

    def _crop(self, reader: Reader, batch: _Batch, accepted: Tensor) -> None:
        """Columns of the block that stand in some row stay."""
        stands = torch.arange(self.block_size, device=accepted.device)[None] <= accepted[:, None]
        kept = int(accepted.max()) + 1
        reader.forget(self.block_size - kept)
        batch.new = stands[:, :kept]
        batch.seen = torch.cat([batch.seen, batch.new], dim=1)
        batch.states = batch.states[:, :kept].masked_fill(~batch.new[..., None], 0)

    def _commit(
        self,
        batch: _Batch,
        drafts: Tensor,
        accepted: Tensor,
        after: Tensor,
        scores: Tensor,
        ending: Ending,
        lengths: list[int],
        texts: list[Tensor],
        stats: list[SpecStats],
    ) -> list[bool]:
        """Every row takes its tokens; which rows have ended."""
        ended = []
        for row, (place, stands) in enumerate(zip(batch.places, accepted.tolist(), strict=True)):
            run = torch.cat([drafts[row, :stands], after[row : row + 1]])
            room = ending.max_new_tokens - (len(batch.ids[row]) - lengths[place])
            batch.ids[row] = torch.cat([batch.ids[row], run])
            emitted, over = cut(run, batch.ids[row][None], lengths[place], ending, scores[row : row + 1])
            texts[place] = torch.cat([texts[place], emitted])
            if drafts.shape[1] and len(emitted) == stands + 1 and room > drafts.shape[1]:
                stats[place].acceptance_lengths.append(stands + 1)
                stats[place].drafted.append(drafts.shape[1])
            ended.append(over)
        return ended

    def _leave(self, reader: Reader, batch: _Batch, over: list[bool]) -> None:
        """Rows that have ended are dropped from all caches."""
        if not any(over):
            return
        going = [row for row, ended in enumerate(over) if not ended]
        batch.places, batch.ids = [batch.places[row] for row in going], [batch.ids[row] for row in going]
        rows = torch.tensor(going, dtype=torch.long, device=batch.seen.device)
        batch.seen, batch.states, batch.new = batch.seen[rows], batch.states[rows], batch.new[rows]
        if going:
            reader.cache.batch_select_indices(rows)
            self.proposer.cache.keep_rows(rows)

    @staticmethod
    def _rows(batch: _Batch, drafts: Tensor, logits: Tensor, sampling: Sampling) -> Tensor:
        return torch.cat(
            [
                sampling.rows(ids[None], drafts[row : row + 1], logits[row : row + 1])
                for row, ids in enumerate(batch.ids)
            ]
        )
