"""Plain callables ``scorer(estimator, X, y)``: higher is better, as scikit-learn's tools expect.

They are frozen dataclasses, so they can be pickled to the workers of a parallel search and read in its log.
scikit-learn's own ``make_scorer`` knows no ``predict_set`` and no ``predict_interval``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import as_numpy
from calipers.exceptions import InputTypeError
from calipers.inputs import check_alpha
from calipers.metrics import calibration_error, is_covered


@dataclass(frozen=True)
class coverage_scorer:  # noqa: N801 - used like a function
    """Minus the distance of the coverage from ``1 - alpha``: 0 is best, -0.05 is five points off.

    Parameters
    ----------
    alpha : float
        Allowed miscoverage.

    Notes
    -----
    ``-|share of rows covered - (1 - alpha)|`` over the rows of the fold, in both directions: covering too
    much is a fault too. It is noisy: with m test rows a sound predictor is off by about
    ``0.8 sqrt(alpha (1 - alpha) / m)`` on average. Do not choose between conformal predictors by it; they
    all cover. Cost: one prediction.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from calipers.conformal import ConformalClassifier
    >>> from calipers.scorers import coverage_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConformalClassifier(calibration_size=0.4, random_state=0)
    >>> scores = cross_val_score(model, X, y, scoring=coverage_scorer(alpha=0.1), cv=3)
    >>> bool((scores <= 0).all() and (scores > -0.1).all())
    True
    """

    alpha: float = 0.1

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """The score of a fitted predictor on these rows."""
        prediction = _predicted(estimator, X, self.alpha)
        classes = getattr(estimator, "classes_", None) if hasattr(estimator, "predict_set") else None
        covered = as_numpy(is_covered(y, prediction, classes=classes), name="covered")
        return -abs(float(covered.mean()) - (1.0 - float(self.alpha)))


@dataclass(frozen=True)
class size_scorer:  # noqa: N801 - used like a function
    """Minus the mean number of labels in a set, or minus the mean width of an interval.

    Larger (closer to 0) is better; an infinite interval gives minus infinity.

    Parameters
    ----------
    alpha : float
        Allowed miscoverage.

    Notes
    -----
    Compare predictors that cover equally often, or the one that covers least wins. The criterion N of the
    efficiency criteria, with its sign changed. Cost: one prediction.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.conformal import ConformalRegressor
    >>> from calipers.scorers import size_scorer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1)); y = X[:, 0] + rng.uniform(-1, 1, size=400)
    >>> model = ConformalRegressor(calibration_size=0.5, random_state=0).fit(X, y)
    >>> bool(-2.0 < size_scorer(alpha=0.1)(model, X, y) < -1.6)     # the best is -1.8
    True
    """

    alpha: float = 0.1

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """The score of a fitted predictor on these rows; outcomes are not looked at."""
        prediction = as_numpy(_predicted(estimator, X, self.alpha), name="prediction")
        if prediction.dtype == bool:
            return -float(prediction.sum(axis=1).mean())
        return -float(np.mean(prediction[:, 1] - prediction[:, 0]))


@dataclass(frozen=True)
class calibration_scorer:  # noqa: N801 - used like a function
    """Minus the sup-interval calibration error of ``predict_proba``: 0 is best.

    Parameters
    ----------
    multiclass : str
        How more than two classes are read, as in `calipers.metrics.calibration_error`.

    Notes
    -----
    A constant forecast of the base rate is perfectly calibrated and useless: search by a proper score
    and watch this one beside it. It has a noise floor of order ``1 / sqrt(m)`` on m rows.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from calipers.scorers import calibration_scorer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GaussianNB().fit(X[::2], y[::2])
    >>> bool(-0.2 < calibration_scorer()(model, X[1::2], y[1::2]) < 0.0)
    True
    """

    multiclass: str = "top_label"

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """The score of a fitted classifier on these rows."""
        if not hasattr(estimator, "predict_proba"):
            raise InputTypeError(
                f"calibration_scorer needs predict_proba, which {type(estimator).__name__} does not have."
            )
        probabilities = estimator.predict_proba(X)
        if len(estimator.classes_) == 2:
            options: dict[str, Any] = {"pos_label": estimator.classes_[1]}
            probabilities = probabilities[:, 1]
        else:
            options = {"multiclass": self.multiclass, "classes": estimator.classes_}
        return -float(calibration_error(y, probabilities, random_state=0, **options))


def _predicted(estimator: Any, X: Any, alpha: float) -> Any:
    """Sets of a classifier, intervals of a regressor."""
    for method in ("predict_set", "predict_interval"):
        if hasattr(estimator, method):
            return getattr(estimator, method)(X, alpha=alpha)
    raise InputTypeError(
        f"this scorer needs predict_set or predict_interval, which {type(estimator).__name__} does not have. "
        "Wrap the model: ConformalClassifier(model, calibration_size=0.4)."
    )
