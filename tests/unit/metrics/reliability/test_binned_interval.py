"""Intervals of binned and smoothed calibration errors."""

import numpy as np
import pytest

from calipers.metrics import expected_calibration_error, smooth_calibration_error
from calipers.metrics.reliability import upper_bound
from calipers.metrics.reliability.certificates import binned_lower_bound


def rows(n=3000):
    rng = np.random.default_rng(0)
    f = rng.random(n)
    return rng.random(n) < f**2, f


def test_the_upper_end_is_the_one_sided_bound_of_one_mean():
    y, f = rows()
    e = expected_calibration_error(y, f, n_draws=9, random_state=0)
    assert e.high == pytest.approx(upper_bound(e.value, np.mean((y - f) ** 2), 3000, confidence=0.975))


def test_the_lower_end_by_hand():
    # B is about 0.2 with 2.5e-3 spent on it; E Z = sqrt(4 B / n).
    low = binned_lower_bound(0.3, 0.0, 100, n_bins=4, confidence=0.95)
    second = 1 - 0.005 ** (1 / 100)  # the Chernoff bound of a mean of 0
    mean, term = np.sqrt(4 * second / 100), np.log(1 / 0.045)
    reach = mean + np.sqrt(2 * term * (second + 4 * mean) / 100) + 2 * term / 300
    assert low == pytest.approx(0.3 - reach)


def test_a_miscalibrated_model_is_bounded_away_from_0():
    y, f = rows()
    e = expected_calibration_error(y, f, n_draws=9, random_state=0)
    assert 0.05 < e.low < 1 / 6 < e.high < 0.2
    smooth = smooth_calibration_error(y, f, n_draws=9, random_state=0)
    assert smooth.low == 0.0
    assert smooth.value < smooth.high < 0.2


def test_what_has_no_interval_says_why():
    y, f = rows(200)
    chosen = expected_calibration_error(y, f, strategy="quantile", n_draws=9, random_state=0)
    weighted = smooth_calibration_error(y, f, sample_weight=f, n_draws=9, random_state=0)
    for e in (chosen, weighted):
        assert (e.low, e.high) == (None, None)
        assert e.reason
    assert "chosen by the same scores" in chosen.reason


def test_a_higher_confidence_widens_the_interval():
    y, f = rows()
    wide, narrow = (
        expected_calibration_error(y, f, confidence=c, n_draws=9, random_state=0) for c in (0.99, 0.8)
    )
    assert wide.low < narrow.low
    assert narrow.high < wide.high
