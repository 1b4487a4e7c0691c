"""p-values of labels by split-conformal predictors of Gaussian clouds; the truth is the mean over a large pool."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from calipers.conformal import conformal_p_values
from tests.grid.metric_trials import Sample, read_metric, values_of
from tests.grid.readings import Reading
from tests.grid.regimes import Regime, in_form

POOL = 100_000
SEPARATION = {"sound": 2.0, "near-perfect": 5.0, "hopeless": 0.0, "uneven": 3.5}


def clouds(rng: np.random.Generator, n: int, separation: float) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and scores 1 - P(label) of three unit Gaussians."""
    y, x = rng.integers(0, 3, n), rng.normal(size=(n, 3))
    x[np.arange(n), y] += separation
    e = np.exp(separation * (x - x.max(axis=1, keepdims=True)))
    return y, 1 - e / e.sum(axis=1, keepdims=True)


@cache
def pool(model: str, form: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels and p-values of two predictors: with few calibration rows p-values tie, without scores all do."""
    rng = np.random.default_rng(7)
    y, scores = clouds(rng, POOL, SEPARATION[model])
    n_calibration = 19 if form in ("ties", "whole weights") else 1000
    tables = []
    for power in (1.0, 1.5):
        labels, known = clouds(rng, n_calibration, SEPARATION[model])
        noisy = [np.round(s**power, 1 if form == "constant" else 12) for s in (known, scores)]
        calibration = noisy[0][np.arange(n_calibration), labels]
        tables.append(conformal_p_values(calibration * (form != "constant"), noisy[1] * (form != "constant")))
    return y, tables[0], tables[1]


def pool_columns(name: str, regime: Regime) -> dict[str, np.ndarray]:
    """The data arguments of a metric, for all rows of the pool."""
    y, first, second = pool(regime.model, regime.form)
    if name == "average_p_value":
        return {"p_values": first[:, 0]}
    made = {"y_true": y, "p_values": first}
    return made | ({"other_p_values": second} if name == "efficiency_difference" else {})


@cache
def truths(name: str, regime: Regime) -> dict[str, float]:
    """The metric of the whole pool."""
    options = {} if name == "average_p_value" else {"classes": range(3)}
    return values_of(name, pool_columns(name, regime), **options)


def criteria(name: str):
    """Trial of an efficiency criterion on rows drawn from the pool."""

    def trial(rng: np.random.Generator, regime: Regime) -> list[Reading]:
        columns, weight, chance = pool_columns(name, regime), None, None
        if regime.form == "importance weights":
            top = columns["p_values"].reshape(POOL, -1).max(axis=1)
            chance = (0.5 + top) / (0.5 + top).sum()
        rows = rng.integers(0, POOL, regime.n) if chance is None else draw_rows(rng, chance, regime.n)
        if chance is not None:
            weight = 1 / chance[rows] / POOL
        drawn = {key: values[rows] for key, values in columns.items()}
        options: dict[str, Any] = {} if name == "average_p_value" else {"classes": range(3)}
        sample = Sample(in_form(drawn, weight, regime), options, truths(name, regime), null=False)
        found = read_metric(name, sample, rng)
        if name == "efficiency_difference":
            equal = in_form(exchanged(rng, drawn), weight, regime)
            found += read_metric(name, Sample(equal, options, {}, null=True), rng, "equal: ")
        return found

    return trial


def draw_rows(rng: np.random.Generator, chance: np.ndarray, n: int) -> np.ndarray:
    """Rows of the pool, each with its own probability."""
    return np.searchsorted(np.cumsum(chance), rng.random(n) * (1 - 1e-12))


def exchanged(rng: np.random.Generator, drawn: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The two predictors exchanged in half of the rows: equal in law."""
    swap = rng.random((len(drawn["y_true"]), 1)) < 0.5
    first, second = drawn["p_values"], drawn["other_p_values"]
    tables = {"p_values": np.where(swap, second, first), "other_p_values": np.where(swap, first, second)}
    return drawn | tables


def uniformity(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of the uniformity of p-values; the uneven model has p = u^1.5, farthest from u at (2/3)^3."""
    u = rng.random(regime.n)
    options: dict[str, Any] = {"n_simulations": 199}
    truth = {"value": 0.0}
    if regime.model == "uneven":
        u, truth = u**1.5, {"value": (2 / 3) ** 2 - (2 / 3) ** 3}
    if regime.n_calibration:
        below = np.sort(rng.random(regime.n_calibration))
        u = (np.searchsorted(below, u) + rng.random(regime.n)) / (regime.n_calibration + 1)
        options["n_calibration"], truth = regime.n_calibration, {}
    if regime.form == "ties":
        u, options["smoothed"] = np.ceil(20 * u) / 20, False
        truth = {} if regime.model == "uneven" else {"value": 0.0}
    data = in_form({"p_values": np.column_stack([u, u])}, None, regime)
    data["y_true"] = np.zeros(regime.n, dtype=int)
    sample = Sample(data, options | {"classes": range(2)}, truth, regime.model == "sound")
    return read_metric("p_value_uniformity", sample, rng)
