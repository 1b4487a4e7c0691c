"""Several classes: one calibrator per class with normalisation, or one softmax temperature."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from calipers.arrays import Array, as_array, as_numpy, frame_columns, is_frame
from calipers.calibration.calibrator import BinaryCalibrator, beside
from calipers.calibration.isotonic import IsotonicCalibrator
from calipers.exceptions import InputError
from calipers.inputs import (
    check_probabilities,
    check_same_length,
    check_weights,
    encode_labels,
    require_finite,
)
from calipers.inputs.row_checks import numeric

# The smallest probability that enters a logarithm; below it a float32 softmax holds nothing.
_TINY = 1e-30
_SMALLEST, _LARGEST = 1e-3, 1e3


class OneVsRestCalibrator(BaseEstimator):
    """One binary calibrator per class, then rows divided by their sums.

    Parameters
    ----------
    calibrator : BinaryCalibrator or None
        Cloned for every class; `IsotonicCalibrator` by default.
    classes : sequence of K labels or None
        The label of every column, when it cannot be read off y.

    Attributes
    ----------
    calibrators_ : list
        The fitted calibrators, one per column.
    columns_ : tuple of str or None
        Names of the columns, when a dataframe was given to ``fit``; ``predict`` wants the same order.

    Notes
    -----
    Each class is calibrated by itself; dividing by the row sum undoes a little of it, so the class-wise
    error on the fitted rows is near 0, not 0. A row whose calibrated values are all 0 keeps its stated
    probabilities.

    Examples
    --------
    >>> from calipers.calibration import OneVsRestCalibrator
    >>> P = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.4, 0.3, 0.3]]
    >>> OneVsRestCalibrator().fit(P, [0, 1, 2, 1]).predict(P).sum(axis=1)
    array([1., 1., 1., 1.])
    """

    def __init__(self, calibrator: BinaryCalibrator | None = None, *, classes: Any = None) -> None:
        self.calibrator = calibrator
        self.classes = classes

    def fit(self, probabilities: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn one map per column of (n, K) probabilities from the labels."""
        stated = check_probabilities(probabilities)
        check_same_length(probabilities=probabilities, y=y, sample_weight=sample_weight)
        codes = beside(_codes(self, probabilities, y, stated), stated)
        base = IsotonicCalibrator() if self.calibrator is None else self.calibrator
        self.calibrators_ = [
            clone(base).set_params(pos_label=None).fit(stated[:, k], codes == k, sample_weight)
            for k in range(stated.shape[1])
        ]
        self.n_features_in_ = int(stated.shape[1])
        self.columns_ = _names(probabilities)
        return self

    def predict(self, probabilities: Any) -> Array:
        """Calibrated (n, K) probabilities, rows summing to 1, in the array library of the input."""
        check_is_fitted(self)
        stated = check_probabilities(probabilities)
        _check_columns(self, probabilities, stated)
        columns = [as_numpy(c.predict(stated[:, k])) for k, c in enumerate(self.calibrators_)]
        raw = np.stack(columns, axis=1)
        sums = raw.sum(axis=1, keepdims=True)
        kept = np.asarray(as_numpy(stated), dtype=np.float64)
        return beside(np.where(sums > 0, raw / np.where(sums > 0, sums, 1.0), kept), stated)


