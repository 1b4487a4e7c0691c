"""Which feature the failure of coverage hangs on: what the excess risk loses without each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calipers.arrays import RandomState, as_numpy, generator
from calipers.inference import normal_quantile
from calipers.inputs import (
    Features,
    check_confidence,
    check_covered,
    check_features,
    check_row_alpha,
    check_same_length,
)
from calipers.metrics.conditional.coverage_ensemble import CoverageClassifier
from calipers.metrics.conditional.cross_fit import cross_fit
from calipers.metrics.conditional.learners import DefaultLearner
from calipers.metrics.conditional.losses import check_distance
from calipers.results import Estimate, EstimateTable


def ert_attribution(
    X: Any,
    covered: Any,
    *,
    alpha: Any,
    loss: Any = "l2",
    classifier: CoverageClassifier | None = None,
    cv: Any = 5,
    confidence: float = 0.95,
    random_state: RandomState = None,
) -> EstimateTable:
    """How much of the excess risk goes away when a feature is shuffled, feature by feature.

    Large for a feature the failure hangs on, about 0 for the others (negative by chance). The values do not
    add up to the excess risk: features that stand in for each other share the blame or escape it.

    Parameters
    ----------
    X, covered, alpha, loss, cv, confidence, random_state
        As in `ert`.
    classifier : CoverageClassifier, optional
        Options of the default classifier.

    Returns
    -------
    EstimateTable
        Feature -> `Estimate`, largest first; p-values are None, with the reason.

    Notes
    -----
    The classifiers of one cross-fit predict their test rows once as they are and once with each column
    shuffled among all rows; the drop of a row's contribution is averaged. Its standard error is sqrt(2)
    times the row-wise one, as in `ert`. Cost: the fits of one cross-fit, d + 1 times its predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.conditional import ert_attribution
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(1000, 3))
    >>> covered = rng.random(1000) < np.where(X[:, 1] > 0.5, 0.8, 1.0)
    >>> next(iter(ert_attribution(X, covered, alpha=0.1, random_state=0)))
    'x1'
    """
    features, z = check_features(X), as_numpy(check_covered(covered))
    n = check_same_length(X=X, covered=covered)
    target, level = 1.0 - check_row_alpha(alpha, n), check_confidence(confidence)
    distance, rng = check_distance(loss, target), generator(random_state)
    copies = _with_shuffled_copies(features, rng)
    d = len(features.names)
    learner = _Copied(
        classifier or CoverageClassifier(), copies, np.tile(z, d + 1), np.tile(target, d + 1), n
    )
    strata = z if (target == target[0]).all() else np.ones(n, dtype=bool)
    fit = cross_fit(learner, features.values, strata, cv=cv, stratify=False, sequential=False, rng=rng)
    predictions = learner.collected
    drops = np.full((d, n), np.nan)
    for fold in fit.folds:
        rows = fold.rows
        gains = [
            distance.contributions(predictions[k, rows], z[rows].astype(float), target[rows])
            for k in range(d + 1)
        ]
        drops[:, rows] = gains[0] - np.array(gains[1:])
    found = {name: _drop(name, drops[j], level) for j, name in enumerate(features.names)}
    ranked = dict(sorted(found.items(), key=lambda item: -float(item[1])))
    return EstimateTable(ranked, title=f"What the {distance.name} excess risk loses without each feature")


class _Copied:
    """The default learner on stacked copies of the rows: it predicts every copy of the test rows at once."""

    def __init__(
        self,
        classifier: CoverageClassifier,
        features: Features,
        covered: np.ndarray,
        target: np.ndarray,
        n: int,
    ) -> None:
        self._learner = DefaultLearner(classifier, features, covered, target, None)
        self._n, self._copies = n, len(features) // n
        self.collected = np.full((self._copies, n), np.nan)

    def fit_predict(self, train: np.ndarray, test: np.ndarray, rng: np.random.Generator) -> Any:
        """Predictions of the test rows as they are; those of their copies are kept aside."""
        everywhere = np.concatenate([test + k * self._n for k in range(self._copies)])
        found = self._learner.fit_predict(train, everywhere, rng)
        self.collected[:, test] = found.h.reshape(self._copies, len(test))
        return type(found)(found.h[: len(test)], found.unshrunk[: len(test)])

    def for_test(self) -> _Copied:
        """No test is made of it."""
        return self


def _with_shuffled_copies(features: Features, rng: np.random.Generator) -> Features:
    blocks = [features.values]
    for j in range(len(features.names)):
        copy = features.values.copy()
        copy[:, j] = rng.permutation(copy[:, j])
        blocks.append(copy)
    return Features(np.vstack(blocks), features.names, features.categories)


def _drop(name: str, rows: np.ndarray, level: float) -> Estimate:
    known = rows[~np.isnan(rows)]
    value, n = float(known.mean()), len(known)
    error = math.sqrt(2.0) * float(known.std(ddof=1)) / math.sqrt(n)
    half = normal_quantile(level) * error
    return Estimate(
        name=name, value=value, std_error=error, low=value - half, high=value + half, confidence=level, n=n,
        method="drop of the cross-fit excess risk when the feature is shuffled, row-wise error times sqrt 2",
        reason="importance depends on the classifier: no p-value; test the whole with ert",
    )  # fmt: skip
