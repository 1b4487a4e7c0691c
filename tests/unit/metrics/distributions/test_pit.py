"""Uniformity of PIT values: distance, interval, test and words."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from calipers.exceptions import InputError
from calipers.metrics import pit_uniformity
from calipers.metrics.distributions.anderson_darling import anderson_darling_p_value

U = np.random.default_rng(0).random(300)
EVEN = (np.arange(300) + 0.5) / 300


def test_the_distance_and_its_own_test_are_those_of_kolmogorov():
    found, expected = pit_uniformity(U), stats.kstest(U, "uniform")
    assert found.value == pytest.approx(expected.statistic)
    assert found.details["kolmogorov_p_value"] == pytest.approx(expected.pvalue)
    assert found.null_high == pytest.approx(stats.kstwo(300).ppf(0.95))


def test_the_interval_is_the_band_of_dvoretzky_kiefer_wolfowitz():
    found, half = pit_uniformity(U**1.5, confidence=0.9), math.sqrt(math.log(20) / 600)
    assert found.high - found.value == pytest.approx(half)
    assert found.value - found.low == pytest.approx(half)


def test_the_statistic_is_the_integral_of_anderson_and_darling():
    u = np.array([0.1, 0.35, 0.35, 0.8])

    def integrand(x):
        return (np.mean(u <= x) - x) ** 2 / (x * (1 - x))

    expected = 4 * sum(
        integrate.quad(integrand, a, b)[0] for a, b in ((0, 0.1), (0.1, 0.35), (0.35, 0.8), (0.8, 1))
    )
    assert pit_uniformity(u).details["anderson_darling"] == pytest.approx(expected, rel=1e-6)


def weighted_chi_square_tail(x):
    """P(sum of chi2_1 / (j (j + 1)) > x) by Imhof's integral."""
    weights = 1 / (np.arange(1, 3000) * np.arange(2, 3001))

    def integrand(v):
        angle = 0.5 * np.sum(np.arctan(weights * v)) - 0.5 * x * v
        return math.sin(angle) / (v * np.prod((1 + (weights * v) ** 2) ** 0.25))

    return 0.5 + integrate.quad(integrand, 1e-12, 400, limit=2000)[0] / math.pi


@pytest.mark.parametrize("x", [0.3, 1.0, 2.5, 6.0, 11.0, 13.0])
def test_the_law_is_that_of_a_weighted_sum_of_squares(x):
    assert anderson_darling_p_value(x, 1e9) == pytest.approx(weighted_chi_square_tail(x), rel=5e-3)


def test_tails_join_and_never_reach_zero():
    near = [anderson_darling_p_value(x, 1e9) for x in (11.999, 12.001)]
    assert near[0] == pytest.approx(near[1], rel=0.01)
    assert 0 < anderson_darling_p_value(1e6, 100) < 1e-300


@pytest.mark.parametrize(
    ("pit", "said"),
    [
        (stats.norm.cdf(stats.norm.ppf(EVEN) * 1.5), "predictions are too narrow"),
        (stats.norm.cdf(stats.norm.ppf(EVEN) * 0.6), "predictions are too wide"),
        (EVEN**1.5, "outcomes are lower than predicted"),
        (EVEN**0.6, "outcomes are higher than predicted"),
    ],
)
def test_what_is_wrong_is_said(pit, said):
    found = pit_uniformity(pit)
    assert found.p_value < 1e-3
    assert found.details["sentence"].startswith(said)


def test_values_at_the_ends_are_strong_evidence_and_finite():
    with_ends = np.concatenate([U, [0.0, 1.0, 1.0]])
    found = pit_uniformity(with_ends)
    assert np.isfinite(found.details["anderson_darling"])
    assert 0 < found.p_value < pit_uniformity(U).p_value


def test_randomised_values_of_counts_are_uniform_and_plain_ones_are_not():
    rng = np.random.default_rng(1)
    y = rng.poisson(2.0, 2000)
    below, up_to = stats.poisson.cdf(y - 1, 2.0), stats.poisson.cdf(y, 2.0)
    assert pit_uniformity(below + rng.random(2000) * (up_to - below)).p_value > 0.01
    assert pit_uniformity(up_to).p_value < 1e-6


def test_whole_weights_are_repeated_rows_in_every_number():
    weights = np.random.default_rng(1).integers(0, 4, 300)
    assert pit_uniformity(U, sample_weight=weights) == pit_uniformity(np.repeat(U, weights))


def test_importance_weights_have_no_scale_and_no_test():
    weights = np.random.default_rng(1).uniform(0.5, 2, 300)
    one, other = (pit_uniformity(U, sample_weight=c * weights) for c in (1.0, 10.0))
    assert one.value == pytest.approx(other.value)
    assert (one.low, one.high) == pytest.approx((other.low, other.high))
    assert one.p_value is None


@pytest.mark.parametrize(
    ("pit", "said"),
    [
        ([0.5, 1.2], r"pit must lie in \[0, 1\], 1 of 2 values do not \(first at row 1: 1.2\)"),
        ([np.nan], "1 NaN"),
    ],
)
def test_what_is_no_pit_is_refused(pit, said):
    with pytest.raises(InputError, match=said):
        pit_uniformity(pit)
