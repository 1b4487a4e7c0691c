"""Two random parts of the rows that depend on what rows hold and on the seed, not on how they were sorted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calipers.arrays import short_repr
from calipers.exceptions import InputError
from calipers.inputs import Features, Weights
from calipers.metrics.promised_rows import PromisedRows

# Why values change when whole weights are rescaled (`MetricEntry.scaled`).
REPETITIONS_ARE_SPLIT = "repetitions of a row fall into either part, an importance weight stays with its row"
_MOST_COLUMNS = 64
# Repetitions of rows are dealt one by one up to so many; more of them by binomial numbers.
_MOST_DEALT = 1 << 24


@dataclass(frozen=True, eq=False)
class RowSplit:
    """A part of the rows that searches and the part that measures.

    Parameters
    ----------
    search : int array
        Row numbers of the first part; a row that counts several times is there as often.
    searched : PromisedRows
        Those rows.
    measure : int array
        Row numbers of the second part, each once.
    measured : PromisedRows
        Those rows, with the repetitions that fell into the second part as their weights.
    """

    search: np.ndarray
    searched: PromisedRows
    measure: np.ndarray
    measured: PromisedRows

    __repr__ = short_repr


def random_split(
    features: Features, rows: PromisedRows, cut: int, rng: np.random.Generator, *, most: int
) -> RowSplit:
    """About ``cut`` rows that search, at most ``most`` of them, and the others.

    Repetitions of a row (whole weights) are rows of their own and fall into either part; clusters are not
    torn apart.
    """
    order, counts = (
        canonical_order(features, rows),
        None if rows.weights is None else rows.weights.repetitions,
    )
    if rows.clusters is not None:
        first, second = _whole_clusters(rows, order, cut, rng)
    elif counts is None:
        dealt = order[rng.permutation(len(rows))]
        first, second = dealt[:cut], dealt[cut:]
    else:
        return _dealt_repetitions(rows, order, counts[order], cut, rng, most)
    if counts is None:
        search = np.sort(first[:most])
        measure = np.sort(second)
        return RowSplit(search, rows.take(search), measure, rows.take(measure))
    return _counted(rows, first, counts[first], second, counts[second], rng, most)


def _whole_clusters(
    rows: PromisedRows, order: np.ndarray, cut: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    codes, mass = np.asarray(rows.clusters), rows.mass if rows.is_whole else np.ones(len(rows))
    sizes = np.bincount(codes, weights=mass)
    if len(sizes) < 2:
        raise InputError("cluster must hold at least 2 clusters, one for each part of the rows, got 1.")
    place = rng.permutation(len(sizes))
    # The end of a cluster nearest to the cut; neither part is empty.
    ends = np.cumsum(sizes[np.argsort(place)])[:-1]
    last = int(np.argmin(np.abs(ends - cut)))
    order = order[np.argsort(place[codes[order]], kind="stable")]
    is_first = place[codes[order]] <= last
    return order[is_first], order[~is_first]


def _dealt_repetitions(
    rows: PromisedRows, order: np.ndarray, counts: np.ndarray, cut: int, rng: np.random.Generator, most: int
) -> RowSplit:
    """Repetitions fall into the parts as the rows written out would; very many of them by coins."""
    if rows.count <= _MOST_DEALT:
        places = np.repeat(np.arange(len(order)), counts)[rng.permutation(rows.count)]
        first = np.bincount(places[:cut], minlength=len(order))
    else:
        first = rng.binomial(counts, cut / rows.count)
    return _counted(rows, order, first, order, counts - first, rng, most)


def _counted(
    rows: PromisedRows,
    first: np.ndarray,
    first_counts: np.ndarray,
    second: np.ndarray,
    second_counts: np.ndarray,
    rng: np.random.Generator,
    most: int,
) -> RowSplit:
    """The split of rows that count as often as is said in each part."""
    total = int(first_counts.sum())
    if total > most:
        first_counts = rng.binomial(first_counts, most / total)
    search = np.sort(np.repeat(first, first_counts))
    there = np.flatnonzero(second_counts)
    there = there[np.argsort(second[there])]
    weights = Weights.of(second_counts[there].astype(float))
    return RowSplit(
        search,
        replace(rows.take(search), weights=None),
        second[there],
        replace(rows.take(second[there]), weights=weights),
    )


def canonical_order(features: Features, rows: PromisedRows) -> np.ndarray:
    """An order of the rows by their content."""
    weight = None if rows.is_whole else rows.mass
    extra = [rows.promised, weight]
    columns = features.values[:, :_MOST_COLUMNS]
    return np.lexsort((*(column for column in extra if column is not None), rows.covered, *columns.T))
