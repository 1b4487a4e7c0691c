"""Tests over strata keep their level: one threshold, levels per row, dependent rows; and they find faults."""

import numpy as np
import pytest
from scipy import stats

from calipers.metrics import (
    coverage_gap,
    escv,
    failing_regions,
    feature_stratified_coverage,
    size_stratified_coverage,
    sscv,
    t_cv,
    worst_slab_coverage,
)

RUNS = 60
METRICS = {
    "coverage_gap": lambda X, z, seed, **o: coverage_gap(z, X[:, 3], random_state=seed, **o),
    "feature": lambda X, z, seed, **o: feature_stratified_coverage(z, X[:, 0], random_state=seed, **o),
    "size": lambda X, z, seed, **o: size_stratified_coverage(z, 1 + X[:, 3], random_state=seed, **o),
    "t_cv": lambda X, z, seed, **o: t_cv(z, X[:, 1], n_bins=15, n_draws=999, random_state=seed, **o),
    "sscv": lambda X, z, seed, **o: sscv(z, 1 + X[:, 3], random_state=seed, **o),
    "escv": lambda X, z, seed, **o: escv(z, 1 + X[:, 3], random_state=seed, **o),
    "slab": lambda X, z, seed, **o: worst_slab_coverage(X, z, n_directions=30, random_state=seed, **o),
    "regions": lambda X, z, seed, **o: failing_regions(X, z, keep="all", random_state=seed, **o),
}
each_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


def rejected(estimate):
    tests = [estimate] if hasattr(estimate, "p_value") else list(estimate.values())
    return any(e.p_value is not None and e.p_value <= 0.05 for e in tests)


def features(rng, n):
    return np.column_stack([rng.normal(size=(n, 3)), rng.integers(0, 5, size=n)])


def at_most(level):
    return stats.binom.ppf(0.9999, RUNS, level) / RUNS


@each_metric
def test_a_perfect_split_predictor_is_not_rejected_for_the_luck_of_its_threshold(metric, seed):
    rng = np.random.default_rng(seed)
    known = []
    for run in range(RUNS):
        z = rng.random(1500) < rng.beta(181, 20)  # 200 calibration rows, alpha = 0.1
        known.append(rejected(metric(features(rng, 1500), z, run, alpha=0.1, n_calibration=200)))
    assert np.mean(known) <= at_most(0.05)


@each_metric
def test_levels_per_row_keep_the_size_and_find_a_fault(metric, seed):
    rng = np.random.default_rng(seed)
    null, fault = [], []
    for run in range(RUNS):
        X = features(rng, 800)
        t = rng.beta(8, 2, size=800)
        null.append(rejected(metric(X, rng.random(800) < t, run, alpha=1 - t)))
        broken = np.where((X[:, 0] > 0) & (X[:, 1] > 0) | (X[:, 3] == 2), 0.5 * t, t)
        fault.append(rejected(metric(X, rng.random(800) < broken, run, alpha=1 - t)))
    assert np.mean(null) <= stats.binom.ppf(0.9999, RUNS, 0.05) / (RUNS)
    assert np.mean(fault) >= 0.7


@each_metric
def test_levels_of_one_calibration_sample_keep_the_size(metric, seed):
    rng = np.random.default_rng(seed)
    alpha = np.repeat([0.1, 0.2, 0.3, 0.4], 200)
    ranks = np.ceil(101 * (1 - alpha) - 1e-9).astype(int)
    null = []
    for run in range(RUNS):
        scores = np.sort(rng.random(100))
        z = rng.random(800) <= scores[ranks - 1]
        null.append(rejected(metric(features(rng, 800), z, run, alpha=alpha, n_calibration=100)))
    assert np.mean(null) <= stats.binom.ppf(0.9999, RUNS, 0.05) / (RUNS)


@each_metric
def test_dependent_rows_keep_the_size_by_their_clusters(metric, seed):
    rng = np.random.default_rng(seed)
    null, ignored = [], []
    for run in range(RUNS):
        cluster = np.repeat(np.arange(150), 8)
        X = features(rng, 150)[cluster] + 1e-6 * np.column_stack([rng.normal(size=(1200, 3)), np.zeros(1200)])
        z = rng.random(1200) < rng.beta(4.5, 0.5, size=150)[cluster]  # correlation 1/6 inside clusters
        null.append(rejected(metric(X, z, run, alpha=0.1, cluster=cluster)))
        ignored.append(rejected(metric(X, z, run, alpha=0.1)))
    assert np.mean(null) <= stats.binom.ppf(0.9999, RUNS, 0.07) / RUNS
    assert np.mean(ignored) > np.mean(null)
