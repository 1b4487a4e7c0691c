"""Forecasts, monitors and estimates without labels: does what was forecast happen as often as it was said?"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB

from calipers.performance import (
    AlgorithmPerformance,
    CandidatePerformance,
    GroupMonitor,
    LabelFreePerformance,
    LossMonitor,
    PromiseMonitor,
    RiskMonitor,
    SymbolicPerformance,
    compare_algorithms,
    exchangeability_test,
    forecast_learning_curves,
    forecast_losses,
    shifted_intervals,
)
from tests.grid.coverage_worlds import draw_covered, group_of, level
from tests.grid.readings import Reading
from tests.grid.regimes import Regime
from tests.unit.performance.algorithms import MeanModel

ALPHA = 0.1


def losses(rng: np.random.Generator, n: int, regime: Regime) -> np.ndarray:
    """Losses of independent rows: exponential, nearly all 0, infinite in the mean, few values, or one."""
    if regime.form == "constant":
        return np.full(n, 0.25)
    if regime.form == "ties":
        return rng.binomial(3, 0.3, n) / 4.0
    if regime.model == "near-perfect":
        return rng.exponential(size=n) * (rng.random(n) < 0.02)
    drawn = 1 + rng.pareto(0.8, n) if regime.model == "uneven" else rng.exponential(size=n)
    return drawn.astype(np.float32) if regime.form == "float32" else drawn


def guaranteed(key: str, held: Any, level: float = 1 - ALPHA) -> Reading:
    """A promise that was kept or not."""
    return Reading(key, held=bool(held), level=level)


def next_loss(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the forecast of the next loss."""
    *seen, new = losses(rng, regime.n + 1, regime)
    forecast = forecast_losses(seen, ALPHA)
    low, high = forecast.interval()
    return [
        guaranteed("interval", low <= new <= high),
        guaranteed("upper bound", new <= forecast.upper_bound()),
    ]


def rows_with_noise(rng: np.random.Generator, n: int, regime: Regime) -> tuple[np.ndarray, np.ndarray]:
    """One feature and an outcome whose error is a loss of the regime, of either sign."""
    X = rng.uniform(0, 2, (n, 1))
    return X, X[:, 0] + rng.choice([-1, 1], n) * losses(rng, n, regime)


