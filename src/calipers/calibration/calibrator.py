"""What every binary calibrator shares: checked rows in, probabilities of the positive class out."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from calipers.arrays import Array, as_array, as_numpy, on_device_of
from calipers.exceptions import InputError
from calipers.inputs import (
    check_binary,
    check_positive_probabilities,
    check_same_length,
    check_vector,
    check_weights,
)
from calipers.inputs.row_checks import one_column
from calipers.metrics.reliability.binary_rows import is_soft, refuse_swapped

INPUTS = ("probabilities", "scores")


class CalibrationRows(NamedTuple):
    """Scores, outcomes (bool, or floats in [0, 1] when the labels are soft) and weights or None."""

    scores: Array
    outcomes: Array
    weights: Array | None


class BinaryCalibrator(BaseEstimator):
    """A map from stated to calibrated probabilities of the positive class, learned from outcomes.

    Subclasses implement ``_fit`` on checked rows and ``_map`` on checked scores. ``inputs`` and
    ``pos_label`` are constructor arguments of each subclass.
    """

    inputs: str
    pos_label: Any

    def fit(self, probabilities: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the map from stated probabilities and what happened.

        Parameters
        ----------
        probabilities : array (n,) or (n, 2)
            Stated probability of the positive class, or finite scores when ``inputs="scores"``.
        y : array (n,)
            Labels; floats in [0, 1] are taken as soft labels.
        sample_weight : array (n,) or None
            Repetitions of the rows.
        """
        self._fit(self._check_rows(probabilities, y, sample_weight))
        self.n_features_in_ = 1
        return self

    def predict(self, probabilities: Any) -> Array:
        """Calibrated probability of the positive class, (n,), in the array library of the input."""
        check_is_fitted(self)
        return self._map(self._check_scores(probabilities))

    def fit_predict(self, probabilities: Any, y: Any, sample_weight: Any = None) -> Array:
        """Fit, then give the calibrated probabilities of the same rows."""
        return self.fit(probabilities, y, sample_weight).predict(probabilities)

    def _fit(self, rows: CalibrationRows) -> None:
        raise TypeError(f"{type(self).__name__} has no rule to fit.")  # pragma: no cover - abstract

    def _map(self, scores: Array) -> Array:
        raise TypeError(f"{type(self).__name__} has no rule to map.")  # pragma: no cover - abstract

    def _check_scores(self, probabilities: Any) -> Array:
        if self.inputs not in INPUTS:
            raise InputError(f'inputs must be "probabilities" or "scores", got {self.inputs!r}.')
        if self.inputs == "scores":
            return check_vector(probabilities, name="scores")
        array = as_array(probabilities, name="probabilities")
        if array.ndim == 2 and array.shape[1] > 2:
            raise InputError(
                f"probabilities has {array.shape[1]} columns; {type(self).__name__} calibrates one positive "
                "class. For several classes use OneVsRestCalibrator or TemperatureCalibrator."
            )
        return check_positive_probabilities(array)

    def _check_rows(self, probabilities: Any, y: Any, sample_weight: Any) -> CalibrationRows:
        scores = self._check_scores(probabilities)
        n = check_same_length(probabilities=probabilities, y=y, sample_weight=sample_weight)
        outcomes = check_outcomes(y, pos_label=self.pos_label)
        if self.inputs == "probabilities" and is_soft(outcomes):
            refuse_swapped(scores, labels="y", order="(probabilities, y)")
        weights = check_weights(sample_weight, n)
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights)  # a row of weight 0 is not there
            scores, outcomes = as_numpy(scores)[kept], as_numpy(outcomes)[kept]
            weights = weights[kept]
        return CalibrationRows(scores, beside(outcomes, scores), beside(weights, scores))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        return tags


def check_outcomes(y: Any, *, pos_label: Any = None) -> Array:
    """Whether each row is positive (bool), or its soft label in [0, 1] (floating)."""
    labels = one_column(as_array(y, name="y"))
    if pos_label is None and is_soft(labels):
        return check_vector(labels, name="y")
    return check_binary(labels, pos_label=pos_label, name="y")


def beside(values: Any, like: Array) -> Any:
    """The values in the library and on the device of ``like``; None stays None."""
    if values is None:
        return None
    if isinstance(like, np.ndarray):
        return as_numpy(values)
    return on_device_of(as_numpy(values), like)
