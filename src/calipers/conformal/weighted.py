"""Conformal prediction under covariate shift: calibration rows weighted by a likelihood ratio."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import _num_samples, check_is_fitted

from calipers.arrays import as_numpy, is_frame
from calipers.conformal.p_values import CalibrationScores
from calipers.exceptions import InputError
from calipers.inputs import check_fraction, exact_level

# Masses closer than this share of the total are the same mass: weights are floats.
_ROUNDING = 1e-12


class LikelihoodRatio(BaseEstimator):
    """How much likelier each row is under the target than under the source, up to a constant factor.

    A probabilistic classifier learns to tell target rows from source rows; its odds, corrected for
    the two sample sizes, are the ratio of the two densities.

    Parameters
    ----------
    classifier : estimator with predict_proba, optional
        Default logistic regression, right when the log ratio is linear in the features.
    clip : float
        Probabilities are kept at least this far from 0 and 1, so that weights stay finite.

    Notes
    -----
    With the true ratio, weighted conformal prediction covers at least ``1 - alpha`` under the target. With
    an estimated one coverage can fall short by up to half the mean absolute error of the normalised
    ratio; and it should be fitted on rows other than the calibration rows.

    References
    ----------
    Tibshirani, Barber, Candès, Ramdas (2019), Conformal prediction under covariate shift.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.conformal import LikelihoodRatio
    >>> rng = np.random.default_rng(0)
    >>> ratio = LikelihoodRatio().fit(rng.normal(size=(2000, 1)), rng.normal(1, 1, size=(2000, 1)))
    >>> low, high = ratio.predict([[0.0], [1.0]])       # the truth is exp(x - 1/2): 0.61 and 1.65
    >>> bool(0.5 < low < 0.7 and 1.4 < high < 1.9)
    True
    """

    def __init__(self, classifier: Any = None, *, clip: float = 1e-4) -> None:
        self.classifier = classifier
        self.clip = clip

    def fit(self, X: Any, X_target: Any) -> Self:
        """Learn to tell the rows of ``X_target`` from the rows of ``X`` (the source)."""
        check_fraction(self.clip, name="clip")
        n, m = _num_samples(X), _num_samples(X_target)
        if n == 0 or m == 0:
            raise InputError(f"X and X_target must have at least one row each, got {n} and {m}.")
        model = _default_classifier() if self.classifier is None else clone(self.classifier)
        self.classifier_ = model.fit(stack_rows(X, X_target), np.repeat([0, 1], [n, m]))
        self.prior_odds_ = m / n
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The estimated ratio of every row."""
        check_is_fitted(self, "classifier_")
        share = np.clip(as_numpy(self.classifier_.predict_proba(X))[:, 1], self.clip, 1 - self.clip)
        return np.asarray(share / (1 - share) / self.prior_odds_)


def _default_classifier() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression()


def stack_rows(first: Any, second: Any) -> Any:
    """The rows of two tables of the same kind, one after the other."""
    if is_frame(first):
        import narwhals as nw

        frames = [nw.from_native(part, eager_only=True) for part in (first, second)]
        return nw.concat(frames).to_native()
    return np.concatenate([as_numpy(first, name="X"), as_numpy(second, name="X_target")])


class WeightedScores:
    """`CalibrationScores` with a weight per row: masses take the place of counts (host arrays).

    Parameters
    ----------
    table : CalibrationScores
        The sorted scores.
    weights : array (n,)
        Weight of the calibration rows, in the order of ``order``.
    order : integer array (n,)
        The row behind each sorted score.
    """

    def __init__(self, table: CalibrationScores, weights: np.ndarray, order: np.ndarray) -> None:
        self.table = table
        self.mass = np.concatenate([[0.0], np.cumsum(weights[order])])
        edges = np.concatenate([[0], np.cumsum(table.sizes)])
        self.begins, self.ends = edges[:-1], edges[1:]

    def p_values(
        self, scores: np.ndarray, test_weights: np.ndarray, groups: np.ndarray | None, tau: np.ndarray | None
    ) -> np.ndarray:
        """``(W_greater + tau (W_equal + w)) / (W + w)`` with w the test row's own weight."""
        left, right, end, begin = self.table.positions(scores, groups)
        width = scores.shape[1] if scores.ndim == 2 else 1
        own = np.repeat(test_weights, width)
        draw = 1.0 if tau is None else np.repeat(tau, width)
        total = self.mass[end] - self.mass[begin]
        above = self.mass[end] - self.mass[right]
        equal = self.mass[right] - self.mass[left] + own
        with np.errstate(invalid="ignore"):
            p = (above + draw * equal) / (total + own)
        # No mass anywhere, the row's own included: nothing speaks against the label.
        return np.asarray(np.where(total + own > 0, p, draw)).reshape(scores.shape)

    def thresholds(self, test_weights: np.ndarray, cells: np.ndarray, alpha: Any) -> np.ndarray:
        """Per test row the smallest score whose cell mass reaches ``(1 - alpha)(W + w)``, or infinity."""
        out, level = np.empty(len(cells)), exact_level(alpha)
        ordered = as_numpy(self.table.ordered)
        for cell in np.unique(cells):
            rows, first, last = cells == cell, self.begins[cell], self.ends[cell]
            mass = self.mass[first : last + 1]
            out[rows] = weighted_quantiles(ordered[first:last], mass, test_weights[rows], level)
        return out


def weighted_quantiles(ordered: np.ndarray, mass: np.ndarray, own: np.ndarray, alpha: Fraction) -> np.ndarray:
    """Conformal quantile of weighted values for new rows with weights of their own.

    Parameters
    ----------
    ordered : array of shape (n,)
        Increasing values.
    mass : array of shape (n + 1,)
        Cumulative weight before each value, and of all.
    own : array of shape (m,)
        Weight of each new row, which counts as larger than every value.
    alpha : Fraction
        Share of the weight that may lie above.

    Returns
    -------
    array of shape (m,)
        The smallest value above which, the new row included, lies at most ``alpha`` of the weight;
        infinite when there is none. With equal weights this is `conformal_quantile`.

    Examples
    --------
    >>> import numpy as np
    >>> from fractions import Fraction
    >>> from calipers.conformal.weighted import weighted_quantiles
    >>> weighted_quantiles(np.arange(9.0), 0.1 * np.arange(10.0), np.array([0.1, 0.2]), Fraction(1, 10))
    array([ 8., inf])
    """
    above = mass[-1] - mass[1:]
    total = mass[-1] - mass[0] + own
    allowed = float(alpha.numerator) * total / float(alpha.denominator) - own
    slack = 0.0 if _is_whole(mass) and _is_whole(own) else _ROUNDING * total
    # `above` falls along the order: count the entries that still exceed what is allowed.
    at = ordered.size - np.searchsorted(above[::-1], allowed + slack, side="right")
    return np.asarray(np.append(ordered, np.inf)[at])


def _is_whole(values: np.ndarray) -> bool:
    """Whether the arithmetic of these numbers is exact."""
    return bool(np.all(values == np.floor(values)) and values.max(initial=0.0) < 2.0**40)


def calibration_order(scores: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Rows by cell, then score: the order `CalibrationScores` keeps them in."""
    return np.lexsort((scores, cells))
