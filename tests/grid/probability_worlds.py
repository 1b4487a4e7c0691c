"""Stated probabilities and outcomes: P(y = 1) is known at every row."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit, logit
from scipy.stats import beta

from tests.grid.metric_trials import Sample, read_metric, values_of
from tests.grid.readings import Reading
from tests.grid.regimes import Regime, in_form, places, population_places

# The true log-odds of an uneven model, as a line in the stated ones.
INTERCEPT, SLOPE = 0.3, 0.7


def stated(x: np.ndarray, regime: Regime) -> np.ndarray:
    """The probability that is stated at x."""
    if regime.events is not None:
        return np.minimum(3.0 * regime.events / regime.n * x**2, 1.0)
    return beta.ppf(x, 0.05, 0.05) if regime.model == "near-perfect" else x


def true_probability(f: np.ndarray, regime: Regime) -> np.ndarray:
    """P(y = 1) where f is stated."""
    if regime.model == "uneven":
        return np.asarray(expit(INTERCEPT + SLOPE * logit(f)))
    return np.full(f.shape, 0.5) if regime.model == "hopeless" else f


def draws(name: str) -> dict[str, Any]:
    """Fewer draws of the null than the default; the test is exact with any number."""
    without = ("multicalibration_error", "calibration_slope", "proper_scores")
    few = {"smooth_calibration_error": 39, "brier_decomposition": 39}
    return {} if name in without else {"n_draws": few.get(name, 199)}


@cache
def truths(name: str, regime: Regime) -> dict[str, float]:
    """The metric of the population: both outcomes of every score, weighted by their probabilities."""
    if name == "calibration_slope":
        return slope_truths(regime)
    if name in ("calibration_tests", "multicalibration_error"):
        return {}
    f = stated(population_places(regime), regime)
    eta = true_probability(f, regime)
    y, weight = np.repeat([1, 0], len(f)), np.concatenate([eta, 1 - eta])
    kept = weight > 0
    data = {"y_true": y[kept], "probabilities": np.tile(f, 2)[kept], "sample_weight": weight[kept] * 0.7}
    return values_of(name, data)


def slope_truths(regime: Regime) -> dict[str, float]:
    """Slope and intercept where the true log-odds are a line; a hopeless model has slope 0."""
    line = {"uneven": (SLOPE, INTERCEPT), "hopeless": (0.0, 0.0)}.get(regime.model, (1.0, 0.0))
    known = {"slope": line[0], "intercept": line[1]}
    return known | ({"in_the_large": 0.0} if regime.model in ("sound", "near-perfect") else {})


def scored(name: str):
    """Trial of a metric of binary probabilities."""

    def trial(rng: np.random.Generator, regime: Regime) -> list[Reading]:
        x, weight = places(rng, regime)
        f = stated(x, regime)
        y = (rng.random(len(x)) < true_probability(f, regime)).astype(np.int64)
        data = {"y_true": y, "probabilities": f}
        if name == "multicalibration_error":
            data["groups"] = rng.integers(0, 3, (len(x), 2))
        null = regime.model in ("sound", "near-perfect")
        labels = {"pos_label": 1} if name != "proper_scores" else {"classes": [0, 1]}
        sample = Sample(in_form(data, weight, regime), labels | draws(name), truths(name, regime), null)
        return read_metric(name, sample, rng)

    return trial
