"""ConformalRegressor: intervals of every kind against the definition."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression, QuantileRegressor
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calipers.conformal import ConformalRegressor, conformal_quantile, pac_quantile
from calipers.exceptions import InputError, InputTypeError, SmallSampleWarning, UnseenGroupWarning
from tests.unit.conformal.worlds import FirstColumn


def prefit():
    return FrozenEstimator(FirstColumn())


def spread(X):
    return 1.0 + np.asarray(X)[:, 1]


@pytest.fixture
def world():
    rng = np.random.default_rng(2)
    X = rng.random((150, 2))
    return X, X[:, 0] + spread(X) * rng.normal(size=150), rng.random((40, 2))


def test_absolute_intervals_are_the_prediction_plus_and_minus_the_quantile(world):
    X, y, Z = world
    model = ConformalRegressor(prefit()).conformalize(X, y)
    q = conformal_quantile(np.abs(y - X[:, 0]), 0.1)
    np.testing.assert_array_equal(model.predict_interval(Z), np.stack([Z[:, 0] - q, Z[:, 0] + q], axis=1))
    np.testing.assert_array_equal(model.predict(Z), Z[:, 0])


def test_normalized_intervals_follow_the_difficulty(world):
    X, y, Z = world
    model = ConformalRegressor(prefit(), nonconformity="normalized", difficulty=spread).conformalize(X, y)
    q = conformal_quantile(np.abs(y - X[:, 0]) / spread(X), 0.2)
    intervals = model.predict_interval(Z, 0.2)
    np.testing.assert_allclose(intervals[:, 1] - intervals[:, 0], 2 * q * spread(Z))


def test_quantile_intervals_shift_the_models_own(world):
    X, y, Z = world
    pair = [QuantileRegressor(quantile=0.1, alpha=0), QuantileRegressor(quantile=0.9, alpha=0)]
    model = ConformalRegressor(pair, nonconformity="quantile", alpha=0.2).fit(X[:75], y[:75])
    model.conformalize(X[75:], y[75:])
    low, high = (m.fit(X[:75], y[:75]) for m in pair)
    scores = np.maximum(low.predict(X[75:]) - y[75:], y[75:] - high.predict(X[75:]))
    q = conformal_quantile(scores, 0.2)
    expected = np.stack([low.predict(Z) - q, high.predict(Z) + q], axis=1)
    np.testing.assert_allclose(model.predict_interval(Z), expected)
    np.testing.assert_allclose(model.predict(Z), (low.predict(Z) + high.predict(Z)) / 2)


@pytest.mark.parametrize(
    "model",
    [
        QuantileRegressor(alpha=0),
        GradientBoostingRegressor(loss="quantile", n_estimators=5, random_state=0),
        None,
    ],
)
def test_models_with_a_quantile_parameter_are_fitted_at_both_levels(world, model):
    X, y, Z = world
    ours = ConformalRegressor(model, nonconformity="quantile", alpha=0.2).fit(X[:75], y[:75])
    assert len(ours.estimator_) == 3
    intervals = ours.conformalize(X[75:], y[75:]).predict_interval(Z, [0.2, 0.4])
    assert intervals.shape == (40, 2, 2)
    assert (intervals[:, 0] <= intervals[:, 1]).all()
    assert ours.predict(Z).shape == (40,)


class PredictsQuantiles(RegressorMixin, BaseEstimator):
    """A model that gives any quantile at predict time, as quantile forests do."""

    def fit(self, X, y):
        return self

    def predict(self, X, quantiles=(0.5,)):
        return np.asarray(X)[:, :1] + np.asarray(quantiles)[None, :]


class PredictsBands(RegressorMixin, BaseEstimator):
    """A model whose prediction is a lower and an upper end; some of them crossed."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        middle = np.asarray(X)[:, 0]
        return np.stack([middle + 0.3, middle - 0.3], axis=1)


