"""Many groups: the same law from counts of groups of one size, in a time that does not grow with them."""

from __future__ import annotations

import numpy as np
import pytest

import calipers
from calipers.inference import ShareCounts, clopper_pearson
from calipers.metrics import coverage_gap
from calipers.metrics.conditional import groups as module


@pytest.mark.parametrize("weighted", [False, True])
def test_draws_by_size_have_the_law_of_draws_by_group(weighted, monkeypatch):
    rng = np.random.default_rng(0)
    covered, groups = rng.random(6000) < 0.9, rng.integers(0, 2500, 6000)
    by_size = coverage_gap(covered, groups, alpha=0.1, weighted=weighted, random_state=0)
    monkeypatch.setattr(module, "_MANY_GROUPS", 10**9)
    by_group = coverage_gap(covered, groups, alpha=0.1, weighted=weighted, random_state=0)
    assert by_size.value == by_group.value
    # 9999 draws each: the spread of the null is about 0.004, so means differ by at most 4 standard errors.
    assert by_size.details["null_mean"] == pytest.approx(
        by_group.details["null_mean"], abs=4 * 0.004 * (2 / 9999) ** 0.5
    )
    assert by_size.p_value == pytest.approx(by_group.p_value, abs=0.03)


def test_a_few_sizes_with_few_groups_are_drawn_group_by_group():
    rng = np.random.default_rng(1)
    groups = np.concatenate([np.repeat(np.arange(2100), 2), np.full(500, 9000)])
    gap = coverage_gap(rng.random(len(groups)) < 0.9, groups, alpha=0.1, random_state=0)
    assert 0 < gap.details["null_mean"] < 0.2
    assert gap.p_value > 1e-3


def test_intervals_of_equal_counts_are_found_once():
    rng = np.random.default_rng(0)
    totals = rng.integers(1, 12, 5000).astype(float)
    hits = np.floor(totals * rng.random(5000))
    low, high = ShareCounts(hits, totals, hits, totals).interval(0.99)
    expected = clopper_pearson(hits, totals, confidence=0.99)
    np.testing.assert_array_equal(low, expected.low)
    np.testing.assert_array_equal(high, expected.high)


def test_of_very_many_groups_the_worst_are_described():
    groups = np.repeat(np.arange(12_000), 2)
    covered = np.ones(24_000, dtype=bool)
    covered[-2:] = False
    found = coverage_gap(covered, groups, alpha=0.1, random_state=0).details["groups"]
    assert len(found) == 10_000
    assert found["11999"] == {"rows": 2.0, "coverage": 0.0}


def test_a_predictor_that_never_covers_is_audited():
    rng = np.random.default_rng(0)
    found = calipers.audit(
        rng.random(400) + 10,
        intervals=np.tile([0.0, 1.0], (400, 1)),
        X=rng.normal(size=(400, 2)),
        random_state=0,
    )
    assert "cover 0.0 % of the rows" in found.faults[0].sentence
