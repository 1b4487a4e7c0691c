import numpy as np
import pytest

from calipers.arrays import running_sums, sort_with_order

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


@pytest.mark.parametrize("ends", [[0], [7, 3, 3, 0], [[1, 4], [7, 7]], [2]])
def test_running_sums_are_the_sums_of_the_first_entries(ends):
    column = np.array([0.25, -1.0, 2.0, 8.0, 0.5, 0.125, 4.0])
    expected = [column[:m].sum() for m in np.ravel(ends)]
    np.testing.assert_array_equal(
        running_sums([column], np.array(ends))[0], np.reshape(expected, np.shape(ends))
    )


def test_an_empty_column_has_the_running_sum_0():
    assert running_sums([np.zeros(0)], np.array([0, 0]))[0].tolist() == [0.0, 0.0]
