"""P-values and null bands of the excess risk, and the reasons where there is none."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from calipers.conformal import conformal_rank
from calipers.inference import CalibrationLaw, CoverageLaw
from calipers.metrics.conditional.cross_fit import Fold
from calipers.metrics.conditional.losses import SIDES, Distance
from calipers.metrics.conditional.null_outcomes import N_DRAWS
from calipers.metrics.conditional.risk_rows import RiskRows
from calipers.metrics.conditional.score_test import score_p_value
from calipers.metrics.conditional.sequential import fisher, log_p, sequential_p_values

PValues = dict[str, dict[str, float | None]]
NULL_LEVEL = 0.95
# Variance of a cross-fit mean over its row-wise estimate, at most (Notes of `ert`).
INFLATION = 2.0
# The score test multiplies draws by rows; with more rows the sequential test needs no help.
_MOST_SCORED_ROWS = 4000
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
    """Side -> {"p_target": ..., "p_flat": ...}: twice the smaller of the sequential and the score test.

    The score test has no side, so the parts of one side rest on the sequential test alone.
    """
    if no_test(rows) or not steps:
        return {side: dict.fromkeys(("p_target", "p_flat")) for side in SIDES}
    counted = rows.weights.counted
    if (counted & np.where(rows.covered, rows.target == 0.0, rows.target == 1.0)).any():
        # What was promised with certainty did not happen: impossible under either null.
        return {side: dict.fromkeys(("p_target", "p_flat"), 1.0 / (N_DRAWS + 1)) for side in SIDES}
    level = _level_p_values(rows) if rows.one_target else None
    kept = tuple(Fold(s.rows[counted[s.rows]], s.predictions[counted[s.rows]]) for s in steps)
    sequential = sequential_p_values(kept, rows.covered, rows.target, level, rng)
    found: PValues = {side: dict(values) for side, values in sequential.items()}
    if int(counted.sum()) <= _MOST_SCORED_ROWS:
        for key, p in _score_p_values(rows, level, rng).items():
            found["both"][key] = min(1.0, 2.0 * min(p, sequential["both"][key]))
    return found


def _level_p_values(rows: RiskRows) -> dict[str, float]:
    """Per side, the exact test of the number covered: binomial, or over calibration samples too."""
    z, alpha = rows.covered[rows.weights.counted], 1.0 - float(rows.target[0])
    if not 0.0 < alpha < 1.0:
        return dict.fromkeys(SIDES, 1.0)
    n = rows.n_calibration
    law = CoverageLaw(len(z), alpha, n, None if n is None else conformal_rank(n, alpha))
    hits = int(np.count_nonzero(z))
    sides = {"both": "two-sided", "over": "greater", "under": "less"}
    return {side: float(law.p_value(hits, alternative)) for side, alternative in sides.items()}


def _score_p_values(
    rows: RiskRows, level: dict[str, float] | None, rng: np.random.Generator
) -> dict[str, float]:
    there = np.flatnonzero(rows.weights.counted)
    features, z, target = rows.features.take(there), rows.covered[there], rows.target[there]
    flat = score_p_value(features, z, target, "flat", rng)
    if level is None:
        return {"p_flat": flat, "p_target": score_p_value(features, z, target, "target", rng)}
    return {"p_flat": flat, "p_target": fisher(np.array([log_p(flat), log_p(level["both"])]))}


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
    shift = 0.0
    if rows.n_calibration is not None and 0.0 < target[0] < 1.0:
        rank = conformal_rank(rows.n_calibration, 1.0 - float(target[0]))
        law = CalibrationLaw(rows.n_calibration, rank)
        variance, shift = variance + law.std**2, abs(law.mean - float(target[0]))
    c = float(special.ndtri(NULL_LEVEL)) * math.sqrt(variance) + shift
    ends = [np.clip(target + sign * c, 0.0, 1.0) for sign in (1.0, -1.0)]
    return max(float(np.average(distance.function(target, q), weights=w)) for q in ends), ""
