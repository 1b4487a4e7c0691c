"""Worst-slab coverage: the least covered slice of feature space, found on one half, measured on the other."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from calipers.arrays import RandomState, generator
from calipers.exceptions import InputError
from calipers.inference import ShareCounts
from calipers.inputs import (
    Features,
    check_confidence,
    check_count,
    check_features,
    check_fraction,
    check_same_length,
)
from calipers.metrics.conditional.row_split import REPETITIONS_ARE_SPLIT, canonical_order, random_split
from calipers.metrics.conditional.slab_search import worst_slab
from calipers.metrics.conditional.slab_test import departures, least_covered_p_value
from calipers.metrics.entry import MetricEntry
from calipers.metrics.promised_rows import PromisedRows, check_one_threshold, check_promised_rows
from calipers.metrics.states.row_arguments import ROW_ARGUMENTS
from calipers.metrics.strata_null import StrataNull, one_stratum, share_fields
from calipers.results import Estimate

_MOST_CATEGORIES = 20
# Repetitions of rows that search at most.
_MOST_SEARCHED = 1 << 20
_ONE_SLAB = (
    "no feature varies among the rows searched: the only slab is all rows, this is the marginal coverage"
)


def worst_slab_coverage(
    X: Any,
    covered: Any,
    *,
    alpha: Any = None,
    min_mass: float = 0.1,
    n_directions: int = 1000,
    n_calibration: int | None = None,
    sample_weight: Any = None,
    cluster: Any = None,
    n_draws: int = 0,
    confidence: float = 0.95,
    random_state: RandomState = None,
) -> Estimate:
    """Coverage in the slab of feature space that was covered worst, on rows that did not choose it.

    A slab holds the rows whose projection on one direction lies between two ends. 1 - alpha is right. The
    search itself would read 0.70 to 0.78 on sets that cover 0.90 everywhere, because it picks the
    unluckiest of many slabs; here it runs on one random half and the coverage is measured on the other.

    Parameters
    ----------
    X : table of shape (n, d)
        Features. Each column is divided by its spread, so units do not matter; categories become
        indicator columns, a missing value sits at its column's mean with an indicator of its own.
    covered : bool array of shape (n,)
        Whether each outcome lay in its set.
    alpha : float or array of shape (n,), optional
        Allowed miscoverage: a number in (0, 1), or one in [0, 1] per row; with it the slab's coverage is
        tested against what was promised. With an alpha per row the worst slab is the one whose coverage lies
        furthest below the mean promise of its rows (``details["promised"]``).
    min_mass : float
        Smallest share of the searched rows a slab may hold.
    n_directions : int
        Directions searched: every column by itself first, then random ones.
    n_calibration : int, optional
        Rows the predictor was conformalised on, behind its one threshold.
    sample_weight : array of shape (n,), optional
        Weights: whole numbers are repetitions, others importance weights without a test.
    cluster : array of shape (n,), optional
        Rows of one cluster depend on each other; a cluster lies in one half.
    n_draws : int
        Draws of a test over all rows, which finds more: outcomes are redrawn as promised, and the worst slab
        of all rows is compared with theirs. 0, the default, tests the slab on the other half alone.
    confidence : float
        Level of the interval.
    random_state : int, Generator or None
        Source of the halves, the directions and the draws.

    Returns
    -------
    Estimate
        ``details``: "searched" (coverage of the same slab on the half that chose it, too low by selection),
        "direction" by column, "low" and "high" end of the projection, "rows" and "mass" on the measured half.

    Raises
    ------
    InputError
        For fewer than four rows or lengths that differ.

    Notes
    -----
    Search: for each direction the contiguous run of sorted projections, tied values together, with at least
    ``min_mass`` of the rows and the least coverage. With L the smallest size, the question whether any run
    covers less than c is answered for a block of directions at once by running maxima of the sums
    ``sum (z - c)``; c starts at the marginal coverage and falls to the best run found until none is better,
    so the minimum over all directions is exact. Cost O(M n log n), memory one block of directions.

    Given the slab, the measured rows are fresh: the interval is Clopper-Pearson and the test binomial (or
    beta-binomial with ``n_calibration``, of unequal trials with an alpha per row, of cluster sums with
    ``cluster``), one-sided towards too little coverage. Without rows of the other half in the slab the value
    is NaN. Where no feature varies the only slab is everything: the value is then the coverage of the
    measured half, and ``reason`` says so.

    With ``n_draws`` the p-value is that of the worst slab of *all* rows among the worst slabs of redrawn
    outcomes along the same directions: exact for independent rows, whatever is searched. Value and
    interval stay those of the other half; its own p-value is in ``details["held_out_p_value"]``. It costs as
    many searches as draws. There is no such test with ``cluster`` and with importance weights.

    References
    ----------
    Cauchois, Gupta and Duchi (2021), Knowing what you know, Journal of Machine Learning Research 22.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import worst_slab_coverage
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 4)) * [1, 1000, 1, 1]
    >>> covered = rng.random(2000) < np.where(X[:, 0] > 1, 0.5, 0.95)
    >>> e = worst_slab_coverage(X, covered, alpha=0.1, random_state=0)
    >>> bool(0.4 < e.value < 0.7 and e.p_value < 1e-6)
    True
    """
    features = check_features(X)
    check_same_length(X=X, covered=covered)
    rows, kept = check_promised_rows(
        covered, alpha=alpha, sample_weight=sample_weight, cluster=cluster, X=features.values
    )
    features = replace(features, values=kept["X"])
    min_mass = check_fraction(min_mass, name="min_mass", meaning="It is the smallest share of rows in a slab")
    count, level = check_count(n_directions, name="n_directions"), check_confidence(confidence)
    draws = check_count(n_draws, name="n_draws", minimum=0)
    n_behind = check_one_threshold(n_calibration)
    if rows.count < 4:
        raise InputError(f"two halves need at least 4 rows, got {rows.count}.")
    rng = generator(random_state)
    split = random_split(features, rows, rows.count // 2, rng, most=max(_MOST_SEARCHED, len(rows)))
    search, searched, measured = split.search, split.searched, split.measured
    columns, names = scaled_columns(features, search)
    slab = worst_slab(
        columns[search], departures(searched, searched.covered), min_mass,
        _directions(columns.shape[1], count, rng),
        None if searched.weights is None else searched.weights.mass,
    )  # fmt: skip
    found = searched.take(np.flatnonzero(slab.holds(columns[search])))
    inside = measured.take(np.flatnonzero(slab.holds(columns[split.measure])))
    details = {
        "searched": slab.coverage if rows.promised is None else _share(found),
        "searched_mass": slab.mass,
        "rows": _count(inside.mass.sum()),
        "mass": float(inside.mass.sum() / measured.mass.sum()),
        "direction": dict(zip(names, slab.direction.tolist(), strict=True)),
        "low": slab.low,
        "high": slab.high,
    }
    reason = "" if columns[search].any() else _ONE_SLAB
    null = one_stratum(inside, n_behind, "the slab")
    estimate = _measured(null, details, measured.count, level, reason, rng)
    if not draws or not (rows.has_promise and rows.is_whole and rows.clusters is None):
        return estimate
    order = canonical_order(features, rows)
    everywhere = scaled_columns(features, order)[0][order]
    ways = _directions(everywhere.shape[1], count, rng)
    p = least_covered_p_value(everywhere, rows.take(order), min_mass, ways, draws, n_behind, rng)
    return _tested_over_all_rows(estimate, p, draws)


def _tested_over_all_rows(estimate: Estimate, p: float, n_draws: int) -> Estimate:
    """The estimate of one half, with the p-value of all rows."""
    return replace(
        estimate, p_value=p, alternative="less", null_low=None, null_high=None, null_level=None,
        method=f"{estimate.method}; worst slab of all rows among those of {n_draws} redrawn samples",
        details=dict(estimate.details) | {"held_out_p_value": estimate.p_value, "n_draws": n_draws},
    )  # fmt: skip


def _share(rows: PromisedRows) -> float:
    return float(np.average(rows.covered, weights=rows.mass)) if len(rows) else math.nan


def _count(total: float) -> float:
    return int(total) if float(total).is_integer() else float(total)


def _measured(
    null: StrataNull, details: dict[str, Any], n: int, level: float, reason: str, rng: np.random.Generator
) -> Estimate:
    rows = null.rows
    fields: dict[str, Any] = {
        "name": "worst-slab coverage",
        "value": _share(rows),
        "confidence": level,
        "n": n,
        "method": "slab found on one half, share of covered rows on the other, Clopper-Pearson interval",
        "details": details,
    }
    if not len(rows):
        empty: dict[str, Any] = {
            "low": 0.0,
            "high": 1.0,
            "reason": "no row of the measured half lies in the slab",
        }
        return Estimate(**fields, **empty)
    counts = ShareCounts.of(rows.covered, rows.weights)
    if null.clusters is not None:
        counts = replace(counts, independent=null.clusters.independent_rows(counts.shares))
    low, high = counts.interval(level)
    if rows.promised is not None:
        details = details | {"promised": float(null.target[0])}
    fields |= {
        "std_error": float(counts.std_errors[0]),
        "low": float(low[0]),
        "high": float(high[0]),
        "reason": "; ".join(part for part in (reason, null.no_test) if part),
        "details": details,
    }
    return Estimate(**fields, **share_fields(null, float(counts.shares[0]), "less", rng))


def scaled_columns(features: Features, rows: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Columns centred and divided by their spread over some rows; categories and gaps as indicators."""
    columns, names = [], []
    for j, name in enumerate(features.names):
        values, labels = features.values[:, j], features.categories[j]
        missing = np.isnan(values)
        if labels is not None and len(labels) <= _MOST_CATEGORIES:
            columns += [(values == code).astype(float) for code in range(len(labels))]
            names += [f"{name} = {label}" for label in labels]
        else:
            known = values[rows][~missing[rows]]
            columns.append(np.where(missing, known.mean() if len(known) else 0.0, values))
            names.append(name)
        if missing.any():
            columns.append(missing.astype(float))
            names.append(f"{name} missing")
    matrix = np.column_stack(columns)
    centred = matrix - matrix[rows].mean(axis=0)
    spread = centred[rows].std(axis=0)
    return centred / np.where(spread > 0, spread, 1.0), names


def _directions(d: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """The axes, then random unit vectors, ``count`` in all."""
    random = rng.normal(size=(max(count - d, 0), d))
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    return np.asarray(np.vstack([np.eye(d)[: min(d, count)], random]))


ENTRIES = (
    MetricEntry(
        function=worst_slab_coverage,
        question="everywhere",
        inputs=("X", "covered"),
        direction="target",
        good="1 - alpha",
        bounds=(0.0, 1.0),
        null="covers 1 - alpha in the slab, binomial on the rows that did not choose it",
        interval="Clopper-Pearson on the rows that did not choose the slab",
        merge="gather",
        row_arguments=ROW_ARGUMENTS,
        scaled=REPETITIONS_ARE_SPLIT,
        weighted=True,
        randomized=True,
    ),
)
