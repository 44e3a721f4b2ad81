"""Energies: closed-form gradients against autograd, invariance, hard walls."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import logsumexp

from upheld.memory.energies import LSEEnergy, LSREnergy

torch.set_num_threads(1)


@pytest.fixture
def vectors():
    generator = torch.Generator().manual_seed(0)
    patterns = torch.randn(12, 6, generator=generator, dtype=torch.float64)
    return patterns[:4] + 0.3 * torch.randn(4, 6, generator=generator, dtype=torch.float64), patterns


ENERGIES = [LSEEnergy(0.7), LSREnergy(beta=0.3), LSREnergy(b=2.0), LSREnergy(beta=0.3, eps=0.01)]


@pytest.mark.parametrize("energy", ENERGIES)
def test_the_gradient_is_autograd_s(energy, vectors):
    x, patterns = vectors
    x = x.clone().requires_grad_()
    energy(x, patterns).sum().backward()
    assert torch.allclose(x.grad, energy.grad(x.detach(), patterns), atol=1e-10)


@pytest.mark.parametrize("energy", ENERGIES)
def test_a_common_rotation_and_a_permutation_change_nothing(energy, vectors):
    x, patterns = vectors
    turn = torch.linalg.qr(torch.randn(6, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64))[0]
    before = energy(x, patterns)
    assert torch.allclose(energy(x @ turn, patterns @ turn), before)
    assert torch.allclose(energy(x, patterns.flip(0)), before)


def test_lse_is_the_sum_in_squared_distances(vectors):
    x, patterns = (one.numpy() for one in vectors)
    distances = ((x[:, None] - patterns) ** 2).sum(-1)
    wanted = -logsumexp(-0.7 / 2 * distances, axis=1) / 0.7
    assert np.allclose(LSEEnergy(0.7)(*vectors).numpy(), wanted)


def test_outside_every_support_is_a_wall_unless_a_floor_is_put_in(vectors):
    _, patterns = vectors
    far = torch.full((1, 6), 100.0, dtype=torch.float64)
    assert LSREnergy(beta=0.3)(far, patterns).item() == np.inf
    floor = LSREnergy(beta=0.3, eps=0.01)(far, torch.cat([patterns, patterns]))
    assert floor.item() == pytest.approx(-np.log(0.01) / 0.3)  # once, whatever the number of patterns


def test_bad_input_is_called_by_its_name():
    with pytest.raises(ValueError, match="beta must be above 0, got 0"):
        LSEEnergy(0)
    with pytest.raises(ValueError, match="either b"):
        LSREnergy()
    with pytest.raises(ValueError, match="b must be above 0, got -1"):
        LSREnergy(b=-1)
    with pytest.raises(ValueError, match="eps must be at least 0"):
        LSREnergy(beta=1.0, eps=-1)
