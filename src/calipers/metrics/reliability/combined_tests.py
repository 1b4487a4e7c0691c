"""What the sup-interval test does not see well: slopes, oscillations, the Brier score's own reading.

All statistics are computed on the same simulated outcomes, so that one verdict over all of them is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from calipers.arrays import RandomState, generator
from calipers.exceptions import InputError
from calipers.inference import SimulatedLaw
from calipers.inference.monte_carlo import tie_tolerance
from calipers.inference.null_law import NULL_LEVEL
from calipers.inputs import NO_EXACT_LAW, check_count
from calipers.metrics.reliability.calibration_test import (
    MAX_COINS,
    N_DRAWS,
    Statistic,
    levels_to_draw,
    range_statistic,
    simulated_hits,
)
from calipers.metrics.reliability.cumulative_differences import score_levels
from calipers.metrics.reliability.distinct_scores import ScoreLevels
from calipers.metrics.reliability.multiclass import check_reliability_rows
from calipers.metrics.reliability.range_law import range_survival
from calipers.results import Estimate, EstimateTable

_NO_INTERVAL = "a test statistic has a null law and no interval"
_TITLE = "Is the model calibrated?"
# The square of any number of rows is finite when divided by it.
_SMALLEST_DIVISOR = 1e-280
_ABOUT = {
    "sup_interval": "shifts, and errors in one range of scores",
    "spiegelhalter": "probabilities too extreme or too timid",
    "hosmer_lemeshow": "errors that change sign from one range of scores to the next",
    "recalibration": "a wrong intercept or slope on the logit scale",
    "impossible": "outcomes that were stated to have probability 0",
}


def calibration_tests(
    y_true: Any,
    probabilities: Any,
    *,
    pos_label: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    n_groups: int = 10,
    n_draws: int = N_DRAWS,
    random_state: RandomState = None,
) -> EstimateTable:
    """Five tests of calibration and one verdict over all of them.

    A calibrated model has p-values that are uniform in each row; a verdict below 0.05 says that at least
    one kind of error is there, and the rows say which.

    Parameters
    ----------
    y_true : array of shape (n,)
        Labels.
    probabilities : array of shape (n,), (n, 2) or (n, K)
        Of the positive class, or one column per class; with K > 2 the top label is tested.
    pos_label : label, optional
        The positive class; the larger of two labels by default.
    sample_weight : array of shape (n,), optional
        Weights. Whole numbers are repetitions; other weights are importance weights, and nothing is tested.
    classes : sequence of K labels, optional
        The label of every column.
    n_groups : int
        Groups of about equal mass in the Hosmer-Lemeshow test; rows of equal score stay together.
    n_draws : int
        Draws of the null.
    random_state : int, Generator or None
        Source of those draws.

    Returns
    -------
    EstimateTable
        ``sup_interval`` (c_emp), ``spiegelhalter`` (its Z), ``hosmer_lemeshow`` and ``recalibration``
        (chi-squared readings), ``impossible`` (a count) and ``verdict`` (the smallest of the five
        p-values; its own ``p_value`` allows for the choice). ``details["sees"]`` says what a test is good at.

    Raises
    ------
    InputError
        For soft labels (they have no Bernoulli law) and what `calibration_error` refuses.

    Notes
    -----
    With d = w (y - f) and v = f (1 - f): Z = sum d (1 - 2 f) / sqrt(sum w^2 (1 - 2 f)^2 v);
    Hosmer-Lemeshow = sum over groups of (sum d)^2 / sum w^2 v, n_groups degrees of freedom because nothing
    was fitted; recalibration = U' I^-1 U with U = sum d (1, logit f), I its covariance: the score test of
    intercept 0 and slope 1. The law of all of them under calibration is simulated by redrawing outcomes level
    by level; the verdict compares the smallest p-value with the smallest p-values of the draws
    themselves, which keeps its level exactly. Beyond 1e8 coins: asymptotic laws and Bonferroni, or, where
    fewer than 100 surprises are expected, draws by 500 cells of the score. Importance weights: no test.

    References
    ----------
    Spiegelhalter (1986), Probabilistic prediction in patient management and clinical trials.
    Hosmer and Lemeshow (1980), Goodness of fit tests for the multiple logistic regression model.
    Cox (1958), Two further applications of a model for binary regression.
    Westfall and Young (1993), Resampling-based multiple testing.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import calibration_tests
    >>> rng = np.random.default_rng(0)
    >>> f = rng.random(1000)
    >>> timid = 1 / (1 + ((1 - f) / f) ** 0.7)
    >>> table = calibration_tests(rng.random(1000) < f, timid, random_state=0)
    >>> [table[name].p_value for name in ("sup_interval", "spiegelhalter", "verdict")]
    [0.025, 0.001, 0.003]
    """
    rows = check_reliability_rows(
        y_true, probabilities, pos_label=pos_label, sample_weight=sample_weight, classes=classes
    )
    if rows.soft:
        raise InputError("y_true holds soft labels, which have no Bernoulli law; the tests need labels.")
    levels = score_levels(rows)
    tests = calibration_statistics(levels, check_count(n_groups, name="n_groups", minimum=2))
    draws = check_count(n_draws, name="n_draws")
    if not rows.whole:
        return _table_without_law(tests, levels)
    drawn = levels_to_draw(levels, n_draws=draws, most_coins=MAX_COINS)
    if drawn is None:
        return _asymptotic_table(tests, levels)
    by_draws = tests if drawn is levels else calibration_statistics(drawn, n_groups)
    return _exact_table(tests, levels, by_draws, drawn, draws, generator(random_state))


@dataclass(frozen=True, slots=True)
class CalibrationStatistic:
    """One statistic of the outcomes, large when calibration is wrong.

    Parameters
    ----------
    name : str
        Key in the table.
    signed : callable
        Hits (b, K) to readings (b,); the test looks at their absolute value.
    survival : callable
        Asymptotic P(|reading| > x) under calibration.
    scale : float
        What a reading is divided by to be reported.
    """

    name: str
    signed: Statistic
    survival: Any
    scale: float = 1.0


def calibration_statistics(levels: ScoreLevels, n_groups: int) -> list[CalibrationStatistic]:
    """The statistics of `calibration_tests`, for given scores."""
    scale = math.sqrt(levels.variance)
    return [
        CalibrationStatistic(
            "sup_interval",
            range_statistic(levels),
            lambda x: range_survival(x / scale) if scale else float(x <= 1e-9),
            levels.total,
        ),
        CalibrationStatistic("spiegelhalter", _spiegelhalter(levels), lambda x: 2 * float(special.ndtr(-x))),
        _hosmer_lemeshow(levels, n_groups),
        CalibrationStatistic("recalibration", _recalibration(levels), lambda x: float(special.chdtrc(2, x))),
        CalibrationStatistic("impossible", _impossible(levels), lambda x: float(x == 0)),
    ]


def _linear(levels: ScoreLevels, factors: np.ndarray) -> Statistic:
    """Hits (b, K) to sum over units of w (hits - expected) factor, one column per factor."""
    weights = (levels.unit_weights * factors.T).T
    expected = (levels.trials * levels.values) @ weights
    return lambda hits: np.asarray(hits.astype(np.float64) @ weights - expected)


def _divisors(levels: ScoreLevels) -> np.ndarray:
    """The variances of the units; those of probabilities next to 0 are raised so that one can divide."""
    variance = levels.unit_variance
    return np.where(variance > 0, np.maximum(variance, _SMALLEST_DIVISOR), 0.0)


def _spiegelhalter(levels: ScoreLevels) -> Statistic:
    slope = 1 - 2 * levels.values
    spread = math.sqrt(float(np.sum(levels.unit_variance * slope**2)))
    total = _linear(levels, slope)
    return lambda hits: total(hits) / spread if spread > 0 else np.zeros(hits.shape[0])


def _hosmer_lemeshow(levels: ScoreLevels, n_groups: int) -> CalibrationStatistic:
    mass = levels.trials * levels.unit_weights
    middle = (np.cumsum(mass) - mass / 2)[levels.block_ends]
    # The middle of a block of equal scores decides its group, so that a block is never split.
    block = np.searchsorted(levels.block_ends, np.arange(levels.size))
    groups = np.minimum((n_groups * middle / mass.sum()).astype(int), n_groups - 1)[block]
    variance = np.bincount(groups, _divisors(levels), minlength=n_groups)
    kept = np.flatnonzero(variance > 0)
    if not kept.size:
        return CalibrationStatistic("hosmer_lemeshow", lambda hits: np.zeros(hits.shape[0]), lambda _: 1.0)
    sums = _linear(levels, (groups[:, None] == kept).astype(float))
    return CalibrationStatistic(
        "hosmer_lemeshow",
        lambda hits: np.sum(sums(hits) ** 2 / variance[kept], axis=1),
        lambda x: float(special.chdtrc(kept.size, x)),
    )


def _recalibration(levels: ScoreLevels) -> Statistic:
    inner = (levels.values > 0) & (levels.values < 1)
    logits = special.logit(np.where(inner, levels.values, 0.5))
    design = np.column_stack([inner, inner * logits])
    # A constant score has one direction only; the pseudo-inverse leaves the other out.
    information = design.T @ (design * _divisors(levels)[:, None])
    inverse = np.linalg.pinv(information, rcond=1e-10, hermitian=True)
    scores = _linear(levels, design)
    return lambda hits: np.einsum("bi,ij,bj->b", scores(hits), inverse, scores(hits))


def _impossible(levels: ScoreLevels) -> Statistic:
    never, always = levels.values == 0, levels.values == 1
    certain = float(levels.trials[always].sum())
    return lambda hits: hits[:, never].sum(axis=1) + certain - hits[:, always].sum(axis=1)


def _simulate(
    tests: list[CalibrationStatistic], levels: ScoreLevels, n_draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Absolute readings (draws + 1, tests); the data come first."""
    parts = [_readings(tests, levels.hits[None, :])]
    parts += [_readings(tests, hits) for hits in simulated_hits(levels, n_draws, rng)]
    return np.asarray(np.abs(np.concatenate(parts)))


