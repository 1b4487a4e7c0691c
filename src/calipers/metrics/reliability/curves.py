"""The two pictures of calibration as curves: frequencies by score, and the cumulative difference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calipers.arrays import RandomState, generator
from calipers.inputs import NO_EXACT_LAW, check_confidence, check_count
from calipers.metrics.reliability.binary_rows import BinaryRows
from calipers.metrics.reliability.calibration_test import MAX_COINS, N_DRAWS, n_coins, simulated_hits
from calipers.metrics.reliability.cumulative_differences import pooled_scores, table_of_rows
from calipers.metrics.reliability.distinct_scores import ScoreLevels
from calipers.metrics.reliability.isotonic import isotonic_frequencies
from calipers.metrics.reliability.multiclass import check_reliability_rows
from calipers.metrics.reliability.range_law import absolute_supremum_quantile
from calipers.results import Curve

_MAX_POINTS = 1000


def reliability_curve(
    y_true: Any,
    probabilities: Any,
    *,
    pos_label: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    confidence: float = 0.95,
    n_draws: int = N_DRAWS,
    random_state: RandomState = None,
) -> Curve:
    """Observed frequency as a non-decreasing function of the stated probability, with a consistency band.

    A calibrated model's curve is the diagonal up to noise; ``null_low`` and ``null_high`` show that noise,
    point by point. No bins are chosen.

    Parameters
    ----------
    y_true : array of shape (n,)
        Labels, or soft labels in [0, 1].
    probabilities : array of shape (n,), (n, 2) or (n, K)
        Of the positive class, or one column per class; with K > 2 those of the top label.
    pos_label : label, optional
        The positive class; the larger of two labels by default.
    sample_weight : array of shape (n,), optional
        Weights: whole numbers are repetitions, others importance weights without a test.
    classes : sequence of K labels, optional
        The label of every column.
    confidence : float
        Pointwise level of the consistency band.
    n_draws : int
        Draws behind the band.
    random_state : int, Generator or None
        Source of those draws.

    Returns
    -------
    Curve
        At most 1000 of the distinct scores (evenly spread by mass, ends kept); ``details["mass"]`` is the
        share of rows up to each.

    Raises
    ------
    InputError
        As `calibration_error`.

    Notes
    -----
    Isotonic regression of the outcomes on the scores with ties pooled (CORP). The band holds, at each
    score, the middle ``confidence`` of the curves of redrawn outcomes; it surrounds the diagonal, not the
    curve. It is left out with soft labels, importance weights or too many distinct scores.

    References
    ----------
    Dimitriadis, Gneiting and Jordan (2021), Stable reliability diagrams for probabilistic classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import reliability_curve
    >>> rng = np.random.default_rng(0)
    >>> f = np.round(rng.random(2000), 1)
    >>> curve = reliability_curve(rng.random(2000) < f**2, f, random_state=0)
    >>> int(np.sum(curve.y < curve.null_low)), len(curve)
    (9, 11)
    """
    rows = check_reliability_rows(
        y_true, probabilities, pos_label=pos_label, sample_weight=sample_weight, classes=classes
    ).to_host()
    level, draws = check_confidence(confidence), check_count(n_draws, name="n_draws")
    values, mass, sums = pooled_scores(rows)
    reached = np.cumsum(mass) / mass.sum()
    at = _thinned(reached)
    band, reason = _consistency_band(rows, ScoreLevels(values, mass, sums), at, level, draws, random_state)
    return Curve(
        name="reliability",
        x=values[at],
        y=isotonic_frequencies(mass, sums)[at],
        null_low=band[0],
        null_high=band[1],
        null_level=None if band[0] is None else level,
        x_label="stated probability",
        y_label="observed frequency",
        method="isotonic regression, pointwise consistency band",
        reason=reason,
        details={"mass": reached[at].tolist(), "n": float(mass.sum())},
    )


def _thinned(reached: np.ndarray) -> np.ndarray:
    """Positions of at most _MAX_POINTS levels, evenly spread by mass, both ends kept."""
    if reached.size <= _MAX_POINTS:
        return np.arange(reached.size)
    inner = np.searchsorted(reached, np.linspace(0, 1, _MAX_POINTS - 1))
    return np.unique(np.minimum(np.append(inner, [0, reached.size - 1]), reached.size - 1))


def _consistency_band(
    rows: BinaryRows,
    levels: ScoreLevels,
    at: np.ndarray,
    confidence: float,
    n_draws: int,
    random_state: RandomState,
) -> tuple[tuple[np.ndarray | None, np.ndarray | None], str]:
    if reason := _no_band(rows):
        return (None, None), reason
    affordable = int(n_draws * MAX_COINS / max(1, n_coins(levels, n_draws)))
    if affordable < min(n_draws, 99):
        return (None, None), "too many distinct scores to simulate the consistency band"
    curves = [
        isotonic_frequencies(levels.trials, hits.astype(float))[at]
        for batch in simulated_hits(levels, min(n_draws, affordable), generator(random_state))
        for hits in batch
    ]
    low, high = np.quantile(curves, [0.5 - confidence / 2, 0.5 + confidence / 2], axis=0)
    return (low, high), ""


def cumulative_difference_curve(
    y_true: Any,
    probabilities: Any,
    *,
    pos_label: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    confidence: float = 0.95,
) -> Curve:
    """Events minus stated events up to each score, as a share of all rows.

    A calibrated model's curve stays near 0, inside the simultaneous band with probability ``confidence``.
    Where it falls the model states too much, where it rises too little; the steepest stretch is the worst
    region, and highest minus lowest point is the calibration error.

    Parameters
    ----------
    y_true : array of shape (n,)
        Labels, or soft labels in [0, 1].
    probabilities : array of shape (n,), (n, 2) or (n, K)
        Of the positive class, or one column per class; with K > 2 those of the top label.
    pos_label : label, optional
        The positive class; the larger of two labels by default.
    sample_weight : array of shape (n,), optional
        Weights: whole numbers are repetitions, others importance weights without a test.
    classes : sequence of K labels, optional
        The label of every column.
    confidence : float
        Level of the simultaneous band.

    Returns
    -------
    Curve
        ``x`` is the share of rows up to each score, ``details["score"]`` the score. At most about 1000
        points; the ends of the worst interval are always among them.

    Raises
    ------
    InputError
        As `calibration_error`.

    Notes
    -----
    The band is the quantile of the largest absolute value of Brownian motion times the standard deviation
    of the whole sum; asymptotic, and wider than needed when scores are tied.

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu (2022), Metrics of calibration for probabilistic
    predictions, JMLR.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import calibration_error, cumulative_difference_curve
    >>> rng = np.random.default_rng(0)
    >>> f = rng.random(2000)
    >>> y = rng.random(2000) < f
    >>> curve = cumulative_difference_curve(y, f)
    >>> bool(np.isclose(np.ptp(np.append(curve.y, 0)), calibration_error(y, f).value))
    True
    """
    rows = check_reliability_rows(
        y_true, probabilities, pos_label=pos_label, sample_weight=sample_weight, classes=classes
    ).to_host()
    level = check_confidence(confidence)
    table, total = table_of_rows(rows), rows.total
    walk, reached = np.cumsum(table.step) / total, np.cumsum(table.mass) / total
    at = np.union1d(_thinned(reached), [int(np.argmax(walk)), int(np.argmin(walk))])
    found, reason = table.sup_interval(), _no_band(rows)
    width = absolute_supremum_quantile(level) * math.sqrt(float(table.variance.sum())) / total
    half = None if reason else width
    return Curve(
        name="cumulative difference",
        x=reached[at],
        y=walk[at],
        null_low=None if half is None else np.full(at.size, -half),
        null_high=None if half is None else np.full(at.size, half),
        null_level=None if half is None else level,
        x_label="share of rows, by stated probability",
        y_label="events minus stated events, share of rows",
        method="cumulative sum at distinct scores, simultaneous Brownian band",
        reason=reason,
        details={"score": table.high[at].tolist(), "error": found.value, "interval": (found.low, found.high)},
    )


def _no_band(rows: BinaryRows) -> str:
    """Why there is no band; empty when there is one."""
    if rows.soft:
        return "soft labels have no Bernoulli law, so there is no band"
    return "" if rows.whole else NO_EXACT_LAW
