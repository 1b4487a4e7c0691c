"""Bounds and laws against their definitions, brute force and printed numbers."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from calipers.exceptions import DegradedResultWarning, InputError
from calipers.metrics.reliability import (
    absolute_supremum_quantile,
    asymptotic_band,
    asymptotic_upper_bound,
    finite_scores_rademacher,
    in_sample_isotonic_bound,
    interval_rademacher,
    interval_rademacher_massart,
    kl_upper_bound,
    range_cdf,
    range_quantile,
    range_survival,
    uniform_band,
    uniform_convergence_width,
    upper_bound,
    vc_rademacher,
    warn_if_unverifiable_in_sample,
)
from calipers.metrics.reliability.range_law import RANGE_MEAN


def test_the_upper_bound_is_the_largest_error_its_inequality_allows():
    n, delta, c_emp, brier = 1000, 0.05, 0.08, 0.2
    log_term = math.log(1 / (0.9 * delta))
    second = kl_upper_bound(brier, n, delta=0.1 * delta)
    grid = np.linspace(0, 1, 400_001)
    a = (1 + grid) * log_term / (3 * n)
    allowed = grid <= c_emp + a + np.sqrt(a**2 + 2 * np.maximum(second - grid**2, 0) * log_term / n)
    assert upper_bound(c_emp, brier, n) == pytest.approx(
        grid[allowed & (grid <= math.sqrt(second))].max(), abs=1e-5
    )


@pytest.mark.parametrize("n", [1, 2, 10, 1000, 10**6])
@pytest.mark.parametrize("brier", [0.0, 0.03, 0.25, 1.0])
def test_the_upper_bound_is_monotone_and_never_below_the_error_or_above_one(n, brier):
    top = math.sqrt(brier)
    bounds = [upper_bound(c, brier, n) for c in np.linspace(0, top, 7)]
    assert np.all(np.diff(bounds) >= -1e-12)
    assert all(c - 1e-12 <= b <= 1 for c, b in zip(np.linspace(0, top, 7), bounds, strict=True))
    assert upper_bound(0.0, brier, n, confidence=0.99) >= upper_bound(0.0, brier, n)
    assert upper_bound(0.0, brier, n, n_models=5) == upper_bound(0.0, brier, n, confidence=0.99)


# Facts worked out beforehand for uniform calibrated scores (second moment 1/6) at 95 %.
WIDTHS = {
    1000: (0.5255, 0.8495, 0.1718, 0.0368, 0.0323, 0.0212),
    10_000: (0.1828, 0.3019, 0.0543, 0.0106, 0.0102, 0.0067),
    100_000: (0.0624, 0.1047, 0.0172, 0.0033, 0.0032, 0.0021),
}


@pytest.mark.parametrize("n", WIDTHS)
def test_widths_match_the_table_of_the_guide(n):
    massart = interval_rademacher_massart(n)
    found = (
        uniform_convergence_width(n, massart, as_printed=True),
        uniform_convergence_width(n, massart),
        uniform_band(n),
        upper_bound(0.0, 1 / 6, n),
        asymptotic_band(1 / 6, n),
        asymptotic_upper_bound(0.0, 1 / 6, n),
    )
    assert found == pytest.approx(WIDTHS[n], abs=6e-5)


@pytest.mark.parametrize("n", WIDTHS)
def test_the_certificate_is_ten_times_tighter_than_theorem_2_and_seven_times_with_exact_complexity(n):
    ours = upper_bound(0.0, 1 / 6, n)
    assert uniform_convergence_width(n, interval_rademacher_massart(n), as_printed=True) >= 10 * ours
    assert uniform_convergence_width(n, interval_rademacher(n), as_printed=True) >= 7 * ours


def test_kl_bound_solves_its_equation():
    m = kl_upper_bound(0.2, 50, delta=0.01)
    divergence = 0.2 * math.log(0.2 / m) + 0.8 * math.log(0.8 / (1 - m))
    assert 50 * divergence == pytest.approx(math.log(100))
    assert kl_upper_bound(0.0, 10, delta=0.05) == pytest.approx(1 - 0.05 ** (1 / 10))
    assert kl_upper_bound(1.0, 10, delta=0.05) == 1.0


def largest_rise(signs):
    best = low = level = 0
    for s in signs:
        level += s
        best, low = max(best, level - low), min(low, level)
    return best


@pytest.mark.parametrize("n", [1, 2, 3, 6, 9, 12])
def test_the_exact_complexity_of_intervals_is_the_mean_over_all_signs(n):
    mean = np.mean([largest_rise(signs) for signs in itertools.product((-1, 1), repeat=n)])
    assert interval_rademacher(n) == pytest.approx(mean / n, rel=1e-12)


def test_the_exact_complexity_tends_to_its_limit_from_below():
    scaled = [interval_rademacher(n) * math.sqrt(n) for n in (100, 10_000)]
    assert scaled[0] < scaled[1] < math.sqrt(math.pi / 2)
    assert scaled[1] == pytest.approx(math.sqrt(math.pi / 2), rel=0.01)


def test_claim_4_is_its_formula():
    expected = math.sqrt((2 * 3 * (math.log(1000 / 3) + 1) + 4 * math.log(21)) / 1000)
    assert finite_scores_rademacher(1000, 3, 20) == pytest.approx(expected)
    with pytest.raises(InputError, match="n must exceed vc_dimension"):
        finite_scores_rademacher(4, 3, 20)


def test_sauer_and_massart_bound_the_class_of_intervals():
    # Intervals of one score have VC dimension 2; the general bound must not be below their complexity.
    assert vc_rademacher(1000, 2) >= interval_rademacher(1000)
    assert vc_rademacher(10, 10) == 0.5


def test_claim_2_warns_when_rows_are_fewer_than_features():
    with pytest.warns(DegradedResultWarning, match="50 training rows are fewer than 200 features"):
        assert warn_if_unverifiable_in_sample(50, 200)
    assert not warn_if_unverifiable_in_sample(200, 200)


def test_claim_2_holds_signs_of_a_linear_score_are_free_when_rows_are_fewer_than_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 9))
    for signs in itertools.product((-1, 1), repeat=6):
        w = np.linalg.lstsq(X, np.array(signs, dtype=float), rcond=None)[0]
        np.testing.assert_array_equal(np.sign(X @ w), signs)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: upper_bound(1.2, 0.2, 10), "error must lie in"),
        (lambda: upper_bound(float("nan"), 0.2, 10), "error must lie in"),
        (lambda: upper_bound(0.1, 0.2, 0), "n must be a whole number"),
        (lambda: upper_bound(0.1, 0.2, 10, n_models=0), "n_models must be a whole number"),
        (lambda: uniform_band(10, confidence=95), "confidence"),
        (lambda: range_quantile(1.0), "level must lie strictly"),
        (lambda: absolute_supremum_quantile(0.0), "level must lie strictly"),
        (lambda: uniform_convergence_width(10, -1.0), "rademacher must not be negative"),
    ],
)
def test_refusals_name_the_argument(call, match):
    with pytest.raises(InputError, match=match):
        call()


def test_an_isotonic_fit_is_certified_by_the_uniform_band():
    assert in_sample_isotonic_bound(10_000) == uniform_band(10_000)
    assert in_sample_isotonic_bound(10) == 1.0


# Quantiles and mean from Feller (1951) and from the reference implementation of the range's law.
def test_quantiles_of_the_range_match_known_numbers():
    found = [range_quantile(level) for level in (0.5, 0.9, 0.95, 0.99)]
    assert found == pytest.approx([1.5145, 2.2412, 2.4977, 3.0233], abs=5e-5)
    assert pytest.approx(1.5958, abs=5e-5) == RANGE_MEAN


def test_mean_and_spread_of_the_range_follow_from_its_survival():
    mean = integrate.quad(range_survival, 0, 12, limit=200)[0]
    square = integrate.quad(lambda x: 2 * x * range_survival(x), 0, 12, limit=200)[0]
    assert mean == pytest.approx(RANGE_MEAN, rel=1e-9)
    # Variance 4 ln 2 - 8 / pi (Feller 1951).
    assert square - mean**2 == pytest.approx(4 * math.log(2) - 8 / math.pi, rel=1e-8)


def test_the_two_series_meet():
    assert range_cdf(1.5) == pytest.approx(1 - range_survival(np.nextafter(1.5, 2)), abs=1e-13)


def test_the_tail_keeps_its_digits_where_one_minus_cdf_has_none():
    assert range_survival(10.0) == pytest.approx(6.1e-23, rel=0.01)
    assert range_survival(30.0) == pytest.approx(3.9e-197, rel=0.02)
    assert range_survival(10.0) == pytest.approx(
        8 * stats.norm.sf(10) * (1 - 2 * stats.norm.sf(20) / stats.norm.sf(10))
    )
    assert range_cdf(0.0) == 0.0
    assert range_survival(0.0) == 1.0
    assert math.isnan(range_survival(math.nan))
    assert math.isnan(range_cdf(math.nan))


@pytest.mark.parametrize("level", [1e-6, 0.01, 0.3, 0.5, 0.9, 0.999, 1 - 1e-12])
def test_the_quantile_inverts_the_law(level):
    x = range_quantile(level)
    assert range_cdf(x) == pytest.approx(level, rel=1e-9)
    assert range_survival(x) == pytest.approx(1 - level, rel=1e-3)


def test_the_range_of_a_long_random_walk_follows_the_law():
    rng = np.random.default_rng(1)
    walk = np.cumsum(rng.choice([-1.0, 1.0], size=(3000, 2500)), axis=1)
    spans = (np.maximum(walk.max(axis=1), 0) - np.minimum(walk.min(axis=1), 0)) / 50
    # A walk of n steps falls short of the range by about 1.17 / sqrt(n).
    for level in (0.25, 0.5, 0.9):
        share = np.mean(spans + 1.17 / 50 <= range_quantile(level))
        assert share == pytest.approx(level, abs=4 * math.sqrt(level * (1 - level) / 3000) + 0.005)
