"""Neighbour lists of a labelled bag, and how one new object changes them.

Lists are stored list-first, (K, n): row k - 1 holds the k-th neighbour of every object, so a walk over
k = 1..K reads contiguous rows. Where an object has fewer than K neighbours the rest is ``inf``.

Joining a new object at distance d to a sorted list a_1 <= a_2 <= ... puts ``min(a_k, max(d, a_{k-1}))`` at
place k; only lists with d below their last entry change. On real data these are a hundred of thousands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from calipers.conformal.blocks import row_blocks

# (row range, distances of those rows to all n objects).
Blocks = Iterable[tuple[slice, np.ndarray]]
# Entries that stay in a processor's cache while they are masked and searched.
_CACHED_ENTRIES = 1 << 15


def smallest(distances: np.ndarray, k: int) -> np.ndarray:
    """The k smallest entries of every row, sorted, as float64; missing ones are inf."""
    width = distances.shape[-1]
    if width > k == 1:
        return np.asarray(np.min(distances, axis=-1, keepdims=True), dtype=np.float64)
    if width > k:
        distances = np.partition(distances, k - 1, axis=-1)[..., :k]
    found = np.sort(distances, axis=-1).astype(np.float64, copy=False)
    if width >= k:
        return found
    padding = [(0, 0)] * (distances.ndim - 1) + [(0, k - width)]
    return np.pad(found, padding, constant_values=np.inf)


def without_self(block: np.ndarray, rows: slice) -> np.ndarray:
    """A copy of the block in which no object is its own neighbour."""
    others = block.copy()
    others[np.arange(len(block)), np.arange(rows.start, rows.stop)] = np.inf
    return others


@dataclass(frozen=True, slots=True, eq=False)
class SidedLists:
    """Distances to the K nearest objects of the same label and to the K nearest of other labels.

    Parameters
    ----------
    same, different : ndarray of shape (K, ...)
        Sorted along the first axis, padded with inf.
    n_same, n_different : ndarray
        How many objects there are on each side, however many are listed.
    """

    same: np.ndarray
    different: np.ndarray
    n_same: np.ndarray
    n_different: np.ndarray


def training_lists(blocks: Blocks, codes: np.ndarray, n_classes: int, k: int) -> SidedLists:
    """The lists of every training object; an object is not its own neighbour."""
    n = len(codes)
    same, different = np.empty((k, n)), np.empty((k, n))
    members = [np.flatnonzero(codes == label) for label in range(n_classes)]
    for rows, block in blocks:
        own = codes[rows]
        for cut in row_blocks(block, host_entries=_CACHED_ENTRIES):
            others = np.where(own[cut, None] == codes, np.inf, block[cut])
            different[:, rows.start + cut.start : rows.start + cut.stop] = smallest(others, k).T
        for label in np.unique(own):
            mine = np.flatnonzero(own == label)
            among = block[np.ix_(mine, members[label])]
            at = rows.start + mine
            among[np.arange(len(mine)), np.searchsorted(members[label], at)] = np.inf
            same[:, at] = smallest(among, k).T
    sizes = np.bincount(codes, minlength=n_classes)[codes]
    return SidedLists(same, different, sizes - 1, n - sizes)


def postulated_lists(distances: np.ndarray, codes: np.ndarray, n_classes: int, k: int) -> SidedLists:
    """The lists of new objects under every postulated label: arrays of shape (k, m, n_classes).

    An object's k nearest of other labels are among the 2k nearest of all when no label gives more than
    its own k nearest, so one sort serves all labels.
    """
    m = len(distances)
    same = np.empty((m, n_classes, k))
    for label in range(n_classes):
        same[:, label] = smallest(distances[:, codes == label], k)
    width = min(2 * k, n_classes * k)
    order = np.argsort(same.reshape(m, -1), axis=1, kind="stable")[:, :width]
    nearest, labels = np.take_along_axis(same.reshape(m, -1), order, axis=1), order // k
    different = np.full((m, n_classes, k), np.inf)
    for label in range(n_classes):
        own = labels == label
        first = np.argsort(own, axis=1, kind="stable")[:, :k]  # the others first, in their order
        chosen = np.take_along_axis(np.where(own, np.inf, nearest), first, axis=1)
        different[:, label, : chosen.shape[1]] = chosen
    sizes = np.bincount(codes, minlength=n_classes)
    shape = (m, n_classes)
    return SidedLists(
        np.moveaxis(same, 2, 0),
        np.moveaxis(different, 2, 0),
        np.broadcast_to(sizes, shape),
        np.broadcast_to(len(codes) - sizes, shape),
    )


def running_sums(lists: np.ndarray, n_listed: np.ndarray) -> Iterator[np.ndarray]:
    """Sum of the k smallest distances (or of all, when there are fewer), for k = 1, 2, ..."""
    total = np.zeros(lists.shape[1:])
    for k, entry in enumerate(lists, start=1):
        total = total + np.where(k <= n_listed, entry, 0.0)
        yield total


def joined_sums(
    lists: np.ndarray, n_listed: np.ndarray, rows: np.ndarray, distances: np.ndarray
) -> Iterator[np.ndarray]:
    """`running_sums` of the chosen lists after an object at the given distance joined each of them.

    Terms are added in increasing order, as in `running_sums`: equal lists have equal sums, to the last
    bit, however they came about, so ties between scores survive.
    """
    total = np.zeros(len(rows))
    previous = np.full(len(rows), -np.inf)
    available = n_listed[rows] + 1
    for k, entry in enumerate(lists, start=1):
        current = entry[rows]
        joined = np.minimum(current, np.maximum(distances, previous))
        total = total + np.where(k <= available, joined, 0.0)
        previous = current
        yield total


def merged_order(same: np.ndarray, different: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both lists as one, own label first at equal distance: distances and flags "own label", (K, ...)."""
    k = len(same)
    both = np.concatenate([same, different])
    order = np.argsort(both, axis=0, kind="stable")[:k]
    # Padding is not a row: it must not count as a neighbour of the own label.
    distances = np.take_along_axis(both, order, axis=0)
    return distances, (order < k) & np.isfinite(distances)


