"""All conformity measures on a small table: every weak order, its p-values, its criteria at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np

from calipers.conformal.idealised.law import Law

# Two values closer than this are one: tables are small and their entries not.
_TOLERANCE = 1e-10
_LIMIT = 200_000
# Entries of one temporary array.
_ENTRIES = 1 << 22


def weak_orders(n: int) -> Iterator[tuple[int, ...]]:
    """Every way to rank n things with ties, as ranks 0, 1, ... without gaps."""
    if n == 0:
        yield ()
        return
    for order in weak_orders(n - 1):
        levels = len(set(order))
        for rank in range(levels):  # joins a level
            yield (*order, rank)
        for place in range(levels + 1):  # opens a level before the place-th
            yield (*(r + (r >= place) for r in order), place)


def n_weak_orders(n: int) -> int:
    """How many there are (the Fubini numbers 1, 1, 3, 13, 75, 541, ...)."""
    counts = [1]
    binomial = [1]
    for size in range(1, n + 1):
        binomial = [1, *(a + b for a, b in pairwise(binomial)), 1]
        counts.append(sum(binomial[k] * counts[size - k] for k in range(1, size + 1)))
    return counts[n]


def n_measures(law: Law, *, label_conditional: bool) -> int:
    """How many inequivalent measures the table has; weak orders of all examples, or of each label's."""
    if label_conditional:
        return int(n_weak_orders(law.n_objects) ** law.n_labels)
    return n_weak_orders(law.n_objects * law.n_labels)


def is_searchable(law: Law, *, label_conditional: bool) -> bool:
    """Whether all measures can be tried."""
    return n_measures(law, label_conditional=label_conditional) <= _LIMIT


def all_measures(law: Law, *, label_conditional: bool) -> np.ndarray:
    """Every inequivalent measure, integers (measures, objects, labels)."""
    n, k = law.n_objects, law.n_labels
    if label_conditional:
        orders = list(weak_orders(n))
        return np.array([np.array(columns).T for columns in product(orders, repeat=k)])
    return np.array(list(weak_orders(n * k))).reshape(-1, n, k)


def lines_of(law: Law, measures: np.ndarray, *, label_conditional: bool) -> tuple[np.ndarray, np.ndarray]:
    """below and equal of every measure, float (measures, objects, labels)."""
    q = np.array(law.joint, dtype=float)
    if label_conditional:
        q = q / np.array(law.labels, dtype=float)
        low = (measures[:, None, :, :] < measures[:, :, None, :]) * q
        same = (measures[:, None, :, :] == measures[:, :, None, :]) * q
        return low.sum(axis=2), same.sum(axis=2)
    flat, mass = measures.reshape(len(measures), -1), q.reshape(-1)
    low = (flat[:, None, :] < flat[:, :, None]) @ mass
    same = (flat[:, None, :] == flat[:, :, None]) @ mass
    return low.reshape(measures.shape), same.reshape(measures.shape)


def level_free(law: Law, below: np.ndarray, equal: np.ndarray, name: str) -> np.ndarray:
    """S, U, F, OU, OF or credibility of every measure: midpoint rule between intersections."""
    cuts = _intersections(below, equal)  # (measures, objects, cuts), sorted, from 0 to 1
    tau = (cuts[..., :-1] + cuts[..., 1:]) / 2
    p = below[..., None, :] + tau[..., None] * equal[..., None, :]
    return np.asarray((_row_value(law, p, name) * np.diff(cuts, axis=-1)).sum(axis=(-1, -2)))


