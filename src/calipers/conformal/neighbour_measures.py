"""The three nearest-neighbour conformity measures, before and after a new object joins the bag.

Section 7 of the efficiency-criteria paper: KNN-ratio, KNN-CP ("probability") and KNN-SP
("predictability"). Scores here are conformity scores as the paper's are: larger is more usual.

A measure learns the lists of the training bag once. `walk` then takes the distances of new objects
and yields, for every K asked for, what the p-values need: the new objects' scores under every label,
and the scores of just those training objects whose neighbour lists the new object enters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calipers.conformal.neighbour_lists import (
    Blocks,
    NearestObjects,
    SidedLists,
    joined_sums,
    merged_order,
    nearest_objects,
    postulated_lists,
    running_sums,
    training_lists,
)

# Parts a float of 53 bits after the 40th.
_SPLIT = float(2**13 + 1)


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """The random numbers of objects, one each, uniform on [0, 1): ties in distance, ties in votes."""

    priority: np.ndarray
    vote: np.ndarray

    @classmethod
    def of(cls, n: int, generator: np.random.Generator) -> Draws:
        """Draws for n objects; the first rows do not depend on how many follow."""
        numbers = generator.random((n, 2))
        return cls(numbers[:, 0].copy(), numbers[:, 1].copy())

    def rows(self, which: slice) -> Draws:
        """The draws of some objects."""
        return Draws(self.priority[which], self.vote[which])


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Scores at one K after each of m new objects joined the bag on its own, under every label.

    Parameters
    ----------
    new : ndarray of shape (m, C)
        Score of the new object itself.
    objects, rows : ndarray of shape (P,)
        Pairs (new object, training object) whose score may have changed; sorted by object.
    updated : ndarray of shape (P, C)
        Score of that training object when the new one carries the label of the column.
    """

    new: np.ndarray
    objects: np.ndarray
    rows: np.ndarray
    updated: np.ndarray


class Measure(Protocol):
    """What the p-values need of a conformity measure."""

    def training_scores(self) -> Iterator[np.ndarray]:
        """Scores of the training bag for K = 1, 2, ..."""

    def walk(self, distances: np.ndarray, draws: Draws, wanted: Sequence[int]) -> Iterator[Step]:
        """One `Step` for every wanted K, in increasing order."""


def mean_ratio(
    different: np.ndarray, n_different: np.ndarray, same: np.ndarray, n_same: np.ndarray
) -> np.ndarray:
    """Mean distance to other labels over mean distance to the own label, from sums and counts.

    With equal counts it is the ratio of the sums, as printed. An empty side is infinitely far away;
    0/0 and inf/inf are 1: as near to the one side as to the other. Ratios are rounded to 40 significant
    bits: those that are equal in exact arithmetic stay equal when their sums were rounded on the way.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.conformal.neighbour_measures import mean_ratio
    >>> sums, counts = np.array([3.0, 0.0, 3.0, 3.0]), np.array([2, 2, 2, 0])
    >>> mean_ratio(sums, counts, np.array([1.5, 0.0, 0.0, 1.0]), np.array([2, 2, 2, 2])).tolist()
    [2.0, 1.0, inf, inf]
    """
    uneven = n_same != n_different
    if is_uneven := bool(np.any(uneven | (n_same == 0))):
        # Multiplied before the one division: exact for whole distances, so that ties survive.
        different = np.where(uneven, different * n_same, different)
        same = np.where(uneven, same * n_different, same)
    ratio: np.ndarray = np.divide(different, same, out=np.full(np.shape(different), np.inf), where=same > 0)
    ratio = without_last_bits(ratio)
    ratio[(same == 0) & (different == 0)] = 1.0
    if not is_uneven:
        return ratio
    ratio[n_same == 0] = 0.0
    ratio[n_different == 0] = np.inf
    ratio[(n_same == 0) & (n_different == 0)] = 1.0
    return ratio


def without_last_bits(x: np.ndarray) -> np.ndarray:
    """Numbers rounded to 40 significant bits, a part in 10^12; infinity stays.

    By Veltkamp's splitting: three operations, no logarithm.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.conformal.neighbour_measures import without_last_bits
    >>> without_last_bits(np.array([3.0000000000000004, 0.3, np.inf])).tolist()
    [3.0, 0.3000000000001819, inf]
    """
    with np.errstate(invalid="ignore", over="ignore"):
        spread = x * _SPLIT
        rounded = spread - (spread - x)
    return np.where(np.isfinite(spread), rounded, x)


