"""The test of change over time keeps its size and finds breaks, bad weeks and drifts at the tabulated rows."""

import numpy as np
import pytest
from scipy import stats

from calipers.metrics import change_over_time
from calipers.metrics.over_time.scan_windows import WindowTails
from calipers.metrics.over_time.time_nulls import flat_null, target_null
from calipers.metrics.over_time.time_units import TimeUnits

# Every rate is compared with its level at this tail of the binomial law.
TAIL = 1e-4
RUNS = 150


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """A test at 5 % is as exact with 199 draws as with more."""
    monkeypatch.setattr("calipers.inference.staged_law.STAGES", (199,))


def one_level(rng):
    return rng.random(150) < 0.9, np.arange(150), 0.1


def ties(rng):
    return rng.random(400) < 0.97, rng.integers(0, 12, 400), 0.03


def moving_promises(rng):
    promised = np.clip(rng.normal(np.linspace(0.6, 0.95, 400), 0.05), 0, 1)
    return rng.random(400) < promised, np.arange(400), 1 - promised


def one_calibration_sample(rng):
    return rng.random(300) < rng.beta(181, 20), np.arange(300), 0.1


def two_levels_of_one_sample(rng):
    levels, ordered = rng.choice([0.1, 0.3], 300), np.sort(rng.random(200))
    return rng.random(300) < np.where(levels == 0.1, ordered[180], ordered[140]), np.arange(300), levels


def rejections(world, level=0.05, **options):
    rng, p_values = np.random.default_rng(0), []
    for _ in range(RUNS):
        covered, time, alpha = world(rng)
        p_values.append(change_over_time(covered, time, alpha=alpha, random_state=rng, **options).p_value)
    return int(np.sum(np.array(p_values) <= level))


@pytest.mark.parametrize("world", [one_level, ties, moving_promises, one_calibration_sample])
def test_what_does_not_change_is_accused_in_five_of_a_hundred_runs(world):
    assert rejections(world) <= stats.binom.isf(TAIL, RUNS, 0.05)


@pytest.mark.parametrize(
    ("world", "n_calibration"),
    [
        (one_level, None),
        (moving_promises, None),
        (one_calibration_sample, 200),
        (two_levels_of_one_sample, 200),
    ],
)
def test_a_promise_that_is_kept_is_accused_in_five_of_a_hundred_runs(world, n_calibration):
    found = rejections(world, null="target", n_calibration=n_calibration)
    assert found <= stats.binom.isf(TAIL, RUNS, 0.05)


def test_without_calibration_rows_a_healthy_predictor_is_accused_too_often():
    assert rejections(one_calibration_sample, null="target") > stats.binom.isf(TAIL, RUNS, 0.05)


# Shape of the coverage over time, and the rows at which it is found in 95 % (docs/guide/over-time.md).
CHANGES = {
    "break in the middle": (lambda x: np.where(x < 0.5, 0.9, 0.8), 950),
    "break before the last tenth": (lambda x: np.where(x < 0.9, 0.9, 0.8), 2900),
    "a bad twentieth": (lambda x: np.where((x < 0.6) | (x >= 0.65), 0.9, 0.7), 2300),
    "slow drift": (lambda x: 0.9 - 0.1 * x, 3000),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_found_at_the_tabulated_rows(change):
    coverage, n = CHANGES[change]
    rng, runs, found = np.random.default_rng(1), 30, 0
    for _ in range(runs):
        covered = rng.random(n) < coverage(np.arange(n) / n)
        found += change_over_time(covered, np.arange(n), alpha=0.1, random_state=rng).p_value <= 0.05
    assert found >= stats.binom.ppf(TAIL, runs, 0.95)


@pytest.mark.parametrize("alpha", [0.5, 0.1, 0.02])
@pytest.mark.parametrize("null", ["flat", "target"])
def test_the_sum_of_poisson_tails_is_an_upper_bound(alpha, null):
    rng = np.random.default_rng(2)
    covered = rng.random(600) < 1 - alpha
    units = TimeUnits.of_rows(np.arange(600), np.full(600, 1 - alpha), covered, None)
    law = flat_null(units) if null == "flat" else target_null(units, None)
    draws, bound = law.windows.largest(law.draw(5000, rng)), WindowTails(law.windows)
    for level in (0.1, 0.01, 0.002):
        reading = float(np.quantile(draws, 1 - level))
        assert bound(reading) >= np.mean(draws >= reading) - 3 * np.sqrt(level / 5000)
