"""Worst slab: exact search against brute force, ties, scale, two halves."""

import numpy as np
import pytest

from calipers.exceptions import InputError
from calipers.metrics import worst_slab_coverage
from calipers.metrics.conditional.slab_search import worst_slab


def brute_force(columns, z, min_mass, directions):
    smallest, best = int(np.ceil(min_mass * len(z))), 1.0
    for v in directions:
        projected = columns @ v
        values = np.unique(np.round(projected, 9))
        for a in values:
            for b in values[values >= a]:
                inside = (np.round(projected, 9) >= a) & (np.round(projected, 9) <= b)
                if inside.sum() >= smallest:
                    best = min(best, z[inside].mean())
    return best


@pytest.mark.parametrize("min_mass", [0.1, 0.25, 0.9])
def test_the_search_finds_the_brute_force_minimum_with_and_without_ties(seed, min_mass):
    rng = np.random.default_rng(seed)
    for columns in (rng.normal(size=(40, 2)), rng.integers(0, 3, size=(40, 2)).astype(float)):
        z = rng.random(40) < 0.8
        directions = np.vstack([np.eye(2), rng.normal(size=(6, 2))])
        slab = worst_slab(columns, z, min_mass, directions)
        assert slab.coverage == pytest.approx(brute_force(columns, z, min_mass, directions))
        inside = slab.holds(columns)
        assert z[inside].mean() == pytest.approx(slab.coverage)
        assert inside.mean() == pytest.approx(slab.mass)


@pytest.mark.parametrize("value", [1.0, np.nan])
def test_features_that_do_not_vary_leave_one_slab_and_the_answer_says_so(value):
    z = np.arange(100) % 10 > 0
    e = worst_slab_coverage(np.full((100, 2), value), z, alpha=0.1, random_state=0)
    assert e.details["rows"] == 50
    assert e.details["searched_mass"] == 1.0
    assert "no feature varies" in e.reason
    untested = worst_slab_coverage(np.full((100, 2), value), z, random_state=0)
    assert "no feature varies" in untested.reason
    assert "without alpha" in untested.reason
    assert worst_slab_coverage(np.arange(100.0)[:, None], z, alpha=0.1, random_state=0).reason == ""


def test_units_of_a_column_do_not_matter():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 3))
    z = rng.random(3000) < np.where(X[:, 0] > 1, 0.5, 0.95)
    plain = worst_slab_coverage(X, z, random_state=0)
    scaled = worst_slab_coverage(X * [1.0, 1000.0, 1e-3], z, random_state=0)
    assert plain.value == pytest.approx(scaled.value)
    assert plain.value < 0.65


def test_the_half_that_searched_reads_too_low_and_the_other_does_not():
    values, searched = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, z = rng.normal(size=(1000, 6)), rng.random(1000) < 0.9
        e = worst_slab_coverage(X, z, alpha=0.1, n_directions=200, random_state=seed)
        values.append(e.value)
        searched.append(e.details["searched"])
    # 12 slabs of about 50 rows: the mean has a standard error of 0.3 / sqrt(600) = 0.012.
    assert np.mean(values) == pytest.approx(0.9, abs=0.04)
    assert np.mean(searched) < 0.8


def test_the_test_of_a_sound_predictor_is_binomial_on_fresh_rows():
    p = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X, z = rng.normal(size=(300, 3)), rng.random(300) < 0.9
        p.append(worst_slab_coverage(X, z, alpha=0.1, n_directions=20, random_state=seed).p_value)
    assert np.mean(np.array(p) <= 0.05) <= 0.12  # 0.9999 point of Binomial(100, 0.05) is 14


def test_text_and_missing_values_become_indicator_columns():
    rng = np.random.default_rng(2)
    X = np.array([["a", 1.0], ["b", None]], dtype=object)[rng.integers(0, 2, size=400)]
    z = rng.random(400) < np.where(X[:, 0] == "b", 0.6, 1.0)
    e = worst_slab_coverage(X, z, alpha=0.1, random_state=0)
    assert e.value == pytest.approx(0.6, abs=0.15)
    assert set(e.details["direction"]) == {"x0 = a", "x0 = b", "x1", "x1 missing"}


def test_without_alpha_there_is_no_test_and_few_rows_are_refused():
    rng = np.random.default_rng(3)
    e = worst_slab_coverage(rng.normal(size=(50, 2)), rng.random(50) < 0.9, n_directions=5, random_state=0)
    assert e.p_value is None
    assert "alpha" in e.reason
    with pytest.raises(InputError, match="at least 4 rows"):
        worst_slab_coverage(np.ones((3, 1)), np.ones(3, bool))
    with pytest.raises(InputError, match="min_mass"):
        worst_slab_coverage(np.ones((9, 1)), np.ones(9, bool), min_mass=10)