class RatioMeasure:
    """KNN-ratio: the K nearest of other labels against the K nearest of the own one."""

    def __init__(self, blocks: Blocks, codes: np.ndarray, n_classes: int, k: int) -> None:
        self.codes, self.n_classes, self.k = codes, n_classes, k
        self.lists = training_lists(blocks, codes, n_classes, k)

    def training_scores(self) -> Iterator[np.ndarray]:
        """Scores of the training bag for K = 1, 2, ..."""
        return self._ratios(self.lists)

    def _ratios(self, lists: SidedLists) -> Iterator[np.ndarray]:
        sums = zip(
            running_sums(lists.different, lists.n_different),
            running_sums(lists.same, lists.n_same),
            strict=True,
        )
        for k, (different, same) in enumerate(sums, start=1):
            yield mean_ratio(different, np.minimum(lists.n_different, k), same, np.minimum(lists.n_same, k))

    def walk(self, distances: np.ndarray, draws: Draws, wanted: Sequence[int]) -> Iterator[Step]:
        """One `Step` for every wanted K; nothing is random here."""
        lists = self.lists
        enters = (distances < lists.same[-1]) | (distances < lists.different[-1])
        objects, rows = np.nonzero(enters)
        joining = distances[objects, rows].astype(np.float64, copy=False)
        n_far, n_near = lists.n_different[rows], lists.n_same[rows]
        new = self._ratios(postulated_lists(distances, self.codes, self.n_classes, self.k))
        sums = zip(
            running_sums(lists.different, lists.n_different),
            running_sums(lists.same, lists.n_same),
            joined_sums(lists.different, lists.n_different, rows, joining),
            joined_sums(lists.same, lists.n_same, rows, joining),
            new,
            strict=True,
        )
        for k, (far, near, joined_far, joined_near, scores) in enumerate(sums, start=1):
            if k in wanted:
                own = (far[rows], np.minimum(n_far, k), joined_near, np.minimum(n_near + 1, k))
                other = (joined_far, np.minimum(n_far + 1, k), near[rows], np.minimum(n_near, k))
                table = by_label(self.codes[rows], self.n_classes, mean_ratio(*own), mean_ratio(*other))
                yield Step(scores, objects, rows, table)


def by_label(own: np.ndarray, n_classes: int, as_own: np.ndarray, as_other: np.ndarray) -> np.ndarray:
    """Scores (P, C): ``as_own`` in the column of the object's own label, ``as_other`` elsewhere."""
    table = np.repeat(as_other[:, None], n_classes, axis=1)
    table[np.arange(len(own)), own] = as_own
    return table


