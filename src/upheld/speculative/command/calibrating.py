"""``upheld run speculative calibrate``: what a block costs on this machine, how many drafts stand, and whether that pays."""

from __future__ import annotations

import sys

from upheld.report.content import json_text
from upheld.report.printing import Terminal
from upheld.report.progress import Progress
from upheld.speculative.command.asking import Asked, drafter_of, load_pair, read
from upheld.speculative.costs import calibrate
from upheld.speculative.stats import expected_tau

SCHEMA = "upheld.speculative.calibrate/1"


def tell(asked: Asked) -> None:
    """A row a block size, and one sentence of advice."""
    assert asked.prompts is not None
    with Progress(announce=True) as progress, progress.part("calibrating"):
        pair = load_pair(asked)
        drafter = drafter_of(asked, pair.target)
        prompts = [ids for _, ids in read(asked.prompts, pair, asked.max_tokens)]
        table = calibrate(pair.target, drafter, prompts, max_new_tokens=asked.max_tokens)
    rows = [
        {
            "block": block, "verify": table.verify[block], "draft": cost, "tau": expected_tau(table.acceptance[: block - 1]),
            "predicted": table.predicted[block], "bound": table.bounds[block],
        }
        for block, cost in table.draft.items()
    ]  # fmt: skip
    if asked.json:
        advice = {
            "text_by_text": table.text_by_text, "best_block": table.best_block, "recommended": table.recommended,
            "advice": table.advice,
        }  # fmt: skip
        document = {"schema": SCHEMA, "settings": asked.settings(), "step_s": table.step_s, "blocks": rows, **advice}
        sys.stdout.write(json_text(document))
        return
    terminal = Terminal()
    terminal.say(f"a step of one token takes {1000 * table.step_s:.1f} ms; costs below are in such steps")
    terminal.table(
        ("block", "verify", "draft", "τ", "predicted speed-up", "if all drafts were right"),
        [[str(row["block"]), *(f"{row[name]:.2f}" for name in list(row)[1:])] for row in rows],
    )
    terminal.say("")
    terminal.say(table.advice)