@dataclass(frozen=True, slots=True, eq=False)
class NearestObjects:
    """The K nearest objects of all labels, ties in the order of each object's random priority.

    Parameters
    ----------
    distances : ndarray of shape (K, n)
        Sorted along the first axis, padded with inf.
    indices : ndarray of shape (K, n)
        Which training object it is; -1 for padding.
    """

    distances: np.ndarray
    indices: np.ndarray


def nearest_objects(blocks: Blocks, k: int, priority: np.ndarray, *, inside: bool) -> NearestObjects:
    """The k nearest training objects, for training rows (``inside``) or for new ones."""
    distances, indices = [], []
    for rows, block in blocks:
        found, chosen = _nearest_in_block(without_self(block, rows) if inside else block, k, priority)
        distances.append(found)
        indices.append(chosen)
    return NearestObjects(np.concatenate(distances, axis=1), np.concatenate(indices, axis=1))


def _nearest_in_block(block: np.ndarray, k: int, priority: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    m, n = block.shape
    last = np.partition(block, k - 1, axis=1)[:, k - 1] if k < n else np.full(m, np.inf)
    # Everything up to the k-th distance, ties included; then the first k by (distance, priority).
    rows, columns = np.nonzero((block <= last[:, None]) & np.isfinite(block))
    values = block[rows, columns].astype(np.float64, copy=False)
    order = np.lexsort((priority[columns], values, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, np.arange(m))[rows]
    kept = place < k
    distances, indices = np.full((k, m), np.inf), np.full((k, m), -1, dtype=np.int64)
    distances[place[kept], rows[kept]] = values[kept]
    indices[place[kept], rows[kept]] = columns[kept]
    return distances, indices
