from __future__ import annotations

import numpy as np

from upheld.hubs.spectra import bottom_eigenpairs


def test_known_spectrum_is_found_at_its_lower_end():
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((50, 50)))[0]
    A = (rotation * np.arange(50.0)) @ rotation.T
    values, vectors = bottom_eigenpairs(A, 3)
    np.testing.assert_allclose(values, [0, 1, 2], atol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(vectors * rotation[:, :3], axis=0)), 1, atol=1e-12)
