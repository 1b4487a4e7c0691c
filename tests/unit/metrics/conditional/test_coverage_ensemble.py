"""The coverage ensemble: parts, members, weights of members, shrinkage."""

import pickle

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit

from calipers.exceptions import InputError
from calipers.inputs import check_features
from calipers.metrics.conditional import CoverageClassifier
from calipers.metrics.conditional.coverage_ensemble import deal, smoothed_rate
from calipers.metrics.conditional.ensemble_members import Standardised, _below_all, stretch, tree_matrix
from calipers.metrics.conditional.logistic import logistic_gain


def predict(classifier, X, z, Z, seed=0, alpha=0.1, weights=None):
    t = np.full(len(X), 1 - alpha)
    model = classifier.fit(check_features(X), z, t, weights, np.random.default_rng(seed))
    return model.predict(check_features(Z).values, np.full(len(Z), 1 - alpha))


def test_dealt_parts_are_equal_in_size_and_in_misses():
    z = np.arange(103) % 10 > 0
    parts = deal(z, 5, np.random.default_rng(0))
    assert np.ptp(np.bincount(parts)) <= 1
    assert np.ptp(np.bincount(parts[~z], minlength=5)) <= 1


def test_logistic_gain_finds_the_level_and_its_likelihood():
    z = np.repeat([1.0, 0.0], [80, 20])
    base, w = np.full(100, logit(0.9)), np.ones(100)
    (level,), gain = logistic_gain(np.ones((100, 1)), z, base, w)
    assert expit(base[0] + level) == pytest.approx(0.8)
    assert gain == pytest.approx(80 * np.log(0.8 / 0.9) + 20 * np.log(0.2 / 0.1))


def test_the_likelihood_rises_where_newtons_method_alone_would_oscillate(seed):
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(400) < 0.2, -4.0, 1.0) + 0.3 * rng.normal(size=400)
    z = (rng.random(400) < np.where(x < -1, 0.5, 0.97)).astype(float)
    design, base = np.column_stack([np.ones(400), x]), np.full(400, logit(0.9))
    beta, gain = logistic_gain(design, z, base, np.ones(400))
    assert gain > 20
    score = design.T @ (z - expit(base + design @ beta))
    np.testing.assert_allclose(score, 0.0, atol=1e-5)


def test_separated_rows_do_not_run_away():
    z = np.repeat([1.0, 0.0], [50, 50])
    beta, gain = logistic_gain(np.column_stack([np.ones(100), z]), z, np.zeros(100), np.ones(100))
    assert np.isfinite(beta).all()
    assert gain == pytest.approx(100 * np.log(2), rel=0.05)


def test_the_base_rate_is_smoothed_by_one_row_of_the_target():
    assert smoothed_rate(np.ones(9), np.full(9, 0.5), np.ones(9)) == pytest.approx(9.5 / 10)


def test_a_prior_pulls_the_coefficients_towards_its_centre():
    rng = np.random.default_rng(0)
    x, base, w = rng.normal(size=300), np.zeros(300), np.ones(300)
    z = (rng.random(300) < expit(2 * x)).astype(float)
    free, gain = logistic_gain(x[:, None], z, base, w)
    held, less = logistic_gain(x[:, None], z, base, w, centre=0.5, precision=40.0)
    assert 0.5 < held[0] < free[0]
    assert 0 < less < gain
    # The gradient of the likelihood equals that of the prior.
    assert x @ (z - expit(x * held[0])) == pytest.approx(40.0 * (held[0] - 0.5))


def test_an_average_is_stretched_by_the_variance_it_lost():
    assert stretch(1.2, 1.0) == pytest.approx(1.2)
    assert stretch(5.0, 1.0) == 2.0  # never more than twofold
    assert stretch(1.0, 0.0) == 1.0


def test_the_columns_of_the_regression_are_standardised_clipped_and_marked():
    age = np.r_[np.arange(20.0), np.full(12, np.nan), 1000.0]
    city = np.repeat(["Bonn", "Rome", "Oslo"], [20, 11, 2])
    features = check_features(pl.DataFrame({"age": age, "city": city}))
    columns = Standardised.of(features)
    design = columns.design(features.values)
    # ones, age, age missing, Bonn, Rome; Oslo has too few rows
    assert design.shape == (33, 5)
    assert design[:, 2].sum() == 12
    assert (design[:, 3].sum(), design[:, 4].sum()) == (20, 11)
    assert (design[20:32, 1] == 0).all()
    assert 3 < design[-1, 1] <= 5


def test_missing_values_lie_below_all_others_in_trees():
    X = np.array([[2.0, np.nan], [5.0, np.nan], [np.nan, np.nan]])
    missing = _below_all(X)
    np.testing.assert_array_equal(missing, [2.0 - 3.0, -1.0])
    assert tree_matrix(X, missing)[2, 0] == -1.0


def test_a_fitted_model_predicts_block_by_block_and_travels():
    rng = np.random.default_rng(7)
    X, t = rng.uniform(size=(500, 3)), np.full(500, 0.9)
    z = rng.random(500) < np.where(X[:, 0] > 0.5, 0.7, 0.98)
    model = CoverageClassifier().fit(check_features(X), z, t, None, np.random.default_rng(0))
    whole = model.predict(X, t).h
    parts = [
        pickle.loads(pickle.dumps(model)).predict(X[rows], t[rows]).h for rows in (slice(0, 7), slice(7, 500))
    ]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert len(pickle.dumps(model)) < 2_000_000


