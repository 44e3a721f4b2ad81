"""Six domains: texts of SciPy's documentation, and five generated ones whose rules are known."""

from upheld.context.data.apidocs import apidocs
from upheld.context.data.domain import Domain
from upheld.context.data.generated import GENERATORS, charges, generate, ledger, policy, rewrite, triage

__all__ = ["GENERATORS", "Domain", "apidocs", "charges", "generate", "ledger", "policy", "rewrite", "triage"]
