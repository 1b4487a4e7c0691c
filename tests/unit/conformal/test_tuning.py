from functools import partial

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor

from calipers.conformal import ConformalClassifier, ConformalRegressor, saps, tune_predictor
from calipers.difficulty import DifficultyBins, ease
from calipers.exceptions import InputError
from calipers.metrics import t_ss, true_rank


@pytest.fixture
def world():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 2))
    y = (X[:, 0] + 0.8 * rng.normal(size=1200) > 0).astype(int) + (X[:, 1] > 1)
    return X, y, FrozenEstimator(LogisticRegression().fit(X[:400], y[:400]))


def test_the_best_reading_wins_and_the_others_are_kept(world):
    X, y, model = world
    grid = {w: ConformalClassifier(model, nonconformity=partial(saps, weight=w)) for w in (0.02, 0.2, 0.6)}
    tuned = tune_predictor(grid, X[400:], y[400:], tune=lambda y, s, X: s.sum(), random_state=0)
    assert tuned.readings[tuned.name] == max(tuned.readings.values())
    smallest = tune_predictor(
        grid, X[400:], y[400:], tune=lambda y, s, X: s.sum(), higher_is_better=False, random_state=0
    )
    assert smallest.readings == tuned.readings
    assert smallest.readings[smallest.name] == min(tuned.readings.values())
    assert smallest.predictor.predict_set(X[:5]).shape == (5, 3)


def test_bins_and_transformations_are_tuned_by_t_ss(world):
    X, y, model = world
    grid = {
        (n, kind): ConformalClassifier(
            model, groups=DifficultyBins(n_bins=n, transform=kind, scale=0.3, random_state=0)
        )
        for n in (2, 5)
        for kind in ("gaussian", "dropout")
    }

    def by_t_ss(y, sets, rows):
        ranks = true_rank(y, model.predict_proba(rows), classes=[0, 1, 2])
        score = ease(model, rows, scale=0.3, random_state=1)
        return float(t_ss(ranks, sets.sum(axis=1), score, n_bins=10, n_draws=1, random_state=0))

    tuned = tune_predictor(grid, X[400:], y[400:], tune=by_t_ss, random_state=0)
    assert tuned.name in grid
    assert tuned.readings[tuned.name] > 0.3


def test_t_ss_by_name_is_t_ss_of_the_tuning_rows(world):
    X, y, model = world
    grid = {n: ConformalClassifier(model, groups=DifficultyBins(n_bins=n, random_state=0)) for n in (2, 5)}
    options = {"n_bins": 10, "scale": 0.3}
    tuned = tune_predictor(grid, X[400:], y[400:], tune="t_ss", tune_options=options, random_state=0)
    seed = int(np.random.default_rng(0).integers(2**31 - 1))

    def by_hand(y, sets, rows):
        ranks = true_rank(y, model.predict_proba(rows), classes=[0, 1, 2])
        score = ease(model, rows, scale=0.3, random_state=seed)
        return float(t_ss(ranks, sets.sum(axis=1), score, n_bins=10, n_draws=1))

    assert tune_predictor(grid, X[400:], y[400:], tune=by_hand, random_state=0).readings == tuned.readings
    assert tuned.readings[tuned.name] == max(tuned.readings.values())


def test_intervals_are_tuned_by_t_ss_of_error_and_width(world):
    X, _, _ = world
    rng = np.random.default_rng(1)
    y = X[:, 0] ** 3 + (0.2 + np.abs(X[:, 1])) * rng.normal(size=1200)
    model = FrozenEstimator(KNeighborsRegressor(20).fit(X[:400], y[:400]))
    grid = {n: ConformalRegressor(model, groups=DifficultyBins(n_bins=n, random_state=0)) for n in (1, 5)}
    tuned = tune_predictor(grid, X[400:], y[400:], tune="t_ss", random_state=0)
    assert np.isnan(tuned.readings[1])  # one width for all rows: T-SS is undefined, and loses
    assert tuned.name == 5


def test_tuning_rows_take_no_part_in_the_threshold(world):
    X, y, model = world
    seen = []
    tuned = tune_predictor(
        {"lac": ConformalClassifier(model)},
        X[400:],
        y[400:],
        tune=lambda y, s, rows: seen.append(len(rows)) or 0.0,
        tune_size=0.25,
        random_state=0,
    )
    assert seen == [200]
    assert int(tuned.predictor.calibration_.sizes.sum()) == 600


def test_regressors_are_tuned_by_their_intervals(world):
    X, _, _ = world
    rng = np.random.default_rng(1)
    y = X[:, 0] + rng.normal(size=1200)
    model = FrozenEstimator(LinearRegression().fit(X[:400], y[:400]))
    grid = {n: ConformalRegressor(model, groups=DifficultyBins(n_bins=n, random_state=0)) for n in (1, 4)}
    tuned = tune_predictor(
        grid, X[400:], y[400:], tune=lambda y, s, X: -np.mean(s[:, 1] - s[:, 0]), random_state=0
    )
    assert tuned.predictor.predict_interval(X[:3]).shape == (3, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": {}}, "at least one predictor"),
        ({"tune_size": 1.0}, "tune_size must lie strictly between 0 and 1"),
        ({"tune_size": 1e-6}, "leaves no row"),
        ({"tune": lambda y, s, X: np.nan}, "NaN for every candidate"),
        ({"tune": "t_cv"}, 'tune must be "t_ss" or a function'),
        ({"tune_options": {"n_bins": 3}}, 'tune_options belong to tune="t_ss"'),
    ],
)
def test_bad_options_are_refused(options, message, world):
    X, y, model = world
    arguments = {"candidates": {"lac": ConformalClassifier(model)}, "tune": lambda y, s, X: 0.0} | options
    with pytest.raises(InputError, match=message):
        tune_predictor(arguments.pop("candidates"), X[400:], y[400:], **arguments)