def _readings(tests: list[CalibrationStatistic], hits: np.ndarray) -> np.ndarray:
    return np.column_stack([test.signed(hits) for test in tests])


def rank_p_values(readings: np.ndarray) -> np.ndarray:
    """Share of rows that read at least as much as each row, column by column; ties within rounding."""
    p = np.empty(readings.shape)
    for k in range(readings.shape[1]):
        column = np.sort(readings[:, k])
        tolerance = tie_tolerance(float(column[-1]), column)
        below = np.searchsorted(column, readings[:, k] - tolerance, side="left")
        p[:, k] = (column.size - below) / column.size
    return p


def min_p_verdict(p_values: np.ndarray) -> float:
    """p-value of the first row's smallest p-value among those of all rows; exact for exchangeable rows."""
    smallest = p_values.min(axis=1)
    return float(np.mean(smallest <= smallest[0] * (1 + 1e-12)))


def _exact_table(
    tests: list[CalibrationStatistic],
    levels: ScoreLevels,
    by_draws: list[CalibrationStatistic],
    drawn: ScoreLevels,
    n_draws: int,
    rng: np.random.Generator,
) -> EstimateTable:
    """The readings of all scores, with the law of the scores, or cells of them, that are drawn."""
    readings = _simulate(by_draws, drawn, n_draws, rng)
    p_values = rank_p_values(readings)
    method = f"exact Monte Carlo by {drawn.unit}, {n_draws} draws"
    highs = [SimulatedLaw(readings[1:, k]).band(NULL_LEVEL).high for k in range(len(tests))]
    rows = [
        _test_row(test, levels, p_value, high, method)
        for test, p_value, high in zip(tests, p_values[0].tolist(), highs, strict=True)
    ]
    return _table(rows, min_p_verdict(p_values), "smallest p-value against its own simulated law")


