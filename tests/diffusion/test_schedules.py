from __future__ import annotations

import pytest
import torch

from upheld.diffusion.schedules import cosine_alpha_bar, karras_sigmas, linear_alpha_bar, shifted_times, uniform_times


def test_shift_of_stable_diffusion_3():
    """Level 1/2 under shift 3 becomes 3/4 (equation 23 of Esser et al.), so half of the steps are spent before t = 1/4."""
    times = shifted_times(8, 3.0)
    assert float(times[4]) == pytest.approx(0.25)
    assert times[0] == 0
    assert times[-1] == 1
    torch.testing.assert_close(shifted_times(8, 1.0), uniform_times(8))


def test_karras_levels():
    """Ends, 0 behind them, and the middle of (0.002, 80, rho 7, 3 levels): ((80^(1/7) + 0.002^(1/7))/2)^7 = 2.5152."""
    levels = karras_sigmas(3, 0.002, 80.0)
    assert levels.tolist() == pytest.approx([80.0, 2.5152, 0.002, 0.0], rel=1e-4)


def test_products_of_ddpm():
    """Ho et al.: at T = 1000 almost nothing of the data is left, 4e-5; Nichol & Dhariwal's cosine is a half at half-way."""
    assert float(linear_alpha_bar(1000)[-1]) == pytest.approx(4.0e-5, rel=0.02)
    assert float(cosine_alpha_bar(1000)[499]) == pytest.approx(0.5, abs=0.01)
    assert (cosine_alpha_bar(100).diff() < 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: uniform_times(0), "0 steps lead nowhere"),
        (lambda: shifted_times(4, 0.0), "a shift of 0.0 is none"),
        (lambda: karras_sigmas(4, 2.0, 1.0), "sigma_min 2.0 and sigma_max 1.0 are no range"),
    ],
)
def test_what_is_no_schedule_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
