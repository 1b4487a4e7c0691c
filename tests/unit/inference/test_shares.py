"""Shares with counts and with importance weights."""

import numpy as np
import pytest

from calipers.inference import Moments, ShareCounts, clopper_pearson
from calipers.inputs import Weights

Z = np.array([True, True, False, True, False])


def test_whole_weights_are_counts():
    counts = ShareCounts.of(Z, Weights.check([2, 1, 1, 0, 3], 5))
    assert (counts.hits[0], counts.totals[0], counts.n) == (3.0, 7.0, 7.0)
    low, high = counts.interval(0.9)
    assert (low[0], high[0]) == clopper_pearson(3, 7, confidence=0.9)
    assert counts.std_errors[0] == pytest.approx(np.sqrt(3 / 7 * 4 / 7 / 7))


def test_equal_importance_weights_are_rows():
    plain, scaled = ShareCounts.of(Z, None), ShareCounts.of(Z, Weights.check([0.3] * 5, 5))
    assert scaled.n == pytest.approx(5)
    assert scaled.std_errors[0] == pytest.approx(plain.std_errors[0])
    for one, other in zip(scaled.interval(0.95), plain.interval(0.95), strict=True):
        assert one[0] == pytest.approx(other[0])


def test_the_effective_size_is_the_smaller_of_linearised_and_kish():
    # Hits weigh 1.5 and 0.5, the miss 2.5: p = 2 / 4.5, v = (2.5 (5/9)^2 + 6.25 (4/9)^2) / 4.5^2.
    counts = ShareCounts.of(np.array([True, True, False]), Weights.check([1.5, 0.5, 2.5], 3))
    variance = (2.5 * (5 / 9) ** 2 + 6.25 * (4 / 9) ** 2) / 4.5**2
    assert counts.effective[0] == pytest.approx(min(20 / 81 / variance, 4.5**2 / 8.75))
    # A miss of weight 0.01 alone would claim hundreds of rows.
    light = ShareCounts.of(np.array([True, True, False]), Weights.check([1.5, 0.5, 0.01], 3))
    assert light.effective[0] == pytest.approx(2.01**2 / (2.25 + 0.25 + 0.0001))


def test_moments_of_zeros_and_ones_give_the_same_counts():
    for given in ([2, 1, 1, 4, 3], [0.2, 0.1, 0.1, 0.4, 0.7]):
        weights = Weights.check(given, 5)
        direct, through = (
            ShareCounts.of(Z, weights),
            ShareCounts.of_moments(Moments.of(Z.astype(float), weights)),
        )
        for field in ("hits", "totals", "hit_noise", "noise"):
            assert getattr(through, field)[0] == pytest.approx(getattr(direct, field)[0]), field
        assert through.whole == direct.whole


def test_intervals_hold_the_share_when_weights_go_with_the_outcome():
    # Binomial tolerance: 3 standard errors of a rate of 0.95 over 800 draws is 0.023.
    rng, held = np.random.default_rng(0), 0
    for _ in range(800):
        z = rng.random(150) < 0.9
        w = rng.exponential(size=150) * np.where(z, 1.0, 2.0)
        low, high = ShareCounts.of(z, Weights.of(w)).interval(0.95)
        held += low[0] <= 0.9 / (0.9 + 0.1 * 2.0) <= high[0]
    assert held / 800 > 0.927


@pytest.mark.parametrize("hit", [0.0, 1.0])
@pytest.mark.parametrize("direction", [0.0, 9.0])
def test_a_share_of_0_or_1_keeps_its_rows_when_sums_differ_in_the_last_digit(hit, direction):
    # The same weights added in another order; such a stratum had no rows, a warning and the interval [0, 1].
    total, noise = np.array([1.4787902824]), np.array([1.25754525])
    near = ShareCounts(
        hit * np.nextafter(total, direction), total, hit * np.nextafter(noise, direction), noise, False
    )
    exact = ShareCounts(hit * total, total, hit * noise, noise, False)
    assert near.effective == pytest.approx(exact.effective)
    assert near.std_errors == pytest.approx([0.0], abs=1e-6)
    assert near.interval(0.95).low == pytest.approx(exact.interval(0.95).low, abs=1e-6)
