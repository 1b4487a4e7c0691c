"""Size against coverage: brute-force HSIC, permutation level, units, constant columns."""

import numpy as np
import pytest
from scipy import stats

from calipers.exceptions import InputError
from calipers.metrics import size_coverage_correlation, size_coverage_hsic


def dense_hsic(x, z, s):
    n = len(x)
    K = np.exp(-((x[:, None] - x[None, :]) ** 2) / s)
    L = (z[:, None] == z[None, :]).astype(float)
    H = np.eye(n) - 1 / n
    return np.trace(K @ H @ L @ H) / (n - 1) ** 2


def test_hsic_equals_the_dense_trace(seed):
    rng = np.random.default_rng(seed)
    x, z = rng.integers(1, 6, size=80).astype(float), rng.random(80) < 0.8
    ours = size_coverage_hsic(z, x, bandwidth=2.5, n_draws=9, random_state=0)
    assert ours.value == pytest.approx(dense_hsic(x, z, 2.5), rel=1e-9)


def test_hsic_agrees_with_covmetrics_up_to_its_kernel_of_coverage():
    # covmetrics 0.1.2: hsic_statistic(x[:, None], z[:, None], 1, 1) with z's kernel 1 or 1/e.
    x = np.array([1.0, 2.0, 2.0, 3.0, 5.0, 1.0, 4.0, 2.0])
    z = np.array([1, 1, 0, 1, 0, 1, 0, 1], dtype=bool)
    stored = 0.04430387495035454
    ours = size_coverage_hsic(z, x, bandwidth=1.0, n_draws=9, random_state=0).value
    assert ours * (1 - np.exp(-1)) == pytest.approx(stored, rel=1e-9)


def test_units_of_size_do_not_matter():
    rng = np.random.default_rng(0)
    x, z = rng.gamma(2.0, size=300), rng.random(300) < 0.9
    for metric in (size_coverage_hsic, size_coverage_correlation):
        a, b = (metric(z, scale * x, n_draws=99, random_state=0) for scale in (1.0, 1000.0))
        assert a.value == pytest.approx(b.value, rel=1e-9)
        assert a.p_value == b.p_value


def test_correlation_is_pearsons():
    rng = np.random.default_rng(1)
    x, z = rng.normal(size=100), rng.random(100) < 0.7
    e = size_coverage_correlation(z, x, n_draws=99, random_state=0)
    assert e.value == pytest.approx(stats.pearsonr(x, z)[0])


def test_the_correlation_interval_and_both_tests_keep_their_level():
    inside, p_r, p_h = [], [], []
    truth = np.corrcoef(*_draw(np.random.default_rng(99), 400_000))[0, 1]
    for i in range(150):
        x, z = _draw(np.random.default_rng(i), 300)
        e = size_coverage_correlation(z, x, n_draws=19, random_state=i)
        inside.append(e.low <= truth <= e.high)
        free = np.random.default_rng(1000 + i).random(300) < 0.9
        p_r.append(size_coverage_correlation(free, x, n_draws=99, random_state=i).p_value)
        p_h.append(size_coverage_hsic(free, np.round(x, 1), n_draws=99, random_state=i).p_value)
    assert np.mean(inside) >= stats.binom.ppf(0.0001, 150, 0.95) / 150
    limit = stats.binom.ppf(0.9999, 150, 0.05) / 150
    assert np.mean(np.array(p_r) <= 0.05) <= limit
    assert np.mean(np.array(p_h) <= 0.05) <= limit


def _draw(rng, n):
    x = rng.gamma(2.0, size=n)
    return x, rng.random(n) < np.clip(1 - 0.08 * x, 0, 1)


def test_hsic_sees_what_correlation_does_not():
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, size=800)
    z = rng.random(800) < np.where(np.abs(x) > 0.5, 0.8, 1.0)
    assert size_coverage_hsic(z, x, n_draws=199, random_state=0).p_value < 0.02
    assert size_coverage_correlation(z, x, n_draws=199, random_state=0).p_value > 0.05


def test_constant_columns_are_undefined_or_independent_with_a_reason():
    x = np.arange(20.0)
    e = size_coverage_correlation(np.ones(20, bool), x, random_state=0)
    assert np.isnan(e.value)
    assert "coverage is the same" in e.reason
    e = size_coverage_hsic(np.ones(20, bool), x, n_draws=19, random_state=0)
    assert e.value == 0.0
    assert e.p_value == 1.0


def test_bad_bandwidths_are_refused():
    with pytest.raises(InputError, match="bandwidth"):
        size_coverage_hsic([1, 0], [1, 2], bandwidth=-1)


@pytest.mark.parametrize("rows", [7, 200, 333])
def test_sizes_that_are_all_equal_are_independent_of_coverage_to_the_last_bit(rows):
    covered = np.random.default_rng(rows).random(rows) < 0.9
    e = size_coverage_hsic(covered, np.full(rows, 5.0), n_draws=99, random_state=0)
    assert (e.value, e.p_value) == (0.0, 1.0)


def test_one_missed_row_leaves_the_correlation_open():
    """All noise is in the one missed row: one row carries it, and its interval reaches far beyond 0."""
    size = np.tile([1.0, 2.0, 5.0, 8.0], 50)
    covered = np.arange(200) != 3
    e = size_coverage_correlation(covered, size, n_draws=99, random_state=0)
    assert e.low < -0.5 < e.value < 0 < 0.3 < e.high
