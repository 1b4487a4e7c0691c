"""Independent routes to the same number: scipy's laws, quadrature, multiple precision."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import special, stats

from calipers.inference import (
    CoverageLaw,
    bca_interval,
    benjamini_hochberg,
    binomial_p_value,
    clopper_pearson,
    mean_estimate,
    paired_difference,
    wilson,
)
from calipers.inference.bootstrap import _jackknife


def log_factorial(n):
    """log(n!) to 25 digits or more, by Stirling's series above 300."""
    n = Decimal(int(n))
    if n <= 300:
        return Decimal(math.factorial(int(n))).ln()
    series = 1 / (12 * n) - 1 / (360 * n**3) + 1 / (1260 * n**5) - 1 / (1680 * n**7) + 1 / (1188 * n**9)
    return (n + Decimal("0.5")) * n.ln() - n + Decimal(LOG_TWO_PI) / 2 + series


LOG_TWO_PI = "1.837877066409345483560659472811235279722794947275566825634"


@pytest.fixture(autouse=True)
def fifty_digits():
    with localcontext(prec=50):
        yield


@pytest.mark.parametrize(
    ("n", "n_calibration", "rank"), [(50, 20, 18), (7, 1, 1), (1000, 99, 90), (2000, 10, 10)]
)
def test_the_beta_binomial_law_equals_scipys(n, n_calibration, rank):
    law = CoverageLaw(n, 0.1, n_calibration, rank)
    peer = stats.betabinom(n, rank, n_calibration + 1 - rank)
    counts = np.arange(n + 1)
    np.testing.assert_allclose(law.pmf(counts), peer.pmf(counts), rtol=1e-10)
    np.testing.assert_allclose(law.cdf(counts), np.cumsum(peer.pmf(counts)), rtol=1e-10)


@pytest.mark.parametrize(
    ("n", "n_calibration", "rank"),
    [(10**9, 10**9, 900_000_001), (10**9, 99, 90), (1000, 10**9, 900_000_001), (10**9, 10**9, 10**9)],
)
def test_masses_keep_their_digits_at_a_thousand_million_rows(n, n_calibration, rank):
    law = CoverageLaw(n, 0.1, n_calibration, rank)
    a, b = rank, n_calibration + 1 - rank
    for z in (-5, -1, 0.3, 3):
        j = int(min(max(law.mean + z * law.std, 0), n))
        exact = (
            log_factorial(n) - log_factorial(j) - log_factorial(n - j)
            + log_factorial(j + a - 1) + log_factorial(n - j + b - 1) - log_factorial(n + a + b - 1)
            - log_factorial(a - 1) - log_factorial(b - 1) + log_factorial(a + b - 1)
        ).exp()  # fmt: skip
        assert float(Decimal(float(law.pmf(j))) / exact) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(
    ("n", "n_calibration", "rank"),
    [(10**9, 10**9, 900_000_001), (10**9, 99, 90), (10**6, 10**4, 9001), (500, 10**9, 900_000_001)],
)
def test_tails_equal_the_mixture_of_binomials_over_calibration_sets(n, n_calibration, rank):
    law = CoverageLaw(n, 0.1, n_calibration, rank)
    a, b = rank, n_calibration + 1 - rank
    spread = np.sqrt(a * b / (a + b + 1)) / (a + b)
    for z in (-3, -0.5, 1, 2):
        j = np.floor(law.mean + z * law.std)
        if j < n:
            # The binomial tail steps from 0 to 1 around j / n: integrate on both sides of it and across.
            step = 9 * np.sqrt(j * (n - j) / n) / n
            cuts = np.sort([a / (a + b) - 12 * spread, a / (a + b) + 12 * spread, j / n - step, j / n + step])
            pieces = itertools.pairwise(np.clip(cuts, 0, 1))
            mixture = sum(gauss_legendre(binomial_tail_times_density, *ends, (j, n, a, b)) for ends in pieces)
            assert law.cdf(j) == pytest.approx(mixture, rel=1e-6)


def binomial_tail_times_density(p, j, n, a, b):
    return stats.beta.pdf(p, a, b) * special.betainc(n - j, j + 1, 1 - p)