class TemperatureCalibrator(BaseEstimator):
    """One temperature for all classes: softmax(logits / T), by maximum likelihood.

    Keeps the order of the classes in every row, so accuracy does not change. The default repair of
    over-confident neural networks [1]_.

    Parameters
    ----------
    inputs : {"probabilities", "logits"}
        Probabilities enter by their logarithm, which is the same thing.
    classes : sequence of K labels or None
        The label of every column, when it cannot be read off y.

    Attributes
    ----------
    temperature_ : float
        T, between 0.001 and 1000; above 1 the model was over-confident.
    columns_ : tuple of str or None
        Names of the columns, when a dataframe was given to ``fit``; ``predict`` wants the same order.

    Notes
    -----
    The log-likelihood is concave in 1/T, so one root of its derivative is searched.

    References
    ----------
    .. [1] Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.calibration import TemperatureCalibrator
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(5000, 3))
    >>> y = np.argmax(logits + rng.gumbel(size=(5000, 3)), axis=1)      # calibrated at T = 1
    >>> round(TemperatureCalibrator(inputs="logits").fit(3 * logits, y).temperature_, 1)
    3.0
    """

    def __init__(self, *, inputs: str = "probabilities", classes: Any = None) -> None:
        self.inputs = inputs
        self.classes = classes

    def fit(self, probabilities: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the temperature from (n, K) probabilities or logits and labels."""
        stated = self._check(probabilities)
        n = check_same_length(probabilities=probabilities, y=y, sample_weight=sample_weight)
        codes = as_numpy(_codes(self, probabilities, y, stated))
        weights = check_weights(sample_weight, n)
        logits = self._logits(stated)
        weights = np.ones(n) if weights is None else weights

        def slope(inverse: float) -> float:
            # Derivative of the negative log-likelihood in 1/T: mean logit under the model minus that of y.
            shares = np.exp(log_softmax(inverse * logits, axis=1))
            gap = np.sum(shares * logits, axis=1) - logits[np.arange(n), codes]
            return float(weights @ gap)

        low, high = 1 / _LARGEST, 1 / _SMALLEST
        if slope(low) >= 0:
            inverse = low
        elif slope(high) <= 0:
            inverse = high
        else:
            inverse = float(brentq(slope, low, high, xtol=1e-12, rtol=1e-12))
        self.temperature_ = 1 / inverse
        self.n_features_in_ = int(stated.shape[1])
        self.columns_ = _names(probabilities)
        return self

    def predict(self, probabilities: Any) -> Array:
        """Calibrated (n, K) probabilities in the array library of the input."""
        check_is_fitted(self)
        stated = self._check(probabilities)
        _check_columns(self, probabilities, stated)
        return beside(np.exp(log_softmax(self._logits(stated) / self.temperature_, axis=1)), stated)

    def _check(self, probabilities: Any) -> Array:
        if self.inputs == "probabilities":
            return check_probabilities(probabilities)
        if self.inputs != "logits":
            raise InputError(f'inputs must be "probabilities" or "logits", got {self.inputs!r}.')
        array = as_array(probabilities, name="logits")
        if array.ndim != 2:
            raise InputError(f"logits must be (n, K), one column per class, got shape {tuple(array.shape)}.")
        return require_finite(numeric(array, "logits"), name="logits")

    def _logits(self, stated: Array) -> np.ndarray:
        values = np.asarray(as_numpy(stated), dtype=np.float64)
        if self.inputs == "logits":
            return np.asarray(values - values.max(axis=1, keepdims=True))
        return np.asarray(np.log(np.maximum(values, _TINY)))


def _codes(calibrator: Any, probabilities: Any, y: Any, stated: Array) -> Array:
    """The column of every label; a dataframe must name its columns in the order of the labels."""
    return encode_labels(y, int(stated.shape[1]), classes=calibrator.classes, name="y", table=probabilities)


def _names(probabilities: Any) -> tuple[str, ...] | None:
    return tuple(frame_columns(probabilities)) if is_frame(probabilities) else None


def _check_columns(calibrator: Any, probabilities: Any, stated: Array) -> None:
    expected = calibrator.n_features_in_
    if stated.shape[1] != expected:
        raise InputError(f"probabilities must have {expected} columns as in fit, got {stated.shape[1]}.")
    known, found = calibrator.columns_, _names(probabilities)
    if known is not None and found is not None and found != known:
        raise InputError(
            f"the columns of probabilities must be those of fit ({', '.join(known[:5])}), "
            f"got {', '.join(found[:5])}. Select them in that order."
        )
