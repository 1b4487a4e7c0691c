"""The same subsets for all, paired differences, learning curves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.datasets import load_diabetes
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge

from calipers.conformal import conformal_interval
from calipers.exceptions import InputError
from calipers.performance import AlgorithmPerformance, compare_algorithms, forecast_learning_curves
from tests.unit.performance.algorithms import FailsOnLargeMean, MeanModel

X, Y = load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def both():
    models = {"ridge": Ridge(alpha=0.1), "mean": MeanModel()}
    return compare_algorithms(models, X, Y, loss="absolute", n_points=40, random_state=3)


def test_every_algorithm_sees_the_same_subsets_and_cases(both):
    twice = compare_algorithms(
        {"a": MeanModel(), "b": DummyRegressor()}, X, Y, loss="absolute", n_points=40, random_state=3
    )
    assert twice["a"].losses_ == pytest.approx(twice["b"].losses_, rel=1e-12)
    assert twice["a"].losses_ == pytest.approx(both["mean"].losses_, rel=1e-12)
    assert both.train_size == 10


def test_differences_are_forecast_like_losses(both):
    gap = both["ridge"].losses_ - both["mean"].losses_
    forecast = both.difference("ridge", "mean")
    assert forecast.interval() == conformal_interval(gap, 0.1)
    low, high = both.difference("mean", "ridge").interval()
    assert (low, high) != forecast.interval()
    assert "the loss of ridge minus that of mean, both trained anew on 10 rows" in forecast.guarantee_


def test_wins_and_ties_are_counted(both):
    wins = both.beats("ridge", "mean")
    gap = both["ridge"].losses_ - both["mean"].losses_
    assert wins.value == np.mean(gap < 0)
    assert wins.details == {"wins": int((gap < 0).sum()), "ties": 0, "losses": int((gap > 0).sum())}
    expected = binomtest(int((gap < 0).sum()), 40).proportion_ci()
    assert (wins.low, wins.high) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_a_higher_score_wins():
    scores = compare_algorithms(
        {"ridge": Ridge(alpha=0.1), "mean": MeanModel()},
        X,
        Y,
        loss="r2",
        points_per_loss=8,
        n_points=20,
        random_state=0,
    )
    assert scores.beats("ridge", "mean").value == np.mean(scores["ridge"].losses_ > scores["mean"].losses_)


def test_two_failures_are_a_tie():
    failing = compare_algorithms(
        {"a": FailsOnLargeMean(), "b": FailsOnLargeMean()}, X, Y - Y.mean(),
        loss="absolute", n_points=20, on_failure="infinite", random_state=0,
    )  # fmt: skip
    assert np.isinf(failing["a"].losses_).any()
    assert failing.difference("a", "b").losses_.tolist() == [0.0] * 20
    assert failing.beats("a", "b").details["ties"] == 20


def test_tables_hold_every_algorithm_and_every_pair(both):
    assert list(both.table()) == ["ridge", "mean"]
    assert list(both.pairs()) == ["P(ridge beats mean)", "P(mean beats ridge)"]
    text = str(both)
    assert "next loss after training on 10 rows" in text
    assert "P(ridge beats mean)" in text
    with pytest.raises(KeyError, match="'svm' was not compared; there are ridge, mean"):
        both["svm"]


def test_one_algorithm_or_modulation_is_refused():
    with pytest.raises(InputError, match="estimators must hold at least two algorithms, got 1"):
        compare_algorithms({"a": Ridge()}, X, Y, loss="absolute")
    with pytest.raises(InputError, match="modulation must be None in a comparison"):
        compare_algorithms({"a": Ridge(), "b": Ridge()}, X, Y, loss="absolute", modulation="quantile")


def test_a_learning_curve_is_one_forecast_per_size():
    curve = forecast_learning_curves(
        {"mean": MeanModel()}, X, Y, loss="absolute", train_sizes=[20, 5, 40], random_state=0
    )["mean"]
    assert curve.x.tolist() == [5, 20, 40]
    assert curve.details["n_points"] == [73, 21, 10]
    # Ten subsets are too few at alpha = 0.1, and the curve says so.
    assert np.isfinite(curve.high).tolist() == [True, True, False]
    seeds = np.random.default_rng(0).integers(2**31 - 1, size=3).tolist()
    alone = AlgorithmPerformance(MeanModel(), loss="absolute", train_size=20, random_state=seeds[1]).fit(X, Y)
    assert (curve.low[1], curve.high[1]) == alone.interval()
    with pytest.raises(InputError, match="train_sizes must hold at least one size"):
        forecast_learning_curves({"mean": MeanModel()}, X, Y, loss="absolute", train_sizes=[])
