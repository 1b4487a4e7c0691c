"""Coverage by group: hand values, exact law of the minimum, strings, ties, non-finite sizes."""

import itertools

import numpy as np
import pytest
from scipy import stats

from calipers.exceptions import InputError
from calipers.metrics import (
    coverage_gap,
    equal_opportunity_gap,
    feature_stratified_coverage,
    label_stratified_coverage,
    size_stratified_coverage,
)

Z = np.array([1, 1, 1, 0, 1, 1, 0, 0, 1, 1], dtype=bool)
G = list("aaaabbbbcc")  # 3/4, 2/4, 2/2


def test_the_gap_by_hand_for_labels_of_every_kind():
    # |0.75 - 0.8| = 0.05, |0.5 - 0.8| = 0.3, |1 - 0.8| = 0.2
    assert coverage_gap(Z, G, alpha=0.2, random_state=0).value == pytest.approx(0.55 / 3)
    assert coverage_gap(Z, G, alpha=0.2, weighted=True, random_state=0).value == pytest.approx(0.18)
    codes = {"a": 1.5, "b": -2, "c": 7}
    assert coverage_gap(Z, [codes[g] for g in G], alpha=0.2, random_state=0).value == pytest.approx(0.55 / 3)
    assert coverage_gap(Z, np.array(G) == "a", alpha=0.2, random_state=0).value == pytest.approx(
        (0.05 + abs(4 / 6 - 0.8)) / 2
    )


def test_the_error_and_the_interval_of_the_gap_by_hand():
    e = coverage_gap(Z, G, alpha=0.2, random_state=0)
    assert e.std_error == pytest.approx(np.sqrt((0.1875 / 4 + 0.25 / 4) / 9))
    assert e.low <= e.value <= e.high
    assert e.details["groups"]["b"] == {"rows": 4.0, "coverage": 0.5}


def test_the_null_of_the_gap_is_the_law_of_independent_binomials():
    e = coverage_gap(Z, G, alpha=0.2, random_state=0)
    sizes, t = (4, 4, 2), 0.8
    mass = 0.0
    for counts in itertools.product(*(range(n + 1) for n in sizes)):
        gap = np.mean([abs(k / n - t) for k, n in zip(counts, sizes, strict=True)])
        if gap >= e.value - 1e-9:
            mass += np.prod([stats.binom.pmf(k, n, t) for k, n in zip(counts, sizes, strict=True)])
    assert e.p_value == pytest.approx(mass, abs=4 * np.sqrt(mass * (1 - mass) / 9999))


def test_the_law_of_the_worst_stratum_is_exact():
    e = feature_stratified_coverage(Z, G, alpha=0.2)
    assert e.value == 0.5
    assert e.details["worst"] == "b"
    sizes, t = (4, 4, 2), 0.8
    below = 1 - np.prod([stats.binom.sf(np.floor(n * 0.5), n, t) for n in sizes])
    assert e.p_value == pytest.approx(below)
    # P(min <= 0) = 1 - (1 - 0.2^4)^2 (1 - 0.2^2) = 0.043; P(min <= 1/4) = 0.091 is the first above 0.05.
    assert e.null_low == 0.25


def test_the_null_point_of_the_minimum_matches_the_p_value():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(8), 30)
    readings = [feature_stratified_coverage(rng.random(240) < 0.9, groups, alpha=0.1) for _ in range(60)]
    for e in readings:
        assert (e.value < e.null_low) == (e.p_value <= 0.05)


def test_a_missed_singleton_is_no_evidence():
    z = np.ones(101, bool)
    z[100] = False
    e = feature_stratified_coverage(z, ["many"] * 100 + ["one"], alpha=0.1)
    assert e.value == 0.0
    assert e.p_value == pytest.approx(0.1, abs=1e-3)


def test_integer_sizes_with_many_values_are_binned_and_repeatable():
    rng = np.random.default_rng(1)
    size = rng.integers(1, 60, size=3000)
    z = rng.random(3000) < np.where(size > 50, 0.7, 0.93)
    first, second = (size_stratified_coverage(z, size, alpha=0.1, n_bins=10) for _ in range(2))
    assert first == second
    assert len(first.details["groups"]) == 10
    assert first.p_value < 1e-6
    rows = [g["rows"] for g in first.details["groups"].values()]
    assert max(rows) < 2 * min(rows)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_size_that_is_not_finite_is_refused(bad):
    size = np.linspace(1, 2, 50)
    size[3] = bad
    with pytest.raises(InputError, match="missing|finite"):
        size_stratified_coverage(np.ones(50, bool), size, alpha=0.1)


def test_coverage_by_outcome_has_no_null_and_says_why():
    y = np.linspace(0, 1, 200)
    z = y < 0.95
    for e in (equal_opportunity_gap(z, y, alpha=0.1), label_stratified_coverage(z, y)):
        assert e.p_value is None
        assert "perfect predictor" in e.reason
    assert label_stratified_coverage(z, y).value == pytest.approx(0.5)
    with pytest.raises(InputError, match="one value per row"):
        equal_opportunity_gap(z, np.ones((200, 2)), alpha=0.1)


def test_fractional_weights_have_no_exact_law_and_say_so():
    e = coverage_gap(Z, G, alpha=0.2, sample_weight=np.full(10, 0.5), random_state=0)
    assert e.p_value is None
    assert "whole" in e.reason
    assert e.value == pytest.approx(0.55 / 3)


def test_the_tests_and_intervals_keep_their_level():
    rng = np.random.default_rng(2)
    truth = np.array([0.95, 0.9, 0.9, 0.85])
    groups = np.repeat(np.arange(4), 60)
    gaps, worsts, inside_gap, inside_worst = [], [], [], []
    for i in range(120):
        z = rng.random(240) < 0.9
        gaps.append(coverage_gap(z, groups, alpha=0.1, random_state=i).p_value)
        worsts.append(feature_stratified_coverage(z, groups, alpha=0.1).p_value)
        z = rng.random(240) < truth[groups]
        gap = coverage_gap(z, groups, alpha=0.1, random_state=i)
        worst = feature_stratified_coverage(z, groups, alpha=0.1)
        inside_gap.append(gap.low <= np.abs(truth - 0.9).mean() <= gap.high)
        inside_worst.append(worst.low <= truth.min() <= worst.high)
    limit = stats.binom.ppf(0.9999, 120, 0.05) / 120
    assert np.mean(np.array(gaps) <= 0.05) <= limit
    assert np.mean(np.array(worsts) <= 0.05) <= limit
    assert min(np.mean(inside_gap), np.mean(inside_worst)) >= stats.binom.ppf(0.0001, 120, 0.95) / 120


@pytest.mark.parametrize("metric", [size_stratified_coverage, feature_stratified_coverage])
def test_rows_of_weight_zero_do_not_move_bins(metric):
    rng = np.random.default_rng(3)
    z, x = rng.random(400) < 0.9, rng.normal(size=400)
    there = rng.random(400) < 0.7
    # Zeros beyond every other value, which would stretch bins and their names.
    x = np.where(there, x, 100 + x)
    weighted, kept = (
        metric(z, x, alpha=0.1, sample_weight=there.astype(float)),
        metric(z[there], x[there], alpha=0.1),
    )
    assert weighted.to_dict() == kept.to_dict()
