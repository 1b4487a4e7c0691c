"""The default learner of conditional coverage: boosting made calibrated, shrunk and cheap.

Plain boosters overfit a 90/10 target: on sets that do cover everywhere they report large negative
excess risks. Here a few boosters are each stopped on the part they have not seen, their average is
recalibrated on the logit scale by those same unseen predictions, and the whole departure from the
target is shrunk by how much likelihood it gained, down to exactly the target when it gained nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from calipers.exceptions import InputError
from calipers.inputs import Features, check_count

# HistGradientBoosting keeps categories in at most 255 bins; richer columns are read as ordered codes.
_MOST_CATEGORIES = 255
_FEWEST_MISSES = 2
_LONGEST_STEP = 2.0
_MOST_SPREAD = 2.0
_SPECK = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageClassifier:
    """Learner of the conditional coverage P(covered | x), the default of `ert`.

    Parameters
    ----------
    n_bags : int
        Boosters, each trained without one part of the rows and stopped on it. At least 2.
    learning_rate : float
        Of every booster.
    max_iter : int
        Most trees per booster.
    patience : int
        Trees without improvement on the unseen part before a booster stops.
    max_leaf_nodes : int or None
        Leaves per tree; None grows with the training rows of a bag: 3 below 1 000, 4 below 4 000, 8 below
        20 000, then 16.
    l2_regularization : float
        Penalty on leaf values, in units of the curvature of the logarithmic loss (0.09 per row at 90 %).
    shrink : bool
        Whether the departure from the target is shrunk by its gain in likelihood.

    Notes
    -----
    With r(x) the average logit of the bags, the prediction is
    ``logit h = logit t + s (a + b (r - logit t))``, t the target. a and b (b >= 0) maximise the
    likelihood of the unseen parts; ``s = max(0, 1 - k / (2 G))`` is positive-part shrinkage, G the gain in
    log-likelihood over h = t and k the number of parameters (E G = k / 2 when nothing is wrong). The
    slope was fitted to single bags; their average carries the same signal with less spread, so b is
    multiplied by the ratio of the variances on the rows to predict (which uses no outcomes). When b comes
    out negative only the level a is kept. With fewer than two misses or two covered rows in training
    the prediction is the base rate smoothed by one row of the target.

    Examples
    --------
    >>> from calipers.metrics.conditional import CoverageClassifier
    >>> CoverageClassifier(n_bags=5).n_bags
    5
    """

    n_bags: int = 3
    learning_rate: float = 0.3
    max_iter: int = 120
    patience: int = 2
    max_leaf_nodes: int | None = None
    l2_regularization: float = 40.0
    shrink: bool = True

    def __post_init__(self) -> None:
        check_count(self.n_bags, name="n_bags", minimum=2)
        check_count(self.max_iter, name="max_iter")
        check_count(self.patience, name="patience")
        if not self.learning_rate > 0:
            raise InputError(f"learning_rate must be positive, got {self.learning_rate}.")

    def fit_predict(
        self,
        train: Features,
        covered: np.ndarray,
        target: np.ndarray,
        weights: np.ndarray | None,
        test: Features,
        test_target: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """P(covered | x) for the test rows, learnt from the training rows; shrunk as asked, and unshrunk."""
        z = covered.astype(float)
        w = np.ones(len(z)) if weights is None else weights
        misses = int(np.sum(~covered & (w > 0)))
        if min(misses, int(np.sum(w > 0)) - misses) < _FEWEST_MISSES:
            return self._level_only(z, target, w, test_target)
        unseen, margins = self._boost(train, covered, w, weights is not None, test, rng)
        base, test_base = logit(target), logit(test_target)
        return self._recalibrate(unseen - base, z, base, w, margins - test_base, test_base)

    def _boost(
        self,
        train: Features,
        covered: np.ndarray,
        w: np.ndarray,
        weighted: bool,
        test: Features,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Logits of the rows each booster has not seen, and of the test rows for every booster."""
        parts = deal(covered, self.n_bags, rng)
        unseen, margins = np.empty(len(covered)), np.empty((self.n_bags, len(test)))
        for part in range(self.n_bags):
            seen, held = parts != part, parts == part
            options = {"sample_weight": w[seen], "sample_weight_val": w[held]} if weighted else {}
            booster = self._booster(train, int(seen.sum()), int(rng.integers(2**31)))
            booster.fit(
                train.values[seen], covered[seen], X_val=train.values[held], y_val=covered[held], **options
            )
            unseen[held] = booster.decision_function(train.values[held])
            margins[part] = booster.decision_function(test.values)
        return unseen, margins

    def _booster(self, train: Features, n: int, seed: int) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        leaves = self.max_leaf_nodes or int(np.select([n < 1000, n < 4000, n < 20000], [3, 4, 8], 16))
        categorical = [
            j for j, c in enumerate(train.categories) if c is not None and len(c) <= _MOST_CATEGORIES
        ]
        return HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            max_iter=self.max_iter,
            max_leaf_nodes=leaves,
            min_samples_leaf=max(2, min(20, n // 10)),
            l2_regularization=self.l2_regularization,
            categorical_features=categorical or None,
            early_stopping=True,
            scoring="loss",
            n_iter_no_change=self.patience,
            random_state=seed,
        )

    def _recalibrate(
        self,
        unseen: np.ndarray,
        z: np.ndarray,
        base: np.ndarray,
        w: np.ndarray,
        margins: np.ndarray,
        test_base: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        design = np.column_stack([np.ones(len(z)), unseen])
        (level, slope), gain = logistic_gain(design, z, base, w)
        average = _average(margins)
        if slope > 0:
            return self._shrunk(test_base, level + slope * average, gain, 2)
        (level,), gain = logistic_gain(design[:, :1], z, base, w)
        shrunk, full = self._shrunk(test_base, np.full(len(average), level), gain, 1)
        # A test needs a direction, however little is thought of it; its size does not matter.
        return (shrunk if self.shrink else full), np.asarray(expit(test_base + level + _SPECK * average))

    def _level_only(
        self, z: np.ndarray, target: np.ndarray, w: np.ndarray, test_target: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The target moved by one level, so that its mean is the smoothed base rate."""
        level = logit(smoothed_rate(z, target, w)) - logit(np.average(target, weights=w))
        base = logit(target)
        gain = _log_likelihood(base + level, z, w) - _log_likelihood(base, z, w)
        return self._shrunk(logit(test_target), np.full(len(test_target), level), gain, 1)

    def _shrunk(
        self, base: np.ndarray, departure: np.ndarray, gain: float, parameters: int
    ) -> tuple[np.ndarray, np.ndarray]:
        # Positive-part shrinkage by the gain expected of that many parameters without any signal.
        kept = max(0.0, 1.0 - 0.5 * parameters / gain) if gain > 0 else 0.0
        full = np.asarray(expit(base + departure))
        return (np.asarray(expit(base + kept * departure)), full) if self.shrink else (full, full)


def _average(margins: np.ndarray) -> np.ndarray:
    """The mean of the bags around its centre, with the spread of a single bag given back to its signal."""
    mean = margins.mean(axis=0)
    spread = float(mean.var())
    ratio = min(_MOST_SPREAD, float(margins.var(axis=1).mean()) / spread) if spread > 0 else 1.0
    return np.asarray(mean.mean() + ratio * (mean - mean.mean()))


def deal(covered: np.ndarray, n_parts: int, rng: np.random.Generator) -> np.ndarray:
    """Parts of nearly equal size with the covered and the missed rows spread evenly; any counts will do."""
    order = rng.permutation(len(covered))
    order = order[np.argsort(covered[order], kind="stable")]
    parts = np.empty(len(covered), dtype=np.int64)
    parts[order] = np.arange(len(covered)) % n_parts
    return np.asarray(rng.permutation(n_parts)[parts])


def logistic_gain(
    design: np.ndarray, z: np.ndarray, base: np.ndarray, w: np.ndarray
) -> tuple[np.ndarray, float]:
    """Coefficients of a logistic regression around ``base``, and its gain in log-likelihood over 0."""
    beta = np.zeros(design.shape[1])
    for _ in range(50):
        mean = expit(base + design @ beta)
        curvature = (design * (w * mean * (1.0 - mean))[:, None]).T @ design
        # A speck of ridge keeps constant predictions and separated rows solvable.
        ridge = 1e-9 * (1.0 + np.trace(curvature))
        step = np.linalg.solve(
            curvature + ridge * np.eye(len(beta)), design.T @ (w * (z - mean)) - ridge * beta
        )
        beta = beta + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        if np.abs(step).max() < 1e-8:
            break
    return beta, _log_likelihood(base + design @ beta, z, w) - _log_likelihood(base, z, w)


def _log_likelihood(margin: np.ndarray, z: np.ndarray, w: np.ndarray) -> float:
    return float(np.sum(w * (z * margin - np.logaddexp(0.0, margin))))


def smoothed_rate(z: np.ndarray, target: np.ndarray, w: np.ndarray) -> float:
    """The base rate with one more row that is covered as often as the target says."""
    return float((np.sum(w * z) + np.average(target, weights=w)) / (np.sum(w) + 1.0))