@pytest.mark.parametrize("n", [400, 5200])
def test_a_common_factor_of_the_weights_changes_nothing(n):
    rng = np.random.default_rng(8)
    X, t = rng.uniform(size=(n, 3)), np.full(n, 0.9)
    z, w = rng.random(n) < np.where(X[:, 0] > 0.5, 0.7, 0.98), rng.exponential(size=n)
    h = [
        CoverageClassifier().fit(check_features(X), z, t, scale * w, np.random.default_rng(0)).predict(X, t).h
        for scale in (1.0, 1 / 600, 37.0)
    ]
    np.testing.assert_array_equal(h[0], h[1])
    np.testing.assert_array_equal(h[0], h[2])


def test_equal_weights_are_no_weights():
    rng = np.random.default_rng(9)
    X, t = rng.uniform(size=(300, 2)), np.full(300, 0.9)
    z = rng.random(300) < np.where(X[:, 0] > 0.5, 0.7, 0.98)
    found = [
        CoverageClassifier().fit(check_features(X), z, t, w, np.random.default_rng(0)).predict(X, t).h
        for w in (None, np.full(300, 0.25))
    ]
    np.testing.assert_array_equal(*found)


def test_nothing_to_learn_is_shrunk_and_a_strong_signal_is_not():
    rng = np.random.default_rng(1)
    X, Z = rng.uniform(size=(800, 3)), rng.uniform(size=(500, 3))
    quiet, _ = predict(CoverageClassifier(), X, rng.random(800) < 0.9, Z)
    full, _ = predict(CoverageClassifier(shrink=False), X, rng.random(800) < 0.9, Z)
    assert np.abs(quiet - 0.9).mean() < np.abs(full - 0.9).mean() + 0.01
    strong, _ = predict(CoverageClassifier(), X, rng.random(800) < np.where(X[:, 0] > 0.5, 0.6, 1.0), Z)
    assert strong[Z[:, 0] < 0.4].mean() > 0.97
    assert strong[Z[:, 0] > 0.6].mean() < 0.7


def test_features_that_only_work_together_are_seen_in_four_hundred_rows():
    rng = np.random.default_rng(2)
    X, Z = rng.uniform(-1, 1, size=(400, 4)), rng.uniform(-1, 1, size=(2000, 4))
    z = rng.random(400) < np.where(X[:, 0] * X[:, 1] > 0, 0.75, 1.0)
    h, _ = predict(CoverageClassifier(), X, z, Z)
    greedy, _ = predict(CoverageClassifier(n_trees=0, max_leaf_nodes=3, linear=False), X, z, Z)
    bad = Z[:, 0] * Z[:, 1] > 0
    assert h[~bad].mean() - h[bad].mean() > 0.15
    assert h[~bad].mean() - h[bad].mean() > greedy[~bad].mean() - greedy[bad].mean() + 0.1


def test_above_five_thousand_rows_the_boosters_grow_trees():
    rng = np.random.default_rng(4)
    X = rng.uniform(size=(5200, 3))
    z = rng.random(5200) < np.where(X[:, 1] > 0.7, 0.7, 0.98)
    h, _ = predict(CoverageClassifier(n_bags=2), X, z, X[:800])
    assert np.abs(h - np.where(X[:800, 1] > 0.7, 0.7, 0.98)).mean() < 0.03


def test_trees_of_given_size_take_weights_at_any_number_of_rows():
    rng = np.random.default_rng(6)
    X = rng.uniform(size=(600, 2))
    z = rng.random(600) < np.where(X[:, 0] > 0.5, 0.6, 0.95)
    w = np.where(X[:, 0] > 0.5, 0.0, 1.0)
    h, _ = predict(CoverageClassifier(max_leaf_nodes=4, n_trees=0, linear=False), X, z, X, weights=w)
    assert h.min() > 0.85


def test_missing_values_and_weights_pass_through_every_part():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(400, 2))
    X[rng.random((400, 2)) < 0.2] = np.nan
    z = rng.random(400) < np.where(np.isnan(X[:, 0]), 0.5, 0.97)
    h, _ = predict(CoverageClassifier(), X, z, X, weights=rng.integers(0, 3, size=400).astype(float))
    assert h[np.isnan(X[:, 0])].mean() < 0.7
    assert h[~np.isnan(X[:, 0])].mean() > 0.9


@pytest.mark.parametrize("misses", [0, 1])
def test_with_fewer_than_two_misses_only_the_level_is_learnt(misses):
    z = np.ones(300, bool)
    z[:misses] = False
    h, _ = predict(CoverageClassifier(), np.arange(300.0)[:, None], z, np.zeros((5, 1)))
    assert np.ptp(h) == 0.0
    assert 0.98 < h[0] < 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [({"n_bags": 1}, "n_bags"), ({"learning_rate": 0}, "learning_rate"), ({"n_trees": -1}, "n_trees")],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        CoverageClassifier(**options)
