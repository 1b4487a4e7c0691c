import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from calipers.conformal import ConformalRegressor
from calipers.exceptions import (
    CalipersError,
    InputError,
    InputTypeError,
    MissingDependencyError,
    SmallSampleWarning,
    warn,
)


def test_errors_are_also_the_builtin_kinds():
    assert issubclass(InputError, (CalipersError, ValueError))
    assert issubclass(InputTypeError, TypeError)
    assert issubclass(MissingDependencyError, ImportError)


def test_a_warning_points_at_the_line_of_the_user():
    X = np.arange(8.0)[:, None]
    model = ConformalRegressor(LinearRegression()).fit(X, X[:, 0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.conformalize(X, X[:, 0] ** 2)
        model.predict_interval(X, alpha=0.05)
    places = {str(item.filename) for item in caught if issubclass(item.category, SmallSampleWarning)}
    assert places == {__file__}


def test_a_direct_warning_points_at_its_caller():
    with pytest.warns(SmallSampleWarning, match="too few") as caught:
        warn("too few rows", SmallSampleWarning)
    assert caught[0].filename == __file__
