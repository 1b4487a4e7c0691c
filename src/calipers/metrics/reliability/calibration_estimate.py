"""From checked rows to the numbers a calibration estimate is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import Array, generator, namespace
from calipers.arrays.device_rows import score_sums
from calipers.inputs import NO_EXACT_LAW
from calipers.inputs.row_checks import count_true
from calipers.inputs.weights import effective_size
from calipers.metrics.reliability import certificates
from calipers.metrics.reliability.binary_rows import BinaryRows
from calipers.metrics.reliability.calibration_test import SMALLEST, asymptotic_test, exact_test
from calipers.metrics.reliability.distinct_scores import ScoreLevels
from calipers.metrics.reliability.range_law import range_survival
from calipers.metrics.reliability.sup_interval import SupInterval
from calipers.results import Estimate
from calipers.results.formatting import format_number, format_percent

# Rows per block of the sums: what a core keeps close while several arrays are made of them.
_CACHED = 1 << 15
SOFT_REASON = "soft labels have no Bernoulli law, so calibration cannot be tested"
WEIGHTS_REASON = "with unequal weights the upper bound is asymptotic, not guaranteed"


@dataclass(frozen=True, slots=True)
class RowMoments:
    """Sums over rows that bounds and words need.

    Parameters
    ----------
    total : float
        Sum of weights.
    rows : float
        Rows behind the error: the total weight of repetitions, else the effective number of rows.
    second_moment : float
        Weighted mean of (y - f)^2, the Brier score.
    noise : float
        The same by the weights that enter a variance: w for repetitions, w^2 for importance weights.
    variance : float
        Sum of w f (1 - f): variance of the number of events under calibration, rows repeated by weights.
    inside, stated, happened : float
        Weight in the maximising interval, and there the mean score and the share of events.
    inside_square : float
        Sum of (y - f)^2 in the interval, times w for repetitions and w^2 for importance weights.
    impossible : int
        Rows whose outcome was stated to have probability 0.
    whole : bool
        Whether weights are repetitions.
    """

    total: float
    rows: float
    second_moment: float
    noise: float
    variance: float
    inside: float
    stated: float
    happened: float
    inside_square: float
    impossible: int
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Walk:
    """What was found over all rows, however they were read.

    Parameters
    ----------
    found : SupInterval
        The error and its interval.
    moments : RowMoments
        Sums over rows.
    levels : ScoreLevels or None
        What the null is drawn from; None where its asymptotic law serves, or there is none.
    highest : float
        Largest score.
    n_rows : int
        Rows with a weight above 0.
    soft : bool
        Whether outcomes are probabilities.
    """

    found: SupInterval
    moments: RowMoments
    levels: ScoreLevels | None
    highest: float
    n_rows: int
    soft: bool = False

    @property
    def std_error(self) -> float:
        """Standard error of the mean residual in the maximising interval."""
        inside = self.moments.inside_square / self.moments.total**2
        return math.sqrt(max(0.0, inside - self.found.value**2 / self.moments.rows))


def row_moments(rows: BinaryRows, found: SupInterval) -> RowMoments:
    """The moments by one pass over the rows, in blocks, where they lie."""
    whole = rows.whole
    sums = _device_sums(rows, found)
    if sums is None:
        blocks = [_block_sums(f, y, w, found, whole) for f, y, w in rows.blocks(_CACHED)]
        sums = np.sum(blocks, axis=0)
    total, squares, second, noise, variance, inside, stated, happened, inside_square, impossible = (
        sums.tolist()
    )
    return RowMoments(
        total=total,
        rows=effective_size(total, squares, whole=whole),
        second_moment=second / total,
        noise=noise / (total if whole else squares),
        variance=variance,
        inside=inside,
        stated=stated / inside if inside else math.nan,
        happened=happened / inside if inside else math.nan,
        inside_square=inside_square,
        impossible=int(impossible),
        whole=whole,
    )


def _device_sums(rows: BinaryRows, found: SupInterval) -> np.ndarray | None:
    """`_block_sums` of events on a device that count once, in one read; None where there is no kernel."""
    if rows.weights is not None:
        return None
    sums = score_sums(rows.scores, rows.outcomes, found.low, found.high)
    return None if sums is None else np.array([rows.n, rows.n, sums[0], *sums])


def _block_sums(f: Array, y: Array, w: Array | None, found: SupInterval, whole: bool) -> list[float]:
    # Sums of products rather than dot products, which would wake the threads of BLAS for every block.
    xp = namespace(f)
    # NaN ends (no interval) compare false: nothing is inside.
    inside = xp.astype((f > found.low) & (f <= found.high), xp.float64)
    residual, spread = y - f, f * (1 - f)
    # f (1 - f) is 0 for certainties alone; one of them is impossible when it did not come true.
    is_impossible = (spread == 0) & (residual != 0)
    square = noise = residual * residual
    n = squares = float(f.shape[0])
    inside_square = inside * square
    if w is not None:
        n, squares = float(xp.sum(w)), float(xp.sum(w * w))
        noise = square * (w if whole else w * w)
        inside_square = inside * noise
        square, spread, inside = square * w, spread * w, inside * w
    columns = (square, noise, spread, inside, inside * f, inside * y, inside_square)
    return [n, squares, *(float(xp.sum(column)) for column in columns), float(count_true(is_impossible))]


def in_words(found: SupInterval, moments: RowMoments, highest: float) -> str:
    """Where the model errs most, and how, in one sentence."""
    if found.sign == 0:
        return "no interval of scores stands out: stated and observed frequencies agree exactly"
    gap = abs(moments.happened - moments.stated)
    adverb = "over-confident" if found.sign < 0 else "under-confident"
    share = format_percent(float(f"{moments.inside / moments.total:.3g}"))
    return (
        f"{_place(found, highest)} the model is {adverb} by {format_number(gap, gap)}: it states "
        f"{moments.stated:.3f} on average and {moments.happened:.3f} happens ({share} of rows)"
    )


def _place(found: SupInterval, highest: float) -> str:
    low, high = (format_number(end, found.high - max(found.low, 0.0)) for end in (found.low, found.high))
    if math.isinf(found.low):
        return "over all scores" if found.high >= highest else f"up to {high}"
    return f"above {low}" if found.high >= highest else f"between {low} and {high}"


def bound_fields(walk: Walk, *, confidence: float, n_models: int) -> dict[str, Any]:
    """Upper bound (``high``), its asymptotic companion and the bounds from below, with their kind."""
    level: dict[str, Any] = {"confidence": confidence, "n_models": n_models}
    moments = walk.moments
    value, n = min(1.0, walk.found.value), moments.rows
    # Weights of one size, whatever it is, are none.
    equal = moments.whole or n >= walk.n_rows * (1 - 1e-12)
    width = certificates.asymptotic_band(moments.noise, n, **level)
    asymptotic = certificates.asymptotic_upper_bound(value, moments.noise, n, **level)
    fields: dict[str, Any] = {
        "high": asymptotic,
        "asymptotic_high": asymptotic,
        "low_bound": max(0.0, value - width),
        "asymptotic_band": (max(0.0, value - width), min(1.0, value + width)),
        "guaranteed_band": None,
        "guaranteed": equal,
    }
    if not equal:
        return fields
    rows = round(n)
    width = certificates.uniform_band(rows, **level)
    return fields | {
        "high": certificates.upper_bound(value, moments.second_moment, rows, **level),
        "guaranteed_band": (max(0.0, value - width), min(1.0, value + width)),
    }


def null_fields(walk: Walk, *, n_draws: int, rng: np.random.Generator) -> dict[str, Any]:
    """Test of calibration: by Monte Carlo or asymptotic; none with soft labels or importance weights."""
    if walk.soft or not walk.moments.whole:
        return {"p_value": None, "alternative": None, "null_high": None, "null_level": None, "test": ""}
    moments, value = walk.moments, walk.found.value
    scale = math.sqrt(moments.variance)
    extra = {"asymptotic_p_value": range_survival(value * moments.total / scale) if scale else None}
    if walk.levels is not None:
        return exact_test(walk.levels, n_draws=n_draws, generator=rng) | extra
    return asymptotic_test(value, moments.variance, moments.total) | extra


def lower_end(p_value: float | None, low_bound: float, *, confidence: float, n_models: int) -> float:
    """One-sided lower bound for the population error, by inverting the test of calibration.

    0 exactly when the test does not reject; the smallest positive number when it does and no more than an
    error above 0 can be shown. Without a test the asymptotic bound stands alone.
    """
    if p_value is None:
        return low_bound
    return max(low_bound, SMALLEST) if p_value <= (1 - confidence) / n_models else 0.0


def missing_reasons(walk: Walk, bounds: dict[str, Any]) -> str:
    """Why there is no test, or no guarantee."""
    reasons = [SOFT_REASON] if walk.soft else []
    reasons += [] if walk.moments.whole or walk.soft else [NO_EXACT_LAW]
    return "; ".join(reasons + ([] if bounds["guaranteed"] else [WEIGHTS_REASON]))


def error_from_walk(walk: Walk, options: Any, *, name: str = "calibration_error") -> Estimate:
    """The estimate from what was found; every sup-interval error of one event is made here."""
    bounds = bound_fields(walk, confidence=options.confidence, n_models=options.n_models)
    null = null_fields(walk, n_draws=options.n_draws, rng=generator(options.random_state))
    kind = "guaranteed (empirical Bernstein)" if bounds["guaranteed"] else "asymptotic"
    return Estimate(
        name=name,
        value=walk.found.value,
        std_error=walk.std_error,
        low=lower_end(
            null["p_value"], bounds["low_bound"], confidence=options.confidence, n_models=options.n_models
        ),
        high=bounds["high"],
        confidence=options.confidence,
        n=walk.moments.rows,
        **{field: null.get(field) for field in ("p_value", "alternative", "null_high", "null_level")},
        method=f"sup-interval error, {kind} upper bound" + (f", {null['test']}" if null["test"] else ""),
        reason=missing_reasons(walk, bounds),
        details=_details(walk, bounds, null),
    )


def _details(walk: Walk, bounds: dict[str, Any], null: dict[str, Any]) -> dict[str, Any]:
    return {
        **interval_details(walk),
        "sentence": in_words(walk.found, walk.moments, walk.highest),
        **{key: bounds[key] for key in bounds if key != "high"},
        "brier": walk.moments.second_moment,
        "noise_floor": null.get("null_mean"),
        "p_std_error": null.get("p_std_error"),
        "asymptotic_p_value": null.get("asymptotic_p_value"),
        "impossible": walk.moments.impossible,
        "one_sided_ends": True,
    }


def interval_details(walk: Walk) -> dict[str, Any]:
    """The maximising interval, and how often the event was stated and happened there."""
    found, moments = walk.found, walk.moments
    return {
        "interval": None if found.sign == 0 else (found.low, found.high),
        "sign": found.sign,
        "share_in_interval": moments.inside / moments.total,
        "stated_in_interval": moments.stated,
        "observed_in_interval": moments.happened,
    }
