"""The default learner of conditional coverage: boosting made calibrated, shrunk and cheap.

Plain boosters overfit a 90/10 target: on sets that do cover everywhere they report large negative
excess risks. Here a few boosters are each stopped on the part they have not seen, a small forest stands
beside them, both are weighed on the logit scale by predictions for rows they have not seen, and the
whole departure from the target is shrunk by how much likelihood it gained, down to exactly the
target when it gained nothing. Up to 5 000 rows the boosters cut two features at a time (`quadrants`);
above, they grow trees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from calipers.exceptions import InputError
from calipers.inference import fit_logistic, logistic_log_likelihood
from calipers.inputs import Features, check_count
from calipers.metrics.conditional.quadrants import boost_quadrants

# HistGradientBoosting keeps categories in at most 255 bins; richer columns are read as ordered codes.
_MOST_CATEGORIES = 255
_FEWEST_MISSES = 2
# A billionth of the rows: keeps constant predictions and separated rows solvable.
_RIDGE = 1e-9
_MOST_SPREAD = 2.0
_SPECK = 1e-3
_FEW_ROWS = 1000
_MANY_ROWS = 5000
_MOST_TREE_ROWS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageClassifier:
    """Learner of the conditional coverage P(covered | x), the default of `ert`.

    Parameters
    ----------
    n_bags : int or None
        Boosters, each trained without one part of the rows and stopped on it; at least 2. None means 3
        below 1 000 training rows and 5 above.
    learning_rate : float or None
        Of every booster. None means 0.1 for quadrants and 0.3 for trees.
    max_iter : int
        Most steps per booster.
    patience : int or None
        Steps without improvement on the unseen part before a booster stops. None means 3 for quadrants
        and 2 for trees.
    max_leaf_nodes : int or None
        Leaves per tree of boosters that grow trees. None means quadrants up to 5 000 training rows, and
        above tries 4 and 16 leaves on the first bag and keeps what predicts its unseen part better.
    l2_regularization : float
        Penalty on leaf values of those trees, in units of the curvature of the logarithmic loss (0.09 per
        row at 90 %).
    n_trees : int
        Trees of the forest, 0 for none. It is left out above 5 000 training rows, where boosting needs no
        help.
    shrink : bool
        Whether the departure from the target is shrunk by its gain in likelihood.

    Notes
    -----
    With r_1(x) the average logit of the boosters and r_2(x) the logit of the forest, the prediction is
    ``logit h = logit t + s (a + b_1 (r_1 - logit t) + b_2 (r_2 - logit t))``, t the target. a and
    b_1, b_2 >= 0 maximise the likelihood of predictions for rows not seen (the parts left out, the rows left
    out of bootstrap samples); ``s = max(0, 1 - k / (2 G))`` is positive-part shrinkage, G the gain in
    log-likelihood over h = t and k the number of parameters (E G = k / 2 when nothing is wrong). A
    quadratic term is added when it gains more than 1 and keeps the order of the rows. b_1 was fitted to
    single bags; their average carries the same signal with less spread, so it is multiplied
    by the ratio of the variances on the rows to predict (which uses no outcomes). With fewer than two misses
    or two covered rows in training the prediction is the base rate smoothed by one row of the target.

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
    n_trees: int = 16
    shrink: bool = True

    def __post_init__(self) -> None:
        if self.n_bags is not None:
            check_count(self.n_bags, name="n_bags", minimum=2)
        check_count(self.max_iter, name="max_iter")
        if self.patience is not None:
            check_count(self.patience, name="patience")
        check_count(self.n_trees, name="n_trees", minimum=0)
        if self.learning_rate is not None and not self.learning_rate > 0:
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
        base, test_base = logit(target), logit(test_target)
        parts = deal(covered, self.n_bags or (3 if len(covered) < _FEW_ROWS else 5), rng)
        if self.max_leaf_nodes is None and len(covered) <= _MANY_ROWS:
            unseen, margins = self._boost_quadrants(train, covered, w, parts, test, rng)
        else:
            unseen, margins = self._boost_trees(train, covered, w, parts, test, rng)
        views = [(unseen - base, _average(margins - test_base))]
        if self.n_trees and len(covered) <= _MANY_ROWS:
            unseen, margin = self._grow_forest(train, covered, w, base, test, rng)
            views.append((unseen - base, margin - test_base))
        return self._weigh(views, z, base, w, test_base)

    def _boost_quadrants(
        self,
        train: Features,
        covered: np.ndarray,
        w: np.ndarray,
        parts: np.ndarray,
        test: Features,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        return boost_quadrants(
            train,
            covered,
            w,
            parts,
            test,
            rng,
            learning_rate=self.learning_rate or 0.1,
            patience=self.patience or 3,
            max_iter=self.max_iter,
        )

    def _boost_trees(
        self,
        train: Features,
        covered: np.ndarray,
        w: np.ndarray,
        parts: np.ndarray,
        test: Features,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Logits of the rows each booster has not seen, and of the test rows for every booster."""
        n_bags = int(parts.max()) + 1
        unseen, margins = np.empty(len(covered)), np.empty((n_bags, len(test)))
        sizes = (4, 16) if self.max_leaf_nodes is None else (self.max_leaf_nodes,)
        weighted = bool((w != 1.0).any())
        for part in range(n_bags):
            seen, held = parts != part, parts == part
            options = {"sample_weight": w[seen], "sample_weight_val": w[held]} if weighted else {}
            fitted = []
            for leaves in sizes:
                booster = self._booster(train, leaves, int(seen.sum()), int(rng.integers(2**31)))
                booster.fit(
                    train.values[seen],
                    covered[seen],
                    X_val=train.values[held],
                    y_val=covered[held],
                    **options,
                )
                fitted.append((booster, booster.decision_function(train.values[held])))
            # The part that the first bag has not seen decides how bushy the trees of all bags are.
            likelihoods = [
                logistic_log_likelihood(margin, covered[held].astype(float), w[held]) for _, margin in fitted
            ]
            chosen = int(np.argmax(likelihoods))
            sizes = (sizes[chosen],)
            booster, unseen[held] = fitted[chosen]
            margins[part] = booster.decision_function(test.values)
        return unseen, margins

    def _booster(self, train: Features, leaves: int, n: int, seed: int) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        categorical = [
            j for j, c in enumerate(train.categories) if c is not None and len(c) <= _MOST_CATEGORIES
        ]
        return HistGradientBoostingClassifier(
            learning_rate=self.learning_rate or 0.3,
            max_iter=self.max_iter,
            max_leaf_nodes=leaves,
            min_samples_leaf=max(2, min(20, n // 10)),
            l2_regularization=self.l2_regularization,
            categorical_features=categorical or None,
            early_stopping=True,
            scoring="loss",
            n_iter_no_change=self.patience or 2,
            random_state=seed,
        )

    def _grow_forest(
        self,
        train: Features,
        covered: np.ndarray,
        w: np.ndarray,
        base: np.ndarray,
        test: Features,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Logits of a small forest for the rows left out of each tree's sample, and for the test rows."""
        from sklearn.tree import DecisionTreeClassifier

        X, Z = train.values.astype(np.float32), test.values.astype(np.float32)
        # Checks cost as much as the trees; only missing values need them.
        check = bool(np.isnan(X).any() or np.isnan(Z).any())
        n = len(covered)
        drawn = min(n, _MOST_TREE_ROWS)
        # Leaves that grow with the sample: large enough to tell 80 % from 100 %, small enough to be local.
        leaf = max(2, round(1.5 * np.sqrt(drawn)))
        held, votes, predicted = np.zeros(n), np.zeros(n), np.zeros(len(Z))
        for _ in range(self.n_trees):
            repeats = np.bincount(rng.integers(0, n, size=drawn), minlength=n)
            tree = DecisionTreeClassifier(min_samples_leaf=leaf, random_state=int(rng.integers(2**31)))
            tree.fit(X, covered, sample_weight=repeats * w, check_input=check)
            if tree.n_classes_ == 2:
                out = repeats == 0
                held[out] += tree.predict_proba(X[out], check_input=check)[:, 1]
                votes += out
                predicted += tree.predict_proba(Z, check_input=check)[:, 1] / self.n_trees
        centre = float(np.average(covered, weights=w))
        # One tree more, which knows only the base rate, keeps the logits finite.
        held = (held + centre) / (votes + 1.0)
        predicted = (self.n_trees * predicted + centre) / (self.n_trees + 1.0)
        return np.where(votes > 0, logit(held), base), np.asarray(logit(predicted))

    def _weigh(
        self,
        views: list[tuple[np.ndarray, np.ndarray]],
        z: np.ndarray,
        base: np.ndarray,
        w: np.ndarray,
        test_base: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Level and non-negative slopes of the views by the likelihood of rows not seen, then shrinkage."""
        kept = list(views)
        while True:
            design = np.column_stack([np.ones(len(z)), *(unseen for unseen, _ in kept)])
            beta, gain = logistic_gain(design, z, base, w)
            if not kept or beta[1:].min() >= 0:
                break
            kept.pop(int(np.argmin(beta[1:])))
        departure = np.full(len(test_base), beta[0])
        for slope, (_, margin) in zip(beta[1:], kept, strict=True):
            departure += slope * margin
        # The step at which the boosters stopped was chosen too.
        parameters = len(beta) + (1 if kept else 0)
        if kept and (bend := _bend(design @ beta, z, base, w, gain)):
            departure, gain, parameters = bend.along(departure), bend.gain, parameters + 1
        shrunk, full = self._shrunk(test_base, departure, gain, parameters)
        if not kept:
            # A test needs a direction, however little is thought of it; its size does not matter.
            full = np.asarray(expit(test_base + departure + _SPECK * views[0][1]))
        return shrunk, full

    def _level_only(
        self, z: np.ndarray, target: np.ndarray, w: np.ndarray, test_target: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The target moved by one level, so that its mean is the smoothed base rate."""
        level = logit(smoothed_rate(z, target, w)) - logit(np.average(target, weights=w))
        base = logit(target)
        gain = logistic_log_likelihood(base + level, z, w) - logistic_log_likelihood(base, z, w)
        return self._shrunk(logit(test_target), np.full(len(test_target), level), gain, 1)

    def _shrunk(
        self, base: np.ndarray, departure: np.ndarray, gain: float, parameters: int
    ) -> tuple[np.ndarray, np.ndarray]:
        # Positive-part shrinkage by the gain expected of that many parameters without any signal.
        kept = max(0.0, 1.0 - 0.5 * parameters / gain) if gain > 0 else 0.0
        full = np.asarray(expit(base + departure))
        return (np.asarray(expit(base + kept * departure)), full) if self.shrink else (full, full)


@dataclass(frozen=True, slots=True)
class _Bend:
    """A quadratic correction of the departures, straight beyond the range it was fitted on."""

    beta: np.ndarray
    low: float
    high: float
    gain: float

    def along(self, departure: np.ndarray) -> np.ndarray:
        inside = np.clip(departure, self.low, self.high)
        squared = inside * (2.0 * departure - inside)  # the tangent of the square outside the range
        return np.asarray(self.beta[0] + self.beta[1] * departure + self.beta[2] * squared)


def _bend(line: np.ndarray, z: np.ndarray, base: np.ndarray, w: np.ndarray, gain: float) -> _Bend | None:
    """The correction if it gains more than its parameter is worth and keeps the order of the rows."""
    beta, bent = logistic_gain(np.column_stack([np.ones(len(line)), line, line**2]), z, base, w)
    low, high = float(line.min()), float(line.max())
    steepness = beta[1] + 2.0 * beta[2] * np.array([low, high])
    return _Bend(beta, low, high, bent) if bent > gain + 1.0 and steepness.min() > 0 else None


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
    fit = fit_logistic(design, z, weights=w, offset=base, ridge=_RIDGE)
    return fit.coefficients, fit.log_likelihood - logistic_log_likelihood(base, z, w)


def smoothed_rate(z: np.ndarray, target: np.ndarray, w: np.ndarray) -> float:
    """The base rate with one more row that is covered as often as the target says."""
    return float((np.sum(w * z) + np.average(target, weights=w)) / (np.sum(w) + 1.0))
