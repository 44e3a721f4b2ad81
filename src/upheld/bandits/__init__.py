"""Satisficing bandits: choose among K options until one is certified good enough, then stop paying for exploration.

For whom: anyone whose job is "good enough", not "best": a link that must reach a rate, a dose that must reach a
response, a recommender that must reach a click rate, a model router that must reach a quality bar. The threshold S is
known. UCB and Thompson sampling never stop exploring; these policies do once an arm's mean provably reaches S, and play
like UCB if none does.

The method is uncertain-UCB of C. Rouyer, R. Ortner and P. Auer, *Understanding the Gaps in Satisficing Bandits*, ICML
2026. **It is a reconstruction**: only the paper's abstract was available, and the algorithm here was built, and its
guarantee proved (`upheld.bandits.theory`), from the abstract's name, bound and special case. It may differ from the
authors' own.

>>> from upheld.bandits import UncertainUCB
>>> policy = UncertainUCB(["small", "medium", "large"], threshold=0.7, random_state=0)
>>> for _ in range(2000):
...     arm = policy.select()
...     policy.update(arm, {"small": 0.4, "medium": 0.6, "large": 0.9}[arm])
>>> policy.certified_
['large']
"""

from upheld.bandits import environments, policies, theory
from upheld.bandits import environments as envs
from upheld.bandits.policy import UncertainUCB
from upheld.bandits.simulate import Results, simulate

__all__ = ["Results", "UncertainUCB", "environments", "envs", "policies", "simulate", "theory"]