def candidate(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the forecast for one model."""
    X, y = rows_with_noise(rng, regime.n + 1, regime)
    model = CandidatePerformance(LinearRegression(), loss="absolute", alpha=ALPHA, random_state=rng).fit(
        X[1:], y[1:]
    )
    low, high = model.interval()
    new = abs(y[0] - model.estimator_.predict(X[:1])[0])
    return [guaranteed("interval", low <= new <= high)]


def algorithm(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the forecast for an algorithm that is trained anew."""
    X, y = rows_with_noise(rng, regime.n, regime)
    model = AlgorithmPerformance(
        MeanModel(), loss="absolute", alpha=ALPHA, n_points=19, random_state=rng
    ).fit(X, y)
    return [guaranteed("interval", retrained(rng, regime, model.train_size_, model.interval()))]


def retrained(rng: np.random.Generator, regime: Regime, rows: int, ends: tuple[float, float]) -> bool:
    """Whether the loss of a mean trained on fresh rows lies in the interval."""
    X, y = rows_with_noise(rng, rows + 1, regime)
    return bool(ends[0] <= abs(y[0] - MeanModel().fit(X[1:], y[1:]).predict(X[:1])[0]) <= ends[1])


def compared(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the forecast of the difference of two algorithms: two means, one of which lies."""
    X, y = rows_with_noise(rng, regime.n, regime)
    pair = {"mean": MeanModel(), "zero": LinearRegression()}
    both = compare_algorithms(pair, X, y, loss="absolute", alpha=ALPHA, n_points=19, random_state=rng)
    low, high = both.difference("mean", "zero").interval()
    X, y = rows_with_noise(rng, both.train_size + 1, regime)
    first, second = (abs(y[0] - m.fit(X[1:], y[1:]).predict(X[:1])[0]) for m in pair.values())
    return [guaranteed("difference", low <= first - second <= high)]


def learning_curve(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the forecast at one training size of a learning curve."""
    X, y = rows_with_noise(rng, regime.n, regime)
    curve = forecast_learning_curves(
        {"mean": MeanModel()}, X, y, loss="absolute", train_sizes=[4], alpha=ALPHA, random_state=rng
    )["mean"]
    return [guaranteed("4 rows", retrained(rng, regime, 4, (float(curve.low[0]), float(curve.high[0]))))]


def symbolic(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the set of outcomes of an algorithm trained anew; a near-perfect one is hardly ever wrong."""
    distance = {"near-perfect": 6.0, "hopeless": 0.0}.get(regime.model, 1.5)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        y = rng.permutation(np.arange(n) % 2)
        return rng.normal(size=(n, 1)) + distance * y[:, None], y

    def outcome(model: Any, X: Any, y: Any) -> np.ndarray:
        return np.where(model.predict(X) == y, "right", "wrong")

    learner = GaussianNB(var_smoothing=0.1)
    X, y = draw(regime.n)
    forecast = SymbolicPerformance(
        learner, outcome=outcome, n_points=9, scorer=GaussianNB(var_smoothing=0.1), learner=(LinearRegression(),),
        features=lambda A, b: np.column_stack([A, b]), outcomes=["right", "wrong"], random_state=rng,
    ).fit(X, y)  # fmt: skip
    X, y = draw(forecast.train_size_ + 1)
    order = rng.permutation(len(y))
    X, y = X[order], y[order]
    symbol = outcome(learner.fit(X[1:], y[1:]), X[:1], y[:1])[0]
    held = forecast.predict_set(X[:1], y[:1])[0, forecast.outcomes_.tolist().index(symbol)]
    return [guaranteed("set", held)]


def loss_monitor(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the monitor of losses: no drift, no alarm."""
    drawn = losses(rng, 50 + regime.n, regime)
    monitor = LossMonitor(drawn[:50], false_alarm_rate=0.05, random_state=rng).update(drawn[50:])
    return [guaranteed("no false alarm", not monitor.alarm_, 0.95)]


def promise_monitor(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the monitor of a promise that is kept, at either side."""
    covered, found = draw_covered(rng, rng.random(regime.n), regime), []
    for side in ("under", "both"):
        monitor = PromiseMonitor(alpha=level(regime), side=side, n_calibration=regime.n_calibration).update(
            covered
        )
        found.append(guaranteed(f"no false alarm, {side}", not monitor.alarm_, 0.95))
    return found


def group_monitor(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the monitor of a promise that is kept in four groups, named beforehand or not."""
    x = rng.random(regime.n)
    covered, groups, found = draw_covered(rng, x, regime), group_of(x), []
    for known in (range(4), None):
        monitor = GroupMonitor(known, alpha=level(regime), n_calibration=regime.n_calibration)
        alarm = monitor.update(covered, groups).alarm_
        words = "groups as they appear" if known is None else "known groups"
        found.append(guaranteed(f"no false alarm, {words}", not alarm, 0.95))
    return found


def exchangeable(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the test of exchangeability: half as many test rows as calibration rows, of one law."""
    n = regime.n
    scores = losses(rng, n + n // 2, regime)
    X = np.column_stack([scores, losses(rng, len(scores), regime)])
    table = exchangeability_test(
        X[:n], X[n:], calibration_scores=scores[:n], test_scores=scores[n:], random_state=rng
    )
    adjusted = min(float(e.details["adjusted_p_value"]) for e in table.values())
    single = [
        Reading(key, p_value=e.p_value, asks_test=True, reason=e.reason or "") for key, e in table.items()
    ]
    return [*single, Reading("either", p_value=adjusted, asks_test=True)]


def risk_monitor(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the monitor of a mean loss that is exactly the bound."""
    loss = np.minimum(losses(rng, regime.n, regime), 1.0)
    mean = {"near-perfect": 0.02}.get(regime.model, 1.0) * (1 - np.exp(-1.0))
    mean = {"constant": 0.25, "ties": 0.225}.get(regime.form, mean)
    monitor = RiskMonitor(bound=mean).update(loss)
    return [guaranteed("no false alarm", not monitor.alarm_, 0.95)]


def shifted(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the upper bound under a known shift: x ~ Exp(1) before, Exp(1/2) after."""
    x, new = rng.exponential(size=regime.n), rng.exponential(2.0)
    drawn = losses(rng, regime.n + 1, regime)
    loss = np.abs(drawn[1:]) * (1 + x)
    bound = shifted_intervals(loss, np.exp(x / 2), [np.exp(new / 2)], 0.2, side="upper")[0, 1]
    return [guaranteed("upper bound", drawn[0] * (1 + new) <= bound, 0.8)]


def label_free(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the estimate without labels; the uneven world has moved features."""
    found = []
    shift = 0.7 if regime.model == "uneven" else 0.0
    X, p, y = probabilities(rng, regime.n, 0.0, regime)
    X_new, q, z = probabilities(rng, regime.n, shift, regime)
    for loss, realised in (("zero_one", np.mean((q >= 0.5) != z)), ("brier", np.mean(2 * (q - z) ** 2))):
        e = LabelFreePerformance(loss=loss, random_state=rng).fit(p, y, X).estimate(q, X_new)
        found.append(Reading(loss, e.value, e.low, e.high, float(realised), True, reason=e.reason or ""))
    return found


def probabilities(
    rng: np.random.Generator, n: int, shift: float, regime: Regime
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, probabilities that are too extreme, and labels."""
    X = rng.normal(size=(n, 2))
    X[:, 0] += shift
    strength = {"near-perfect": 12.0, "hopeless": 0.0}.get(regime.model, 1.2)
    odds = strength * (X[:, 0] - 0.6 * X[:, 1])
    y = rng.random(n) < 1 / (1 + np.exp(-odds))
    p = 1 / (1 + np.exp(-1.3 * odds - (regime.model == "hopeless") * X[:, 0]))
    p = np.round(p, 1) if regime.form == "ties" else p
    return X, np.full(n, 0.5) if regime.form == "constant" else p, y.astype(int)
