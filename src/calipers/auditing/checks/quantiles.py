"""CAL507: can stated quantiles, or a whole predictive distribution, be read as probabilities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calipers.arrays import as_numpy, frame_columns
from calipers.auditing.check import Check
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.measurements import NO_EXACT_TEST_SENTENCE, Measurements
from calipers.auditing.severity import SERIOUS
from calipers.auditing.tolerances import COMMON, interval_of, rows_for, tolerance_at
from calipers.inference import holm, wilson
from calipers.inputs.derived_columns import PIT_LEVELS
from calipers.metrics import crps, pit_uniformity, quantile_calibration
from calipers.results import Curve, Estimate
from calipers.results.formatting import format_share

QUESTION = "probabilities"
CODE, TITLE = "CAL507", "quantiles are off"


def quantiles_and_pit(m: Measurements, promise: None) -> list[CheckResult]:
    """Share of outcomes below every stated quantile, and uniformity of the PIT values."""
    found = []
    if "quantiles" in m.design.have:
        found.append(_quantiles(m))
    if "pit" in m.design.have:
        found.append(_pit(m))
    return found


def _quantiles(m: Measurements) -> CheckResult:
    base = CheckResult(code=CODE, title=TITLE, question=QUESTION, promise="quantiles")
    if (rows := m.counted_rows()) is None:
        return replace(base, not_applicable=NO_EXACT_TEST_SENTENCE)
    levels = [float(level) for level in frame_columns(rows.given["quantiles"])]
    Q = as_numpy(rows.given["quantiles"]).astype(float)
    shares = quantile_calibration(
        rows["outcomes"], Q, levels=levels, n_calibration=m.design.n_calibration, confidence=m.confidence
    )
    p_values = np.array([1.0 if e.p_value is None else e.p_value for e in shares.values()])
    at = int(np.argmin(p_values))
    level, worst = levels[at], list(shares.values())[at]
    low, high = (
        float(end if end is not None else other) for end, other in ((worst.low, 0.0), (worst.high, 1.0))
    )
    over = float(worst) > level
    ends = (low - level, high - level) if over else (level - high, level - low)
    numbers = tuple(replace(e, name=f"share below quantile {key}") for key, e in shares.items())
    score = (crps(rows["outcomes"], Q, levels=levels, confidence=m.confidence),) if len(levels) > 1 else ()
    return replace(
        base,
        evidence=replace(worst, name=f"share below quantile {level:g}"),
        p_value=float(holm(p_values)[at]),
        effect=abs(float(worst) - level),
        effect_low=ends[0],
        effect_high=max(_room(e, level) for e, level in zip(shares.values(), levels, strict=True)),
        tolerance=tolerance_at(level),
        serious=SERIOUS * COMMON,
        rows_needed=rows_for(0.5, COMMON, m.confidence),
        fault=f"{format_share(float(worst))} of the outcomes lie at or below the quantile stated for "
        f"{100 * level:g} %.",
        clean="No quantile is clearly off: about as many outcomes lie below each of them as stated.",
        where=f"quantile {level:g}",
        estimates=(*numbers, *score),
        pictures=(_share_picture(levels, numbers, rows.n, m.confidence),),
        # The side with more outcomes than stated.
        rows=lambda given: given.at(at)["below_quantile"] == over,
        details={"single_promise": f"quantile {list(shares)[at]}"},
    )


def _room(share: Estimate, level: float) -> float:
    """How far the share may lie from the level, on either side."""
    low, high = interval_of(share)
    return max(level - low, high - level)


def _share_picture(levels: list[float], shares: tuple[Estimate, ...], n: int, confidence: float) -> Picture:
    y = np.array([float(e) for e in shares])
    low, high = wilson(np.rint(y * n), n, confidence=confidence)
    curve = Curve(
        name="share below", x=np.array(levels), y=y, low=np.asarray(low), high=np.asarray(high),
        confidence=confidence, x_label="stated level", y_label="share of outcomes at or below",
        method="share of rows, Wilson interval", details={"diagonal": True},
    )  # fmt: skip
    return Picture(
        name="CAL507_quantiles", question=QUESTION, title="Outcomes below every quantile",
        caption="On the diagonal as many outcomes lie below a quantile as stated.", kind="points",
        curves=(curve,),
    )  # fmt: skip


def _pit(m: Measurements) -> CheckResult:
    base = CheckResult(code=CODE, title="predictive distributions are off", question=QUESTION, promise="PIT")
    if (rows := m.counted_rows()) is None:
        return replace(base, not_applicable=NO_EXACT_TEST_SENTENCE)
    pit = np.asarray(rows["pit"], dtype=float)
    estimate = pit_uniformity(pit, confidence=m.confidence)
    level, gap = _largest_gap(pit)
    # The band of Dvoretzky, Kiefer, Wolfowitz and Massart holds at all levels at once.
    half = float(np.sqrt(np.log(2 / (1 - m.confidence)) / (2 * len(pit))))
    return replace(
        base,
        evidence=estimate,
        p_value=estimate.p_value,
        effect=abs(gap),
        effect_low=abs(gap) - half,
        effect_high=abs(gap) + half,
        tolerance=COMMON,
        rows_needed=int(np.ceil(len(pit) * (half / COMMON) ** 2)),
        fault=f"The predictive distributions are {estimate.details['shape']}: at or below the stated "
        f"{format_share(level, 0)} point lie {format_share(level + gap)} of the outcomes.",
        clean="The PIT values show no clear departure from an even spread.",
        where=f"PIT up to {level:.2f}",
        estimates=(replace(estimate, name="uniformity of the PIT values"),),
        pictures=(_pit_picture(pit, half, m.confidence),),
        rows=lambda given: (given["pit"] <= level) == (gap > 0),
        details={"single_promise": f"quantile {min(PIT_LEVELS, key=lambda own: abs(own - level)):g}"},
    )


def _largest_gap(pit: np.ndarray) -> tuple[float, float]:
    """The level at which the share of smaller PIT values differs most from it, and by how much."""
    ordered, n = np.sort(pit), len(pit)
    above = np.arange(1, n + 1) / n - ordered
    below = np.arange(n) / n - ordered
    at = int(np.argmax(np.maximum(above, -below)))
    return float(ordered[at]), float(above[at] if above[at] >= -below[at] else below[at])


def _pit_picture(pit: np.ndarray, half: float, confidence: float) -> Picture:
    grid = np.linspace(0.0, 1.0, 51)
    share = np.searchsorted(np.sort(pit), grid, side="right") / len(pit)
    curve = Curve(
        name="PIT", x=grid, y=share, null_low=np.clip(grid - half, 0, 1),
        null_high=np.clip(grid + half, 0, 1), null_level=confidence,
        x_label="PIT value", y_label="share of rows up to it",
        method="empirical distribution; band of right distributions (Dvoretzky-Kiefer-Wolfowitz-Massart)",
    )  # fmt: skip
    return Picture(
        name="CAL507_pit", question=QUESTION, title="Distribution of the PIT values",
        caption="Right predictive distributions stay inside the grey band around the diagonal.", kind="line",
        curves=(curve,),
    )  # fmt: skip


CHECKS = (
    Check(
        code=CODE,
        title="quantiles and predictive distributions",
        question=QUESTION,
        needs=("distribution",),
        add="Add quantiles (q_<level>) or pit, to read the predictive distribution as probabilities.",
        once=True,
        slices="all rows",
        read=quantiles_and_pit,
        on_sample=True,
        tasks=("regression",),
    ),
)
