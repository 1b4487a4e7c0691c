"""Forecasts cover as often as they say: every form, any loss, any algorithm.

One new sample and case per forecast, so the number of hits is binomial with the exact probability
(difference of ranks over n + 1). Continuous losses must meet it from both sides, discrete ones from below.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB

from calipers.conformal import conformal_quantile, conformal_rank
from calipers.datasets import HeavyTailedWorld
from calipers.performance import (
    AlgorithmPerformance,
    CandidatePerformance,
    LossMonitor,
    SymbolicPerformance,
    forecast_losses,
    shifted_intervals,
)
from tests.unit.performance.algorithms import LastRowModel, MeanModel

SURE = 1e-4  # probability that a right program fails one check


@pytest.fixture(params=[1, pytest.param(10, marks=pytest.mark.slow)], ids=["short", "long"])
def times(request):
    """How many times the short run."""
    return request.param


def assert_covers(hits, exact, *, continuous=True):
    """The hits agree with Binomial(runs, exact), or are at least that many."""
    runs, count = len(hits), int(np.sum(hits))
    print(f"covered {count / runs:.4f} of {runs} runs, exact {exact:.4f}")
    assert count >= stats.binom.ppf(SURE, runs, exact), (count / runs, exact)
    if continuous:
        assert count <= stats.binom.isf(SURE, runs, exact), (count / runs, exact)


LOSSES = {
    "exponential": lambda rng, n: rng.exponential(size=n),
    "heavy tail": lambda rng, n: HeavyTailedWorld("pareto", shape=0.8).sample(n, rng),
    "exchangeable, not independent": lambda rng, n: HeavyTailedWorld(scales=(0.1, 10.0)).sample(n, rng),
    "discrete": lambda rng, n: rng.binomial(3, 0.3, size=n),
}


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("n", [19, 58])
def test_candidate_bounds_cover_exactly_their_rank(kind, n, times):
    rng = np.random.default_rng(n)
    hits = {"two-sided": [], "upper": [], "lower": []}
    for _ in range(800 * times):
        *seen, new = LOSSES[kind](rng, n + 1)
        forecast = forecast_losses(seen, 0.2)
        low, high = forecast.interval()
        hits["two-sided"].append(low <= new <= high)
        hits["upper"].append(new <= forecast.upper_bound())
        hits["lower"].append(new >= forecast.lower_bound())
    for side, found in hits.items():
        exact = float(forecast.guarantee(side=side).coverage)
        assert 0.8 <= exact <= 0.8 + 2 / (n + 1)
        assert_covers(found, exact, continuous=kind != "discrete")


def test_coverage_given_the_calibration_set_follows_its_beta_law(times):
    world, rng = HeavyTailedWorld("student", shape=2.1), np.random.default_rng(5)
    given = []
    for _ in range(500 * times):
        forecast = forecast_losses(world.sample(60, rng), 0.1)
        low, high = forecast.interval()
        given.append(float(world.cdf(high) - world.cdf(low)))
    law = forecast.guarantee().law
    assert stats.kstest(given, law.cdf).pvalue > SURE


def heteroscedastic(rng, n):
    """One feature; the noise grows with it, and is heavy-tailed."""
    X = rng.uniform(0, 2, (n, 1))
    return X, X[:, 0] + (0.1 + X[:, 0]) * rng.standard_t(2.5, n)


def trial_loss(model, X, y, x, z):
    """Loss of the algorithm retrained on the sample (X, y), on the case (x, z)."""
    return abs(z - model.fit(X, y).predict(x)[0])


@pytest.mark.parametrize("model", [MeanModel(), LastRowModel()], ids=["symmetric", "order-dependent"])
def test_free_algorithm_intervals_cover_a_retrained_model(model, times):
    rng, hits = np.random.default_rng(11), []
    for _ in range(250 * times):
        X, y = heteroscedastic(rng, 24 * 5 + 3)
        forecast = AlgorithmPerformance(model, loss="absolute", n_points=24, alpha=0.2, random_state=rng).fit(
            X, y
        )
        X_new, y_new = heteroscedastic(rng, forecast.train_size_ + 1)
        loss = trial_loss(model, X_new[1:], y_new[1:], X_new[:1], y_new[0])
        low, high = forecast.interval()
        hits.append(low <= loss <= high)
    assert_covers(hits, float(forecast.guarantee().coverage))


@pytest.mark.parametrize(
    ("modulation", "learner"),
    [("regression", LinearRegression()), ("quantile", (MeanModel(), LinearRegression()))],
)
def test_modulated_intervals_cover_a_retrained_model(modulation, learner, times):
    rng, hits, one_sided = np.random.default_rng(12), [], []
    for _ in range(250 * times):
        X, y = heteroscedastic(rng, 2 * 9 * 5 + 1)
        forecast = AlgorithmPerformance(
            MeanModel(), loss="absolute", n_points=9, modulation=modulation, learner=learner, random_state=rng
        ).fit(X, y)
        X_new, y_new = heteroscedastic(rng, forecast.train_size_ + 1)
        loss = trial_loss(MeanModel(), X_new[1:], y_new[1:], X_new[:1], y_new[0])
        low, high = forecast.predict_interval(X_new[:1], y_new[:1])[0]
        hits.append(low <= loss <= high)
        one_sided.append(loss <= forecast.predict_upper_bound(X_new[:1], y_new[:1])[0])
    assert float(forecast.guarantee().coverage) == 0.9
    assert_covers(hits, 0.9)
    assert_covers(one_sided, 0.9)


class SmoothScorer(BaseEstimator):
    """Three positive probabilities that depend on the case smoothly: no two scores tie."""

    classes_ = np.arange(3)

    def fit(self, X, y):
        self.shift_ = np.bincount(y, minlength=3) / len(y)
        return self

    def predict_proba(self, X):
        logits = np.column_stack([X[:, 0], -X[:, 0], np.sin(X[:, 0])]) + self.shift_
        return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def test_symbolic_sets_cover_the_outcome_of_a_retrained_model(times):
    rng, hits = np.random.default_rng(13), []

    def draw(n):
        y = rng.integers(0, 2, n)
        return rng.normal(size=(n, 1)) + y[:, None], y

    def outcome(model, X, y):
        return np.where(model.predict(X) == y, "right", np.where(y == 1, "missed", "false alarm"))

    algorithm = GaussianNB(var_smoothing=0.1)
    for _ in range(200 * times):
        X, y = draw(3 * 9 * 9)
        forecast = SymbolicPerformance(
            algorithm, outcome=outcome, n_points=9, scorer=SmoothScorer(), learner=(LinearRegression(),),
            features=lambda A, b: np.column_stack([A, b]), outcomes=["right", "missed", "false alarm"], random_state=rng,
        ).fit(X, y)  # fmt: skip
        X_new, y_new = draw(forecast.train_size_ + 1)
        symbol = outcome(algorithm.fit(X_new[1:], y_new[1:]), X_new[:1], y_new[:1])[0]
        hits.append(forecast.predict_set(X_new[:1], y_new[:1])[0, forecast.outcomes_.tolist().index(symbol)])
    assert float(forecast.guarantee().coverage) == 0.9
    assert_covers(hits, 0.9)


def test_batch_forecasts_cover_the_next_batch(times):
    rng, hits, candidate_hits = np.random.default_rng(14), [], []
    for _ in range(200 * times):
        X, y = heteroscedastic(rng, 19 * 7)
        forecast = AlgorithmPerformance(
            MeanModel(), loss="squared", n_points=19, points_per_loss=4, alpha=0.2, random_state=rng
        ).fit(X, y)
        X_new, y_new = heteroscedastic(rng, forecast.train_size_ + 4)
        model = MeanModel().fit(X_new[4:], y_new[4:])
        low, high = forecast.interval()
        hits.append(low <= np.mean((y_new[:4] - model.predict(X_new[:4])) ** 2) <= high)
        candidate = CandidatePerformance(
            FrozenEstimator(model), loss="squared", points_per_loss=4, alpha=0.2, random_state=rng
        ).fit(X, y)
        X_new, y_new = heteroscedastic(rng, 4)
        low, high = candidate.interval()
        candidate_hits.append(low <= np.mean((y_new - model.predict(X_new)) ** 2) <= high)
    assert_covers(hits, float(forecast.guarantee().coverage))
    assert_covers(candidate_hits, float(candidate.guarantee().coverage))


@pytest.mark.parametrize("kind", ["exponential", "exchangeable, not independent", "discrete"])
def test_the_monitor_rarely_raises_a_false_alarm(kind, times):
    rng, alarms, p_values = np.random.default_rng(15), [], []
    for _ in range(250 * times):
        losses = LOSSES[kind](rng, 200)
        monitor = LossMonitor(losses[:50], false_alarm_rate=0.1, random_state=rng).update(losses[50:])
        alarms.append(monitor.alarm_)
        p_values.append(monitor.p_values_)
    assert np.sum(alarms) <= stats.binom.isf(SURE, 250 * times, 0.1)
    assert stats.kstest(np.concatenate(p_values), "uniform").pvalue > SURE


def test_the_monitor_sees_a_drift():
    rng, found = np.random.default_rng(16), []
    for _ in range(60):
        new = np.concatenate([rng.exponential(size=100), 1.6 * rng.exponential(size=300)])
        found.append(LossMonitor(rng.exponential(size=300), random_state=rng).update(new).alarm_)
    assert np.mean(found) > 0.8


def test_weighted_intervals_cover_under_the_shift_and_plain_ones_do_not(times):
    # Loss |noise| (1 + x) with x ~ Exp(1) before and Exp(1/2) after: ratio exp(x / 2) / 2.
    rng, weighted, plain = np.random.default_rng(17), [], []
    for _ in range(600 * times):
        x, x_new = rng.exponential(size=99), rng.exponential(2.0)
        losses, loss = np.abs(rng.normal(size=99)) * (1 + x), abs(rng.normal()) * (1 + x_new)
        bound = shifted_intervals(losses, np.exp(x / 2), [np.exp(x_new / 2)], 0.2, side="upper")[0, 1]
        weighted.append(loss <= bound)
        plain.append(loss <= forecast_losses(losses, 0.2).upper_bound())
    assert_covers(weighted, 0.8, continuous=False)
    assert np.mean(plain) < 0.75


def test_the_naive_cross_validation_interval_loses_coverage():
    """The mean of the losses plus or minus its standard errors is not about the next loss at all."""
    rng, naive, ours = np.random.default_rng(18), [], []
    for _ in range(300):
        *seen, new = HeavyTailedWorld("pareto", shape=1.5).sample(100, rng)
        seen = np.array(seen)
        half_width = stats.norm.ppf(0.95) * seen.std(ddof=1) / np.sqrt(seen.size)
        naive.append(abs(new - seen.mean()) <= half_width)
        ours.append(forecast_losses(seen, 0.1).low <= new <= forecast_losses(seen, 0.1).high)
    assert np.mean(naive) < 0.5
    assert_covers(ours, 0.91)


@pytest.mark.parametrize("n", [19, 24])
def test_full_conformal_regression_covers_between_the_bounds_of_theorem_3(n, times):
    """Y lies in the set of eq. 12 when its residual, of a line through all n + 1 points, ranks low enough."""
    rng = np.random.default_rng(n)
    hits = []
    for _ in range(2000 * times):
        X = np.column_stack([np.ones(n + 1), rng.normal(size=n + 1)])
        y = X @ [1.0, 2.0] + rng.standard_t(2.1, n + 1)
        residuals = np.abs(y - X @ np.linalg.lstsq(X, y, rcond=None)[0])
        hits.append(residuals[-1] <= conformal_quantile(residuals[:-1], 0.1))
    exact = conformal_rank(n, 0.1) / (n + 1)
    assert 0.9 <= exact <= 0.9 + 1 / (n + 1)
    assert_covers(hits, exact)
