"""The score test of all features at once."""

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import calipers
from calipers.inputs import check_features
from calipers.metrics import ert
from calipers.metrics.conditional.score_test import _squared_rank, score_p_value, smallest_p_value


def p_value(X, z, target=0.9, seed=0):
    t = np.broadcast_to(np.asarray(target, dtype=float), (len(z),))
    return score_p_value(check_features(X), z, t, np.random.default_rng(seed))


def test_the_smallest_p_value_is_compared_with_the_smallest_of_every_draw():
    # Observed ranks 1 of 4 and 3 of 4; the draws reach the smallest ranks 2, 1, 2 in either row.
    statistics = np.array([[9.0, 5.0, 4.0, 3.0], [2.0, 1.0, 8.0, 5.0]])
    # ranks: row one 1 2 3 4, row two 3 4 1 2; smallest 1 2 1 2; two of four are <= 1.
    assert smallest_p_value(statistics) == pytest.approx(0.5)
    ties = np.array([[1.0, 1.0 + 1e-15, 0.5, 0.2]])
    assert smallest_p_value(ties) == pytest.approx(0.5)


def test_a_line_a_parabola_and_a_category_are_seen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    assert p_value(X, rng.random(400) < expit(2 + X[:, 1])) < 0.01
    assert p_value(X, rng.random(400) < np.where(np.abs(X[:, 2]) > 1, 0.7, 0.98)) < 0.01
    city = rng.choice(["Bonn", "Rome"], size=400)
    assert p_value(pl.DataFrame({"city": city}), rng.random(400) < np.where(city == "Rome", 0.7, 0.98)) < 0.01


@pytest.mark.parametrize("target", [0.9, np.linspace(0.85, 0.95, 400)])
def test_small_p_values_are_resolved_ten_times_finer(target):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 2))
    assert p_value(X, X[:, 0] > -1.2, target) == pytest.approx(1 / 10_000)


def test_nothing_is_seen_in_a_level_that_is_off():
    rng = np.random.default_rng(1)
    p = [p_value(rng.normal(size=(150, 2)), rng.random(150) < 0.7, seed=i) for i in range(20)]
    assert np.mean(np.array(p) < 0.05) <= 0.25  # the 0.9999 point of Binomial(20, 0.05) is 5 of 20


def test_targets_that_differ_by_row_are_allowed_for_and_looked_at():
    rng = np.random.default_rng(2)
    X, t = rng.normal(size=(500, 2)), rng.choice([0.6, 0.95], size=500)
    assert p_value(X, rng.random(500) < t, t) > 0.05
    # Overconfident by more where more is promised: no common shift.
    assert p_value(X, rng.random(500) < np.where(t > 0.9, 0.7, 0.6), t) < 0.01


def test_missing_values_and_constant_columns_are_carried_along():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=200), np.ones(200), np.full(200, np.nan)])
    X[:20, 0] = np.nan
    assert 0 < p_value(X, rng.random(200) < 0.9) <= 1
    squared = _squared_rank(X[:, 0])
    assert (squared[:20] == 0).all()
    assert squared.sum() == pytest.approx(0, abs=1e-9)


def test_equal_outcomes_say_nothing():
    X = np.random.default_rng(4).normal(size=(50, 2))
    assert p_value(X, np.ones(50, dtype=bool)) == 1.0


@pytest.mark.parametrize("X", [np.full((200, 2), np.nan), np.ones((200, 1)), np.full((200, 1), "same")])
def test_features_that_say_nothing_are_no_evidence_and_no_error(X):
    z = np.arange(200) % 10 > 0
    found = ert(X, z, alpha=0.1, random_state=0)
    assert found.p_value is None or found.p_value > 0.5
    assert calipers.audit(covered=z, promised=np.full(200, 0.9), X=X, random_state=0).rows == 200
