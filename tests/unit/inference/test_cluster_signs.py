"""Signs of whole clusters: against all patterns of signs, and in a world where rows repeat each other."""

from __future__ import annotations

import numpy as np
import pytest

from calipers.inference import FEWEST_CLUSTERS, cluster_sign_test, design_effect


def absolute_sum(residuals: np.ndarray) -> np.ndarray:
    return np.abs(residuals.sum(axis=1))


def exact_p(residuals: np.ndarray, cluster: np.ndarray) -> float:
    """Share of all patterns of signs whose sum is at least as large, by doubling the list of sums."""
    sums = np.zeros(1)
    for value in np.unique(cluster):
        own = residuals[cluster == value].sum()
        sums = np.concatenate([sums + own, sums - own])
    return float(np.mean(np.abs(sums) >= abs(residuals.sum()) - 1e-9))


@pytest.mark.parametrize("seed", range(5))
def test_all_patterns_of_signs_give_the_same_p_value(seed):
    rng = np.random.default_rng(seed)
    cluster = rng.permutation(np.repeat(np.arange(FEWEST_CLUSTERS), rng.integers(1, 6, FEWEST_CLUSTERS)))
    residuals = rng.normal(loc=0.2, size=len(cluster))
    exact = exact_p(residuals, cluster)
    found = cluster_sign_test(residuals, cluster, absolute_sum, rng, n_draws=20_000)
    assert found == pytest.approx(exact, abs=4.5 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-4)


def test_a_p_value_is_never_zero_and_small_ones_are_resolved_by_more_draws():
    residuals = np.ones(40)
    p = cluster_sign_test(residuals, np.arange(40), absolute_sum, np.random.default_rng(0), n_draws=99)
    assert p == pytest.approx(1 / 1000)


def test_too_few_clusters_give_no_p_value():
    rng = np.random.default_rng(0)
    few = np.arange(200) % (FEWEST_CLUSTERS - 1)
    assert cluster_sign_test(rng.normal(size=200), few, absolute_sum, rng) is None
    assert cluster_sign_test(rng.normal(size=200), np.arange(200) % FEWEST_CLUSTERS, absolute_sum, rng)


def test_rows_that_repeat_each_other_are_not_taken_for_evidence():
    rng = np.random.default_rng(1)
    cluster = np.repeat(np.arange(40), 25)
    p_values = np.array([
        cluster_sign_test(np.repeat(rng.normal(size=40), 25), cluster, absolute_sum, rng, n_draws=199)
        for _ in range(300)
    ])  # fmt: skip
    # 300 runs of a size of at most 5 %: 29 rejections are four standard deviations above 15.
    assert np.sum(p_values <= 0.05) <= 29
    assert np.mean(p_values) == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / 300))


def test_design_effect_by_hand():
    # Clusters sum to 2, -1 and 0: (4 + 1 + 0) / (1 + 1 + 1 + 4 + 4).
    residuals, cluster = np.array([1.0, 1.0, -1.0, 2.0, -2.0]), np.array([0, 0, 1, 2, 2])
    assert design_effect(residuals, cluster) == 1.0
    assert design_effect(residuals[:3], cluster[:3]) == pytest.approx(5 / 3)
    assert design_effect(np.zeros(3), np.arange(3)) == 1.0
