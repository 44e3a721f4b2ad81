"""Median of means: a mean that a few wild values cannot move.

For anyone who averages heavy-tailed measurements: claim sizes, latencies, file sizes. The worked example of CONTRIBUTING.md, with the
same rooms as every method of upheld (Nemirovsky & Yudin 1983; Lugosi & Mendelson 2019, section 2.1).

>>> import numpy as np
>>> from mom import median_of_means
>>> x = np.r_[np.zeros(999), 1e6]
>>> median_of_means(x, rng=np.random.default_rng(0)), float(x.mean())
(0.0, 1000.0)
"""

from mom.estimator import median_of_means, n_blocks

__all__ = ["median_of_means", "n_blocks"]