class ProbabilityMeasure:
    """KNN-CP: how many of the K nearest carry the own label; at equal distance these are taken first.

    Scores are the counts N; dividing all of them by K would change no comparison.
    """

    def __init__(self, blocks: Blocks, codes: np.ndarray, n_classes: int, k: int) -> None:
        self.codes, self.n_classes, self.k = codes, n_classes, k
        lists = training_lists(blocks, codes, n_classes, k)
        self.distances, self.own = merged_order(lists.same, lists.different)
        # votes[k]: own labels among the k nearest, from k = 0.
        self.votes = np.concatenate([np.zeros((1, len(codes)), int), np.cumsum(self.own, axis=0)])

    def training_scores(self) -> Iterator[np.ndarray]:
        """Scores of the training bag for K = 1, 2, ..."""
        return iter(self.votes[1:])

    def walk(self, distances: np.ndarray, draws: Draws, wanted: Sequence[int]) -> Iterator[Step]:
        """One `Step` for every wanted K; N does not depend on which of the tied objects are taken."""
        objects, rows = np.nonzero(distances <= self.distances[-1])
        joining = distances[objects, rows].astype(np.float64, copy=False)
        rank_own, rank_other = self._ranks(rows, joining)
        lists = postulated_lists(distances, self.codes, self.n_classes, self.k)
        new = np.cumsum(merged_order(lists.same, lists.different)[1], axis=0)
        for k in wanted:
            changed = np.minimum(rank_own, rank_other) < k
            here = rows[changed]
            before, shifted = self.votes[k][here], self.votes[k - 1][here]
            as_own = np.where(rank_own[changed] < k, shifted + 1, before)
            as_other = np.where(rank_other[changed] < k, shifted, before)
            updated = by_label(self.codes[here], self.n_classes, as_own, as_other)
            yield Step(new[k - 1], objects[changed], here, updated)

    def _ranks(self, rows: np.ndarray, joining: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How many neighbours stay before the new object: as own label it goes before tied others."""
        rank_own, rank_other = np.zeros(len(rows), int), np.zeros(len(rows), int)
        for entry, own in zip(self.distances, self.own, strict=True):
            listed = entry[rows]
            rank_other += listed <= joining
            rank_own += (listed < joining) | ((listed == joining) & own[rows])
        return rank_own, rank_other


class PredictabilityMeasure:
    """KNN-SP: the largest vote f among the K nearest, with a minus sign if it is not for the own label.

    Objects at equal distance come in the order of their random priorities; among labels with equal
    votes an object's own draw picks one. Scores are the signed counts; dividing all of them by K would
    change no comparison.
    """

    def __init__(self, blocks: Blocks, codes: np.ndarray, n_classes: int, k: int, draws: Draws) -> None:
        self.codes, self.n_classes, self.k, self.draws = codes, n_classes, k, draws
        self.nearest = nearest_objects(blocks, k, draws.priority, inside=True)

    def training_scores(self) -> Iterator[np.ndarray]:
        """Scores of the training bag for K = 1, 2, ..."""
        for counts in self._counts(self.nearest):
            yield signed_votes(counts, self.draws.vote)[np.arange(len(self.codes)), self.codes]

    def _counts(self, nearest: NearestObjects) -> Iterator[np.ndarray]:
        """Votes (n, C) of the k nearest, for k = 1, 2, ...; the same array, updated in place."""
        counts = np.zeros((nearest.indices.shape[1], self.n_classes), dtype=np.int32)
        for chosen in nearest.indices:
            present = np.flatnonzero(chosen >= 0)
            counts[present, self.codes[chosen[present]]] += 1
            yield counts

    def walk(self, distances: np.ndarray, draws: Draws, wanted: Sequence[int]) -> Iterator[Step]:
        """One `Step` for every wanted K, with the new objects' own draws."""
        objects, rows = np.nonzero(distances <= self.nearest.distances[-1])
        joining = distances[objects, rows].astype(np.float64, copy=False)
        ranks = self._ranks(rows, joining, draws.priority[objects])
        whole = [(slice(0, len(distances)), distances)]
        theirs = nearest_objects(whole, self.k, self.draws.priority, inside=False)
        before = np.zeros((len(self.codes), self.n_classes), dtype=np.int32)
        steps = zip(self._counts(self.nearest), self._counts(theirs), strict=True)
        for k, (counts, votes) in enumerate(steps, start=1):
            if k in wanted:
                changed = ranks < k
                here = rows[changed]
                updated = joined_votes(before[here], self.codes[here], self.draws.vote[here])
                yield Step(signed_votes(votes, draws.vote), objects[changed], here, updated)
            np.copyto(before, counts)

    def _ranks(self, rows: np.ndarray, joining: np.ndarray, priority: np.ndarray) -> np.ndarray:
        """How many neighbours stay before the new object, by distance and then by priority."""
        ranks = np.zeros(len(rows), int)
        for entry, chosen in zip(self.nearest.distances, self.nearest.indices, strict=True):
            listed = entry[rows]
            tied_before = (listed == joining) & (self.draws.priority[chosen[rows]] < priority)
            ranks += (listed < joining) | tied_before
        return ranks


def signed_votes(counts: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """KNN-SP scores (n, C) as if the object had each label: f at the chosen label, -f at the others.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.conformal.neighbour_measures import signed_votes
    >>> signed_votes(np.array([[2, 1, 2]]), np.array([0.6])).tolist()
    [[-2, -2, 2]]
    """
    largest = counts.max(axis=1, keepdims=True)
    tied = counts == largest
    chosen = pick(tied, draw)
    scores = np.repeat(-largest, counts.shape[1], axis=1)
    scores[np.arange(len(counts)), chosen] = largest[:, 0]
    return scores


def pick(tied: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """Index of the tied column that a uniform draw chooses, each with the same probability."""
    wanted = (draw * tied.sum(axis=1)).astype(int)
    return np.asarray(np.argmax(np.cumsum(tied, axis=1) > wanted[:, None], axis=1))


def joined_votes(counts: np.ndarray, own: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """Score of an object with ``counts`` votes when one more neighbour votes for each label in turn.

    Three cases by what the vote does to the leaders: it makes a new sole leader, it adds one more
    tied leader, or it changes nothing.
    """
    P, C = counts.shape
    at = np.arange(P)
    largest = counts.max(axis=1)
    leads = counts == largest[:, None]
    n_leaders = leads.sum(axis=1)
    own_leads, own_place = leads[at, own], (np.cumsum(leads, axis=1) - leads)[at, own]
    alone = np.where(own_leads & (own_place == (draw * n_leaders).astype(int)), largest, -largest)
    shared_pick = (draw * (n_leaders + 1)).astype(int)
    scores = np.empty((P, C), dtype=np.int32)
    for label in range(C):
        mine = own == label
        votes = counts[:, label] + 1
        place = own_place + (label < own)
        shared = np.where((own_leads | mine) & (place == shared_pick), largest, -largest)
        sole = np.where(mine, votes, -votes)
        scores[:, label] = np.where(votes > largest, sole, np.where(votes == largest, shared, alone))
    return scores
