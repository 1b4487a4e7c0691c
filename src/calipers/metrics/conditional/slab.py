"""Worst-slab coverage: the least covered slice of feature space, found on one half, measured on the other."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
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
from calipers.metrics.conditional.row_split import REPETITIONS_ARE_SPLIT, random_split
from calipers.metrics.entry import MetricEntry
from calipers.metrics.promised_rows import PromisedRows, check_one_threshold, check_promised_rows
from calipers.metrics.states.row_arguments import ROW_ARGUMENTS
from calipers.metrics.strata_null import StrataNull, one_stratum, share_fields
from calipers.results import Estimate

_BLOCK_CELLS = 1 << 16
_MOST_CATEGORIES = 20
# Repetitions of rows that search at most.
_MOST_SEARCHED = 1 << 20
# Projections closer than this, in spreads of a feature, are one value: rounding must not split ties.
_TIE = 1e-9
_ONE_SLAB = (
    "no feature varies among the rows searched: the only slab is all rows, this is the marginal coverage"
)


@dataclass(frozen=True, slots=True)
class Slab:
    """Rows whose projection lies strictly between two ends."""

    direction: np.ndarray
    low: float
    high: float
    coverage: float
    mass: float

    def holds(self, columns: np.ndarray) -> np.ndarray:
        """Whether each row lies in the slab."""
        projection = columns @ self.direction
        return np.asarray((projection > self.low) & (projection < self.high))


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
    confidence : float
        Level of the interval.
    random_state : int, Generator or None
        Source of the halves and the directions.

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
    n_behind = check_one_threshold(n_calibration)
    if rows.count < 4:
        raise InputError(f"two halves need at least 4 rows, got {rows.count}.")
    rng = generator(random_state)
    split = random_split(features, rows, rows.count // 2, rng, most=max(_MOST_SEARCHED, len(rows)))
    search, searched, measured = split.search, split.searched, split.measured
    columns, names = scaled_columns(features, search)
    slab = worst_slab(
        columns[search], _searched_values(searched), min_mass, _directions(columns.shape[1], count, rng),
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
    return _measured(null, details, measured.count, level, reason, rng)


def _searched_values(rows: PromisedRows) -> np.ndarray:
    """What is least in the worst slab: coverage, or coverage minus promise where promises differ."""
    return rows.covered if rows.promised is None else rows.covered - rows.promised


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


def worst_slab(
    columns: np.ndarray,
    z: np.ndarray,
    min_mass: float,
    directions: np.ndarray,
    weights: np.ndarray | None = None,
) -> Slab:
    """Kernel: the slab with enough rows and the least (weighted) mean of z over all directions."""
    n = len(z)
    smallest = max(1, math.ceil(min_mass * n - 1e-9))
    best = Slab(directions[0], -math.inf, math.inf, float(np.average(z, weights=weights)), 1.0)
    step = max(1, _BLOCK_CELLS // n)
    for start in range(0, len(directions), step):
        block = directions[start : start + step]
        if z.dtype == bool and weights is None:
            projected, values = _sorted_outcomes(block @ columns.T, z)
            best = _improve(best, block, projected, values, None, smallest)
            continue
        projected = block @ columns.T
        order = np.argsort(projected, axis=1, kind="stable")
        sorted_weights = None if weights is None else weights[order]
        gains = z[order] if sorted_weights is None else z[order] * sorted_weights
        best = _improve(
            best, block, np.take_along_axis(projected, order, axis=1), gains, sorted_weights, smallest
        )
    return best


def _sorted_outcomes(projected: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted projections, and the outcomes in their order.

    The last bit of a projection, which means nothing, carries whether the row is covered through the sort: no
    order has to be kept, and nothing taken by it.
    """
    bits = projected.view(np.int64)
    bits &= ~1
    bits |= z.astype(np.int64)
    projected.sort(axis=1)
    covered = bits & 1
    bits ^= covered
    return projected, covered.astype(float)


def _improve(
    best: Slab,
    block: np.ndarray,
    projected: np.ndarray,
    z: np.ndarray,
    weights: np.ndarray | None,
    smallest: int,
) -> Slab:
    """Lower the best coverage by runs of this block until none covers less (Dinkelbach's iteration)."""
    # A run may start or end only where the projection changes.
    change = np.diff(projected, axis=1) > _TIE
    edge = None if change.all() else np.pad(change, ((0, 0), (1, 1)), constant_values=True)
    drop = _deepest(z, weights, edge, best.coverage, smallest)
    alive = np.flatnonzero(drop < -1e-9)
    while len(alive):
        row = alive[int(np.argmin(drop[drop < -1e-9]))]
        found = _run(best, block[row], projected[row], z[row], _of(weights, row), _of(edge, row), smallest)
        if found.coverage >= best.coverage:  # the rounding of millions of rows, not a worse run
            break
        best = found
        drop = _deepest(z[alive], _of(weights, alive), _of(edge, alive), best.coverage, smallest)
        alive = alive[drop < -1e-9]
    return best


def _of(table: np.ndarray | None, rows: Any) -> np.ndarray | None:
    return None if table is None else table[rows]


def _deepest(
    z: np.ndarray, weights: np.ndarray | None, edge: np.ndarray | None, coverage: float, smallest: int
) -> np.ndarray:
    """The lowest sum of z - coverage over runs of enough entries, per row; below 0 a run covers less."""
    starts, ends = _ends(z, weights, edge, coverage, smallest)
    return np.asarray((ends - np.maximum.accumulate(starts, axis=-1)).min(axis=-1))


def _ends(
    z: np.ndarray, weights: np.ndarray | None, edge: np.ndarray | None, coverage: float, smallest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Excess over the coverage before each possible start of a run, and up to each possible end.

    Entry i of the starts is the earliest partner that entry i of the ends may have: all starts up to it
    leave at least ``smallest`` rows between.
    """
    excess = np.zeros((*z.shape[:-1], z.shape[-1] + 1))
    np.cumsum(z, axis=-1, out=excess[..., 1:])  # whole numbers without weights: exact
    if weights is None:
        excess -= coverage * np.arange(excess.shape[-1])
    else:
        excess[..., 1:] -= coverage * np.cumsum(weights, axis=-1)
    last = excess.shape[-1] - smallest
    if edge is None:
        return excess[..., :last], excess[..., smallest:]
    return (
        np.where(edge, excess, -np.inf)[..., :last],
        np.where(edge, excess, np.inf)[..., smallest:],
    )


def _run(
    best: Slab,
    direction: np.ndarray,
    projected: np.ndarray,
    z: np.ndarray,
    weights: np.ndarray | None,
    edge: np.ndarray | None,
    smallest: int,
) -> Slab:
    n = len(projected)
    starts, ends = _ends(z, weights, edge, best.coverage, smallest)
    end = int(np.argmin(ends - np.maximum.accumulate(starts)))
    first = int(np.argmax(starts[: end + 1]))
    last = end + smallest  # rows first .. last - 1
    low = -math.inf if first == 0 else 0.5 * (projected[first - 1] + projected[first])
    high = math.inf if last == n else 0.5 * (projected[last - 1] + projected[last])
    coverage = float(z[first:last].sum() / (last - first if weights is None else weights[first:last].sum()))
    return Slab(direction, float(low), float(high), coverage, (last - first) / n)


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
