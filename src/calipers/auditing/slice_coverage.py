"""Parts of the rows in which coverage is looked at: groups, fifths along a number, and a risky fifth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calipers.inference import ShareCounts, sidak_confidence
from calipers.inputs import Features, Weights, check_features
from calipers.inputs.derived_columns import CELL_JOINT, attribute_names
from calipers.inputs.row_keys import draws
from calipers.inputs.rows import Rows
from calipers.metrics.conditional import CoverageClassifier
from calipers.metrics.conditional.streamed_excess_risk import FEWEST_MISSES

PARTS = 5
# The share of fewer rows than this is mostly noise.
FEWEST_ROWS = 50
# Features whose fifths are looked at; more slices find more noise.
MOST_FEATURES = 10
# Of the one-sided upper bound of the worst slice, over all slices.
_BOUND = 0.95


def stated_slices(rows: Rows) -> dict[str, np.ndarray]:
    """Slices that the rows themselves name: groups and difficulty, as a code per row."""
    found = group_slices(rows)
    if (difficulty := rows.get("difficulty")) is not None:
        found["difficulty"] = fifths(difficulty, rows.weights)
    return found


def group_slices(rows: Rows) -> dict[str, np.ndarray]:
    """A code per row for the groups, and for every attribute where there are several."""
    if (cell := rows.get("group_cell")) is None:
        return {}
    labels = {"group": cell}
    if names := attribute_names(rows.given["groups"]):
        columns = np.array([str(text).split(CELL_JOINT) for text in cell]).T
        labels |= dict(zip(names, columns, strict=True))
    return {name: np.unique(own, return_inverse=True)[1].reshape(-1) for name, own in labels.items()}


def feature_slices(rows: Rows) -> dict[str, np.ndarray]:
    """Fifths along each of the first features."""
    if rows.get("X") is None:
        return {}
    features = check_features(rows.given["X"])
    columns = zip(features.names, features.values.T, strict=True)
    return {
        name: fifths(np.nan_to_num(column, nan=-np.inf), rows.weights)
        for name, column in list(columns)[:MOST_FEATURES]
    }


def fifths(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """The fifth of every row along a number; equal numbers stay together."""
    # Imported here: one of the checks reads this module.
    from calipers.auditing.checks.adaptive import parts_of

    return parts_of(np.asarray(values, dtype=float), PARTS, weights)[0]


@dataclass(frozen=True, slots=True, eq=False)
class Worst:
    """The slice with the smallest coverage.

    Parameters
    ----------
    share : float
        Its coverage.
    high : float
        Upper bound of that at 95 %, corrected for the number of slices.
    where : str
        What the slice is along.
    mass : float
        Its share of the rows.
    rows : bool array
        The rows of the slice.
    """

    share: float
    high: float
    where: str
    mass: float
    rows: np.ndarray


def worst_slice(
    covered: np.ndarray, slices: Mapping[str, np.ndarray], weights: np.ndarray | None = None
) -> Worst:
    """The slice of at least `FEWEST_ROWS` rows with the smallest coverage; all rows are a slice too.

    Examples
    --------
    >>> import numpy as np
    >>> covered = np.arange(200) % 4 > 0
    >>> worst = worst_slice(covered, {"half": np.arange(200) % 4 // 2})
    >>> worst.share, worst.where, int(worst.rows.sum())
    (0.5, 'half', 100)
    """
    given = Weights.check(weights, len(covered))
    parts = {"all rows": np.zeros(len(covered), dtype=np.int64)} | dict(slices)
    found = []
    for name, codes in parts.items():
        counts = ShareCounts.of(covered, given, codes, int(codes.max()) + 1)
        rows = counts.totals if counts.whole else np.bincount(codes)
        enough = np.flatnonzero(rows >= FEWEST_ROWS) if name in slices else [0]
        found += [(float(counts.shares[at]), name, int(at), counts) for at in enough]
    share, name, at, counts = min(found, key=lambda entry: entry[0])
    level = sidak_confidence(1 - 2 * (1 - _BOUND), len(found))
    high = float(counts.take(np.array([at])).interval(level)[1][0])
    return Worst(share, high, name, float(counts.totals[at] / counts.totals.sum()), parts[name] == at)


def risky_fifth(rows: Rows, seed: int) -> np.ndarray | None:
    """1 for the fifth that is expected to be covered least, by models fitted to the other half of the rows.

    None without features, and with too few misses to learn from.
    """
    covered = rows["covered"]
    if rows.get("X") is None or min(np.sum(~covered), np.sum(covered)) < 2 * FEWEST_MISSES:
        return None
    features, rng = check_features(rows.given["X"]), np.random.default_rng([seed, *b"risky fifth"])
    half = draws(rows.keys(), "risky fifth", seed) < 0.5
    codes = np.zeros(rows.n, dtype=np.int64)
    for train, test in ((half, ~half), (~half, half)):
        codes[test] = _expected_worst(features, covered, np.flatnonzero(train), np.flatnonzero(test), rng)
    return codes


def _expected_worst(
    features: Features, covered: np.ndarray, train: np.ndarray, test: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    # Boosters and a line: a forest doubles the cost and moves few rows in or out of a fifth.
    share = np.full(len(train), float(np.mean(covered[train])))
    model = CoverageClassifier(n_trees=0).fit(features.take(train), covered[train], share, None, rng)
    expected = model.predict(features.values[test], np.full(len(test), share[0])).unshrunk
    # A draw breaks ties: the order of rows must not decide.
    order = np.lexsort((rng.random(len(test)), expected))
    picked = np.zeros(len(test), dtype=np.int64)
    picked[order[: max(1, round(len(test) / PARTS))]] = 1
    return picked


def conditional_error(rows: Rows, seed: int) -> float | None:
    """How far coverage falls below the promise in the worst slice; None where no slice is known."""
    if rows.get("covered") is None:
        return None
    slices = stated_slices(rows)
    if (risky := risky_fifth(rows, seed)) is not None:
        slices["features"] = risky
    if not slices:
        return None
    return max(0.0, 1.0 - float(rows.alpha) - worst_slice(rows["covered"], slices, rows.weights).share)
