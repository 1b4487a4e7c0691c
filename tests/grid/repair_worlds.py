"""Conformal predictors, calibrators and certificates: one new row per calibration set, or a known truth."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy import stats
from sklearn.frozen import FrozenEstimator

from calipers.calibration import (
    CalibrationConstrainedClassifier,
    ConditionalCalibrator,
    IsotonicCalibrator,
    VennAbersCalibrator,
    cost_curve,
    loss_ratio,
)
from calipers.conformal import (
    AdaptiveConformal,
    ConformalClassifier,
    ConformalRegressor,
    TransductiveKNNClassifier,
    conformal_interval,
    conformal_p_values,
    conformal_quantile,
    pac_quantile,
    transductive_p_values,
    tune_predictor,
)
from calipers.difficulty import DifficultyBins
from calipers.metrics import calibration_error, selective_risk, selective_threshold
from calipers.metrics.reliability import in_sample_isotonic_bound
from calipers.performance import SelectiveClassifier
from tests.grid.forecast_worlds import guaranteed, losses
from tests.grid.probability_worlds import stated, true_probability
from tests.grid.readings import Reading, estimate_reading
from tests.grid.regimes import Regime, places, population_places, single
from tests.unit.conformal.worlds import FirstColumn, KnownProbabilities, labelled

ALPHA = 0.1
CONCENTRATION = {"near-perfect": 0.01, "hopeless": 100.0}


def cut(regime: Regime) -> int:
    """Rows of the calibration set."""
    return regime.n_calibration or regime.n


def quantile(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the conformal quantile and interval of scores."""
    *seen, new = losses(rng, cut(regime) + 1, regime)
    low, high = conformal_interval(seen, ALPHA)
    return [
        guaranteed("quantile", new <= conformal_quantile(seen, ALPHA)),
        guaranteed("interval", low <= new <= high),
    ]


