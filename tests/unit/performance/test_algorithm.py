"""Algorithm forecasts: free and modulated, failures, batches, what is refused."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, QuantileRegressor, Ridge
from sklearn.naive_bayes import GaussianNB

from calipers.conformal import conformal_interval, conformal_quantile
from calipers.exceptions import FitError, InputError, InputTypeError, SmallSampleWarning
from calipers.performance import AlgorithmPerformance
from calipers.performance.splitting import plan_blocks
from tests.unit.performance.algorithms import FailsOnLargeMean, MeanModel, NothingReturned

X, Y = load_diabetes(return_X_y=True)


def blocks_of(forecast, parts):
    """The plan the forecast must have made from its seed."""
    order, _, _ = np.random.default_rng(forecast.random_state).spawn(3)
    return plan_blocks(
        len(Y),
        n_points=forecast.n_points,
        train_size=forecast.train_size,
        points_per_loss=forecast.points_per_loss,
        parts=parts,
        alpha=forecast.alpha,
        generator=order,
    )


def brute_losses(train, evaluate):
    """One Ridge per block, by hand."""
    return np.array(
        [
            abs(Y[e[0]] - Ridge().fit(X[t], Y[t]).predict(X[e])[0])
            for t, e in zip(train, evaluate, strict=True)
        ]
    )


def test_free_losses_are_one_fit_and_one_point_per_block():
    forecast = AlgorithmPerformance(Ridge(), loss="absolute", n_points=40, random_state=5).fit(X, Y)
    plan = blocks_of(forecast, 1)
    assert forecast.losses_ == pytest.approx(brute_losses(plan.train[0], plan.evaluate[0]), rel=1e-10)
    assert forecast.interval() == conformal_interval(forecast.losses_, 0.1)
    assert (forecast.n_points_, forecast.train_size_, forecast.discarded_rows_.size) == (40, 10, 2)


def test_the_sentence_names_the_training_size_and_the_random_order():
    forecast = AlgorithmPerformance(Ridge(), loss="absolute", n_points=10, random_state=0).fit(X, Y)
    sentence = forecast.guarantee_
    assert "trained anew on 43 rows" in sentence
    assert "random order" in sentence
    assert "10 losses are fewer than the 20 needed at alpha = 0.1 (880 rows)" in sentence


def test_fixed_width_is_eq_23_and_24():
    forecast = AlgorithmPerformance(
        Ridge(), loss="absolute", n_points=20, modulation="regression", learner=LinearRegression(),
        features=lambda A, y: np.column_stack([A[:, 2], y]), random_state=5,
    ).fit(X, Y)  # fmt: skip
    plan = blocks_of(forecast, 2)
    (learn, calibrate), points = (
        (brute_losses(t, e) for t, e in zip(plan.train, plan.evaluate, strict=True)),
        plan.evaluate[..., 0],
    )
    inputs = np.column_stack([X[:, 2], Y])
    model = LinearRegression().fit(inputs[points[0]], learn)
    half_width = conformal_quantile(np.abs(model.predict(inputs[points[1]]) - calibrate), 0.1)
    # An absolute error is not negative.
    expected = np.maximum(model.predict(inputs[:7])[:, None] + np.array([-half_width, half_width]), 0)
    assert forecast.predict_interval(X[:7], Y[:7]) == pytest.approx(expected, rel=1e-9)
    assert forecast.losses_ == pytest.approx(calibrate, rel=1e-10)


def test_variable_width_is_eq_25_and_26():
    forecast = AlgorithmPerformance(
        Ridge(), loss="absolute", n_points=20, alpha=0.2, modulation="quantile",
        learner=QuantileRegressor(alpha=0.0), features=lambda A, y: A[:, 2], random_state=6,
    ).fit(X, Y)  # fmt: skip
    plan = blocks_of(forecast, 2)
    learn, calibrate = (brute_losses(t, e) for t, e in zip(plan.train, plan.evaluate, strict=True))
    points = plan.evaluate[..., 0]
    low, high = (QuantileRegressor(quantile=q, alpha=0.0).fit(X[points[0], 2:3], learn) for q in (0.1, 0.9))

    def ends(rows):
        both = np.column_stack([low.predict(X[rows, 2:3]), high.predict(X[rows, 2:3])])
        return np.sort(both, axis=1)

    seen = ends(points[1])
    scores = np.maximum(calibrate - seen[:, 1], seen[:, 0] - calibrate)
    correction = conformal_quantile(scores, 0.2)
    expected = np.maximum(ends(np.arange(7)) + np.array([-correction, correction]), 0)
    assert forecast.predict_interval(X[:7], Y[:7]) == pytest.approx(expected, rel=1e-6)


def absolute(model, A, y):
    """An absolute error that nobody knows to be positive."""
    return np.abs(model.predict(A) - y)


def test_one_sided_modulated_bound_uses_signed_scores():
    forecast = AlgorithmPerformance(
        Ridge(),
        loss=absolute,
        n_points=20,
        modulation="regression",
        learner=LinearRegression(),
        random_state=5,
    ).fit(X, Y)
    bound, interval = forecast.predict_upper_bound(X, Y), forecast.predict_interval(X, Y)
    centre = interval.mean(axis=1)
    assert bound - centre == pytest.approx(conformal_quantile(forecast.modulation_.upper_scores, 0.1))
    assert (bound <= interval[:, 1] + 1e-9).all()


@pytest.mark.parametrize("modulation", ["regression", "quantile"])
def test_too_few_points_give_infinite_intervals_not_the_largest_score(modulation):
    # Algorithm 3's min{1, .} would silently use the maximum: ceil(9 x 0.9) = 9 > 8.
    forecast = AlgorithmPerformance(
        Ridge(), loss="absolute", n_points=8, modulation=modulation, random_state=0
    ).fit(X, Y)
    assert forecast.predict_interval(X[:2], Y[:2]).tolist() == [[0, math.inf]] * 2
    assert "8 losses are fewer than the 9 needed" in forecast.guarantee_
    assert np.isfinite(forecast.predict_interval(X[:2], Y[:2], alpha=0.2)).all()


def test_the_defaults_keep_training_samples_large_and_say_which_size_they_chose():
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(300, 2)), rng.normal(size=300)
    with pytest.warns(SmallSampleWarning, match=r"training samples of 14 rows, 4.7 % of the 300 at hand"):
        forecast = AlgorithmPerformance(Ridge(), loss="absolute", random_state=0).fit(A, b)
    assert (forecast.n_points_, forecast.train_size_) == (20, 14)
    assert np.isfinite(forecast.interval()).all()
    sentence = forecast.guarantee_
    assert "it speaks of training samples of 14 rows, not of the 300 at hand" in sentence
    assert "Luo and Barber 2024" in sentence
    assert "train_size=14" in repr(forecast.forecast_)
    assert forecast.forecast_.to_estimate().details["train_size"] == 14
    # A size that was asked for needs no warning.
    assert (
        AlgorithmPerformance(Ridge(), loss="absolute", train_size=14, random_state=0).fit(A, b).n_points_
        == 20
    )


def test_known_bounds_of_a_loss_are_ends_where_there_are_too_few_losses():
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(60, 2)), rng.normal(size=60)
    few = AlgorithmPerformance(Ridge(), loss="absolute", train_size=5, random_state=0).fit(A, b)
    assert few.n_points_ == 10
    assert few.interval() == (0.0, math.inf)
    assert (
        "the upper end is infinite and the lower end is the least a loss can be because 10" in few.guarantee_
    )
    labels = (b > 0).astype(int)
    wrong = AlgorithmPerformance(GaussianNB(), loss="zero_one", train_size=5, random_state=0).fit(A, labels)
    assert wrong.interval() == (0.0, 1.0)
    assert wrong.upper_bound() == 1.0
    # A failed fit counts as infinite: then 1 is not a limit.
    failing = AlgorithmPerformance(
        GaussianNB(), loss="zero_one", train_size=5, on_failure="infinite", random_state=0
    ).fit(A, labels)
    assert failing.interval() == (0.0, math.inf)


@pytest.mark.parametrize(
    "learner",
    [
        None,
        GradientBoostingRegressor(loss="quantile", n_estimators=5),
        (LinearRegression(), LinearRegression()),
    ],
)
def test_any_quantile_learner_will_do(learner):
    forecast = AlgorithmPerformance(
        MeanModel(), loss="absolute", n_points=20, modulation="quantile", learner=learner, random_state=0
    ).fit(X, Y)
    ends = forecast.predict_interval(X[:5], Y[:5])
    assert (ends[:, 0] <= ends[:, 1]).all()


def test_without_the_forest_boosting_with_pinball_loss_steps_in(monkeypatch):
    monkeypatch.setattr("calipers.performance.learners.is_installed", lambda name: False)
    forecast = AlgorithmPerformance(
        MeanModel(), loss="absolute", n_points=40, modulation="quantile", random_state=0
    ).fit(X, Y)
    assert np.isfinite(forecast.predict_interval(X[:5], Y[:5])).all()


def test_a_learner_that_cannot_predict_quantiles_is_refused():
    with pytest.raises(
        InputTypeError, match="learner must be able to predict quantiles, LinearRegression cannot"
    ):
        AlgorithmPerformance(
            MeanModel(), loss="absolute", n_points=9, modulation="quantile", learner=LinearRegression()
        ).fit(X, Y)


def test_an_empty_quantile_set_becomes_its_midpoint():
    # Equal losses: every score is 0 minus the width of the predicted interval, so corrections are negative.
    wide = (MeanModel(), MeanModel())
    forecast = AlgorithmPerformance(
        MeanModel(), loss=lambda m, A, y: np.zeros(len(A)), n_points=20, modulation="quantile", learner=wide
    ).fit(X, Y)
    assert (forecast.predict_interval(X[:3], Y[:3]) == 0).all()


def test_batches_in_all_algorithm_forms():
    free = AlgorithmPerformance(Ridge(), loss="r2", n_points=20, points_per_loss=10, random_state=0).fit(X, Y)
    assert free.evaluation_rows_.shape == (20, 10)
    assert free.train_size_ == 12
    for modulation in ("regression", "quantile"):
        forecast = AlgorithmPerformance(
            Ridge(), loss="absolute", n_points=10, points_per_loss=5, modulation=modulation, random_state=0
        ).fit(X, Y)
        assert forecast.predict_interval(X[:15], Y[:15]).shape == (3, 2)
        assert "a new batch of 5 rows" in forecast.guarantee_
        with pytest.raises(InputError, match="whole batches of points_per_loss=5 rows, got 14 rows"):
            forecast.predict_interval(X[:14], Y[:14])


def test_a_failed_fit_is_raised_with_its_subset():
    with pytest.raises(
        FitError, match="training subset 0 of 40 failed: ValueError: mean too large"
    ) as caught:
        AlgorithmPerformance(FailsOnLargeMean(), loss="absolute", n_points=40, random_state=0).fit(X, Y)
    assert "raise ValueError" in caught.value.__notes__[0]


def test_failed_fits_count_as_infinite_on_request():
    forecast = AlgorithmPerformance(
        FailsOnLargeMean(), loss="absolute", n_points=40, on_failure="infinite", random_state=0
    ).fit(X, Y - Y.mean())
    failed = sorted(forecast.failures_)
    assert 5 < len(failed) < 35
    assert np.flatnonzero(np.isinf(forecast.losses_)).tolist() == failed
    assert forecast.interval()[1] == math.inf
    assert forecast.failures_[failed[0]] == "ValueError: mean too large"
    modulated = clone(forecast).set_params(modulation="regression", n_points=20).fit(X, Y - Y.mean())
    assert modulated.predict_interval(X[:1], Y[:1])[0, 1] == math.inf


def test_frames_and_text_targets_feed_the_auxiliary_learner():
    frame = pl.DataFrame({"sex": np.where(X[:, 1] > 0, "f", "m"), "bmi": X[:, 2]})
    forecast = AlgorithmPerformance(
        MeanModel(), loss="absolute", n_points=20, modulation="regression", random_state=0
    ).fit(frame, Y)
    assert np.isfinite(forecast.predict_interval(frame[:3], Y[:3])).all()
    only_m = frame.filter(pl.col("sex") == "m")[:3]
    assert np.isfinite(forecast.predict_interval(only_m, Y[:3])).all()
    with pytest.raises(InputError, match="X must have the columns it was fitted with"):
        forecast.predict_interval(frame.rename({"bmi": "other"})[:3], Y[:3])


def test_an_algorithm_that_is_not_scikit_learns():
    forecast = AlgorithmPerformance(NothingReturned(), loss="absolute", n_points=30, random_state=0).fit(X, Y)
    assert np.isfinite(forecast.losses_).all()


def test_wrong_questions_are_answered_with_the_right_one():
    free = AlgorithmPerformance(MeanModel(), loss="absolute", n_points=20, random_state=0)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        free.interval()
    with pytest.raises(InputError, match=r"use interval\(\), or fit with modulation="):
        free.fit(X, Y).predict_interval(X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"modulation": "forest"}, 'modulation must be None, "regression" or "quantile", got \'forest\''),
        ({"on_failure": "skip"}, 'on_failure must be "raise" or "infinite", got \'skip\''),
        ({"cache": "folder"}, "cache needs an integer random_state"),
        ({"inner_threads": 0}, "inner_threads must be a whole number of at least 1, got 0"),
        ({"alpha": -0.1}, "alpha must lie strictly between 0 and 1, got -0.1"),
    ],
)
def test_bad_options_are_refused_before_any_fit(options, message):
    with pytest.raises(InputError, match=message):
        AlgorithmPerformance(MeanModel(), **({"loss": "absolute", "n_points": 20} | options)).fit(X, Y)


def test_it_is_a_scikit_learn_estimator():
    forecast = AlgorithmPerformance(Ridge(alpha=3), loss="absolute", n_points=20)
    assert clone(forecast).get_params()["estimator__alpha"] == 3
