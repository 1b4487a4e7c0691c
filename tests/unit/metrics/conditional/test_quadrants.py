"""Boosting by quadrants: the exact search, the bins, and what it is for."""

import itertools

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from calipers.inputs import check_features
from calipers.metrics.conditional.coverage_ensemble import deal
from calipers.metrics.conditional.quadrants import Bag, best_cut, best_edge, bin_features, boost_quadrants


def gain(side, gradient, curvature, penalty):
    total = 0.0
    for value in np.unique(side):
        rows = side == value
        total += gradient[rows].sum() ** 2 / (curvature[rows].sum() + penalty)
    return total


def boost(X, z, Z, seed=0, **options):
    train, rng = check_features(X), np.random.default_rng(seed)
    parts = deal(z, 3, rng)
    options = {"learning_rate": 0.1, "patience": 3, "max_iter": 60} | options
    unseen, bags = boost_quadrants(train, z, np.ones(len(z)), parts, rng, **options)
    return unseen, np.stack([bag.decision_function(check_features(Z).values) for bag in bags])


def test_the_best_cut_is_that_of_a_search_over_all_pairs_and_edges(seed):
    rng = np.random.default_rng(seed)
    codes, width = rng.integers(0, 5, size=(3, 200)), 5
    gradient, curvature = rng.normal(size=200), rng.uniform(0.05, 0.25, size=200)
    pairs = list(itertools.combinations_with_replacement(range(3), 2))
    tables = np.zeros((2, len(pairs), width, width))
    for p, (j, k) in enumerate(pairs):
        np.add.at(tables[0, p], (codes[j], codes[k]), gradient)
        np.add.at(tables[1, p], (codes[j], codes[k]), curvature)

    def reached(p, a, b):
        j, k = pairs[p]
        return gain(2 * (codes[j] > a) + (codes[k] > b), gradient, curvature, 1.5)

    found = best_cut(tables[0], tables[1], 1.5)
    everywhere = itertools.product(range(len(pairs)), range(width), range(width))
    assert reached(*found) == pytest.approx(max(reached(*cut) for cut in everywhere))


def test_the_best_edge_is_that_of_a_search_over_all_edges(seed):
    rng = np.random.default_rng(seed)
    codes, side = rng.integers(0, 97, size=300), rng.random(300) < 0.4
    gradient, curvature = rng.normal(size=300), rng.uniform(0.05, 0.25, size=300)
    gains = [gain(2 * side + (codes > cut), gradient, curvature, 0.7) for cut in range(97)]
    found = best_edge(codes, side, gradient, curvature, 0.7)
    assert gains[found] == pytest.approx(max(gains))


def test_codes_rise_with_the_value_and_missing_values_come_last():
    x = np.r_[np.arange(500.0), np.nan]
    train = check_features(x[:, None])
    binning = bin_features(train, np.ones(501, bool), np.ones(501), np.random.default_rng(0))
    codes = binning.codes(train.values)[0]
    assert (np.diff(codes[:500]) >= 0).all()
    assert codes[-1] == 96 > codes[:500].max()
    assert np.bincount(codes[:500]).max() <= 10


def test_categories_are_ordered_by_their_coverage_and_rare_ones_are_pooled():
    label = np.repeat(["good", "bad", "fair", "rare"], [200, 200, 200, 5])
    z = np.r_[np.ones(200), np.arange(200) % 2, np.arange(200) % 4 > 0, np.zeros(5)].astype(bool)
    train = check_features(pl.DataFrame({"label": label}))
    binning = bin_features(train, z, np.ones(605), np.random.default_rng(0))
    rates = dict(zip(train.categories[0], binning.rates[0], strict=True))
    assert rates["bad"] < rates["fair"] < rates["good"]
    assert rates["rare"] == pytest.approx(z.mean())


def test_a_column_without_any_value_is_carried_along():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.full(300, np.nan), rng.uniform(size=300)])
    z = rng.random(300) < np.where(X[:, 1] < 0.5, 0.6, 0.98)
    _, margins = boost(X, z, np.array([[np.nan, 0.2], [np.nan, 0.8]]))
    assert (margins[:, 0] < margins[:, 1]).all()


def test_two_features_that_only_work_together_are_found_at_the_first_step():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(600, 5))
    z = rng.random(600) < np.where(X[:, 1] * X[:, 3] > 0, 0.7, 1.0)
    bag = Bag(check_features(X), z, np.ones(600), np.arange(600) % 5 == 0, rng)
    bag.advance(0.1)
    (step,) = bag.steps
    assert {step.first, step.second} == {1, 3}
    low_low, low_high, high_low, high_high = step.values
    assert max(low_low, high_high) < min(low_high, high_low)


def test_an_interval_of_one_feature_is_one_step():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, size=(800, 3))
    z = rng.random(800) < np.where(np.abs(X[:, 2]) < 0.3, 0.6, 1.0)
    bag = Bag(check_features(X), z, np.ones(800), np.arange(800) % 5 == 0, rng)
    bag.advance(0.1)
    assert (bag.steps[0].first, bag.steps[0].second) == (2, 2)


def test_a_step_moves_each_quadrant_by_its_penalised_newton_step():
    rng = np.random.default_rng(3)
    X, w = rng.uniform(size=(200, 2)), rng.uniform(0.5, 2.0, size=200)
    z, held = rng.random(200) < 0.8, np.arange(200) % 4 == 0
    bag = Bag(check_features(X), z, w, held, rng)
    start = bag.margin.copy()
    bag.advance(0.25)
    quadrant, mean = bag.steps[0].quadrant(bag.codes), expit(start[0])
    for number in np.unique(quadrant):
        rows = (quadrant == number) & ~held
        newton = np.sum(w[rows] * (z[rows] - mean)) / (np.sum(w[rows]) * mean * (1 - mean) + 1.0)
        assert bag.steps[0].values[number] == pytest.approx(0.25 * newton)
    np.testing.assert_allclose(bag.fitted(1).decision_function(X), bag.margin)


def test_bags_that_learn_nothing_stay_at_the_base_rate():
    rng = np.random.default_rng(4)
    flat = 0
    for seed in range(12):
        X, z = rng.uniform(size=(200, 3)), rng.random(200) < 0.9
        _, margins = boost(X, z, X[:20], seed)
        flat += bool(np.ptp(margins, axis=1).max() == 0)
    assert flat >= 3


def test_more_pairs_than_can_be_searched_are_drawn_at_random():
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(500, 30))
    z = rng.random(500) < np.where(X[:, 7] < 0.4, 0.6, 0.98)
    unseen, margins = boost(X, z, X)
    assert margins[:, X[:, 7] < 0.4].mean() < margins[:, X[:, 7] > 0.4].mean() - 0.5
    assert unseen[X[:, 7] < 0.4].mean() < unseen[X[:, 7] > 0.4].mean() - 0.5
    again, _ = boost(X, z, X)
    np.testing.assert_array_equal(unseen, again)
