"""Worst-slab coverage: the least covered slice of feature space, found on one half, measured on the other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import RandomState, as_numpy, generator
from calipers.exceptions import InputError
from calipers.inference import CoverageLaw, clopper_pearson
from calipers.inputs import (
    Features,
    check_alpha,
    check_confidence,
    check_count,
    check_covered,
    check_features,
    check_fraction,
    check_same_length,
)
from calipers.metrics.conditional.halves import random_order
from calipers.metrics.entry import MetricEntry
from calipers.results import Estimate

_NULL_LEVEL = 0.95
_BLOCK_CELLS = 1 << 16
_MOST_CATEGORIES = 20
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
    alpha : float, optional
        Allowed miscoverage; with it the slab's coverage is tested against 1 - alpha.
    min_mass : float
        Smallest share of the searched rows a slab may hold.
    n_directions : int
        Directions searched: every column by itself first, then random ones.
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

    Given the slab, the measured rows are fresh: the interval is Clopper-Pearson and the test binomial,
    one-sided towards too little coverage. Without rows of the other half in the slab the value is NaN.
    Where no feature varies the only slab is everything: the value is then the coverage of the measured half,
    and ``reason`` says so.

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
    features, z = check_features(X), as_numpy(check_covered(covered))
    n = check_same_length(X=X, covered=covered)
    min_mass = check_fraction(min_mass, name="min_mass", meaning="It is the smallest share of rows in a slab")
    count, level = check_count(n_directions, name="n_directions"), check_confidence(confidence)
    target = None if alpha is None else 1.0 - check_alpha(alpha)
    if n < 4:
        raise InputError(f"two halves need at least 4 rows, got {n}.")
    rng = generator(random_state)
    order = random_order(features, z, rng)
    search, measure = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
    columns, names = scaled_columns(features, search)
    slab = worst_slab(columns[search], z[search], min_mass, _directions(columns.shape[1], count, rng))
    inside = measure[slab.holds(columns[measure])]
    reason = "" if columns[search].any() else _ONE_SLAB
    return _measured(slab, names, z[inside], len(measure), target, level, reason)


def _measured(
    slab: Slab,
    names: list[str],
    z: np.ndarray,
    n: int,
    target: float | None,
    confidence: float,
    reason: str,
) -> Estimate:
    hits, total = int(z.sum()), len(z)
    low, high = clopper_pearson(hits, total, confidence=confidence)
    share = hits / total if total else math.nan
    fields: dict[str, Any] = {
        "name": "worst-slab coverage",
        "value": share,
        "std_error": math.sqrt(share * (1 - share) / total) if total else None,
        "low": float(low),
        "high": float(high),
        "confidence": confidence,
        "n": n,
        "method": "slab found on one half, share of covered rows on the other, Clopper-Pearson interval",
        "reason": reason if total else "no row of the measured half lies in the slab",
        "details": {
            "searched": slab.coverage,
            "searched_mass": slab.mass,
            "rows": total,
            "mass": total / n,
            "direction": dict(zip(names, slab.direction.tolist(), strict=True)),
            "low": slab.low,
            "high": slab.high,
        },
    }
    if target is None or not total:
        untested = "without alpha there is no promise to test" if total else ""
        said = "; ".join(part for part in (fields["reason"], untested) if part)
        return Estimate(**(fields | {"reason": said}))
    law = CoverageLaw(total, 1.0 - target)
    return Estimate(
        **fields,
        p_value=float(law.p_value(hits, "less")),
        alternative="less",
        null_low=float(law.share_interval(_NULL_LEVEL, "less")[0]),
        null_level=_NULL_LEVEL,
    )


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


def worst_slab(columns: np.ndarray, z: np.ndarray, min_mass: float, directions: np.ndarray) -> Slab:
    """Kernel: the least covered slab with enough rows over all directions."""
    n = len(z)
    smallest = max(1, math.ceil(min_mass * n - 1e-9))
    best = Slab(directions[0], -math.inf, math.inf, float(z.mean()), 1.0)
    step, hits = max(1, _BLOCK_CELLS // n), z.astype(np.int64)
    for start in range(0, len(directions), step):
        block = directions[start : start + step]
        # The last bit of a projection, which means nothing, carries whether the row is covered through the
        # sort: no order has to be kept, and nothing taken by it.
        projected = block @ columns.T
        bits = projected.view(np.int64)
        bits &= ~1
        bits |= hits
        projected.sort(axis=1)
        covered = bits & 1
        bits ^= covered
        best = _improve(best, block, projected, covered.astype(float), smallest)
    return best


def _improve(best: Slab, block: np.ndarray, projected: np.ndarray, z: np.ndarray, smallest: int) -> Slab:
    """Lower the best coverage by runs of this block until none covers less (Dinkelbach's iteration)."""
    # A run may start or end only where the projection changes.
    change = np.diff(projected, axis=1) > _TIE
    edge = None if change.all() else np.pad(change, ((0, 0), (1, 1)), constant_values=True)
    drop = _deepest(z, edge, best.coverage, smallest)
    alive = np.flatnonzero(drop < -1e-9)
    while len(alive):
        row = alive[int(np.argmin(drop[drop < -1e-9]))]
        found = _run(best, block[row], projected[row], z[row], None if edge is None else edge[row], smallest)
        if found.coverage >= best.coverage:  # the rounding of millions of rows, not a worse run
            break
        best = found
        drop = _deepest(z[alive], None if edge is None else edge[alive], best.coverage, smallest)
        alive = alive[drop < -1e-9]
    return best


def _deepest(z: np.ndarray, edge: np.ndarray | None, coverage: float, smallest: int) -> np.ndarray:
    """The lowest sum of z - coverage over runs of enough entries, per row; below 0 a run covers less."""
    starts, ends = _ends(z, edge, coverage, smallest)
    return np.asarray((ends - np.maximum.accumulate(starts, axis=-1)).min(axis=-1))


def _ends(
    z: np.ndarray, edge: np.ndarray | None, coverage: float, smallest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Excess over the coverage before each possible start of a run, and up to each possible end.

    Entry i of the starts is the earliest partner that entry i of the ends may have: all starts up to it
    leave at least ``smallest`` rows between.
    """
    excess = np.zeros((*z.shape[:-1], z.shape[-1] + 1))
    np.cumsum(z, axis=-1, out=excess[..., 1:])  # whole numbers: exact
    excess -= coverage * np.arange(excess.shape[-1])
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
    edge: np.ndarray | None,
    smallest: int,
) -> Slab:
    n = len(projected)
    starts, ends = _ends(z, edge, best.coverage, smallest)
    end = int(np.argmin(ends - np.maximum.accumulate(starts)))
    first = int(np.argmax(starts[: end + 1]))
    last = end + smallest  # rows first .. last - 1
    low = -math.inf if first == 0 else 0.5 * (projected[first - 1] + projected[first])
    high = math.inf if last == n else 0.5 * (projected[last - 1] + projected[last])
    coverage = float(z[first:last].mean())
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
        splits_rows=True,
        weighted=False,
        randomized=True,
    ),
)