def _table_without_law(tests: list[CalibrationStatistic], levels: ScoreLevels) -> EstimateTable:
    """The readings alone, with importance weights."""
    rows = [_test_row(test, levels, None, None, "weighted statistic") for test in tests]
    reason = f"{_NO_INTERVAL}; {NO_EXACT_LAW}"
    verdict = Estimate(name="verdict", n=rows[0].n, method="smallest p-value", reason=reason)
    return EstimateTable([*rows, verdict], title=_TITLE)


def _asymptotic_table(tests: list[CalibrationStatistic], levels: ScoreLevels) -> EstimateTable:
    observed = np.abs(_readings(tests, levels.hits[None, :])[0])
    p_values = [test.survival(float(x)) for test, x in zip(tests, observed, strict=True)]
    rows = [
        _test_row(test, levels, p, None, "asymptotic law") for test, p in zip(tests, p_values, strict=True)
    ]
    return _table(rows, min(1.0, len(tests) * min(p_values)), "smallest p-value, Bonferroni")


def _test_row(
    test: CalibrationStatistic, levels: ScoreLevels, p_value: float | None, high: float | None, method: str
) -> Estimate:
    observed = float(test.signed(levels.hits[None, :])[0])
    end = None if high is None else high / test.scale
    two_sided = test.name == "spiegelhalter"
    return Estimate(
        name=test.name,
        value=observed / test.scale,
        n=levels.rows,
        p_value=p_value,
        alternative=None if p_value is None else "two-sided" if two_sided else "greater",
        null_low=-end if two_sided and end is not None else None,
        null_high=end,
        null_level=None if end is None else NULL_LEVEL,
        method=method,
        reason=_NO_INTERVAL if p_value is not None else f"{_NO_INTERVAL}; {NO_EXACT_LAW}",
        details={
            "sees": _ABOUT[test.name],
            "asymptotic_p_value": None if p_value is None else test.survival(abs(observed)),
        },
    )


def _table(rows: list[Estimate], p_value: float, method: str) -> EstimateTable:
    strongest = min(rows, key=lambda row: row.p_value if row.p_value is not None else 1.0)
    verdict = Estimate(
        name="verdict",
        value=strongest.p_value,
        n=rows[0].n,
        p_value=p_value,
        alternative="less",
        method=method,
        reason=_NO_INTERVAL,
        details={"decided_by": strongest.name},
    )
    return EstimateTable([*rows, verdict], title=_TITLE)
