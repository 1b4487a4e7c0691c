"""The model of P(covered | x) behind `ert`, the audit and the streamed evaluation.

Plain learners overfit a 90/10 outcome: on sets that do cover everywhere they report large negative excess
risks. Here boosters, extremely randomised trees and a logistic regression are fitted side by side, weighed on
the logit scale by their predictions for rows they have not seen, and the departure from the target is shrunk
by how much likelihood it gained. Decision 15 in the documentation compares this with plain learners.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit
from threadpoolctl import threadpool_limits

from calipers.exceptions import InputError
from calipers.inference import logistic_log_likelihood
from calipers.inputs import Features, check_count
from calipers.metrics.conditional.ensemble_members import (
    Fitted,
    Member,
    Training,
    fit_boosted_trees,
    fit_forest,
    fit_linear,
    fit_quadrants,
)
from calipers.metrics.conditional.logistic import logistic_gain

_BAGS, _BAGS_OF_MANY_ROWS, _LEAVES = 3, 2, 8
_TREES, _TREES_OF_MANY_ROWS = 50, 25
_FEWEST_MISSES = 2
# Above this many rows boosters grow trees: a search over pairs of features is slow then, and not needed.
_MANY_ROWS = 5000
# Standard deviation of the prior on the slope of a member.
_SLOPE_SPREAD = 0.5
# However little likelihood was gained, the order of the rows and their side of the target are kept.
_LEAST_SHRINKAGE = 0.02
_SPECK = 1e-3
# A target of exactly 0 or 1 has no logit.
_NEAREST_TARGET = 1e-6


class Prediction(NamedTuple):
    """P(covered | x) as the excess risk uses it, and the same without shrinkage, as a test uses it."""

    h: np.ndarray
    unshrunk: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageClassifier:
    """Learner of the conditional coverage P(covered | x), the default of `ert`.

    Parameters
    ----------
    n_bags : int or None
        Boosters, each trained without one part of the rows and stopped on it; at least 2. None means 3 up to
        5 000 training rows and 2 above.
    learning_rate : float or None
        Of every booster. None means 0.1 for quadrants and 0.3 for trees.
    max_iter : int
        Most steps per booster.
    patience : int or None
        Steps without improvement on the unseen part before a booster stops. None means 3 for quadrants
        and 2 for trees.
    max_leaf_nodes : int or None
        Leaves per tree of boosters that grow trees. None means quadrants up to 5 000 training rows, and
        trees of 8 leaves above.
    l2_regularization : float
        Penalty on leaf values of those trees, in units of the curvature of the logarithmic loss (0.09 per
        row at 90 %).
    n_trees : int or None
        Extremely randomised trees, 0 for none. None means 50 up to 5 000 training rows and 25 above.
    linear : bool
        Whether a logistic regression is a member.
    shrink : bool
        Whether the departure from the target is shrunk by its gain in likelihood.

    Notes
    -----
    With r_k(x) the logit of member k, the prediction is
    ``logit h = logit t + s (a + sum_k b_k (r_k - logit t))``, t the target. a and b_k >= 0 maximise the
    likelihood of predictions for rows not seen (the parts left out, the rows left out of a tree's
    subsample) under a normal prior on each b_k with mean 1 / K and standard deviation 1/2;
    ``s = max(0.02, 1 - p / (2 G))`` is positive-part shrinkage, G the gain in log-likelihood over h = t and
    p the number of parameters (E G = p / 2 when nothing is wrong). The least shrinkage of 0.02 leaves each
    row on its side of the target, which is all that the L1 score looks at, and is nothing to the others.
    A member of weight b_k < 0 is dropped. With fewer than two misses or two covered rows in training the
    prediction is the base rate smoothed by one row of the target.

    Examples
    --------
    >>> from calipers.metrics.conditional import CoverageClassifier
    >>> CoverageClassifier(n_bags=5).n_bags
    5
    """

    n_bags: int | None = None
    learning_rate: float | None = None
    max_iter: int = 120
    patience: int | None = None
    max_leaf_nodes: int | None = None
    l2_regularization: float = 40.0
    n_trees: int | None = None
    linear: bool = True
    shrink: bool = True

    def __post_init__(self) -> None:
        if self.n_bags is not None:
            check_count(self.n_bags, name="n_bags", minimum=2)
        check_count(self.max_iter, name="max_iter")
        if self.patience is not None:
            check_count(self.patience, name="patience")
        if self.n_trees is not None:
            check_count(self.n_trees, name="n_trees", minimum=0)
        if self.learning_rate is not None and not self.learning_rate > 0:
            raise InputError(f"learning_rate must be positive, got {self.learning_rate}.")

    def fit(
        self,
        features: Features,
        covered: np.ndarray,
        target: np.ndarray,
        weights: np.ndarray | None,
        rng: np.random.Generator,
    ) -> CoverageModel:
        """The ensemble fitted to rows whose coverage is known.

        Rows of weight 0 are left out; a common factor of the weights changes nothing.
        """
        rows = _training(features, covered, target, weights)
        misses = int(np.sum(~rows.covered))
        if min(misses, len(rows.covered) - misses) < _FEWEST_MISSES:
            return self._level_only(rows)
        few = len(rows.covered) <= _MANY_ROWS
        parts = deal(rows.covered, self.n_bags or (_BAGS if few else _BAGS_OF_MANY_ROWS), rng)
        with threadpool_limits(limits=1, user_api="openmp"):
            fitted = [self._fit_boosters(rows, parts, rng)]
            if n_trees := self.trees_for(len(rows.covered)):
                fitted.append(fit_forest(rows, rng, n_trees=n_trees))
            if self.linear:
                fitted.append(fit_linear(rows, parts, rng))
        return self._combine(fitted, rows)

    def trees_for(self, n: int) -> int:
        """Extremely randomised trees for n training rows."""
        if self.n_trees is not None:
            return self.n_trees
        return _TREES if n <= _MANY_ROWS else _TREES_OF_MANY_ROWS

    def _fit_boosters(self, rows: Training, parts: np.ndarray, rng: np.random.Generator) -> Fitted:
        if self.max_leaf_nodes is None and len(rows.covered) <= _MANY_ROWS:
            return fit_quadrants(
                rows, parts, rng, learning_rate=self.learning_rate or 0.1, patience=self.patience or 3,
                max_iter=self.max_iter,
            )  # fmt: skip
        return fit_boosted_trees(
            rows, parts, rng, max_leaf_nodes=self.max_leaf_nodes or _LEAVES,
            learning_rate=self.learning_rate or 0.3, max_iter=self.max_iter,
            l2_regularization=self.l2_regularization, n_iter_no_change=self.patience or 2,
        )  # fmt: skip

    def _combine(self, fitted: list[Fitted], rows: Training) -> CoverageModel:
        """Level and non-negative slopes by the likelihood of rows not seen, then shrinkage."""
        z, kept = rows.covered.astype(float), list(fitted)
        while True:
            design = np.column_stack([np.ones(len(z)), *(held_out for held_out, _ in kept)])
            beta, gain = logistic_gain(
                design, z, rows.base, rows.weights,
                centre=np.r_[0.0, np.full(len(kept), 1.0 / max(len(kept), 1))],
                precision=np.r_[0.0, np.full(len(kept), _SLOPE_SPREAD**-2)],
            )  # fmt: skip
            if not kept or beta[1:].min() >= 0:
                break
            kept.pop(int(np.argmin(beta[1:])))
        slopes = beta[1:]
        if not kept:
            # A test needs a direction, however little is thought of it; its size does not matter.
            kept, slopes = fitted[:1], np.array([_SPECK])
        # The step at which the boosters stopped was chosen too.
        shrinkage = self._shrinkage(gain, len(beta) + 1)
        return CoverageModel(tuple(member for _, member in kept), float(beta[0]), slopes, shrinkage)

    def _level_only(self, rows: Training) -> CoverageModel:
        """The target moved by one level, so that its mean is the smoothed base rate."""
        z, w, target = rows.covered.astype(float), rows.weights, expit(rows.base)
        level = float(logit(smoothed_rate(z, target, w)) - logit(np.average(target, weights=w)))
        gain = logistic_log_likelihood(rows.base + level, z, w) - logistic_log_likelihood(rows.base, z, w)
        return CoverageModel((), level, np.zeros(0), self._shrinkage(gain, 1))

    def _shrinkage(self, gain: float, parameters: int) -> float:
        # Positive-part shrinkage by the gain expected of that many parameters without any signal.
        if not self.shrink:
            return 1.0
        return max(_LEAST_SHRINKAGE, 1.0 - 0.5 * parameters / gain) if gain > 0 else _LEAST_SHRINKAGE


@dataclass(frozen=True, slots=True, eq=False)
class CoverageModel:
    """A fitted coverage ensemble; it holds no training rows.

    Parameters
    ----------
    members : tuple of Member
        Models of the logit.
    level, slopes : float, array
        The departure from the target's logit is ``level + sum slopes members``.
    shrinkage : float
        Share of the departure that is believed.
    """

    members: tuple[Member, ...]
    level: float
    slopes: np.ndarray
    shrinkage: float

    def predict(self, values: np.ndarray, target: np.ndarray) -> Prediction:
        """P(covered | x) of any rows, encoded as in training; ``target`` is one number per row."""
        base = target_logit(target)
        departure = np.full(len(values), self.level)
        with threadpool_limits(limits=1, user_api="openmp"):
            for slope, member in zip(self.slopes, self.members, strict=True):
                departure += slope * member.margins(values, base)
        return Prediction(expit(base + self.shrinkage * departure), expit(base + departure))


def _training(
    features: Features, covered: np.ndarray, target: np.ndarray, weights: np.ndarray | None
) -> Training:
    base = target_logit(target)
    if weights is None:
        return Training(features, covered, base, np.ones(len(covered)), weighted=False)
    there = np.flatnonzero(weights > 0)
    # Rounded, so that a factor common to all weights cannot break a tie between two cuts by its last digit.
    w = np.maximum(np.round(weights[there] / weights[there].mean(), 6), 1e-6)
    weighted = bool((w != w[0]).any())
    return Training(features.take(there), covered[there], base[there], w, weighted=weighted)


def target_logit(target: np.ndarray) -> np.ndarray:
    """Logits of the targets; 0 and 1 are moved inwards by a millionth."""
    return np.asarray(logit(np.clip(target, _NEAREST_TARGET, 1.0 - _NEAREST_TARGET)))


def deal(covered: np.ndarray, n_parts: int, rng: np.random.Generator) -> np.ndarray:
    """Parts of nearly equal size with the covered and the missed rows spread evenly; any counts will do."""
    order = rng.permutation(len(covered))
    order = order[np.argsort(covered[order], kind="stable")]
    parts = np.empty(len(covered), dtype=np.int64)
    parts[order] = np.arange(len(covered)) % n_parts
    return np.asarray(rng.permutation(n_parts)[parts])


def smoothed_rate(z: np.ndarray, target: np.ndarray, w: np.ndarray) -> float:
    """The base rate with one more row of average weight that is covered as often as the target says."""
    n = int(np.count_nonzero(w))
    return float((n * np.average(z, weights=w) + np.average(target, weights=w)) / (n + 1.0))
