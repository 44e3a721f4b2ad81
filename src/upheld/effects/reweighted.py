"""The same coreset weighted otherwise: is it the direct weights, and the rich class, that do it?

    direct      the balancer's own weights, on phi
    x alone     the same loss and constraints on the coordinates alone
    logistic    inverse propensity weights, m_j / p(x_j) or m_j / (1 - p(x_j)), normalised; p by logistic regression of the arm on the
                coordinates of the items, with multiplicities m_j

Only `direct` may augment; the other two are weights alone unless the balancer augments, and then all three have its outcome model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from upheld.effects.balancer import StreamingBalancer
from upheld.effects.blocks import Block
from upheld.effects.estimate import Sample
from upheld.effects.rows import FloatArray
from upheld.effects.threads import on_one_thread

RECIPES = ("x alone", "logistic")


class ReweightedBalancer(StreamingBalancer):
    """A streaming balancer that also estimates by other weights on its items, block by block, before they are thrown away.

    Parameters as in `StreamingBalancer`; two arms.

    Examples
    --------
    >>> from upheld.effects.data import DriftStream
    >>> from upheld.effects.reweighted import ReweightedBalancer
    >>> stream = DriftStream(4000, 6, "none", seed=0)
    >>> balancer = ReweightedBalancer(random_state=0).fit(stream.X, stream.y, treatment=stream.w)
    >>> sorted(balancer.reweighted())
    ['logistic', 'x alone']
    """

    def _begin_blocks(self) -> None:
        super()._begin_blocks()
        self._others: list[tuple[int, dict[str, float]]] = []

    def _close(self) -> None:
        self._others.append((self._block.n, self._reweigh(self._block)))
        super()._close()

    @on_one_thread
    def reweighted(self) -> dict[str, float]:
        """The effect by each of `RECIPES` over the rows so far."""
        self._begin()
        self._flush()
        parts = [*self._others, *([(self._block.n, self._reweigh(self._block))] if self._block.n else [])]
        rows = [n for n, _ in parts]
        return {name: float(np.average([effects[name] for _, effects in parts], weights=rows)) for name in RECIPES}

    def _reweigh(self, block: Block) -> dict[str, float]:
        samples: list[Any] = [block.arms[label].evidence() for label in block.labels]
        target = np.sum([arm.sums.x for arm in block.arms.values()], axis=0) / block.n
        phi = block.phi / block.n
        alone = [self._by_coordinates(sample, target, phi) for sample in samples]
        logistic = self._by_propensity(samples, phi)
        return {"x alone": alone[1] - alone[0], "logistic": logistic[1] - logistic[0]}

    def _by_coordinates(self, sample: Sample, target: FloatArray, phi: FloatArray) -> float:
        """Balance x / sqrt(d) alone."""
        d = sample.X.shape[1]
        linear = replace(sample, phi=sample.X / np.sqrt(d))
        recipe = replace(self._recipe(), augment=False)
        lam = float(recipe.lam)
        return self._mean(sample, linear.mean_at(target / np.sqrt(d), recipe, lam).weights, phi)

    def _by_propensity(self, samples: list[Sample], phi: FloatArray) -> list[float]:
        from sklearn.linear_model import LogisticRegression

        X = np.concatenate([sample.X for sample in samples])
        arm = np.repeat([0, 1], [len(sample.y) for sample in samples])
        mass = np.concatenate([sample.mass for sample in samples])
        p = np.clip(
            LogisticRegression(max_iter=2000).fit(X, arm, sample_weight=mass).predict_proba(X)[:, 1], 0.01, 0.99
        )
        weights = [samples[0].mass / (1 - p[arm == 0]), samples[1].mass / p[arm == 1]]
        return [self._mean(one, weight / weight.sum(), phi) for one, weight in zip(samples, weights, strict=True)]

    def _mean(self, sample: Sample, alpha: FloatArray, phi: FloatArray) -> float:
        """Mean outcome under weights alpha, augmented where the balancer augments."""
        if not self.augment:
            return float(alpha @ sample.y)
        at_target, fitted, _ = sample._outcome_models(phi, float(self._recipe().lam))
        return at_target + float(alpha @ (sample.y - fitted))
