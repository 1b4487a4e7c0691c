"""Predicted distributions and intervals whose true law is known."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy import stats

from tests.grid.metric_trials import Sample, read_metric, values_of
from tests.grid.readings import Reading
from tests.grid.regimes import Regime, in_form, places, population_places

LEVELS = (0.1, 0.5, 0.9)
POOL = 400_000


def pit_values(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """PIT values: uniform; u^(1/1.3), farthest from uniform at 1.3^(-1/0.3); or rounded to tenths."""
    x, weight = places(rng, regime)
    ties = regime.form in ("ties", "whole weights", "constant")
    values = x ** (1 / 1.3) if regime.model == "uneven" else x
    sample = Sample(
        in_form({"pit": values}, weight, regime),
        {},
        {"value": pit_distance(regime)},
        regime.model == "sound" and not ties,
    )
    return read_metric("pit_uniformity", sample, rng)


@cache
def pit_distance(regime: Regime) -> float:
    """Kolmogorov distance of the population's PIT values from the uniform law."""
    x = population_places(regime)
    values = np.sort(x ** (1 / 1.3) if regime.model == "uneven" else x)
    if len(x) > 100:
        at = 1.3 ** (-1 / 0.3)
        return at - at**1.3 if regime.model == "uneven" else 0.0
    below, upto = np.arange(len(x)) / len(x), (np.arange(len(x)) + 1) / len(x)
    return float(max(np.max(values - below), np.max(upto - values)))


def outcomes(rng: np.random.Generator, x: np.ndarray, regime: Regime) -> np.ndarray:
    """Outcomes around a centre: normal, hardly any noise but for few rows, or heavy-tailed."""
    if regime.form in ("ties", "whole weights"):
        return rng.poisson(1.5, len(x)).astype(float)
    if regime.form == "constant":
        return np.zeros(len(x))
    noise = rng.standard_t(2.5, len(x)) if regime.model == "uneven" else rng.normal(size=len(x))
    if regime.model == "near-perfect":
        noise = noise * (rng.random(len(x)) < 0.02) * 10
    return noise * (5.0 if regime.model == "hopeless" else 1.0)


def levels_of(regime: Regime) -> tuple[float, ...]:
    """Quantile levels; where events are rare one extreme level."""
    return LEVELS if regime.events is None else (1 - regime.events / regime.n,)


def quantiles_of(n: int, regime: Regime) -> np.ndarray:
    """The stated quantiles: those of the sound world, whatever the outcomes are."""
    levels = levels_of(regime)
    if regime.form in ("ties", "whole weights"):
        return np.tile(stats.poisson.ppf(levels, 1.5), (n, 1))
    return np.tile(stats.norm.ppf(levels), (n, 1))


@cache
def quantile_truths(name: str, regime: Regime) -> dict[str, float]:
    """Shares of outcomes up to each quantile; the mean score of four million rows."""
    levels = levels_of(regime)
    if name == "quantile_calibration":
        return {
            f"{level:g}": outcome_share(quantiles_of(1, regime)[0, i], regime)
            for i, level in enumerate(levels)
        }
    rng, x = np.random.default_rng(1), np.resize(population_places(regime), POOL)
    values = [
        values_of(
            name, {"y_true": outcomes(rng, x, regime), "quantiles": quantiles_of(POOL, regime)}, levels=levels
        )
        for _ in range(10)
    ]
    return {"value": float(np.mean([value["value"] for value in values]))}


def outcome_share(q: float, regime: Regime) -> float:
    """Probability that an outcome is at most q."""
    if regime.form in ("ties", "whole weights"):
        return float(stats.poisson.cdf(q, 1.5))
    if regime.form == "constant":
        return float(q >= 0)
    if regime.model == "near-perfect":
        return float(0.02 * stats.norm.cdf(q / 10) + 0.98 * (q >= 0))
    if regime.model == "uneven":
        return float(stats.t.cdf(q, 2.5))
    return float(stats.norm.cdf(q / 5 if regime.model == "hopeless" else q))


def quantiles(name: str):
    """Trial of a metric of predicted quantiles."""

    def trial(rng: np.random.Generator, regime: Regime) -> list[Reading]:
        x, weight = places(rng, regime)
        data: dict[str, Any] = {"y_true": outcomes(rng, x, regime), "quantiles": quantiles_of(len(x), regime)}
        options: dict[str, Any] = {"levels": levels_of(regime)}
        truth = quantile_truths(name, regime)
        if regime.n_calibration:
            ranks = conformal_ranks(regime.n_calibration)
            ordered = np.sort(rng.normal(size=regime.n_calibration))
            data["quantiles"] = np.tile(ordered[ranks - 1], (len(x), 1))
            options["n_calibration"], truth = regime.n_calibration, {}
        null = regime.model == "sound" and regime.form != "constant"
        return read_metric(name, Sample(in_form(data, weight, regime), options, truth, null), rng)

    return trial


def conformal_ranks(n: int) -> np.ndarray:
    """Order statistics for the levels: from above for upper ones, from below for lower ones."""
    exact = [(n + 1) * level for level in LEVELS]
    return np.array(
        [
            int(np.ceil(r - 1e-9)) if t >= 0.5 else int(np.floor(r + 1e-9))
            for r, t in zip(exact, LEVELS, strict=True)
        ]
    )


def widths_at(rng: np.random.Generator, x: np.ndarray, regime: Regime) -> np.ndarray:
    """Widths of intervals: of one order of size, hardly ever more than nothing, or log-normal."""
    if regime.form == "constant":
        return np.full(len(x), 3.0)
    if regime.model == "near-perfect":
        return 0.1 + 20 * (rng.random(len(x)) < 0.01)
    if regime.model == "uneven":
        return np.exp(rng.normal(size=len(x)) + x)
    return 2 + 3 * x


def interval_sizes(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the mean width of intervals at two levels."""
    x, weight = places(rng, regime)
    data = in_form({"intervals": two_levels(widths_at(rng, x, regime))}, weight, regime)
    return read_metric(
        "regression_efficiency", Sample(data, {"alpha": [0.1, 0.3]}, width_truths(regime)), rng
    )


def two_levels(width: np.ndarray) -> np.ndarray:
    """Intervals (n, 2, 2): of the width, and of half of it."""
    half = width[:, None] * np.array([0.5, 0.25])
    return np.stack([-half, half], axis=1)


@cache
def width_truths(regime: Regime) -> dict[str, float]:
    """What one interval of the mean width reads: every key is linear in the width."""
    x = population_places(regime)
    if regime.form == "constant":
        mean = 3.0
    elif regime.model == "near-perfect":
        mean = 0.1 + 20 * 0.01
    else:  # a log-normal factor has mean exp(1 / 2)
        mean = float(np.exp(x + 0.5).mean() if regime.model == "uneven" else (2 + 3 * x).mean())
    return values_of("regression_efficiency", {"intervals": two_levels(np.full(2, mean))}, alpha=[0.1, 0.3])
