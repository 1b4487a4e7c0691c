"""Ranks, sizes and errors that do or do not follow the difficulty of a row."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from calipers.metrics import metric_entry
from calipers.metrics.adaptivity.binning import STRATA, stratum_codes
from tests.grid.metric_trials import Sample, read_metric, values_of
from tests.grid.readings import Reading
from tests.grid.regimes import Regime, in_form, places, population_places


def ranks_at(rng: np.random.Generator, x: np.ndarray, regime: Regime) -> np.ndarray:
    """Rank of the true label: hard rows (small x) have large ones; uneven models have heavy tails."""
    if regime.model == "near-perfect":
        return 1.0 + (rng.random(len(x)) < 0.02 * (1 - x)) * rng.integers(1, 50, len(x))
    if regime.model == "uneven":
        return np.ceil((1 + rng.pareto(1.8, len(x))) * (4 - 3 * x))
    return 1.0 + rng.poisson(1 + 3 * (1 - x) if regime.model == "sound" else 3.0, len(x))


def sizes_at(rng: np.random.Generator, x: np.ndarray, adaptive: bool) -> np.ndarray:
    """Sizes that grow with the difficulty, or know nothing of it."""
    return 1.0 + rng.poisson(2 + 3 * (1 - x) if adaptive else np.full(len(x), 3.5))


def options_of(name: str, regime: Regime) -> dict[str, Any]:
    """Bins and groups that fit the rows, fewer draws than the default."""
    if name in ("deficit", "excess"):
        return {}
    options: dict[str, Any] = {"n_permutations" if name == "difficulty_concordance" else "n_draws": 99}
    if name == "t_ss":
        options["n_bins"] = 5 if regime.n < 100 else 10 if regime.n < 1000 else 20
    if name == "difficulty_concordance":
        options |= {"group_size": min(100, regime.n // 4), "n_draws": 300}
    return options


@cache
def mean_truths(name: str, regime: Regime) -> dict[str, float]:
    """Mean deficit and excess of two million rows of the population, half with sizes that know nothing."""
    rng = np.random.default_rng(0)
    x = np.resize(population_places(regime), 400_000)
    total = [
        values_of(name, {"ranks": ranks_at(rng, x, regime), "size": sizes_at(rng, x, True)})["value"]
        for _ in range(5)
    ]
    return {"value": float(np.mean(total))}


def columns(
    rng: np.random.Generator, x: np.ndarray, regime: Regime, name: str, adaptive: bool
) -> dict[str, Any]:
    """The data arguments of a metric of ranks and sizes."""
    made = {"ranks": ranks_at(rng, x, regime), "size": sizes_at(rng, x, adaptive), "ease": x}
    if regime.form == "constant":
        made |= {"ranks": np.ones(len(x)), "size": np.full(len(x), 2.0)}
    return {key: made[key] for key in metric_entry(name).inputs}


def adaptive_prefix(name: str, data: dict[str, Any]) -> str:
    """Rank-SS speaks of samples in which the same strata are filled: each number of them has a mean of its own."""
    if name != "rank_ss":
        return "adaptive: "
    return f"adaptive, {len(np.unique(stratum_codes(data['ranks'], STRATA)))} strata: "


def adaptive_sizes(name: str):
    """Trial of an adaptivity metric: its interval where sizes adapt, its test where they do not."""

    def trial(rng: np.random.Generator, regime: Regime) -> list[Reading]:
        x, weight = places(rng, regime)
        options, has_null = options_of(name, regime), bool(metric_entry(name).null)
        truth: Any = "mean" if has_null else mean_truths(name, regime)
        if regime.model == "hopeless" and name in ("t_ss", "rank_ss"):
            truth = {
                "value": 0.0
            }  # ranks ignore where a row lies, so the mean sizes or ranks of bins are equal
        if regime.form == "constant":
            truth = {} if has_null else {"value": 0.0 if name == "deficit" else 1.0}
        data = in_form(columns(rng, x, regime, name, True), weight, regime)
        found = read_metric(name, Sample(data, options, truth, null=False), rng, adaptive_prefix(name, data))
        if not has_null:
            return found
        data = in_form(columns(rng, x, regime, name, False), weight, regime)
        return found + read_metric(name, Sample(data, options, {}, null=True), rng, "blind: ")

    return trial


def widths(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Trial of widths against errors: widths that follow the scale of the error, and widths that do not."""
    x, _ = places(rng, regime)
    scale = 1 + 2 * (1 - x)
    noise = rng.standard_t(2.5, len(x)) if regime.model == "uneven" else rng.normal(size=len(x))
    if regime.model == "near-perfect":
        noise = noise * (rng.random(len(x)) < 0.05)
    blind = np.full(len(x), 2.0) if regime.form == "constant" else rng.uniform(1, 3, len(x))
    found = []
    for prefix, width in (("adaptive: ", scale), ("blind: ", blind)):
        data = in_form({"error": np.abs(scale * noise), "width": width}, None, regime)
        truth = {} if regime.form == "constant" or prefix == "blind: " else "mean"
        sample = Sample(data, {"n_draws": 99}, truth, null=prefix == "blind: ")
        found += read_metric("width_against_error", sample, rng, prefix)
    return found
