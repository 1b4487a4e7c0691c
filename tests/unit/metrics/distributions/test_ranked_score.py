"""The continuous ranked probability score against its definition."""

import numpy as np
import pytest
from scipy import integrate, stats

from calipers.exceptions import InputError
from calipers.metrics import crps
from calipers.metrics.distributions.ranked_score import crps_rows


def test_the_score_is_twice_the_trapezoid_integral_of_the_pinball_loss():
    rng, levels = np.random.default_rng(0), [0.05, 0.2, 0.5, 0.9]
    y, q = rng.normal(size=50), np.sort(rng.normal(size=(50, 4)), axis=1)
    expected = []
    for outcome, row in zip(y, q, strict=True):
        pinball = [(outcome - b) * (t - (outcome < b)) for t, b in zip(levels, row, strict=True)]
        expected.append(2 * integrate.trapezoid(pinball, levels))
    found = crps(y, q, levels=levels)
    assert found.value == pytest.approx(np.mean(expected))
    assert found.std_error == pytest.approx(np.std(expected, ddof=1) / np.sqrt(50))
    assert (found.details["level_low"], found.details["level_high"]) == (0.05, 0.9)
    assert "tails beyond the 0.05 and 0.9 quantiles are left out" in found.reason


@pytest.mark.parametrize("y", [-2.0, 0.3, 4.0])
def test_many_levels_give_the_integral_over_the_distribution_function(y):
    # Closed form for a normal law: z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi).
    levels = np.linspace(0.0005, 0.9995, 4000)
    exact = y * (2 * stats.norm.cdf(y) - 1) + 2 * stats.norm.pdf(y) - 1 / np.sqrt(np.pi)
    found = crps_rows(np.array([y]), stats.norm.ppf(levels)[None], levels)[0]
    assert found == pytest.approx(exact, rel=5e-3)


def test_the_true_quantiles_score_best():
    y, levels = np.random.default_rng(0).normal(size=4000), np.arange(0.05, 1, 0.05)
    scores = [
        crps(y, np.tile(s * stats.norm.ppf(levels), (4000, 1)), levels=levels).value for s in (0.6, 1.0, 1.6)
    ]
    assert scores[1] == min(scores)


def test_the_order_of_levels_does_not_matter():
    rng = np.random.default_rng(0)
    y, q = rng.normal(size=30), np.sort(rng.normal(size=(30, 3)), axis=1)
    one = crps(y, q, levels=[0.1, 0.5, 0.9])
    other = crps(y, q[:, [2, 0, 1]], levels=[0.9, 0.1, 0.5])
    assert one.value == pytest.approx(other.value)


def test_crossed_rows_are_scored_as_they_are_and_counted():
    y, q = np.zeros(4), np.array([[-1.0, 1.0]] * 3 + [[1.0, -1.0]])
    found = crps(y, q, levels=[0.25, 0.75])
    assert found.details["crossing"] == 0.25
    assert found.value == pytest.approx((3 * 0.25 + 0.75) / 4)


def test_whole_weights_are_repeated_rows():
    rng = np.random.default_rng(0)
    y, q, weights = rng.normal(size=40), np.sort(rng.normal(size=(40, 3)), axis=1), rng.integers(0, 3, 40)
    rows = np.repeat(np.arange(40), weights)
    weighted = crps(y, q, levels=[0.1, 0.5, 0.9], sample_weight=weights)
    repeated = crps(y[rows], q[rows], levels=[0.1, 0.5, 0.9])
    assert (weighted.value, weighted.low) == pytest.approx((repeated.value, repeated.low))


def test_one_level_is_no_integral():
    with pytest.raises(InputError, match="at least 2 levels, got 1"):
        crps([0.0], [[0.0]], levels=[0.5])
