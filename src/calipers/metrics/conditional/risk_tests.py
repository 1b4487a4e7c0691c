"""P-values and null bands of the excess risk, and the reasons where there is none."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from calipers.conformal import conformal_rank
from calipers.inference import CalibrationLaw, CoverageLaw, monte_carlo_p
from calipers.inference.null_law import NULL_LEVEL
from calipers.metrics.conditional.cross_fit import Fold
from calipers.metrics.conditional.losses import SIDES, Distance
from calipers.metrics.conditional.null_outcomes import N_DRAWS, redrawn
from calipers.metrics.conditional.risk_rows import RiskRows
from calipers.metrics.conditional.score_test import score_p_value
from calipers.metrics.conditional.sequential import sequential_p_values

PValues = dict[str, dict[str, float | None]]
# Variance of a cross-fit mean over its row-wise estimate, at most (Notes of `ert`).
INFLATION = 2.0
# The score test multiplies draws by rows; with more rows the sequential test needs no help.
_MANY_ROWS = 4000
# Part of the allowed error that the number covered gets in a test of the target.
_LEVEL_SHARE = 0.25
UNEQUAL_WEIGHTS = "weights that differ have no exact test (repeated rows have one when they are written out)"
_SHARED_THRESHOLDS = "levels that differ by row, from one calibration sample, have no exact test here"
_DEPENDENT = "rows of one cluster are dependent, and no valid test for them is known here"
_FLAT_BAND = (
    "no null band: the value is a distance from the target, the p-value is that of a coverage that does not "
    "depend on x"
)


def no_test(rows: RiskRows) -> str:
    """Why these rows cannot be tested; empty when they can."""
    if rows.null is None:
        return "no null was asked for"
    if rows.clusters is not None:
        return _DEPENDENT
    if not rows.weights.equal:
        return UNEQUAL_WEIGHTS
    return _SHARED_THRESHOLDS if rows.n_calibration is not None and not rows.one_target else ""


def risk_p_values(rows: RiskRows, steps: tuple[Fold, ...], rng: np.random.Generator) -> PValues:
    """Side -> {"p_target": ..., "p_flat": ...}.

    "Flat": twice the smaller of the sequential and the score test; the latter has no side, so the parts of
    one side rest on the former alone. "Target": the smaller of "flat" and of the exact test of the number
    covered, with three quarters and one quarter of the allowed error.
    """
    if no_test(rows) or not steps:
        return {side: dict.fromkeys(("p_target", "p_flat")) for side in SIDES}
    there = np.flatnonzero(rows.weights.counted)
    z, target = rows.covered[there], rows.target[there]
    if np.where(z, target == 0.0, target == 1.0).any():
        # What was promised with certainty did not happen: impossible under either null.
        return {side: dict.fromkeys(("p_target", "p_flat"), 1.0 / (N_DRAWS + 1)) for side in SIDES}
    counted = rows.weights.counted
    kept = tuple(Fold(s.rows[counted[s.rows]], s.predictions[counted[s.rows]]) for s in steps)
    flat = sequential_p_values(kept, rows.covered, rows.target, rng)
    if len(there) <= _MANY_ROWS:
        scored = score_p_value(rows.features.take(there), z, target, rng)
        flat["both"] = min(1.0, 2.0 * min(scored, flat["both"]))
    level = _level_p_values(rows, z, target, rng)
    return {
        side: {
            "p_target": min(1.0, flat[side] / (1.0 - _LEVEL_SHARE), level[side] / _LEVEL_SHARE),
            "p_flat": flat[side],
        }
        for side in SIDES
    }


def _level_p_values(
    rows: RiskRows, z: np.ndarray, target: np.ndarray, rng: np.random.Generator
) -> dict[str, float]:
    """Per side, the test of the number covered: exact, over calibration samples too where they are known."""
    hits, alternatives = (
        int(np.count_nonzero(z)),
        dict(zip(SIDES, ("two-sided", "greater", "less"), strict=True)),
    )
    if rows.one_target and 0.0 < target[0] < 1.0:
        n, alpha = rows.n_calibration, 1.0 - float(target[0])
        law = CoverageLaw(len(z), alpha, n, None if n is None else conformal_rank(n, alpha))
        return {side: float(law.p_value(hits, alternative)) for side, alternative in alternatives.items()}
    if len(z) <= _MANY_ROWS:
        draws = redrawn(target, rng).sum(axis=1)
        return {side: monte_carlo_p(hits, draws, alternative=a).p_value for side, a in alternatives.items()}
    spread = math.sqrt(float(np.sum(target * (1.0 - target))))
    if spread == 0.0:
        return dict.fromkeys(SIDES, 1.0)
    lower = float(special.ndtr((hits - float(target.sum())) / spread))
    return {"both": 2.0 * min(lower, 1.0 - lower), "over": 1.0 - lower, "under": lower}


def _calibration_law(rows: RiskRows) -> CalibrationLaw | None:
    """Law of the coverage over calibration samples; None where it is not known or leaves no choice."""
    n, t = rows.n_calibration, float(rows.target[0])
    if n is None or not (rows.one_target and 0.0 < t < 1.0):
        return None
    return CalibrationLaw(n, conformal_rank(n, 1.0 - t))


def null_band(rows: RiskRows, distance: Distance, tested: np.ndarray) -> tuple[float | None, str]:
    """An upper bound of the 95 % point of the value under "target", whatever the classifier; or why not.

    With g = h - t the value is about ``f''/2 (2 e g - g^2)``, at most ``f''/2 c^2``, which is f(t + c), when
    the noise e reaches c.
    """
    if rows.null is None or rows.clusters is not None:
        return None, ""
    if rows.null == "flat":
        return None, _FLAT_BAND
    if rows.n_calibration is not None and not rows.one_target:
        return None, ""
    target, w = rows.target[tested], rows.weights.of(tested)
    variance = INFLATION * np.average(target * (1 - target), weights=w) * np.sum(w**2) / np.sum(w) ** 2
    shift, law = 0.0, _calibration_law(rows)
    if law is not None:
        variance, shift = variance + law.std**2, abs(law.mean - float(target[0]))
    c = float(special.ndtri(NULL_LEVEL)) * math.sqrt(variance) + shift
    ends = [np.clip(target + sign * c, 0.0, 1.0) for sign in (1.0, -1.0)]
    return max(float(np.average(distance.function(target, q), weights=w)) for q in ends), ""
