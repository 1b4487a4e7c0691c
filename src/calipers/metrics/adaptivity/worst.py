"""The largest violation over bins: its interval, its null law, and its noise-free companion."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from calipers.arrays import as_numpy
from calipers.exceptions import InputError
from calipers.inference import (
    CalibrationLaw,
    CoverageLaw,
    NullLaw,
    SimulatedLaw,
    ViolationLaw,
    sidak_confidence,
)
from calipers.inputs import check_alpha, check_confidence, check_count, exact_level
from calipers.metrics.adaptivity.binning import Binned
from calipers.metrics.marginal import coverage_law
from calipers.results import Estimate

_NULL_LEVEL = 0.95


def target_coverage(alpha: Any) -> float:
    """1 - alpha, with alpha read as the fraction a person means."""
    return float(1 - exact_level(alpha))


def stratum_laws(bins: Binned, alpha: Any, n_calibration: Any, *, name: str) -> list[CoverageLaw] | None:
    """The law of the covered count of each bin; None for importance weights."""
    mass = bins.mass
    check_alpha(alpha)
    if n_calibration is None:
        behind: list[int | None] = [None] * mass.size
    else:
        given = as_numpy(n_calibration, name="n_calibration").ravel()
        if given.size not in (1, mass.size):
            raise InputError(
                f"n_calibration must be one number or one per bin ({name}: {mass.size}), got {given.size}."
            )
        behind = [check_count(c, name="n_calibration") for c in np.broadcast_to(given, mass.shape).tolist()]
    if bins.squares is not None:
        return None
    rows = [(round(m), n) for m, n in zip(mass.tolist(), behind, strict=True)]
    # Bins of equal mass have two sizes at most: each law is made once.
    laws = {(m, n): coverage_law(m, alpha, n) for m, n in set(rows)}
    return [laws[key] for key in rows]


@lru_cache(maxsize=128)
def exact_law(laws: tuple[CoverageLaw, ...], target: float, side: str) -> ViolationLaw:
    """The law of the largest violation; kept, because a study asks for the same one many times."""
    return ViolationLaw(laws, target, side=side)


def worst_law(
    bins: Binned, laws: list[CoverageLaw], alpha: Any, side: str, n_draws: int, rng: np.random.Generator
) -> NullLaw:
    """Exact where each row lies in one bin, simulated where ties are shared."""
    if not bins.ties_cross:
        return exact_law(tuple(laws), target_coverage(alpha), side)
    return SimulatedLaw(_simulate_shared(bins, laws, target_coverage(alpha), n_draws, rng))


def _simulate_shared(
    bins: Binned, laws: list[CoverageLaw], target: float, n_draws: int, rng: np.random.Generator
) -> np.ndarray:
    """The measure under the null when runs of rows are shared between bins."""
    mass, parts = bins.shared_runs()
    sizes = np.rint(mass).astype(np.int64)
    # A run takes the calibration luck of the bin that holds most of it.
    owner = np.argmax(parts, axis=1)
    filled, worst = bins.filled, np.empty(n_draws)
    step = max(1, (1 << 20) // max(sizes.size, 1))
    for start in range(0, n_draws, step):
        rows = min(step, n_draws - start)
        luck = _coverage_probabilities(laws, rows, rng)
        counts = rng.binomial(sizes, luck[:, owner])
        shares = (counts @ parts)[:, filled] / bins.mass[filled]
        worst[start : start + rows] = np.max(np.abs(shares - target), axis=1)
    return worst


def _coverage_probabilities(laws: list[CoverageLaw], rows: int, rng: np.random.Generator) -> np.ndarray:
    """(rows, B) coverage probabilities: 1 - alpha, or drawn per bin where calibration was finite."""
    columns = [
        np.full(rows, 1.0 - law.alpha)
        if law.n_calibration is None or law.rank is None
        else np.asarray(CalibrationLaw(law.n_calibration, law.rank).rvs(rng, rows))
        for law in laws
    ]
    return np.stack(columns, axis=1)


def worst_estimate(
    name: str,
    bins: Binned,
    alpha: Any,
    *,
    law: NullLaw | None,
    confidence: float,
    names: list[str],
    side: str = "both",
    randomized: np.random.Generator | None = None,
    reason: str = "",
) -> Estimate:
    """The largest violation with interval, null band and per-bin details."""
    target, filled, counts = target_coverage(alpha), np.flatnonzero(bins.filled), bins.counts()
    shares = counts.shares
    gaps = _gap(shares, target, side)
    worst = int(np.argmax(gaps))
    value = float(gaps[worst])
    level = sidak_confidence(check_confidence(confidence), filled.size)
    ends = counts.interval(level)
    low, high = _through_maximum(np.asarray(ends.low), np.asarray(ends.high), target, side)
    fields: dict[str, Any] = {} if law is None else law.estimate_fields(value, level=_NULL_LEVEL)
    if law is not None and randomized is not None:
        fields["p_value"] = law.randomized_p_value(value, randomized)
    return Estimate(
        name=name,
        value=value,
        std_error=float(counts.std_errors[worst]),
        low=low,
        high=high,
        confidence=confidence,
        n=bins.n,
        method=_method(law),
        reason=reason,
        details=_bin_details(bins, names, filled, shares, worst, target) | {"null_median": _median(law)},
        **fields,
    )


def _bin_details(
    bins: Binned, names: list[str], filled: np.ndarray, shares: np.ndarray, worst: int, target: float
) -> dict[str, Any]:
    square, square_error = mean_squared_violation(shares, bins.effective_mass[filled], target)
    return {
        "worst": names[filled[worst]],
        "worst_bin": int(filled[worst]),
        "coverage": shares.tolist(),
        "rows": [_whole(m) for m in bins.mass[filled]],
        "bins": [names[b] for b in filled],
        "mean_squared_violation": square,
        "mean_squared_violation_std_error": square_error,
        "shared_ties": bins.ties_cross,
    }


def mean_squared_violation(shares: np.ndarray, rows: np.ndarray, target: float) -> tuple[float, float]:
    """Mean over bins of (c - t)^2 - c(1-c)/(n-1), and its standard error; NaN without bins of two rows.

    Unbiased for the mean of (p - t)^2 with p the true coverage of each bin. Delta method with the binomial
    third term: the variance of one summand is about 4 (p - t)^2 v + 2 v^2 with v = p (1 - p) / n.
    """
    usable = rows > 1
    if not usable.any():
        return float("nan"), float("nan")
    c, n = shares[usable], rows[usable]
    noise = c * (1 - c) / (n - 1)
    squares = (c - target) ** 2 - noise
    skew = noise * (1 - 2 * c) / n
    variance = float(np.sum(4 * squares * noise + 4 * (c - target) * skew + 2 * noise**2))
    floor = float(np.sum(2 * noise**2))
    return float(np.mean(squares)), float(np.sqrt(max(variance, floor)) / c.size)


def _gap(shares: np.ndarray, target: float, side: str) -> np.ndarray:
    gap = np.asarray(shares - target)
    # Rounding must not turn 0.9 - 0.9 into a violation of 1e-17.
    gap = np.where(np.abs(gap) < 1e-14, 0.0, gap)
    return np.abs(gap) if side == "both" else np.maximum(-gap, 0.0)


def _through_maximum(low: np.ndarray, high: np.ndarray, target: float, side: str) -> tuple[float, float]:
    """The interval of the largest gap, from intervals of the coverages that hold together."""
    nearest = np.maximum(target - high, 0.0 if side == "under" else low - target)
    farthest = np.maximum(target - low, 0.0 if side == "under" else high - target)
    return float(np.max(np.maximum(nearest, 0.0))), float(np.max(farthest))


def _median(law: NullLaw | None) -> float | None:
    if law is None:
        return None
    return float(law.band(0.5).high)


def _method(law: NullLaw | None) -> str:
    interval = "largest violation over bins, Sidak Clopper-Pearson interval"
    if law is None:
        return interval
    kind = f"simulated ({law.n_draws} draws, shared ties)" if isinstance(law, SimulatedLaw) else "exact"
    return f"{interval}, {kind} null law"


def _whole(value: float) -> float:
    """A count as an integer when it is one."""
    number = float(value)
    return int(number) if number.is_integer() else number
