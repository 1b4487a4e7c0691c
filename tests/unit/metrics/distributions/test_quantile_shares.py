"""Shares of outcomes up to predicted quantiles, with ties, calibration rows and weights."""

import numpy as np
import pytest
from scipy import stats

from calipers.exceptions import InputError
from calipers.inference import clopper_pearson
from calipers.metrics import quantile_calibration

LEVELS = [0.1, 0.5, 0.9]


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), np.tile(stats.norm.ppf(LEVELS), (n, 1))


def test_shares_intervals_and_tests_are_binomial_without_ties():
    y, q = rows()
    table = quantile_calibration(y, q, levels=LEVELS)
    assert list(table) == ["0.1", "0.5", "0.9"]
    for j, level in enumerate(LEVELS):
        hits, found = int(np.sum(y <= q[:, j])), table[f"{level:g}"]
        assert found.value == hits / 200
        assert (found.low, found.high) == pytest.approx(clopper_pearson(hits, 200))
        tails = stats.binom.cdf(hits, 200, level), stats.binom.sf(hits - 1, 200, level)
        assert found.p_value == pytest.approx(min(1, 2 * min(tails)), rel=1e-9)


def test_with_ties_the_test_is_two_one_sided_ones():
    # 30 below, 60 on the quantile, 10 above: any level from 0.3 to 0.9 is kept.
    y, q = np.repeat([0.0, 1.0, 2.0], [30, 60, 10]), np.ones(100)
    for level, is_kept in ((0.15, False), (0.35, True), (0.5, True), (0.88, True), (0.97, False)):
        found = quantile_calibration(y, q, levels=[level])[f"{level:g}"]
        expected = min(1.0, 2 * min(stats.binom.cdf(90, 100, level), stats.binom.sf(29, 100, level)))
        assert found.p_value == pytest.approx(expected, rel=1e-9)
        assert (found.p_value > 0.05) == is_kept
        assert (found.value, found.details["below"]) == (0.9, 0.3)


@pytest.mark.parametrize("level", [0.1, 0.9])
def test_calibration_rows_make_the_law_beta_binomial_on_the_right_side(level):
    y, q = np.arange(50.0), np.full(50, 7.5 if level == 0.1 else 41.5)
    found = quantile_calibration(y, q, levels=[level], n_calibration=49)[f"{level:g}"]
    # From above: 45 of 50 gaps below the threshold. From below the mirror image: 5 of them.
    law = stats.betabinom(50, 45, 5) if level == 0.9 else stats.betabinom(50, 5, 45)
    hits = 42 if level == 0.9 else 8
    assert found.p_value == pytest.approx(min(1, 2 * min(law.cdf(hits), law.sf(hits - 1))), rel=1e-9)
    low, high = found.null_low * 50, found.null_high * 50
    assert law.cdf(low) > 0.025 >= law.cdf(low - 1)
    assert law.sf(high) <= 0.025 < law.sf(high - 1)


def test_a_conformal_quantile_that_does_not_exist_covers_all_or_nothing():
    y = np.zeros(30)
    found = quantile_calibration(
        y, np.tile([-np.inf, np.inf], (30, 1)), levels=[0.01, 0.99], n_calibration=20
    )
    assert [e.value for e in found.values()] == [0.0, 1.0]
    assert [e.p_value for e in found.values()] == [1.0, 1.0]


def test_crossed_quantiles_are_measured_and_counted():
    y, q = rows()
    q[:7] = q[:7, ::-1]
    table = quantile_calibration(y, q, levels=LEVELS)
    assert table["0.5"].details["crossing"] == 7
    shuffled = quantile_calibration(y, q[:, [2, 0, 1]], levels=[0.9, 0.1, 0.5])
    assert shuffled["0.9"] == table["0.9"]


def test_whole_weights_are_repeated_rows_in_every_number():
    (y, q), weights = rows(), np.random.default_rng(1).integers(0, 4, 200)
    written_out = np.repeat(np.arange(200), weights)
    weighted = quantile_calibration(y, q, levels=LEVELS, sample_weight=weights)
    repeated = quantile_calibration(y[written_out], q[written_out], levels=LEVELS)
    assert dict(weighted) == dict(repeated)


def test_importance_weights_have_no_scale_and_no_test():
    (y, q), weights = rows(), np.random.default_rng(1).uniform(0.5, 2, 200)
    one, other = (quantile_calibration(y, q, levels=LEVELS, sample_weight=c * weights) for c in (1.0, 7.0))
    for level in one:
        assert one[level].value == pytest.approx(other[level].value)
        assert (one[level].low, one[level].high) == pytest.approx((other[level].low, other[level].high))
        assert one[level].p_value is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"levels": [0.1, 0.5]}, r"quantiles must be \(n, 2\), one column per level, got shape \(200, 3\)"),
        (
            {"levels": [0.1, 0.5, 90]},
            r"levels\[2\] must lie strictly between 0 and 1, got 90.*not a percentage",
        ),
        ({"levels": [0.1, 0.5, 0.5]}, "levels must differ"),
        ({"levels": None}, "levels are needed"),
        ({"y_true": np.zeros(199)}, "must have the same length"),
        ({"n_calibration": 0}, "n_calibration must be a whole number"),
    ],
)
def test_what_does_not_fit_is_refused(change, said):
    y, q = rows()
    with pytest.raises(InputError, match=said):
        quantile_calibration(**({"y_true": y, "quantiles": q, "levels": LEVELS} | change))
