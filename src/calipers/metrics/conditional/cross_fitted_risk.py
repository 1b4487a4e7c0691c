"""Estimates of the excess risk from a cross-fit: value, error bar, interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from calipers.arrays import RandomState, generator
from calipers.inference.null_law import NULL_LEVEL
from calipers.metrics.conditional.cross_fit import CrossFit, cross_fit
from calipers.metrics.conditional.learners import check_learner
from calipers.metrics.conditional.losses import DISTANCES, Distance, clip_to_side
from calipers.metrics.conditional.risk_rows import RiskRows
from calipers.metrics.conditional.risk_tests import (
    INFLATION,
    PValues,
    no_test,
    null_band,
    risk_p_values,
)
from calipers.results import Estimate

_SHARPER_TEST = (
    "no null band: one that holds for any classifier is too coarse to agree with the exact test here"
)
LOWER_BOUND = (
    "in expectation a lower bound of the true excess risk: no classifier beats the true conditional coverage"
)
# Cross-fits are repeated until seeds move the L1 value by less than this share of its standard error.
_SEED_NOISE = 0.5
# A value this many standard errors above 0 moves by a small part of one from seed to seed.
_CLEAR = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class FittedRisk:
    """Rows, the predictions of their cross-fit, and their p-values."""

    rows: RiskRows
    fit: CrossFit
    p_values: PValues


def fit_risk(
    X: Any,
    rows: RiskRows,
    *,
    classifier: Any,
    cv: Any,
    stratify: bool,
    n_repeats: int | None,
    random_state: RandomState,
) -> FittedRisk:
    """Cross-fit the classifier and test."""
    rng = generator(random_state)
    learner = check_learner(classifier, X, rows.features, rows.covered, rows.target, rows.weights)
    # With an alpha per row the test redraws every row, which stratified folds would not allow.
    strata = rows.covered if rows.one_target else np.ones(len(rows), dtype=bool)
    fit = cross_fit(
        learner, rows.features.values, strata, cv=cv, stratify=stratify, clusters=rows.clusters,
        n_repeats=n_repeats, sequential=not no_test(rows), enough=lambda fit: _is_steady(rows, fit), rng=rng,
    )  # fmt: skip
    return FittedRisk(rows, fit, risk_p_values(rows, fit.steps, rng))


def _is_steady(rows: RiskRows, fit: CrossFit) -> bool:
    """Whether further repeats would hardly move the L1 value."""
    contributions = _Contributions.of(rows, fit, DISTANCES["l1"], "both")
    error = _error_bar(rows, contributions).std_error
    if error is None:
        return True
    if fit.n_repeats == 1:
        return rows.mean(contributions.observed) >= _CLEAR * error
    values = [rows.mean(single) for single in contributions.singles]
    return float(np.std(values, ddof=1)) / math.sqrt(len(values)) <= _SEED_NOISE * error


@dataclass(frozen=True, slots=True, eq=False)
class _Contributions:
    """What each row adds: as observed, and as if it were covered or missed; NaN where it was never tested."""

    observed: np.ndarray
    covered: np.ndarray
    missed: np.ndarray
    # As observed, repeat by repeat.
    singles: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, rows: RiskRows, fit: CrossFit, distance: Distance, side: str) -> _Contributions:
        """Averaged over repeats; the total is the sum of its two sides."""
        parts = ("over", "under") if side == "both" else (side,)
        each = []
        for single in fit.by_repeat():
            hit, miss = (
                sum(_gains(rows, single, distance, part, outcome) for part in parts) for outcome in (1.0, 0.0)
            )
            each.append((np.where(rows.covered, hit, miss), hit, miss))
        observed, hits, misses = zip(*each, strict=True)
        means = [_mean_of_known(np.stack(k)) for k in (observed, hits, misses)]
        return cls(means[0], means[1], means[2], observed)


def _mean_of_known(repeats: np.ndarray) -> np.ndarray:
    """Mean over repeats (k, n) of what is known; NaN where no repeat tested the row."""
    known = ~np.isnan(repeats)
    count = known.sum(axis=0)
    total = np.where(known, repeats, 0.0).sum(axis=0)
    return np.asarray(np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0))


def _gains(rows: RiskRows, fit: CrossFit, distance: Distance, side: str, outcome: float) -> Any:
    """Contributions of all rows in one repeat if every outcome were the given one."""
    gains = []
    for fold in fit.folds:
        target = rows.target[fold.rows]
        h = clip_to_side(fold.predictions, target, side)
        gains.append(distance.contributions(h, np.full(len(h), outcome), target))
    return fit.average(gains)


@dataclass(frozen=True, slots=True)
class _ErrorBar:
    std_error: float | None
    low: float | None = None
    high: float | None = None


def _error_bar(rows: RiskRows, contributions: _Contributions) -> _ErrorBar:
    """Standard error and interval of the mean; None below two independent rows or clusters.

    As in the interval of Agresti and Coull, q^2 / 2 imagined rows of average features that were covered and
    as many that were missed are added, q the normal quantile: where all outcomes are the same, their
    spread says nothing about the error. The spread is that of single repeats: averaging them makes rows
    look steadier than the mean is.
    """
    counted = np.flatnonzero(rows.weights.counted & ~np.isnan(contributions.observed))
    r, w = contributions.observed[counted], rows.weights.of(counted)
    codes = None if rows.clusters is None else rows.clusters[counted]
    units = w.sum() ** 2 / np.sum(w**2) if codes is None else float(len(np.unique(codes)))
    if not units > 1:
        return _ErrorBar(None)
    imagined = float(special.ndtri((1 + rows.confidence) / 2)) ** 2 / 2
    ends = np.array(
        [np.average(x[counted], weights=w) for x in (contributions.covered, contributions.missed)]
    )
    unit = w.sum() / units
    total = w.sum() + 2 * imagined * unit
    centre = (np.sum(w * r) + imagined * unit * ends.sum()) / total
    squares = np.mean([_squares(w, single[counted] - centre, codes) for single in contributions.singles])
    squares += imagined * unit**2 * np.sum((ends - centre) ** 2)
    error = math.sqrt(INFLATION * squares * units / (units - 1.0)) / total
    half = float(special.stdtrit(units - 1.0, (1 + rows.confidence) / 2)) * error
    value = float(np.average(r, weights=w))
    # No outcome could make the mean smaller or larger than this.
    least, most = (
        float(np.average(pick(contributions.covered[counted], contributions.missed[counted]), weights=w))
        for pick in (np.minimum, np.maximum)
    )
    low, high = max(min(centre - half, value), least), min(max(centre + half, value), most)
    return _ErrorBar(error, low, high)


def _squares(w: np.ndarray, deviations: np.ndarray, codes: np.ndarray | None) -> float:
    """Squared weighted deviations, summed over rows or clusters; 0 for rows a repeat did not test."""
    known = w * np.nan_to_num(deviations, nan=0.0)
    sums = known if codes is None else np.bincount(codes, weights=known)
    return float(np.sum(sums**2))


def risk_estimates(fitted: FittedRisk, distance: Distance, sides: tuple[str, ...]) -> dict[str, Estimate]:
    """The estimates of the sides asked for; the total is the sum of its two parts."""
    rows = fitted.rows
    parts = {side: _Contributions.of(rows, fitted.fit, distance, side) for side in ("over", "under", "both")}
    values = {side: rows.mean(parts[side].observed) for side in ("over", "under")}
    values["both"] = values["over"] + values["under"]
    return {side: _estimate(fitted, distance, side, parts[side], values[side]) for side in sides}


def _estimate(
    fitted: FittedRisk, distance: Distance, side: str, contributions: _Contributions, value: float
) -> Estimate:
    rows, fit = fitted.rows, fitted.fit
    name = f"{distance.name.upper() if len(distance.name) <= 2 else distance.name}-ERT"
    bar = _error_bar(rows, contributions)
    known = ~np.isnan(contributions.observed)
    p = None if rows.null is None else fitted.p_values[side][f"p_{rows.null}"]
    band, no_band = null_band(rows, distance, np.flatnonzero(known & rows.weights.counted))
    if band is not None and p is not None and (value > band) != (p <= 1 - NULL_LEVEL):
        band, no_band = None, _SHARPER_TEST
    return Estimate(
        name=name if side == "both" else f"{name} ({side}-coverage)",
        value=value,
        std_error=bar.std_error,
        low=bar.low,
        high=bar.high,
        confidence=None if bar.std_error is None else rows.confidence,
        n=float(rows.weights.mass[known].sum()),
        p_value=p,
        alternative=None if p is None and band is None else "greater",
        null_high=band,
        null_level=None if band is None else NULL_LEVEL,
        method=_method(rows, p is not None, side),
        reason="; ".join(filter(None, (_no_error(bar), no_test(rows) or _too_few(p), no_band))),
        details={
            "predictions": fit.predictions,
            "fold_values": _fold_values(rows, fit, distance, side),
            "coverage": rows.mean(np.where(known, rows.covered, np.nan)),
            "n_repeats": fit.n_repeats,
            "statement": LOWER_BOUND,
            **fitted.p_values[side],
        },
    )


def _method(rows: RiskRows, tested: bool, side: str) -> str:
    test = f"; exact test of {rows.null}, sequential over folds" if tested else ""
    both = " and of all features at once" if tested and side == "both" else ""
    error = "row-wise" if rows.weights.equal and rows.clusters is None else "linearised"
    return f"cross-fit excess risk, {error} error times sqrt 2 with imagined rows{test}{both}"


def _no_error(bar: _ErrorBar) -> str:
    return "fewer than two independent rows have no error bar" if bar.std_error is None else ""


def _too_few(p: float | None) -> str:
    return "too few rows for a sequential test" if p is None else ""


def _fold_values(rows: RiskRows, fit: CrossFit, distance: Distance, side: str) -> list[float]:
    values = []
    for fold in fit.folds:
        target, w = rows.target[fold.rows], rows.weights.of(fold.rows)
        h = clip_to_side(fold.predictions, target, side)
        gain = distance.contributions(h, rows.covered[fold.rows].astype(float), target)
        values.append(float(np.average(gain, weights=w)) if w.any() else math.nan)
    return values
