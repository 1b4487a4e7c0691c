"""The paper's conclusions as comparisons of numbers."""

from __future__ import annotations

import numpy as np

from calipers.metrics import efficiency_difference
from studies.efficiency.matrices import METRICS
from studies.efficiency.predictors import MEASURES, PValues, Reading, curve_of, smallest_k
from studies.outcome import Claim

Errors = list[tuple[str, str, float, float]]

# "Small values of K" in the paper's words; Figure 2 shows 1 to 50.
SMALL_K = 10
# Published errors of one neighbour on raw pixels, in percent, with room for the last digit.
PUBLISHED = {"euclidean": ("about 5.6 %", 5.5, 5.7), "tangent": ("2.5 to 3.3 %", 2.45, 3.35)}


def check_claims(
    y_test: np.ndarray, readings: list[Reading], p_values: PValues, errors: Errors, *, decide: bool
) -> tuple[Claim, ...]:
    """Every claim with our reading; undecided when the run is a small one."""
    claims = [
        *(best_predictor(readings, criterion) for criterion in ("U", "OF")),
        *(votes(y_test, p_values, metric, "OF", better="probability") for metric in METRICS),
        *(votes(y_test, p_values, metric, "U", better="predictability") for metric in METRICS),
        *(tangent_below(readings, criterion) for criterion in ("U", "OF")),
        *(one_neighbour(metric, errors) for metric in METRICS),
    ]
    if decide:
        return tuple(claims)
    return tuple(Claim(claim=c.claim, paper=c.paper, ours=c.ours, agrees=None) for c in claims)


def best_predictor(readings: list[Reading], criterion: str) -> Claim:
    """KNN-ratio with tangent distance and small K has the smallest value of all."""
    best = min((r for r in readings if r.criterion == criterion), key=lambda r: r.value)
    agrees = (best.measure, best.metric) == ("ratio", "tangent") and best.k <= SMALL_K
    return Claim(
        claim=f"KNN-ratio with tangent distance and small K is best of all under {criterion}",
        paper="best results, small K (Figure 2)",
        ours=f"{MEASURES[best.measure]}, {best.metric}, K = {best.k}: {reading(best.value, best.std_error)}",
        agrees=agrees,
    )


def votes(y_test: np.ndarray, p_values: PValues, metric: str, criterion: str, *, better: str) -> Claim:
    """One vote measure beats the other once K is not small; differences are paired by test image."""
    worse = "predictability" if better == "probability" else "probability"
    first, second = p_values[better, metric], p_values[worse, metric]
    differences = [
        efficiency_difference(y_test, first[:, :, place], second[:, :, place])[criterion]
        for place in range(first.shape[2])
    ]
    values = np.array([float(d) for d in differences])
    start = smallest_k(better)
    wins_from = start + (int(np.flatnonzero(values >= 0).max()) + 1 if (values >= 0).any() else 0)
    largest = start + len(values) - 1
    last = differences[-1]
    ours = (
        f"at every K from {wins_from} to {largest}" if wins_from <= largest else f"not at K = {largest}"
    ) + f"; at K = {largest} by {reading(-values[-1], last.std_error)}"
    return Claim(
        claim=f"{MEASURES[better]} beats {MEASURES[worse]} under {criterion}, {metric} distance, K not small",
        paper="yes, ignoring small K (Figure 2)",
        ours=ours,
        agrees=wins_from <= SMALL_K,
    )


def reading(value: float, std_error: float | None) -> str:
    """A number with its standard error."""
    return f"{value:.5f}" if std_error is None else f"{value:.5f} ± {std_error:.5f}"


def tangent_below(readings: list[Reading], criterion: str) -> Claim:
    """Every tangent line lies below its Euclidean twin."""
    below, total = 0, 0
    for measure in MEASURES:
        tangent, euclidean = (curve_of(readings, measure, m, criterion).y for m in ("tangent", "euclidean"))
        below, total = below + int((tangent < euclidean).sum()), total + len(tangent)
    return Claim(
        claim=f"Tangent distance beats Euclidean distance for every measure and K under {criterion}",
        paper="Euclidean lines always above (caption of Figure 2)",
        ours=f"{below} of {total} pairs",
        agrees=below == total,
    )


def one_neighbour(metric: str, errors: Errors) -> Claim:
    """The plain nearest neighbour errs as often as published."""
    published, low, high = PUBLISHED[metric]
    found = {pixels: (error, spread) for name, pixels, error, spread in errors if name == metric}
    shown = ", ".join(f"{100 * e:.2f} ± {100 * s:.2f} % {pixels}" for pixels, (e, s) in found.items())
    return Claim(
        claim=f"Error of one nearest neighbour, {metric} distance",
        paper=f"{published}, raw pixels (literature)",
        ours=shown,
        agrees=low <= 100 * found["raw"][0] <= high,
    )
