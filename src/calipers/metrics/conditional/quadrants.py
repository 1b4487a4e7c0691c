"""Boosting for small samples: every step cuts two features at once, into four quadrants.

Trees grown one cut at a time need a first cut that helps on its own. Where coverage fails only for two
features together (exclusive-or) there is none, and with a few hundred rows a greedy tree starts from
noise. Here both cuts of a step are chosen together, by the exact gain over all pairs of features and of
coarse bin edges: two-way histograms, summed up once, hold the gradients of every quadrant. Each cut is
then moved to the best of the fine edges while the other stays. A feature paired with itself gives an
interval, a cut at the last bin gives a stump, so single features are not forgotten.

All bags take their steps side by side and stop together, at the step that predicts their unseen parts best
as a whole: one choice for all rows leaves little room for luck.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from calipers.inputs import Features

# In units of the curvature of the logarithmic loss: the weight of 11 rows at 90 % coverage.
_PENALTY = 1.0
_LEAST_IMPROVEMENT = 1e-3
_FEWEST_PAIRS = 64
_COARSE_BINS = 12
_FINE_PER_COARSE = 8
_FINE_BINS = _COARSE_BINS * _FINE_PER_COARSE
_WIDTH = _COARSE_BINS + 1  # one bin more for missing values
# A category with fewer rows says more about them than about itself.
_RARE_CATEGORY = 10


class Step(NamedTuple):
    """Two cuts and what the four quadrants add: low low, low high, high low, high high."""

    first: int
    second: int
    first_cut: int
    second_cut: int
    values: np.ndarray

    def quadrant(self, codes: np.ndarray) -> np.ndarray:
        """Number of the quadrant of each row; codes are features by rows."""
        high = codes[self.first] > self.first_cut
        return np.asarray(2 * high + (codes[self.second] > self.second_cut))


@dataclass(frozen=True, slots=True)
class Binning:
    """Each feature as a small whole number: the fine bin of its value, one more for missing values."""

    edges: tuple[np.ndarray, ...]
    rates: tuple[np.ndarray | None, ...]

    def codes(self, values: np.ndarray) -> np.ndarray:
        """Features by rows."""
        found = np.empty(values.shape[::-1], dtype=np.int64)
        for j, (edges, rate) in enumerate(zip(self.edges, self.rates, strict=True)):
            column = values[:, j]
            missing = np.isnan(column)
            known = np.where(missing, 0.0, column)
            if rate is not None:
                known = rate[known.astype(np.int64)]
            found[j] = np.where(missing, _FINE_BINS, np.searchsorted(edges, known, side="left"))
        return found


def bin_features(train: Features, covered: np.ndarray, w: np.ndarray, rng: np.random.Generator) -> Binning:
    """Bins of equal counts, their edges shifted at random, categories in the order of their coverage."""
    # Ties leave bins empty, so that a fine code divided by their number per coarse bin is its coarse code.
    levels = (np.arange(1, _FINE_BINS) + rng.uniform(-0.5, 0.5)) / _FINE_BINS
    edges, rates = [], []
    for j, categories in enumerate(train.categories):
        column = train.values[:, j]
        known = ~np.isnan(column)
        column, rate = column[known], None
        if categories is not None:
            rate = _category_rates(column.astype(np.int64), covered[known], w[known], len(categories))
            column = rate[column.astype(np.int64)]
        ordered = np.sort(column)
        at = (levels * len(ordered)).astype(np.int64)
        edges.append(ordered[at] if len(ordered) else ordered)
        rates.append(rate)
    return Binning(tuple(edges), tuple(rates))


def _category_rates(codes: np.ndarray, covered: np.ndarray, w: np.ndarray, n: int) -> np.ndarray:
    """The share covered per category, that of all rows where it has few."""
    count = np.bincount(codes, weights=w, minlength=n)
    hits = np.bincount(codes, weights=w * covered, minlength=n)
    everywhere = hits.sum() / max(count.sum(), 1e-300)
    return np.where(count >= _RARE_CATEGORY, hits / np.maximum(count, 1e-300), everywhere)


def best_cut(gradient: np.ndarray, curvature: np.ndarray, penalty: float) -> tuple[int, int, int]:
    """Pair, first cut and second cut of the largest gain; histograms are (pairs, bins, bins).

    A quadrant with gradient g and curvature c lowers the loss by ``g^2 / (2 (c + penalty))``.
    """
    gain = np.zeros(gradient.shape)
    tables = [t.cumsum(axis=1).cumsum(axis=2) for t in (gradient, curvature)]
    for g, c in zip(*(_quadrant_sums(t) for t in tables), strict=True):
        gain += g * g / (c + penalty)
    pair, first, second = np.unravel_index(int(np.argmax(gain)), gain.shape)
    return int(pair), int(first), int(second)


def best_edge(
    codes: np.ndarray, side: np.ndarray, gradient: np.ndarray, curvature: np.ndarray, penalty: float
) -> int:
    """The fine cut of one feature with the largest gain, given the side of the other cut each row is on."""
    width = _FINE_BINS + 1
    cells = codes + width * side
    gain = np.zeros(width)
    tables = (np.bincount(cells, row, 2 * width).reshape(2, width) for row in (gradient, curvature))
    (g, c) = (table.cumsum(axis=1) for table in tables)
    for below, curved in ((g, c), (g[:, -1:] - g, c[:, -1:] - c)):
        gain += np.sum(below * below / (curved + penalty), axis=0)
    return int(np.argmax(gain))


def _quadrant_sums(table: np.ndarray) -> tuple[np.ndarray, ...]:
    rows, columns, everything = table[:, :, -1:], table[:, -1:, :], table[:, -1:, -1:]
    return table, rows - table, columns - table, everything - rows - columns + table


class Bag:
    """One booster in training: fitted to the rows it sees, evaluated on the part it does not see."""

    def __init__(
        self,
        train: Features,
        covered: np.ndarray,
        w: np.ndarray,
        held: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        self.held, self.rng = held, rng
        self.z, self.w = covered.astype(float), w
        seen = np.flatnonzero(~held)
        self.seen = seen
        self.binning = bin_features(train.take(seen), covered[seen], w[seen], rng)
        self.codes = self.binning.codes(train.values)
        self.coarse = self.codes[:, seen] // _FINE_PER_COARSE
        self.pairs = np.stack(np.triu_indices(len(self.codes)))
        self.n_pairs = max(_FEWEST_PAIRS, len(self.codes))
        self.cells = self._cells(self.pairs) if self.pairs.shape[1] <= self.n_pairs else None
        # Half a row of each outcome keeps the start finite.
        share = (np.sum((w * self.z)[seen]) + 0.5) / (np.sum(w[seen]) + 1.0)
        self.start = float(logit(share))
        self.margin = np.full(len(covered), self.start)
        self.steps: list[Step] = []

    def _cells(self, pairs: np.ndarray) -> np.ndarray:
        """The cell of the two-way histogram each seen row falls into, pair after pair."""
        first, second = self.coarse[pairs]
        shift = np.arange(pairs.shape[1]) * _WIDTH**2
        return np.asarray((first * _WIDTH + second + shift[:, None]).ravel())

    def advance(self, learning_rate: float) -> None:
        """Add the step of the largest gain, over all pairs of features or, if they are many, over some."""
        pairs, cells = self.pairs, self.cells
        if cells is None:
            pairs = pairs[:, self.rng.choice(pairs.shape[1], self.n_pairs, replace=False)]
            cells = self._cells(pairs)
        mean, w = expit(self.margin[self.seen]), self.w[self.seen]
        gradient, curvature = w * (self.z[self.seen] - mean), w * mean * (1.0 - mean)
        shape = (pairs.shape[1], _WIDTH, _WIDTH)
        tables = [
            np.bincount(cells, np.tile(row, shape[0]), shape[0] * _WIDTH**2).reshape(shape)
            for row in (gradient, curvature)
        ]
        pair, *cuts = best_cut(tables[0], tables[1], _PENALTY)
        step = self._refined(int(pairs[0, pair]), int(pairs[1, pair]), cuts, gradient, curvature)
        quadrant = step.quadrant(self.codes)
        sums = [np.bincount(quadrant[self.seen], row, 4) for row in (gradient, curvature)]
        step = step._replace(values=learning_rate * sums[0] / (sums[1] + _PENALTY))
        self.steps.append(step)
        self.margin = self.margin + step.values[quadrant]

    def _refined(
        self, first: int, second: int, cuts: list[int], gradient: np.ndarray, curvature: np.ndarray
    ) -> Step:
        """The step with its cuts moved to fine edges, one after the other."""
        fine = [_FINE_PER_COARSE * (cut + 1) - 1 for cut in cuts]
        one, two = self.codes[first, self.seen], self.codes[second, self.seen]
        fine[0] = best_edge(one, two > fine[1], gradient, curvature, _PENALTY)
        fine[1] = best_edge(two, one > fine[0], gradient, curvature, _PENALTY)
        return Step(first, second, fine[0], fine[1], np.zeros(4))

    def unseen_loss(self) -> float:
        """Logarithmic loss of the part left out, summed over its rows."""
        margin = self.margin[self.held]
        return float(np.sum(self.w[self.held] * (np.logaddexp(0.0, margin) - self.z[self.held] * margin)))

    def fitted(self, n_steps: int) -> FittedBag:
        """The booster after its first steps, without the rows it was trained on."""
        return FittedBag(self.binning, self.start, tuple(self.steps[:n_steps]))


@dataclass(frozen=True, slots=True, eq=False)
class FittedBag:
    """A trained booster: bins, the logit it starts from, and its steps."""

    binning: Binning
    start: float
    steps: tuple[Step, ...]

    def decision_function(self, values: np.ndarray) -> np.ndarray:
        """Logits for any rows."""
        margin = np.full(len(values), self.start)
        if self.steps:
            codes = self.binning.codes(values)
            for step in self.steps:
                margin += step.values[step.quadrant(codes)]
        return margin


def boost_quadrants(
    train: Features,
    covered: np.ndarray,
    w: np.ndarray,
    parts: np.ndarray,
    rng: np.random.Generator,
    *,
    learning_rate: float,
    patience: int,
    max_iter: int,
) -> tuple[np.ndarray, tuple[FittedBag, ...]]:
    """Logits of the rows each bag has not seen, and the bags.

    ``parts`` gives each row's part; a bag is trained without one part. Cost per step: two passes over
    rows times pairs of features (at most as many pairs as features, or 64).
    """
    bags = [Bag(train, covered, w, parts == part, rng) for part in range(int(parts.max()) + 1)]
    lowest, kept, unseen = np.inf, 0, np.empty(len(covered))
    for taken in range(max_iter + 1):
        loss = sum(bag.unseen_loss() for bag in bags)
        if loss < lowest - _LEAST_IMPROVEMENT:
            lowest, kept = loss, taken
            for bag in bags:
                unseen[bag.held] = bag.margin[bag.held]
        if taken - kept >= patience or taken == max_iter:
            break
        for bag in bags:
            bag.advance(learning_rate)
    return unseen, tuple(bag.fitted(kept) for bag in bags)
