"""Small boosted trees that can be written down: a split per level, evaluated by a few comparisons a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from scipy.special import expit

from calipers.auditing.repair.saved_repair import part

DEPTH = 6
MOST_ROUNDS = 150
MOST_ROWS = 20_000
STEP = 0.1
# Rounds without a lower loss on the rows kept aside after which no more are tried.
PATIENCE = 15
# Random splits that are compared at every level.
_TRIES = 16
# Rows of mean curvature that pull every leaf towards 0.
_PULL = 3.0
# The same for the one tree whose leaves are regions.
_REGION_DEPTH, _REGION_TRIES = 3, 256
_BLOCK = 1 << 15
# A Newton step in a leaf whose rows are all but certain is kept within this.
_LONGEST_STEP = 4.0


@part("trees")
@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """A sum of trees that ask the same question of all rows at each level (oblivious trees).

    Parameters
    ----------
    start : float
        Where the sum starts.
    feature, threshold : array (T, depth)
        A row goes right at a level when its feature exceeds the threshold.
    value : array (T, 2^depth)
        What each leaf adds; its number in binary is the way there, first level first.
    """

    start: float
    feature: np.ndarray
    threshold: np.ndarray
    value: np.ndarray

    def predict(self, values: np.ndarray) -> np.ndarray:
        """The sum for every row of ``values`` (n, d)."""
        out = np.full(len(values), self.start)
        for first in range(0, len(values), _BLOCK):
            block = values[first : first + _BLOCK].T.copy()
            for t in range(len(self.feature)):
                # Indices of the native width: others are converted one by one.
                out[first : first + _BLOCK] += self.value[t].take(self._leaves(t, block).astype(np.intp))
        return out

    def leaves(self, values: np.ndarray, tree: int = 0) -> np.ndarray:
        """The leaf of every row in one of the trees."""
        return self._leaves(tree, values.T)

    def used(self) -> np.ndarray:
        """The features that some split reads."""
        return np.unique(self.feature).astype(int)

    def renumbered(self, columns: np.ndarray) -> Trees:
        """The same trees reading only these columns, which hold all that are used."""
        return Trees(self.start, np.searchsorted(columns, self.feature), self.threshold, self.value)

    def _leaves(self, tree: int, columns: np.ndarray) -> np.ndarray:
        leaf = np.zeros(columns.shape[1], dtype=np.uint8)
        for feature, threshold in zip(
            self.feature[tree].tolist(), self.threshold[tree].tolist(), strict=True
        ):
            leaf += leaf
            leaf += (columns[feature] > threshold).view(np.uint8)
        return leaf


def no_trees(start: float) -> Trees:
    """A constant."""
    return Trees(start, np.empty((0, DEPTH), dtype=int), np.empty((0, DEPTH)), np.empty((0, 2**DEPTH)))


@dataclass(frozen=True, slots=True)
class _Loss:
    """Descent direction and its curvature per row, mean loss, the longest step of a leaf."""

    direction: Callable[..., Any]
    curvature: Callable[..., Any]
    mean: Callable[..., float]
    longest: float = np.inf


_LOSSES = {
    "squared": _Loss(
        lambda y, f, _: y - f,
        lambda f: np.ones(len(f)),
        lambda y, f, _: float(np.mean((y - f) ** 2)),
    ),
    "logistic": _Loss(
        lambda y, f, _: y - expit(f),
        lambda f: expit(f) * expit(-f),
        lambda y, f, _: float(np.mean(np.logaddexp(0, f) - y * f)),
        _LONGEST_STEP,
    ),
    "quantile": _Loss(
        lambda y, f, q: np.where(y > f, q, q - 1.0),
        lambda f: np.ones(len(f)),
        lambda y, f, q: float(np.mean(np.maximum(q * (y - f), (q - 1) * (y - f)))),
    ),
}


def boost(
    values: np.ndarray,
    y: np.ndarray,
    rng: np.random.Generator,
    *,
    loss: str = "squared",
    level: float = 0.5,
    offset: np.ndarray | None = None,
    start: float = 0.0,
) -> Trees:
    """Boosted trees for the outcome: as many as lower the loss on rows kept aside, perhaps none.

    Their number found, they are fitted to all rows. ``offset`` is a sum each row starts from, which the trees
    correct and do not hold.
    """
    kept = rng.permutation(len(y))[:MOST_ROWS]
    data = np.ascontiguousarray(values[kept], dtype=np.float32), y[kept].astype(float)
    total = np.full(len(kept), start) if offset is None else offset[kept].astype(float) + start
    if not (rounds := _best_rounds(*data, total.copy(), rng, _LOSSES[loss], level)):
        return no_trees(start)
    grown = islice(_grown(*data, total, np.ones(len(kept), dtype=bool), rng, _LOSSES[loss], level), rounds)
    feature, threshold, value = (np.array(column) for column in zip(*grown, strict=True))
    return Trees(start, feature, threshold, value)


def _best_rounds(
    values: np.ndarray, y: np.ndarray, total: np.ndarray, rng: np.random.Generator, loss: _Loss, level: float
) -> int:
    """The number of trees, fitted to three quarters of the rows, that is best on the other quarter."""
    fit = np.arange(len(y)) >= len(y) // 4
    best, least = 0, loss.mean(y[~fit], total[~fit], level)
    grown = islice(_grown(values, y, total, fit, rng, loss, level), MOST_ROUNDS)
    for done, _ in enumerate(grown, start=1):
        reached = loss.mean(y[~fit], total[~fit], level)
        if reached < least:
            best, least = done, reached
        elif done - best >= PATIENCE:
            break
    return best


def _grown(
    values: np.ndarray, y: np.ndarray, total: np.ndarray, fit: np.ndarray, rng: np.random.Generator,
    loss: _Loss, level: float,
) -> Iterator[tuple[tuple[int, ...], tuple[float, ...], np.ndarray]]:  # fmt: skip
    """Trees fitted one after the other to the marked rows; each is added to the sum of all rows."""
    own_values, own_y = values[fit], y[fit]
    while True:
        own = total[fit]
        direction, curvature = loss.direction(own_y, own, level), loss.curvature(own)
        splits, leaf = _split(own_values, direction, curvature, rng)
        if loss is _LOSSES["quantile"]:
            steps = _quantile_steps(leaf, own_y - own, level)
        else:
            steps = np.clip(_newton_steps(leaf, direction, curvature), -loss.longest, loss.longest)
        feature, threshold = zip(*splits, strict=True)
        total += Trees(0.0, *(np.array([own]) for own in (feature, threshold, STEP * steps))).predict(values)
        yield feature, threshold, STEP * steps


def _split(
    values: np.ndarray, direction: np.ndarray, curvature: np.ndarray, rng: np.random.Generator, *,
    depth: int = DEPTH, tries: int = _TRIES, leaf_rows: int = 0,
) -> tuple[list[tuple[int, float]], np.ndarray]:  # fmt: skip
    """The best of some random splits at every level, and the leaf of every row; none for too small leaves."""
    leaf, splits, pull = np.zeros(len(values), dtype=np.intp), [], _PULL * float(curvature.mean())
    for n_leaves in 2 ** np.arange(1, depth + 1):
        features = rng.integers(0, values.shape[1], tries)
        thresholds = values[rng.integers(0, len(values), tries), features]
        right = values[:, features] > thresholds
        below = (2 * leaf[:, None] + right + n_leaves * np.arange(tries)).ravel()
        sums, masses = (
            np.bincount(below, np.repeat(own, tries), minlength=tries * n_leaves).reshape(tries, n_leaves)
            for own in (direction, curvature)
        )
        gains = np.where(masses.min(axis=1) >= leaf_rows, np.sum(sums**2 / (masses + pull), axis=1), -1.0)
        if gains[best := int(np.argmax(gains))] < 0:
            break
        leaf = 2 * leaf + right[:, best]
        splits.append((int(features[best]), float(thresholds[best])))
    return splits, leaf


def _newton_steps(leaf: np.ndarray, direction: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """A Newton step per leaf, pulled towards 0."""
    sums, masses = (np.bincount(leaf, own, minlength=2**DEPTH) for own in (direction, curvature))
    return np.asarray(sums / (masses + _PULL * float(curvature.mean())))


def _quantile_steps(leaf: np.ndarray, away: np.ndarray, level: float) -> np.ndarray:
    """The quantile of the distances of each leaf, pulled towards 0."""
    counts = np.bincount(leaf, minlength=2**DEPTH)
    at = np.cumsum(counts) - counts + np.rint(level * np.maximum(counts - 1, 0)).astype(np.intp)
    found = away[np.lexsort((away, leaf))][np.minimum(at, len(away) - 1)]
    return np.where(counts > 0, found * counts / (counts + _PULL), 0.0)


def one_tree(values: np.ndarray, y: np.ndarray, rng: np.random.Generator, *, leaf_rows: int) -> Trees:
    """A single tree whose leaves are regions of the features with different means of the outcome."""
    kept = rng.permutation(len(y))[:MOST_ROWS]
    own, ones = y[kept].astype(float), np.ones(len(kept))
    splits, leaf = _split(
        values[kept],
        own - own.mean(),
        ones,
        rng,
        depth=_REGION_DEPTH,
        tries=_REGION_TRIES,
        leaf_rows=leaf_rows,
    )
    if not splits:
        return no_trees(float(own.mean()))
    feature, threshold = (np.array([column]) for column in zip(*splits, strict=True))
    return Trees(0.0, feature, threshold, (np.bincount(leaf, own) / np.bincount(leaf))[None])