def gauss_legendre(function, low, high, arguments):
    nodes, weights = np.polynomial.legendre.leggauss(200)
    return (high - low) / 2 * (weights @ function(low + (high - low) * (nodes + 1) / 2, *arguments))


@pytest.mark.parametrize(
    ("n", "n_calibration", "rank"), [(10**9, 10**9, 900_000_001), (10**6, 10**5, 90_001)]
)
def test_tails_grow_by_the_mass_of_each_count(n, n_calibration, rank):
    law = CoverageLaw(n, 0.1, n_calibration, rank)
    for j in np.floor(law.mean + law.std * np.array([-6, -3, -1])):
        assert law.cdf(j) - law.cdf(j - 1) == pytest.approx(law.pmf(j), rel=1e-8)
        up = 2 * np.floor(law.mean) - j
        assert law.sf(up - 1) - law.sf(up) == pytest.approx(law.pmf(up), rel=1e-8)


def test_the_binomial_law_equals_scipys_and_multiple_precision():
    counts = np.arange(301)
    law, peer = CoverageLaw(300, 0.1), stats.binom(300, 0.9)
    np.testing.assert_allclose(law.pmf(counts), peer.pmf(counts), rtol=1e-9)
    np.testing.assert_allclose(law.cdf(counts), peer.cdf(counts), rtol=1e-9)
    np.testing.assert_allclose(law.sf(counts), peer.sf(counts), rtol=1e-9)
    n, j, alpha = 10**9, 899_950_000, Decimal(law.alpha)
    exact = (
        log_factorial(n)
        - log_factorial(j)
        - log_factorial(n - j)
        + j * (1 - alpha).ln()
        + (n - j) * alpha.ln()
    )
    assert float(Decimal(float(CoverageLaw(n, 0.1).pmf(j))) / exact.exp()) == pytest.approx(1, rel=1e-10)


@pytest.mark.parametrize(("successes", "n"), [(0, 9), (4, 9), (9, 9), (17, 60), (899_000, 1_000_000)])
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_proportion_intervals_equal_scipys(successes, n, alternative):
    peer = stats.binomtest(successes, n, alternative=alternative)
    for ours, method in ((clopper_pearson, "exact"), (wilson, "wilson")):
        expected = peer.proportion_ci(0.9, method=method)
        assert ours(successes, n, confidence=0.9, alternative=alternative) == pytest.approx(
            (expected.low, expected.high), rel=1e-9, abs=1e-12
        )


@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_one_sided_binomial_p_values_equal_scipys(alternative):
    for successes in (0, 3, 11, 20):
        expected = stats.binomtest(successes, 20, 0.37, alternative=alternative).pvalue
        assert binomial_p_value(successes, 20, 0.37, alternative=alternative) == pytest.approx(
            expected, rel=1e-12
        )


def test_the_t_interval_and_test_equal_scipys():
    first, second = np.random.default_rng(0).normal([[0.3], [0.0]], 1, (2, 25))
    peer = stats.ttest_rel(first, second, alternative="greater")
    ours = paired_difference(first, second, name="gain", alternative="greater", confidence=0.9)
    assert ours.p_value == pytest.approx(peer.pvalue)
    both = stats.ttest_1samp(first, 0).confidence_interval(0.9)
    e = mean_estimate(first, name="m", confidence=0.9)
    assert (e.low, e.high) == pytest.approx((both.low, both.high))


def test_bca_ends_equal_scipys_on_the_same_resamples():
    x = np.random.default_rng(2).exponential(size=35)
    peer = stats.bootstrap(
        (x,), np.var, n_resamples=1500, method="BCa", random_state=np.random.default_rng(0)
    )
    leave_one_out = _jackknife(lambda indices: np.var(x[indices], axis=-1), 35, np.random.default_rng(0))
    ours = bca_interval(float(np.var(x)), peer.bootstrap_distribution, leave_one_out)
    assert ours.std_error == pytest.approx(peer.standard_error)
    assert (ours.low, ours.high) == pytest.approx(tuple(peer.confidence_interval), rel=1e-9)


def test_benjamini_hochberg_equals_scipys():
    p = np.random.default_rng(0).random((4, 30)) ** 2
    np.testing.assert_allclose(benjamini_hochberg(p), stats.false_discovery_control(p, axis=1), rtol=1e-13)
