"""What is published is what was measured: the README's table is the committed verdicts."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

from upheld.catalog import METHODS
from upheld.report.export import markdown_claims, markdown_table

ROOT = Path(__file__).parent.parent
VERDICTS = json.loads((ROOT / "verdicts/quick.json").read_text(encoding="utf-8"))


def show_verdicts():
    spec = importlib.util.spec_from_file_location("show_verdicts", ROOT / "scripts/show_verdicts.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_readme_and_page_show_the_committed_verdicts():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    page = (ROOT / "verdicts/quick.md").read_text(encoding="utf-8")
    mend = "run make verdicts and commit README.md and verdicts/quick.md"
    assert show_verdicts().with_table(readme, markdown_table(VERDICTS)) == readme, mend
    assert show_verdicts().page(markdown_claims(VERDICTS)) == page, mend


def test_every_claim_of_every_method_has_a_committed_verdict_and_no_other():
    published = {method["name"]: {claim["id"] for claim in method["claims"]} for method in VERDICTS["methods"]}
    assert published == {method.name: {claim.id for claim in method.claims()} for method in METHODS}


def test_the_committed_rules_are_those_of_the_code():
    """A rule that changed without its verdict being judged again would show an old verdict under a new rule."""
    published = {claim["id"]: claim["rule"]["code"] for method in VERDICTS["methods"] for claim in method["claims"]}
    assert published == {claim.id: repr(claim.rule) for method in METHODS for claim in method.claims()}