def test_models_that_predict_quantiles_or_bands_are_used_as_they_are(world):
    X, y, Z = world
    model = ConformalRegressor(PredictsQuantiles(), nonconformity="quantile", alpha=0.2).fit(X, y)
    q = conformal_quantile(np.maximum(X[:, 0] + 0.1 - y, y - X[:, 0] - 0.9), 0.2)
    intervals = model.conformalize(X, y).predict_interval(Z)
    np.testing.assert_allclose(intervals[:, 1], Z[:, 0] + 0.9 + q)
    band = ConformalRegressor(PredictsBands(), nonconformity="quantile").fit(X, y).conformalize(X, y)
    assert (band.predict_interval(Z)[:, 0] <= Z[:, 0]).all()


def test_an_interval_turned_inside_out_collapses_to_its_midpoint():
    X, y = np.zeros((19, 2)), np.zeros(19)
    model = ConformalRegressor(PredictsBands(), nonconformity="quantile").fit(X, y).conformalize(X, y)
    # Every outcome lies 0.3 inside the band, so the ends move 0.3 inwards: exactly onto each other.
    np.testing.assert_allclose(model.predict_interval(X[:1]), [[0.0, 0.0]])
    narrow = np.zeros((1, 2))
    model.calibration_.ordered[:-1] = -0.5
    assert model.predict_interval(narrow).tolist() == [[0.0, 0.0]]


def test_difficulty_is_learnt_from_held_out_residuals_or_taken_from_the_model(world):
    X, y, Z = world
    learnt = ConformalRegressor(nonconformity="normalized", difficulty=LinearRegression()).fit(X[:75], y[:75])
    learnt.conformalize(X[75:], y[75:])
    width = np.diff(learnt.predict_interval(Z), axis=1)[:, 0]
    assert np.corrcoef(width, spread(Z))[0, 1] > 0.8
    default = ConformalRegressor(nonconformity="normalized").fit(X[:75], y[:75]).conformalize(X[75:], y[75:])
    assert np.isfinite(default.predict_interval(Z)).all()
    process = ConformalRegressor(
        GaussianProcessRegressor(alpha=0.5, optimizer=None), nonconformity="normalized"
    ).fit(X[:75], y[:75])
    assert process.difficulty_ is None
    half = np.diff(process.conformalize(X[75:], y[75:]).predict_interval(Z), axis=1)[:, 0] / 2
    std = process.estimator_.predict(Z, return_std=True)[1]
    np.testing.assert_allclose(half / std, (half / std)[0])


def test_alpha_of_the_constructor_is_the_default_and_lists_add_an_axis(world):
    X, y, Z = world
    model = ConformalRegressor(prefit(), alpha=0.3).conformalize(X, y)
    both = model.predict_interval(Z, [0.3, 0.1])
    assert both.shape == (40, 2, 2)
    np.testing.assert_array_equal(model.predict_interval(Z), both[:, :, 0])


def test_too_few_rows_give_infinite_intervals_and_say_how_many_are_needed(world):
    X, y, Z = world
    model = ConformalRegressor(prefit()).conformalize(X[:8], y[:8])
    with pytest.warns(
        SmallSampleWarning, match=r"With 8 calibration rows no interval is finite at alpha=0\.05; 19"
    ):
        intervals = model.predict_interval(Z, 0.05)
    assert (intervals == [-np.inf, np.inf]).all()
    assert np.isfinite(model.conformalize(X[:9], y[:9]).predict_interval(Z, 0.1)).all()


def test_an_unseen_group_gets_the_whole_line_never_zero(world):
    X, y, Z = world
    model = ConformalRegressor(prefit()).conformalize(X, y, groups=np.arange(150) % 2)
    with pytest.warns(UnseenGroupWarning, match="1 of 40 rows"):
        intervals = model.predict_interval(Z, 0.1, groups=[0] * 39 + [7])
    assert (intervals[39] == [-np.inf, np.inf]).all()
    assert np.isfinite(intervals[:39]).all()
    own = conformal_quantile(np.abs(y - X[:, 0])[::2], 0.1)
    np.testing.assert_allclose(intervals[:39, 1] - Z[:39, 0], own)


