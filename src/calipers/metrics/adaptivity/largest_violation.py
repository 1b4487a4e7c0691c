"""The largest violation over bins: its interval, its null law, and its noise-free companion."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from calipers.arrays import RandomState, generator
from calipers.inference import (
    CalibrationLaw,
    NullLaw,
    ShareCounts,
    SimulatedLaw,
    ViolationLaw,
    sidak_confidence,
)
from calipers.inference.null_law import NULL_LEVEL
from calipers.inputs import Weights, check_confidence
from calipers.metrics.adaptivity.binning import Binned
from calipers.metrics.promised_rows import PromisedRows, check_thresholds
from calipers.metrics.strata_null import StrataNull, coverage_laws
from calipers.results import Estimate


def bins_null(
    bins: Binned,
    rows: PromisedRows,
    places: Callable[[], np.ndarray],
    names: list[str],
    n_calibration: Any,
) -> StrataNull:
    """The null "every promise is kept" over the bins that have rows.

    ``places`` gives the bin of each row, or its run where ties are shared; it is asked only where rows were
    promised different things or depend on each other.
    """
    filled = np.flatnonzero(bins.filled)
    thresholds = check_thresholds(n_calibration, len(names), name="bins")
    if isinstance(thresholds, tuple):
        thresholds = tuple(thresholds[b] for b in filled)
    mass, shown = bins.mass[filled], tuple(names[b] for b in filled.tolist())
    runs, parts = mass, None
    if bins.ties_cross:
        runs, shares = bins.shared_runs()
        parts = shares[:, filled]
    if rows.is_plain:
        # Rows of one run count alike: each run is one row with as many repetitions.
        counted = bins.squares is None
        weights = Weights(np.rint(runs) if counted else runs, runs, counted)
        rows = PromisedRows(np.zeros(len(runs), dtype=bool), rows.alpha, None, weights, None)
        return StrataNull(rows, np.arange(len(runs)), mass, shown, thresholds, parts)
    cell = places() if parts is not None else np.searchsorted(filled, places())
    return StrataNull(rows, cell, mass, shown, thresholds, parts)


@lru_cache(maxsize=128)
def _exact_law(
    strata: tuple[tuple[int, int | None], ...],
    alpha: Any,
    target: float,
    side: str,
    threshold: CalibrationLaw | None,
) -> ViolationLaw:
    """The law of the largest violation; kept, because a study asks for the same one many times."""
    return ViolationLaw(coverage_laws(strata, alpha), target, side=side, threshold=threshold)


def worst_law(
    null: StrataNull, observed: float, side: str, random_state: RandomState, n_draws: int | None = None
) -> NullLaw | None:
    """Exact where there are exact laws, else simulated; None without a test."""
    if null.no_test:
        return None
    if (strata := null.counted_strata()) is not None:
        return _exact_law(strata, null.rows.alpha, float(null.target[0]), side, null.threshold)
    laws = null.laws()
    if laws is None:
        rng = generator(random_state)
        return null.simulated(lambda gaps: _gap(gaps, side).max(axis=1), observed, rng, n_draws)
    return ViolationLaw(laws, null.target.tolist(), side=side)


def worst_estimate(
    name: str,
    bins: Binned,
    null: StrataNull,
    *,
    confidence: float,
    random_state: RandomState,
    side: str = "both",
    n_draws: int | None = None,
    randomized: bool = False,
    no_null: str = "",
) -> Estimate:
    """The largest violation with interval, null band and per-bin details.

    Without a ``random_state`` a generator is made only where something is drawn.
    """
    rng = None if random_state is None else generator(random_state)
    target, filled, counts = null.target, np.flatnonzero(bins.filled), bins.counts()
    shares = counts.shares
    if null.clusters is not None:
        counts = replace(counts, independent=null.clusters.independent_rows(shares))
    gaps = _gap(shares - target, side)
    worst = int(np.argmax(gaps))
    value = float(gaps[worst])
    ends = counts.interval(sidak_confidence(check_confidence(confidence), filled.size))
    low, high = _through_maximum(np.asarray(ends.low), np.asarray(ends.high), target, side)
    law = None if no_null else worst_law(null, value, side, rng, n_draws)
    tested: dict[str, Any] = {} if law is None else law.estimate_fields(value, level=NULL_LEVEL)
    if law is not None and randomized:
        tested["p_value"] = law.randomized_p_value(value, generator(rng))
    resolution = {"n_draws": law.n_draws} if isinstance(law, SimulatedLaw) else {}
    details = _bin_details(bins, null, counts, worst) | {"null_median": _median(law)}
    return Estimate(
        name=name,
        value=value,
        std_error=float(counts.std_errors[worst]),
        low=low,
        high=high,
        confidence=confidence,
        n=bins.n,
        method=_method(law, null),
        reason=no_null or null.no_test,
        details=details,
        **null.with_certainty(tested, **resolution),
    )


def _bin_details(bins: Binned, null: StrataNull, counts: ShareCounts, worst: int) -> dict[str, Any]:
    filled = np.flatnonzero(bins.filled)
    rows = bins.effective_mass[filled] if null.clusters is None else counts.effective
    square, square_error = mean_squared_violation(counts.shares, rows, null.target)
    promised = {} if null.rows.promised is None else {"promised": null.target.tolist()}
    return {
        "worst": null.names[worst],
        "worst_bin": int(filled[worst]),
        "coverage": counts.shares.tolist(),
        **promised,
        "rows": [_whole(m) for m in bins.mass[filled].tolist()],
        "bins": list(null.names),
        "mean_squared_violation": square,
        "mean_squared_violation_std_error": square_error,
        "shared_ties": bins.ties_cross,
    }


def mean_squared_violation(shares: np.ndarray, rows: np.ndarray, target: np.ndarray) -> tuple[float, float]:
    """Mean over bins of (c - t)^2 - c(1-c)/(n-1), and its standard error; NaN without bins of two rows.

    Unbiased for the mean of (p - t)^2 with p the true coverage of each bin. Delta method with the binomial
    third term: the variance of one summand is about 4 (p - t)^2 v + 2 v^2 with v = p (1 - p) / n.
    """
    c, n, usable = shares, rows, rows > 1
    if not usable.any():
        return float("nan"), float("nan")
    if not usable.all():
        c, n, target = shares[usable], rows[usable], target[usable]
    noise = c * (1 - c) / (n - 1)
    squares = (c - target) ** 2 - noise
    skew = noise * (1 - 2 * c) / n
    pure = 2 * noise**2
    variance = float((4 * squares * noise + 4 * (c - target) * skew + pure).sum())
    return float(squares.mean()), math.sqrt(max(variance, float(pure.sum()))) / c.size


def _gap(departures: np.ndarray, side: str) -> np.ndarray:
    # Rounding must not turn 0.9 - 0.9 into a violation of 1e-17.
    gap = np.where(np.abs(departures) < 1e-14, 0.0, departures)
    return np.abs(gap) if side == "both" else np.maximum(-gap, 0.0)


def _through_maximum(low: np.ndarray, high: np.ndarray, target: np.ndarray, side: str) -> tuple[float, float]:
    """The interval of the largest gap, from intervals of the coverages that hold together."""
    nearest = np.maximum(target - high, 0.0 if side == "under" else low - target)
    farthest = np.maximum(target - low, 0.0 if side == "under" else high - target)
    return float(np.max(np.maximum(nearest, 0.0))), float(np.max(farthest))


def _median(law: NullLaw | None) -> float | None:
    if law is None:
        return None
    return float(law.band(0.5).high)


def _method(law: NullLaw | None, null: StrataNull) -> str:
    interval = "largest violation over bins, Sidak Clopper-Pearson interval"
    if law is None:
        return interval
    if not isinstance(law, SimulatedLaw):
        return f"{interval}, exact null law"
    if null.clusters is not None:
        why = "sums over clusters"
    else:
        why = "shared ties" if null.parts is not None else "levels of one calibration sample"
    return f"{interval}, simulated ({law.n_draws} draws, {why}) null law"


def _whole(value: float) -> float:
    """A count as an integer when it is one."""
    number = float(value)
    return int(number) if number.is_integer() else number
