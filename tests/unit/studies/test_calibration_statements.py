"""Theorem 1, Claims 1, 2 and 4, Example 2 and the decision reading of c, as the study computes them."""

from __future__ import annotations

import numpy as np
import pytest

from calipers.metrics import calibration_error
from studies.calibration.statements import (
    decision_losses,
    finite_scores,
    largest_decision_regret,
    prover_gap,
    shattered_complexity,
    subset_classifiers,
    subset_complexity,
    vc_dimension,
)

PROVERS = {
    "brier score": lambda x, p, y: np.mean((p - y) ** 2) < 0.2,
    "calibration in the large": lambda x, p, y: abs(np.sum(y - p)) < 2 * np.sqrt(np.sum(p * (1 - p))),
    "labels of near objects": lambda x, p, y: np.mean(y[np.argsort(x)][1:] == y[np.argsort(x)][:-1]) < 0.6,
}


@pytest.mark.parametrize("name", PROVERS)
def test_no_prover_tells_the_truth_from_certain_labels(name):
    n = 20
    stated = np.random.default_rng(0).uniform(0.2, 0.8, 10 * n * n + 1)  # Q(x) < 1 / (10 n^2)
    gap = prover_gap(PROVERS[name], stated, n, runs=2000, seed=1)
    assert gap.repeats <= 0.1
    assert abs(gap.accepts_truth - gap.accepts_certain) <= gap.repeats
    assert gap.smallest_error == np.minimum(stated, 1 - stated).mean()
    # condition 1 of the theorem (> 2/3) and condition 2 (< 1/3) never hold together
    assert not (gap.accepts_truth > 2 / 3 and gap.accepts_certain < 1 / 3)


def test_with_one_object_a_prover_exists():
    # the extreme case the paper excludes: the label's frequency can be counted
    stated = np.array([0.5])
    gap = prover_gap(lambda x, p, y: 0.25 < np.mean(y) < 0.75, stated, 20, runs=500, seed=2)
    assert gap.accepts_truth > 2 / 3
    assert gap.accepts_certain < 1 / 3


def test_fewer_rows_than_features_are_shattered():
    rng = np.random.default_rng(3)
    for n, d in ((1, 2), (4, 5), (7, 12)):
        assert shattered_complexity(rng.normal(size=(n, d))) == 0.5
    # with more rows than features no weight matches every sign pattern
    assert shattered_complexity(rng.normal(size=(8, 2))) < 0.5


def test_the_class_of_example_2_has_dimension_2_at_fixed_thresholds_and_n_at_free_ones():
    for n in (4, 5):
        found = finite_scores(subset_classifiers(n))
        assert found.fixed_dimension <= 2
        assert found.free_dimension == n
        assert found.complexity == 0.5
        assert found.complexity <= found.bound


def test_the_bound_of_claim_4_holds_for_random_classes():
    rng = np.random.default_rng(4)
    for _ in range(30):
        found = finite_scores(rng.integers(0, 4, (int(rng.integers(2, 9)), 6)) / 4)
        assert found.complexity <= found.bound + 1e-12
        assert found.fixed_dimension <= found.free_dimension


def test_complexity_and_dimension_by_hand():
    # the empty set and one point of two: max(0, s_1) has mean 1/2, over n = 2
    subsets = np.array([[False, False], [True, False]])
    assert subset_complexity(list(subsets)) == 0.25
    assert vc_dimension(subsets) == 1
    assert vc_dimension(np.array([[True, True]])) == 0


def test_the_plain_threshold_is_best_for_calibrated_levels_only():
    rng = np.random.default_rng(5)
    levels, mass = np.sort(rng.random(6)), rng.dirichlet(np.ones(6))
    for a, b in ((1, 1), (1, 9), (5, 2)):
        calibrated = decision_losses(levels, mass, levels, false_positive=a, false_negative=b)
        assert calibrated.plain == pytest.approx(calibrated.best, abs=1e-15)
    off = decision_losses(levels, mass, 1 - levels, false_positive=1, false_negative=1)
    assert off.plain > off.best + 0.1


@pytest.mark.parametrize("levels", [0, 7])
def test_no_threshold_decision_loses_more_than_c_emp(levels):
    rng = np.random.default_rng(6)
    worst = 0.0
    for _ in range(40):
        stated = rng.random(60)
        stated = np.round(stated * levels) / levels if levels else stated
        y = (rng.random(60) < stated ** rng.uniform(0.3, 3)).astype(float)
        error = float(calibration_error(y.astype(int), stated, random_state=0))
        regret = largest_decision_regret(y, stated)
        assert regret <= error + 1e-12
        worst = max(worst, regret / error)
    assert worst > 0.5  # the bound is of the right size


def test_the_constant_in_front_of_c_cannot_be_smaller_than_1():
    # a constant 1/2 + e for rows that never happen: at tau = 1/2 all are accepted, and each costs 1/2
    stated, y = np.full(10, 0.5), np.zeros(10)
    assert largest_decision_regret(y, stated) == pytest.approx(0.5)
    assert float(calibration_error(y.astype(int), stated, pos_label=1, random_state=0)) == pytest.approx(0.5)
