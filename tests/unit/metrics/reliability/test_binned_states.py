"""Sums over bins: few rows are drawn score by score, many from the law of their bins."""

import numpy as np
import pytest
from scipy import stats

from calipers.engines import Rows, state_of
from calipers.metrics import expected_calibration_error, smooth_calibration_error
from calipers.metrics.reliability.binned_states import binomial_like
from tests.unit.engines.passes import finished_over

METRICS = {
    "expected_calibration_error": expected_calibration_error,
    "smooth_calibration_error": smooth_calibration_error,
}


def rows(n, seed=0, power=1.2):
    rng = np.random.default_rng(seed)
    f = rng.random(n)
    return (rng.random(n) < f**power).astype(int), f


@pytest.mark.parametrize("name", METRICS)
def test_many_rows_are_drawn_alike_in_memory_and_in_blocks(name, monkeypatch):
    monkeypatch.setattr("calipers.metrics.reliability.binned_states._SMALL", 100)
    y, f = rows(900)
    blocks = [
        Rows({"y_true": y[a : a + 170], "probabilities": f[a : a + 170]}, classes=[0, 1])
        for a in range(0, 900, 170)
    ]
    whole = METRICS[name](y, f, n_draws=49, random_state=0)
    parts = finished_over(state_of(name, n_draws=49, random_state=0), blocks)
    assert "binomial bin sums" in whole.method
    assert parts.method == whole.method
    for field in ("value", "p_value", "null_high", "n"):
        assert getattr(parts, field) == pytest.approx(getattr(whole, field)), field
    assert parts.details["noise_floor"] == pytest.approx(whole.details["noise_floor"])


def test_repeated_rows_are_few_or_many_as_if_written_out(monkeypatch):
    monkeypatch.setattr("calipers.metrics.reliability.binned_states._SMALL", 1000)
    y, f = rows(600)
    doubled = expected_calibration_error(y, f, sample_weight=np.full(600, 2), random_state=0)
    written = expected_calibration_error(np.repeat(y, 2), np.repeat(f, 2), random_state=0)
    assert doubled.method == written.method
    assert doubled.p_value == pytest.approx(written.p_value)


@pytest.mark.parametrize("scores", ["spread", "rare", "near 1"])
def test_the_law_of_the_bins_is_that_of_the_scores(scores):
    """Sums of unlike coins against the binomial law of the same mean and variance: distribution functions."""
    rng = np.random.default_rng(1)
    f = {"spread": rng.random(40), "rare": 0.02 * rng.random(200), "near 1": 1 - 0.1 * rng.random(60)}[scores]
    exact = np.array([1.0])
    for p in f:
        exact = np.convolve(exact, [1 - p, p])
    (trials,), (chance,) = binomial_like(np.array([f.sum()]), np.array([np.sum(f * (1 - f))]))
    binomial = stats.binom.pmf(np.arange(f.size + 1), int(trials), chance)
    assert np.abs(np.cumsum(exact) - np.cumsum(binomial)).max() < 0.012


def test_coins_of_one_kind_and_certainties_are_exact():
    trials, chance = binomial_like(np.array([3.0, 0.0, 7.0]), np.array([3.0 * 0.75, 0.0, 0.0]))
    assert trials.tolist() == [12.0, 0.0, 7.0]
    assert chance.tolist() == [0.25, 0.0, 1.0]


def test_few_expected_events_have_no_normal_law(monkeypatch):
    # One event where 0.2 are expected, in many rows: a normal law calls it impossible.
    monkeypatch.setattr("calipers.metrics.reliability.binned_states._SMALL", 100)
    f = np.random.default_rng(2).random(5000)
    f *= 0.2 / f.sum()
    y = np.arange(5000) == 2500
    assert expected_calibration_error(y, f, random_state=0).p_value == pytest.approx(
        1 - np.exp(-0.2), abs=0.05
    )
