"""Intervals only where they are narrow enough: the certificate, silence, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from calipers.conformal import ConformalRegressor
from calipers.exceptions import InputError
from calipers.metrics import selective_threshold
from calipers.performance import SelectiveRegressor


class HalfWidths:
    """Intervals whose half-width is the feature."""

    def predict_interval(self, X, alpha):
        return np.column_stack([-X[:, 0], X[:, 0]])


def rows(seed, n):
    """Half-widths of 1 to 3; an interval misses with probability a tenth of (half-width - 1)."""
    rng = np.random.default_rng(seed)
    half = rng.uniform(1, 3, n)
    return half[:, None], np.where(rng.random(n) < (half - 1) / 10, 9.0, 0.0)


def test_the_certificate_is_that_of_the_function():
    X, y = rows(0, 2000)
    model = SelectiveRegressor(HalfWidths(), risk=0.05).certify(X, y)
    expected = selective_threshold(y > 5, -2 * X[:, 0], risk=0.05)
    assert (model.certificate_.value, model.threshold_) == (expected.value, expected.details["threshold"])
    assert model.is_answered(X).mean() == pytest.approx(expected.value)
    assert model.curve_.y[-1] == pytest.approx((y > 5).mean())


def test_a_certificate_is_seldom_wrong():
    # Rows up to half-width h miss with probability (h - 1) / 20.
    runs, wrong = 200, 0
    for seed in range(runs):
        model = SelectiveRegressor(HalfWidths(), risk=0.05, delta=0.1).certify(*rows(seed, 300))
        wrong += np.isfinite(model.threshold_) and (min(3.0, -model.threshold_ / 2) - 1) / 20 > 0.05
    print(f"wrong in {wrong} of {runs}")
    assert wrong <= stats.binom.isf(1e-4, runs, 0.1)


def test_silence_masks_both_ends():
    X, y = rows(0, 2000)
    model = SelectiveRegressor(HalfWidths(), risk=0.05).certify(X, y)
    found = model.predict_interval_or_abstain(X)
    silent = ~model.is_answered(X)
    assert 0.2 < silent.mean() < 0.9
    np.testing.assert_array_equal(found.mask, np.column_stack([silent, silent]))
    np.testing.assert_array_equal(found.data, model.predict_interval(X))


def test_a_conformal_regressor_with_a_loss_and_a_certainty_of_ones_own():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 2, (1500, 1))
    y = X[:, 0] + X[:, 0] * rng.normal(size=1500)
    predictor = (
        ConformalRegressor(LinearRegression()).fit(X[:400], y[:400]).conformalize(X[400:800], y[400:800])
    )

    def error(outcome, intervals):
        return np.minimum(np.abs(outcome - intervals.mean(axis=1)), 4.0)

    model = SelectiveRegressor(
        predictor, risk=0.7, loss=error, loss_range=(0, 4), certainty=lambda ends: -ends.mean(axis=1)
    ).certify(X[800:], y[800:])
    kept = model.is_answered(X[800:])
    assert 0.2 < kept.mean() < 1.0
    assert error(y[800:], model.predict_interval(X[800:]))[kept].mean() < 0.7


def test_infinite_intervals_are_answered_last():
    X, y = rows(0, 2000)
    X[:100] = np.inf
    y[:100] = 0.0
    model = SelectiveRegressor(HalfWidths(), risk=0.05).certify(X, y)
    assert not model.is_answered(X)[:100].any()


def test_refusals():
    X, y = rows(0, 50)
    with pytest.raises(InputError, match="predictor must have predict_interval, got NoneType"):
        SelectiveRegressor().certify(X, y)
    with pytest.raises(NotFittedError, match="not certified: call certify"):
        SelectiveRegressor(HalfWidths()).is_answered(X)
    with pytest.raises(InputError, match="certainty must give one number per row"):
        SelectiveRegressor(HalfWidths(), certainty=lambda ends: ends).certify(X, y)
    with pytest.raises(InputError, match="same length"):
        SelectiveRegressor(HalfWidths()).certify(X, y[:10])
    assert clone(SelectiveRegressor(HalfWidths(), risk=0.2)).risk == 0.2