def at_levels(law: Law, below: np.ndarray, equal: np.ndarray, name: str, alphas: np.ndarray) -> np.ndarray:
    """N, M, E, OM, OE or empty of every measure at every level, (measures, levels)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (alphas[:, None, None] - below[:, None]) / equal[:, None]
    flat = equal[:, None] == 0
    t = np.where(flat, np.where(below[:, None] > alphas[:, None, None], 0.0, 1.0), np.clip(t, 0, 1))
    objects, joint = np.array(law.objects, dtype=float), np.array(law.joint, dtype=float)
    ordered = np.sort(t, axis=-1)
    if name == "N":
        return np.asarray((1 - t).sum(axis=-1) @ objects)
    if name == "M":
        return np.asarray((1 - ordered[..., 1]) @ objects)
    if name == "E":
        return np.asarray((1 - ordered[..., 1:]).sum(axis=-1) @ objects)
    if name == "empty":
        return np.asarray(ordered[..., 0] @ objects)
    if name == "OE":
        return np.asarray((((1 - t).sum(axis=-1, keepdims=True) - (1 - t)) * joint).sum(axis=(-1, -2)))
    # OM: among the other labels the smallest crossing is the smallest, or the second for its own label.
    first = np.arange(t.shape[-1]) == t.argmin(axis=-1)[..., None]
    others = np.where(first, ordered[..., 1:2], ordered[..., :1])
    return np.asarray(((1 - others) * joint).sum(axis=(-1, -2)))


def _row_value(law: Law, p: np.ndarray, name: str) -> np.ndarray:
    """Value of every (measure, object, tau) times the object's mass; p is (..., objects, tau, labels)."""
    mass = np.array(law.objects, dtype=float)[:, None]
    ordered = np.sort(p, axis=-1)
    if name == "S":
        return np.asarray(p.sum(axis=-1) * mass)
    if name == "U":
        return np.asarray(ordered[..., -2] * mass)
    if name == "F":
        return np.asarray(ordered[..., :-1].sum(axis=-1) * mass)
    if name == "credibility":
        return np.asarray(ordered[..., -1] * mass)
    joint = np.array(law.joint, dtype=float)[:, None, :]
    if name == "OF":
        return np.asarray(((p.sum(axis=-1, keepdims=True) - p) * joint).sum(axis=-1))
    largest = np.arange(p.shape[-1]) == p.argmax(axis=-1)[..., None]
    others = np.where(largest, ordered[..., -2:-1], ordered[..., -1:])
    return np.asarray((others * joint).sum(axis=-1))


def _intersections(below: np.ndarray, equal: np.ndarray) -> np.ndarray:
    """Sorted taus where lines of one object cross, with 0 and 1; padded with 1."""
    labels = below.shape[-1]
    cuts = [np.zeros(below.shape[:-1]), np.ones(below.shape[:-1])]
    for i in range(labels):
        for j in range(i):
            with np.errstate(divide="ignore", invalid="ignore"):
                tau = (below[..., j] - below[..., i]) / (equal[..., i] - equal[..., j])
            cuts.append(np.where((tau > 0) & (tau < 1), tau, 1.0))
    return np.sort(np.stack(cuts, axis=-1), axis=-1)


def smallest(*keys: np.ndarray) -> np.ndarray:
    """Which entries are smallest, comparing key after key, up to the tolerance."""
    best = np.ones(len(keys[0]), dtype=bool)
    for key in keys:
        best &= key <= key[best].min() + _TOLERANCE
    return best


def smallest_at_every_level(
    law: Law, below: np.ndarray, equal: np.ndarray, name: str, tie_break: str | None
) -> np.ndarray:
    """Which measures are smallest (then have most empty sets) at every level in (0, 1).

    Both are piecewise linear in alpha between the values where a line starts, ends or two crossings meet;
    each piece is compared at two inner points.
    """
    best, levels = np.ones(len(below), dtype=bool), _levels(below, equal)
    chunks = max(1, levels.size * below.size // _ENTRIES)
    for first in range(chunks):
        alphas = levels[first::chunks]  # each chunk covers the whole range, so that losers drop out early
        value = at_levels(law, below, equal, name, alphas)
        least = value <= value.min(axis=0) + _TOLERANCE
        if tie_break is not None:
            empty = np.where(least, at_levels(law, below, equal, tie_break, alphas), -np.inf)
            least &= empty >= empty.max(axis=0) - _TOLERANCE
        best &= least.all(axis=1)
        if not best.any():
            break
    return best


def _levels(below: np.ndarray, equal: np.ndarray) -> np.ndarray:
    """Two inner points of every piece on which all measures' values are linear in alpha."""
    parts = [below.ravel(), (below + equal).ravel()]
    labels = below.shape[-1]
    for i in range(labels):
        for j in range(i):
            # (alpha - b1) / e1 = (alpha - b2) / e2
            gap = equal[..., i] - equal[..., j]
            with np.errstate(divide="ignore", invalid="ignore"):
                parts.append(((equal[..., i] * below[..., j] - equal[..., j] * below[..., i]) / gap).ravel())
    cuts = np.concatenate(parts)
    cuts = np.unique(cuts[np.isfinite(cuts) & (cuts > 0) & (cuts < 1)].round(12))
    edges = np.concatenate([[0.0], cuts, [1.0]])
    gaps = np.diff(edges)
    edges, gaps = edges[:-1][gaps > 1e-9], gaps[gaps > 1e-9]
    return np.concatenate([edges + gaps / 3, edges + 2 * gaps / 3])
