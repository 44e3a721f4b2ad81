"""Fixed points against scikit-learn's mean shift and torch's attention."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.cluster import MeanShift
from torch.nn.functional import scaled_dot_product_attention

from upheld.memory.energies import LSEEnergy, LSREnergy
from upheld.memory.recall import gradient_flow, recall

torch.set_num_threads(1)


@pytest.fixture
def blobs():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 3)) * 6
    return torch.from_numpy(np.vstack([centre + rng.normal(size=(15, 3)) for centre in centres]))


def test_lsr_s_fixed_point_is_mean_shift_s(blobs):
    beta = 0.5
    for row in (0, 20, 50):
        found = recall(blobs[row : row + 1], blobs, "lsr", beta, sphere=False).x.numpy()
        shifted = MeanShift(bandwidth=np.sqrt(2 / beta), seeds=blobs[row : row + 1].numpy()).fit(blobs.numpy())
        assert np.allclose(found, shifted.cluster_centers_, atol=1e-8)


def test_one_lse_step_is_scaled_dot_product_attention():
    generator = torch.Generator().manual_seed(0)
    patterns = torch.nn.functional.normalize(torch.randn(9, 5, generator=generator, dtype=torch.float64), dim=1)
    cues = torch.randn(4, 5, generator=generator, dtype=torch.float64)
    found = recall(cues, patterns, "lse", 3.0, sphere=False, max_steps=1).x
    assert torch.allclose(found, scaled_dot_product_attention(cues[None], patterns[None], patterns[None], scale=3.0)[0])


@pytest.mark.parametrize("kernel", ["lse", "lsr"])
def test_recall_never_raises_the_energy(kernel, blobs):
    energy = LSEEnergy(0.5) if kernel == "lse" else LSREnergy(beta=0.5)
    before, after = (energy(x, blobs) for x in (blobs, recall(blobs, blobs, kernel, 0.5, sphere=False).x))
    assert torch.all(after <= before + 1e-9)


def test_the_flow_ends_where_recall_does(blobs):
    found = recall(blobs[:5], blobs, "lse", 0.5, sphere=False, tol=1e-10).x
    assert torch.allclose(gradient_flow(blobs[:5], blobs, LSEEnergy(0.5), eta=0.2, steps=600), found, atol=1e-5)
    with pytest.raises(ValueError, match="eta must be above 0"):
        gradient_flow(blobs, blobs, LSEEnergy(0.5), eta=0)


def test_states_stay_on_the_sphere():
    generator = torch.Generator().manual_seed(0)
    patterns = torch.nn.functional.normalize(torch.randn(30, 16, generator=generator), dim=1) * 4
    for kernel in ("lse", "lsr"):
        found = recall(patterns + 0.2, patterns, kernel, 0.3)
        assert torch.allclose(found.x[~found.empty].norm(dim=1), torch.tensor(4.0))


def test_cues_outside_every_support(blobs):
    far = torch.cat([blobs[:1], torch.full((1, 3), 99.0, dtype=blobs.dtype)])
    left_alone = recall(far, blobs, beta=0.5, sphere=False)
    assert left_alone.empty.tolist() == [False, True]
    assert torch.equal(left_alone.x[1], far[1])
    moved = recall(far, blobs, beta=0.5, sphere=False, on_empty="nearest").x[1]
    assert (blobs == moved).all(1).any()
    with pytest.raises(ValueError, match="1 of 2 cues lie outside every support"):
        recall(far, blobs, beta=0.5, sphere=False, on_empty="error")


def test_bad_input_is_called_by_its_name(blobs):
    with pytest.raises(ValueError, match=r"need one width, got \(2, 4\) and \(60, 3\)"):
        recall(torch.zeros(2, 4), blobs)
    with pytest.raises(ValueError, match="kernel must be"):
        recall(blobs, blobs, "gauss")
    with pytest.raises(ValueError, match="on_empty must be"):
        recall(blobs, blobs, on_empty="ignore")
