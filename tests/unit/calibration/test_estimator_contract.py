"""Every estimator of the room keeps scikit-learn's contract."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import calipers.calibration as room
from calipers.calibration import (
    CalibratedClassifier,
    CalibrationConstrainedClassifier,
    ConditionalCalibrator,
    IsotonicCalibrator,
    IsotronClassifier,
    LinkCalibrator,
    OneVsRestCalibrator,
    TemperatureCalibrator,
    VennAbersCalibrator,
)

CHECKED = [
    IsotronClassifier(n_rounds=10, random_state=0),
    IsotronClassifier(variant="slisotron", n_rounds=10, random_state=0),
    CalibrationConstrainedClassifier("hinge", random_state=0),
    CalibrationConstrainedClassifier("log", calibration_size=0.3, random_state=0),
    CalibratedClassifier(calibration_size=0.3, random_state=0),
    # without a split, whole weights are repeated rows
    IsotronClassifier(n_rounds=10, validation_fraction=0),
    IsotronClassifier(variant="slisotron", n_rounds=10, validation_fraction=0),
    CalibrationConstrainedClassifier("squared", random_state=0),
]
_SPLIT = "copies of a row may fall on both sides of the split into training and held-out rows"
_WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
NOT_EQUIVALENT = {
    repr(CHECKED[1]): {_WEIGHTS: _SPLIT},
    repr(CHECKED[2]): {_WEIGHTS: "liblinear solves the hinge loss to a tolerance, row by row"},
    repr(CHECKED[3]): {_WEIGHTS: _SPLIT},
    repr(CHECKED[4]): {_WEIGHTS: _SPLIT, "check_sample_weight_equivalence_on_sparse_data": _SPLIT},
}
# scikit-learn has no checks for estimators of one-dimensional input (it skips its own IsotonicRegression too),
# and feeds the others matrices whose rows do not sum to 1, which calibrators of (n, K) must refuse.
CALIBRATORS = [
    IsotonicCalibrator(),
    LinkCalibrator(),
    VennAbersCalibrator(),
    ConditionalCalibrator(random_state=0),
    OneVsRestCalibrator(),
    TemperatureCalibrator(),
]
EVERY = [*CHECKED, *CALIBRATORS]
TWO = (np.array([0.1, 0.3, 0.4, 0.6, 0.7, 0.9]), np.array([0, 0, 1, 0, 1, 1]))
THREE = (np.full((6, 3), 1 / 3), np.array([0, 1, 2, 0, 1, 2]))


@pytest.mark.filterwarnings("ignore:.*training rows are fewer than.*")
@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
@parametrize_with_checks(CHECKED, expected_failed_checks=lambda e: NOT_EQUIVALENT.get(repr(e), {}))
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    state = np.random.get_state()  # noqa: NPY002 - one of scikit-learn's checks shuffles by the global state
    check(estimator)
    np.random.set_state(state)  # noqa: NPY002


def test_no_estimator_of_the_room_is_left_out() -> None:
    classes = {getattr(room, name) for name in room.__all__ if isinstance(getattr(room, name), type)}
    assert classes == {type(estimator) for estimator in EVERY}


@pytest.mark.parametrize("estimator", EVERY, ids=repr)
def test_clone_keeps_every_parameter(estimator: Any) -> None:
    assert repr(clone(estimator)) == repr(estimator)


@pytest.mark.parametrize("estimator", CALIBRATORS, ids=repr)
def test_predict_before_fit_is_refused(estimator: Any) -> None:
    data = THREE if isinstance(estimator, (OneVsRestCalibrator, TemperatureCalibrator)) else TWO
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        estimator.predict(data[0])
    fitted = clone(estimator).fit(*data)
    assert fitted is not estimator
    assert np.asarray(fitted.predict(data[0])).shape == data[0].shape
    assert fitted.n_features_in_ == (data[0].shape[1] if data[0].ndim == 2 else 1)
    assert repr(fitted) == repr(estimator)
