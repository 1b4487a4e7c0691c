"""Kept promises ever raise the alarm as seldom as they say, over calibration sets too; bands hold at all times.

A run is one stream, looked at after every row: a false alarm at any of its rows counts.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from calipers.conformal import conformal_rank
from calipers.performance import GroupMonitor, PromiseMonitor, RiskMonitor
from calipers.performance.betting import BLOCK

SURE = 1e-4  # probability that a right program fails one check
RATE = 0.05


@pytest.fixture(
    params=[(300, 3000), pytest.param((2000, 10_000), marks=pytest.mark.slow)], ids=["short", "long"]
)
def runs_and_rows(request):
    """Streams and rows of each."""
    return request.param


def exact(side):
    return lambda rng, n: PromiseMonitor(alpha=0.1, side=side).update(rng.random(n) < 0.9)


def calibrated(side):
    def run(rng, n):
        stated = rng.beta(1.2, 0.8, n)
        return PromiseMonitor(side=side).update(rng.random(n) < stated, stated)

    return run


def split_conformal(side, n_calibration):
    rank = conformal_rank(n_calibration, 0.1)

    def run(rng, n):
        # Coverage of a split-conformal predictor given its calibration set.
        coverage = rng.beta(rank, n_calibration + 1 - rank)
        monitor = PromiseMonitor(alpha=0.1, side=side, n_calibration=n_calibration)
        return monitor.update(rng.random(n) < coverage)

    return run


def promise_that_follows_the_past(rng, n):
    """The promise of each block depends on what was covered before, as an adaptive predictor's does."""
    monitor, promise = PromiseMonitor(side="both"), 0.9
    for _ in range(n // 500):
        z = rng.random(500) < promise
        monitor.update(z, promise)
        promise = float(np.clip(promise + 0.5 * (0.9 - z.mean()), 0.6, 0.99))
    return monitor


def risk(side, a, b):
    return lambda rng, n: RiskMonitor(bound=a / (a + b), side=side).update(rng.beta(a, b, n))


def over_covering(rng, n):
    return PromiseMonitor(alpha=0.1).update(rng.random(n) < rng.uniform(0.9, 1.0, n))


def grouped(groups, n_calibration=None, updates=6):
    """Groups of one stream: all of them keep one promise, or share one calibrated threshold."""

    def run(rng, n):
        coverage = 0.9
        if n_calibration is not None:
            rank = conformal_rank(n_calibration, 0.1)
            coverage = rng.beta(rank, n_calibration + 1 - rank)
        monitor = GroupMonitor(groups, alpha=0.1, n_calibration=n_calibration)
        for rows in np.array_split(np.arange(n), updates):
            monitor.update(rng.random(rows.size) < coverage, rng.integers(0, 8, rows.size))
        return monitor

    return run


KINDS = {
    "under": exact("under"),
    "over": exact("over"),
    "both": exact("both"),
    "calibrated probabilities": calibrated("both"),
    "calibrated probabilities, under": calibrated("under"),
    "200 calibration rows": split_conformal("under", 200),
    "200 calibration rows, over": split_conformal("over", 200),
    "200 calibration rows, both": split_conformal("both", 200),
    "19 calibration rows": split_conformal("under", 19),
    "adaptive": promise_that_follows_the_past,
    "risk": risk("over", 0.5, 2.0),
    "risk, both": risk("both", 40.0, 60.0),
    "covers more than promised": over_covering,
    "eight groups": grouped(range(8)),
    "groups as they appear": grouped(None),
    "eight groups, 200 calibration rows": grouped(range(8), 200),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kept_promise_ever_alarms_at_most_as_often_as_the_rate(kind, runs_and_rows):
    runs, rows = runs_and_rows
    rng = np.random.default_rng(len(kind))
    alarms = sum(KINDS[kind](rng, rows).alarm_ for _ in range(runs))
    print(f"{kind}: {alarms / runs:.4f} of {runs} kept promises alarmed within {rows} rows")
    assert alarms <= stats.binom.isf(SURE, runs, RATE)


def test_without_calibration_rows_a_sound_predictor_is_accused_far_too_often():
    # The reason for n_calibration: the same streams, watched as if coverage were exactly 0.9.
    rng, runs, rank = np.random.default_rng(0), 200, conformal_rank(200, 0.1)
    alarms = sum(
        PromiseMonitor(alpha=0.1).update(rng.random(10_000) < rng.beta(rank, 201 - rank)).alarm_
        for _ in range(runs)
    )
    assert alarms >= stats.binom.ppf(SURE, runs, 0.25)


@pytest.mark.parametrize("low", [0.9, 0.5])
def test_the_band_of_the_running_mean_holds_at_all_times(low, runs_and_rows):
    runs, rows = runs_and_rows[0] // 3, 4096
    rng, misses = np.random.default_rng(7), 0
    # The coverage wanders: the band is for the mean of the conditional coverages so far.
    coverage = low + 0.08 * np.sin(np.arange(rows) / 300)
    mean = np.cumsum(coverage) / np.arange(1, rows + 1)
    for _ in range(runs):
        curve = PromiseMonitor(alpha=0.1).update(rng.random(rows) < coverage).curve("mean")
        at = curve.x - 1
        misses += bool(np.any((mean[at] < curve.low) | (mean[at] > curve.high)))
    assert curve.x[0] == BLOCK
    print(f"the band misses ever in {misses / runs:.4f} of {runs} runs")
    assert misses <= stats.binom.isf(SURE, runs, RATE)


@pytest.mark.parametrize(("coverage", "within"), [(0.85, 1500), (0.8, 500), (0.7, 150)])
def test_a_drop_is_found_soon(coverage, within):
    rng, runs = np.random.default_rng(3), 100
    delays = []
    for _ in range(runs):
        z = np.concatenate([rng.random(2000) < 0.9, rng.random(3000) < coverage])
        alarm = PromiseMonitor(alpha=0.1).update(z).alarm_at_
        delays.append(np.inf if alarm is None else alarm - 2000)
    print(f"coverage {coverage}: median delay {np.median(delays)}")
    assert np.sum(np.array(delays) <= within) >= stats.binom.ppf(SURE, runs, 0.9)
