import numpy as np
import pytest

from calipers.arrays import sort_with_order

COLUMNS = {
    "distinct": np.array([0.3, -1.0, 2.5, 0.1]),
    "ties": np.array([0.5, 0.1, 0.5, 0.1, 0.5, 0.3]),
    "signed zeros": np.array([0.0, -0.0, 0.0, -0.0]),
    "NaN": np.array([np.nan, 1.0, np.nan, 0.0]),
    "one NaN": np.array([np.nan, 1.0, 0.0]),
    "integers": np.array([3, 1, 3, 2]),
    "one": np.array([1.0]),
    "none": np.array([]),
    "many with one tie": np.append(np.random.default_rng(0).permutation(5000) / 7, 3.0),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_sorted_column_keeps_equal_values_in_their_first_order(name):
    column = COLUMNS[name]
    values, order = sort_with_order(column)
    np.testing.assert_array_equal(order, np.argsort(column, kind="stable"))
    np.testing.assert_array_equal(values, column[order])
