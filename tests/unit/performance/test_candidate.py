"""Candidate forecasts: from an estimator, from a frozen model, on batches."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from calipers.conformal import conformal_interval
from calipers.exceptions import InputError
from calipers.performance import CandidatePerformance
from tests.unit.performance.algorithms import NothingReturned

X, Y = load_diabetes(return_X_y=True)


def test_losses_are_those_of_the_trained_model_on_the_other_rows():
    forecast = CandidatePerformance(Ridge(), loss="squared", random_state=1).fit(X, Y)
    rows = forecast.evaluation_rows_[:, 0]
    assert not set(rows) & set(forecast.train_rows_)
    model = Ridge().fit(X[forecast.train_rows_], Y[forecast.train_rows_])
    assert forecast.losses_ == pytest.approx((Y[rows] - model.predict(X[rows])) ** 2, rel=1e-12)
    assert forecast.interval() == conformal_interval(forecast.losses_, 0.1)
    assert forecast.interval(0.2) == conformal_interval(forecast.losses_, 0.2)


def test_a_frozen_model_calibrates_on_every_row():
    model = Ridge().fit(X[:200], Y[:200])
    forecast = CandidatePerformance(FrozenEstimator(model), loss="absolute").fit(X[200:], Y[200:])
    expected = np.abs(Y[200:] - model.predict(X[200:]))
    assert sorted(forecast.losses_) == pytest.approx(sorted(expected))
    assert forecast.upper_bound() == pytest.approx(np.sort(expected)[218])  # ceil(243 x 0.9) = 219


def test_batches_forecast_the_mean_of_so_many_rows():
    forecast = CandidatePerformance(Ridge(), loss="squared", points_per_loss=10, random_state=0).fit(X, Y)
    rows = forecast.evaluation_rows_
    assert rows.shape == (22, 10)
    error = (Y[rows] - forecast.estimator_.predict(X[rows.ravel()]).reshape(rows.shape)) ** 2
    assert forecast.losses_ == pytest.approx(error.mean(axis=1))
    assert "a new batch of 10 rows" in forecast.guarantee_


def test_a_scorer_is_forecast_as_a_score():
    digits = load_digits()
    forecast = CandidatePerformance(GaussianNB(), loss="accuracy", points_per_loss=40, random_state=0).fit(
        digits.data / 16, digits.target
    )
    assert forecast.losses_.size == 22
    assert 0.5 < forecast.lower_bound() <= forecast.losses_.max() <= 1.0


def test_zero_one_answers_how_likely_the_next_instance_is_right():
    digits = load_digits()
    forecast = CandidatePerformance(GaussianNB(), loss="zero_one", random_state=0).fit(
        digits.data / 16, digits.target
    )
    right = forecast.probability(at_most=0)
    assert right.value == pytest.approx(1 - forecast.losses_.mean())
    assert right.low < right.value < right.high


def test_the_same_seed_gives_the_same_forecast_and_open_random_states_are_seeded():
    def make(seed):
        return CandidatePerformance(SGDRegressor(max_iter=5, tol=None), loss="squared", random_state=seed)

    assert (make(3).fit(X, Y).losses_ == make(3).fit(X, Y).losses_).all()
    assert not np.array_equal(make(3).fit(X, Y).losses_, make(4).fit(X, Y).losses_)


def test_frames_reach_the_pipeline_with_their_columns():
    frame = pd.DataFrame({"kind": np.where(X[:, 1] > 0, "a", "b"), "bmi": X[:, 2]})
    pipeline = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["kind"]), (StandardScaler(), ["bmi"])), Ridge()
    )
    assert CandidatePerformance(pipeline, loss="absolute", random_state=0).fit(frame, Y).losses_.size == 221


def test_a_model_without_targets_and_one_that_is_not_scikit_learns():
    density = CandidatePerformance(
        KernelDensity(), loss=lambda model, A, _: -model.score_samples(A), random_state=0
    ).fit(X)
    assert density.losses_.size == 221
    plain = CandidatePerformance(NothingReturned(), loss="absolute", random_state=0).fit(X, Y)
    assert plain.losses_.size == 221


def test_it_is_a_scikit_learn_estimator():
    forecast = CandidatePerformance(Ridge(), loss="squared", alpha=0.2)
    assert clone(forecast).get_params()["alpha"] == 0.2
    with pytest.raises(NotFittedError, match="not fitted yet"):
        forecast.interval()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.0}, "alpha must lie strictly between 0 and 1, got 1.0"),
        ({"loss": "mse"}, "loss must be one of squared"),
    ],
)
def test_bad_options_are_refused_when_fitting(options, message):
    with pytest.raises(InputError, match=message):
        CandidatePerformance(Ridge(), **({"loss": "squared"} | options)).fit(X, Y)


def test_lengths_must_agree():
    with pytest.raises(InputError, match="X and y must have the same length, got X: 442, y: 441"):
        CandidatePerformance(Ridge(), loss="squared").fit(X, Y[:-1])
