"""scikit-learn's own checks of its estimator contract; none is expected to fail."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from calipers.conformal import ConformalClassifier, ConformalRegressor

# Name of the check -> why it cannot hold. Empty: every check holds.
EXPECTED_FAILURES: dict[str, str] = {}

ESTIMATORS = [
    ConformalClassifier(),
    ConformalClassifier(calibration_size=0.3, smoothed=True, random_state=0),
    ConformalRegressor(),
    ConformalRegressor(calibration_size=0.3, random_state=0),
]


@pytest.mark.filterwarnings(
    "ignore"
)  # the checks feed data that models warn about, and assert on it themselves
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_the_estimator_contract_holds(estimator, check):
    state = np.random.get_state()  # noqa: NPY002 - one of the checks itself shuffles rows with the global generator
    check(estimator)
    np.random.set_state(state)  # noqa: NPY002