def pac(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the threshold whose coverage is 1 - alpha with probability 0.9; uniform scores cover q."""
    q = pac_quantile(rng.random(cut(regime)), ALPHA, delta=0.1)
    return [guaranteed("coverage of the threshold", q >= 1 - ALPHA, 0.9)]


def rows_of(rng: np.random.Generator, regime: Regime) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of four labels, rounded where rows tie, and labels; the last row is new."""
    P, y = labelled(rng, cut(regime) + 1, concentration=CONCENTRATION.get(regime.model, 0.8))
    if regime.form in ("ties", "constant"):
        P = np.round(P, 1 if regime.form == "ties" else 0) * (regime.form == "ties") + 1e-3
        P = P / P.sum(axis=1, keepdims=True)
    return P.astype(np.float32) if regime.form == "float32" else P, y


def classifier(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of sets by three scores, and of sets that promise coverage for every label."""
    P, y = rows_of(rng, regime)
    model, found = FrozenEstimator(KnownProbabilities(labels=range(4))), []
    for score in ("lac", "aps", "saps"):
        fitted = ConformalClassifier(model, nonconformity=score).conformalize(P[:-1], y[:-1])
        found.append(guaranteed(score, fitted.predict_set(P[-1:], ALPHA)[0, y[-1]]))
    by_label = ConformalClassifier(model, label_conditional=True).conformalize(P[:-1], y[:-1])
    return [*found, guaranteed("by label", by_label.predict_set(P[-1:], ALPHA)[0, y[-1]])]


def p_values(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of p-values of the true label: at most u with probability at most u."""
    *seen, new = losses(rng, cut(regime) + 1, regime)
    found = []
    for smoothed in (False, True):
        p = conformal_p_values(seen, [new], smoothed=smoothed, random_state=rng)[0]
        found.append(Reading("smoothed" if smoothed else "plain", p_value=float(p), asks_test=True))
    return found


def regressor(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of intervals; with the stronger guarantee the coverage given the calibration set is looked at."""
    n = cut(regime)
    X = rng.random((n + 1, 1))
    y = X[:, 0] + rng.choice([-1, 1], n + 1) * losses(rng, n + 1, regime)
    model = ConformalRegressor(FrozenEstimator(FirstColumn())).conformalize(X[:-1], y[:-1])
    low, high = model.predict_interval(X[-1:], ALPHA)[0]
    strict = ConformalRegressor(FrozenEstimator(FirstColumn()), guarantee="pac", delta=0.1)
    strict.conformalize(np.zeros((n, 1)), rng.random(n))
    width = strict.predict_interval(np.zeros((1, 1)), ALPHA)[0, 1]
    return [guaranteed("interval", low <= y[-1] <= high), guaranteed("pac", width >= 1 - ALPHA, 0.9)]


def adaptive(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the level that follows misses: the share of misses along time, on rows that drift at will."""
    n, step = regime.n, 0.05
    X = np.zeros((n + 50, 1))
    drift = np.linspace(1.0, 20.0 if regime.model == "uneven" else 1.0, len(X))
    y = drift * losses(rng, len(X), regime) + (regime.model == "hopeless") * 100.0 * (np.arange(len(X)) >= 50)
    predictor = ConformalRegressor(FrozenEstimator(FirstColumn())).conformalize(X[:50], y[:50])
    missed = []
    for window in (None, 30):
        model = AdaptiveConformal(predictor, alpha=ALPHA, step=step, window=window)
        model.run(X[50:], y[50:])
        missed.append(1 - np.mean(model.covered_))
    bound = (1 - ALPHA + step) / (step * n)
    words = ("scores stay", "scores of the last rows")
    held = [abs(share - ALPHA) <= bound + 1e-12 for share in missed]
    return [guaranteed(key, kept, 1.0) for key, kept in zip(words, held, strict=True)]


def transductive(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of full conformal prediction by neighbours; on a grid distances tie and labels are rare."""
    n = cut(regime) + 1
    y = rng.permutation(np.arange(n) % 3)
    distance = {"near-perfect": 5.0, "hopeless": 0.0}.get(regime.model, 1.0)
    X = rng.normal(size=(n, 2)) + distance * y[:, None]
    X = np.round(X) if regime.form == "ties" else np.zeros_like(X) if regime.form == "constant" else X
    model = TransductiveKNNClassifier(n_neighbors=3).fit(X[:-1], y[:-1])
    p = model.predict_p(X[-1:])[0, y[-1]]
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    other = transductive_p_values(
        distances[:-1, :-1], y[:-1], distances[-1:, :-1], smoothed=True, n_neighbors=3, random_state=rng
    )[0, y[-1]]
    return [Reading(key, p_value=float(q), asks_test=True) for key, q in (("plain", p), ("smoothed", other))]


def bins(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of thresholds per bin of difficulty; a new row is covered whatever its bin."""
    P, y = rows_of(rng, regime)
    grouping = DifficultyBins(n_bins=4, n_transforms=3, scale=0.1, random_state=rng)
    model = ConformalClassifier(FrozenEstimator(KnownProbabilities(labels=range(4))), groups=grouping)
    model.conformalize(P[:-1], y[:-1])
    if model.grouping_.guarantee_ != "group-conditional":
        reason = "edges at tied values: the guarantee is called approximate"
        return [Reading("set", asks_interval=True, reason=reason)]
    return [guaranteed("set", model.predict_set(P[-1:], ALPHA)[0, y[-1]])]


def tuned(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of a predictor that was chosen among three on other rows."""
    P, y = rows_of(rng, regime)
    model = FrozenEstimator(KnownProbabilities(labels=range(4)))
    grid = {score: ConformalClassifier(model, nonconformity=score) for score in ("lac", "aps", "margin")}
    best = tune_predictor(grid, P[:-1], y[:-1], tune=lambda y, sets, X: -float(sets.sum()), random_state=rng)
    return [guaranteed("set", best.predictor.predict_set(P[-1:], ALPHA)[0, y[-1]])]


def scores_and_outcomes(rng: np.random.Generator, regime: Regime, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Stated probabilities and outcomes of the probability worlds."""
    x, _ = places(rng, Regime(n, regime.model, regime.form, regime.events))
    f = stated(x, regime)
    return f, (rng.random(n) < true_probability(f, regime)).astype(int)


def isotonic(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of isotonic calibration: no error on its own rows, and an error on all rows below its bound."""
    f, y = scores_and_outcomes(rng, regime, regime.n)
    fitted = IsotonicCalibrator(pos_label=1).fit(f, y)
    own = float(calibration_error(y, fitted.predict(f), pos_label=1, n_draws=1, random_state=rng))
    grid = stated(population_places(regime, 2000), regime)
    error = population_error(fitted.predict(grid), true_probability(grid, regime))
    bound = in_sample_isotonic_bound(regime.n)
    return [guaranteed("own rows", own < 1e-9, 1.0), guaranteed("population", error <= bound, 0.95)]


def population_error(g: np.ndarray, eta: np.ndarray) -> float:
    """Largest |E[(Y - g) 1{g in I}]| over intervals I, equal places, blocks of equal g kept whole."""
    order = np.argsort(g, kind="stable")
    walk = np.cumsum((eta - g)[order]) / len(g)
    ends = walk[np.append(np.diff(g[order]) > 0, True)]
    return float(max(0.0, ends.max()) - min(0.0, ends.min()))


def venn_abers(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of Venn-Abers: the probability of what happened has no bias, over 30 calibration sets of one row each."""
    gaps = []
    for _ in range(30):
        f, y = scores_and_outcomes(rng, regime, cut(regime) + 1)
        if len(set(y[:-1])) < 2 and regime.events is not None:
            continue
        pair = VennAbersCalibrator(pos_label=1).fit(f[:-1], y[:-1]).predict_interval(f[-1:])
        gaps.append(y[-1] - pair[0, int(y[-1])])
    p = float(stats.ttest_1samp(gaps, 0.0).pvalue) if np.std(gaps) > 0 else 1.0
    return [Reading("bias", p_value=p, asks_test=True)]


def leaves_alone(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the calibrator that tests first: a calibrated model is left alone in 95 of 100 runs."""
    f, y = scores_and_outcomes(rng, regime, regime.n)
    fitted = ConditionalCalibrator(pos_label=1, random_state=rng).fit(f, y)
    return [guaranteed("left alone", not fitted.needed_, 0.95)]


def constrained(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the certificate of a constrained classifier, against its error on 20 000 places."""

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.normal(size=(n, 2))
        X = np.round(X) if regime.form == "ties" else X
        strength = {"near-perfect": 8.0, "hopeless": 0.0}.get(regime.model, 1.0)
        return X, 1 / (1 + np.exp(-strength * (X[:, 0] + X[:, 1])))

    X, eta = draw(regime.n)
    y = rng.random(regime.n) < eta
    y[:2] = [True, False]
    model = CalibrationConstrainedClassifier("log", calibration_size=0.5, random_state=rng).fit(X, y)
    fresh, eta = draw(20_000)
    error = population_error(model.predict_proba(fresh)[:, 1], eta)
    return [guaranteed("certificate", error <= model.certificate_.high, 0.95)]


@cache
def costs_at(regime: Regime, threshold: float) -> tuple[float, float]:
    """Expected cost before and after the true probabilities are told, false positives costing the threshold."""
    f = stated(population_places(regime), regime)
    eta = true_probability(f, regime)
    cost = [np.mean(np.where(p >= threshold, threshold * (1 - eta), (1 - threshold) * eta)) for p in (f, eta)]
    return float(cost[0]), float(cost[1])


def ratio(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the ratio of losses at moderate and at extreme costs."""
    f, y = scores_and_outcomes(rng, regime, regime.n)
    found = []
    for cost in (0.05, 0.3):
        before, after = costs_at(regime, cost)
        e = loss_ratio(
            y, f, true_probability(f, regime), false_positive_cost=cost, false_negative_cost=1 - cost,
            pos_label=1, random_state=rng,
        )  # fmt: skip
        truth = after / before if before > 0 else None
        found.append(estimate_reading(f"costs {cost:g}", e, truth, interval=True, test=False))
    return found


def costs(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the average cost at three thresholds."""
    f, y = scores_and_outcomes(rng, regime, regime.n)
    at = (0.05, 0.5, 0.95)
    curve = cost_curve(y, f, thresholds=at, pos_label=1)
    return [
        Reading(
            f"threshold {t:g}",
            float(value),
            float(low),
            float(high),
            costs_at(regime, t)[0],
            asks_interval=True,
        )
        for t, value, low, high in zip(at, curve.y, curve.low, curve.high, strict=True)
    ]


def error_at(x: np.ndarray, regime: Regime) -> np.ndarray:
    """Probability of an error at certainty x."""
    if regime.model == "uneven":
        return 0.25 + 0.2 * np.sin(8 * x)
    return {"near-perfect": 0.01, "hopeless": 0.0}.get(regime.model, 0.6) * (1 - x) + 0.5 * (
        regime.model == "hopeless"
    )


@cache
def errors_above(regime: Regime) -> tuple[np.ndarray, np.ndarray]:
    """Certainties of the population, rising, and the expected loss from each on."""
    x = population_places(regime, 100_000)
    total = np.cumsum(error_at(x, regime)[::-1])[::-1]
    return x, np.append(total / np.arange(len(x), 0, -1), 0.0)


def mean_error_above(threshold: Any, regime: Regime) -> np.ndarray:
    """Expected loss of new rows at least as certain as the threshold."""
    x, means = errors_above(regime)
    return means[np.searchsorted(x, np.asarray(threshold, dtype=float) - 1e-6)]


def threshold(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the certified share: the risk of the rows kept is at most 0.2."""
    x, _ = places(rng, regime)
    wrong = (rng.random(len(x)) < error_at(x, regime)).astype(float)
    e = selective_threshold(wrong, x.astype(np.float32) if regime.form == "float32" else x, risk=0.2)
    at = e.details["threshold"]
    risk = 0.0 if at is None or not e.value else float(mean_error_above(at, regime))
    return [guaranteed("risk of the rows kept", risk <= 0.2 + 1e-3, 0.95)]


def silent(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the classifier that answers where it is certain: new answers are wrong in at most a fifth."""
    x, _ = places(rng, regime)
    y = np.where(rng.random(len(x)) < error_at(x, regime), 0, 1)
    P = np.column_stack([(1 - x) / 2, (1 + x) / 2])
    model = SelectiveClassifier(FrozenEstimator(KnownProbabilities(labels=range(2))), risk=0.2)
    model.certify(single(P) if regime.form == "float32" else P, y)
    answers = np.isfinite(model.threshold_)
    risk = float(mean_error_above(2 * model.threshold_ - 1, regime)) if answers else 0.0
    return [guaranteed("answers", risk <= 0.2 + 1e-3, 0.95)]


def risk_band(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the band of the selective risk, at all shares at once."""
    x, _ = places(rng, regime)
    wrong = (rng.random(len(x)) < error_at(x, regime)).astype(float)
    curve = selective_risk(wrong, x)
    truth = mean_error_above(curve.details["thresholds"], regime)
    low, high = np.asarray(curve.low), np.asarray(curve.high)
    inside = np.all((low <= truth + 1e-3) & (truth <= high + 1e-3))
    return [guaranteed("band", inside, 0.95)]
