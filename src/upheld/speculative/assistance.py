"""`model.generate(...)` of code that is not yours, faster: within `assisted` it decodes with a drafter."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel

from upheld.speculative.decoder import SpeculativeDecoder
from upheld.speculative.drafter import DFlashDrafter
from upheld.speculative.proposals import Proposer

PASSED = ("streamer", "stopping_criteria", "logits_processor", "attention_mask")


@contextmanager
def assisted(model: PreTrainedModel, drafter: DFlashDrafter | Proposer, **options: Any) -> Iterator[SpeculativeDecoder]:
    """`model.generate` decodes speculatively while this is open, and as before afterwards.

    Parameters
    ----------
    model : the target; its `generate` takes input_ids, attention_mask, generation_config or its fields by name, streamer,
        stopping_criteria and logits_processor here, and refuses the rest
    options : of `SpeculativeDecoder`

    Raises
    ------
    ValueError
        As `SpeculativeDecoder`; from `generate`, if it is given what is not followed.

    Examples
    --------
    >>> with assisted(model, drafter):                                     # doctest: +SKIP
    ...     model.generate(**tokenizer("Once", return_tensors="pt"), max_new_tokens=40)
    """
    decoder = SpeculativeDecoder(model, drafter, **options)

    def generate(
        inputs: Tensor | None = None,
        generation_config: GenerationConfig | None = None,
        *,
        input_ids: Tensor | None = None,
        **given: Any,
    ) -> Tensor:
        ids = inputs if input_ids is None else input_ids
        if ids is None:
            raise ValueError("generate needs input_ids")
        passed = {name: given.pop(name) for name in PASSED if name in given}
        config = copy.deepcopy(generation_config or model.generation_config)
        assert config is not None
        unknown = config.update(**given)  # type: ignore[no-untyped-call]
        if unknown:
            raise ValueError(
                f"generate was given {min(unknown)}, which is not followed in speculative decoding; leave it out"
            )
        text: Tensor = decoder.generate(ids, config, **passed)
        return text

    before = model.__dict__.get("generate")
    model.__dict__["generate"] = generate
    try:
        yield decoder
    finally:
        if before is None:
            del model.__dict__["generate"]
        else:
            model.__dict__["generate"] = before
