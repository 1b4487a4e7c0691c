"""The default classifier: folds, recalibration, shrinkage, forest, bend."""

import numpy as np
import pytest
from scipy.special import expit, logit

from calipers.exceptions import InputError
from calipers.inputs import check_features
from calipers.metrics.conditional import CoverageClassifier
from calipers.metrics.conditional.classifier import _average, _bend, deal, logistic_gain, smoothed_rate


def predict(classifier, X, z, Z, seed=0, alpha=0.1, weights=None):
    t = np.full(len(X), 1 - alpha)
    return classifier.fit_predict(
        check_features(X),
        z,
        t,
        weights,
        check_features(Z),
        np.full(len(Z), 1 - alpha),
        np.random.default_rng(seed),
    )


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


def test_the_average_gives_the_spread_of_one_bag_back():
    signal = np.linspace(-1, 1, 50)
    bags = np.stack([signal + 0.5, signal + 0.5])
    np.testing.assert_allclose(_average(bags), signal + 0.5)  # bags agree: nothing to give back
    noise = np.where(np.arange(50) % 2, 1.0, -1.0)
    spread = _average(np.stack([signal + noise, signal - noise]))
    assert np.polyfit(signal, spread, 1)[0] > 1.5


def test_a_bend_is_found_when_it_is_there_and_stays_monotone():
    rng = np.random.default_rng(0)
    line = rng.normal(size=20_000)
    w, base = np.ones(20_000), np.zeros(20_000)
    z = (rng.random(20_000) < expit(line + 0.1 * line**2)).astype(float)
    _, gain = logistic_gain(np.column_stack([np.ones(20_000), line]), z, base, w)
    bend = _bend(line, z, base, w, gain)
    grid = np.linspace(-9, 9, 400)
    assert bend is None or (np.diff(bend.along(grid)) > 0).all()
    straight = (rng.random(20_000) < expit(line)).astype(float)
    _, gain = logistic_gain(np.column_stack([np.ones(20_000), line]), straight, base, w)
    found = _bend(line, straight, base, w, gain)
    assert found is None or found.gain < gain + 8.0


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
    greedy, _ = predict(CoverageClassifier(n_trees=0, max_leaf_nodes=3), X, z, Z)
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
    h, _ = predict(CoverageClassifier(max_leaf_nodes=4, n_trees=0), X, z, X, weights=w)
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
