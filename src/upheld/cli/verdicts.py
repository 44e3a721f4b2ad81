"""``upheld verdicts hubs``: what the claims came to, from what was measured before."""

from __future__ import annotations

from upheld.cli.options import DEFAULT_LEDGER, JsonOption, LedgerOption, MethodsArgument, ScaleOption
from upheld.cli.output import print_json, results


def verdicts(
    methods: MethodsArgument = None,
    scale: ScaleOption = "quick",
    ledger: LedgerOption = DEFAULT_LEDGER,
    json: JsonOption = False,
) -> None:
    """Tell the verdicts of what was measured here before, with their evidence. Nothing is measured."""
    from upheld.cli.results import measured
    from upheld.report.export import verdicts_json
    from upheld.report.terminal import VerdictTable

    outcome = measured(methods, scale, ledger)
    if json:
        print_json(verdicts_json(outcome))
    else:
        results().print(VerdictTable(outcome))