def test_the_pac_guarantee_takes_the_pac_quantile(world):
    X, y, Z = world
    model = ConformalRegressor(prefit(), guarantee="pac", delta=0.01).conformalize(X, y)
    q = pac_quantile(np.abs(y - X[:, 0]), 0.1, delta=0.01)
    np.testing.assert_allclose(model.predict_interval(Z)[:, 1], Z[:, 0] + q)
    model.conformalize(X[:40], y[:40])
    with pytest.warns(
        SmallSampleWarning, match=r"With 40 calibration rows no interval is finite at alpha=0\.1; 44"
    ):
        assert np.isinf(model.predict_interval(Z)).all()


def test_p_values_of_outcomes_exceed_alpha_exactly_inside_the_interval(world):
    X, y, _ = world
    model = ConformalRegressor(prefit()).conformalize(X[:50], y[:50])
    p = model.predict_p(X[50:], y[50:])
    for alpha in (0.1, 0.25, 0.5):
        low, high = model.predict_interval(X[50:], alpha).T
        np.testing.assert_array_equal(p > alpha, (low <= y[50:]) & (y[50:] <= high))
    assert (model.predict_p(X[50:], y[50:], tau=0.5) < p).all()


def test_it_lives_in_pipelines_and_scores():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=200)
    model = make_pipeline(StandardScaler(), ConformalRegressor(calibration_size=0.5, random_state=0))
    assert cross_val_score(model, X, y, cv=3).min() > 0.9


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda X, y: ConformalRegressor(prefit(), nonconformity="abs").conformalize(X, y),
            InputError,
            "nonconformity must be one of absolute",
        ),
        (
            lambda X, y: ConformalRegressor(prefit(), guarantee="exact").conformalize(X, y),
            InputError,
            'guarantee must be "marginal" or "pac"',
        ),
        (
            lambda X, y: ConformalRegressor(prefit(), nonconformity="normalized").conformalize(X, y),
            InputError,
            "needs a difficulty",
        ),
        (
            lambda X, y: ConformalRegressor(
                prefit(), nonconformity="normalized", difficulty=lambda X: X[:, 0] - 0.5
            ).conformalize(X, y),
            InputError,
            "difficulty must be positive, got .* at row",
        ),
        (
            lambda X, y: ConformalRegressor(nonconformity="normalized", difficulty=3).fit(X, y),
            InputTypeError,
            "difficulty must be a function",
        ),
        (
            lambda X, y: ConformalRegressor(prefit(), nonconformity="quantile").conformalize(X, y),
            InputError,
            "needs a model with a quantile parameter",
        ),
        (
            lambda X, y: ConformalRegressor([LinearRegression()], nonconformity="quantile").fit(X, y),
            InputError,
            "must hold two",
        ),
        (lambda X, y: ConformalRegressor(prefit()).conformalize(X, y[:-1]), InputError, "same length"),
        (
            lambda X, y: ConformalRegressor(prefit()).conformalize(X, np.where(y > 0, np.nan, y)),
            InputError,
            "y has .* NaN",
        ),
        (lambda X, y: ConformalRegressor().fit(X, np.stack([y, y], axis=1)), InputError, "got 2 columns"),
        (lambda X, y: ConformalRegressor(prefit()).predict_interval(X), NotFittedError, "not conformalized"),
        (
            lambda X, y: ConformalRegressor(alpha=90).fit(X, y),
            InputError,
            "alpha must lie strictly .* got 90",
        ),
    ],
)
def test_bad_input_is_refused_by_name(world, call, error, message):
    with pytest.raises(error, match=message):
        call(*world[:2])


def test_the_predictor_says_how_many_rows_calibrated_it():
    X, y = np.arange(40.0)[:, None], np.arange(40.0)
    split = ConformalRegressor(calibration_size=0.25, random_state=0).fit(X, y)
    assert split.n_calibration_ == 10
    assert split.conformalize(X[:7], y[:7]).n_calibration_ == 7
    assert not hasattr(split.set_params(calibration_size=None).fit(X, y), "n_calibration_")
