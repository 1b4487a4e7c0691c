import numpy as np
import pandas as pd
import polars as pl
import pytest

from calipers.exceptions import InputError
from calipers.inputs import check_features

COLUMNS = {
    "age": [30, 41, 22],
    "rate": [0.5, None, 1.5],
    "member": [True, False, True],
    "city": ["Rome", None, "Bonn"],
}


@pytest.mark.parametrize(
    "frame", [pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), pl.DataFrame(COLUMNS).to_arrow()]
)
def test_frames_of_every_library_become_the_same_columns(frame):
    features = check_features(frame)
    expected = [[30, 0.5, 1, 1], [41, np.nan, 0, np.nan], [22, 1.5, 1, 0]]
    np.testing.assert_array_equal(features.values, expected)
    assert features.names == ("age", "rate", "member", "city")
    assert features.categories == (None, None, None, ("Bonn", "Rome"))
    assert features.is_categorical.tolist() == [False, False, False, True]


def test_pandas_categories_and_strange_indices():
    frame = pd.DataFrame({"c": pd.Categorical(["b", "a"], categories=["b", "a", "z"])}, index=["q", "q"])
    features = check_features(frame)
    assert features.values.tolist() == [[1.0], [0.0]]
    assert features.categories == (("a", "b"),)


def test_dates_become_seconds():
    frame = pl.DataFrame({"t": pl.Series(["1970-01-02"]).str.to_date()})
    assert check_features(frame).values.tolist() == [[86400.0]]


def test_object_matrices_split_into_numbers_and_text():
    features = check_features(np.array([[1, "a"], [2, "b"]], dtype=object))
    assert features.values.tolist() == [[1.0, 0.0], [2.0, 1.0]]
    assert features.categories == (None, ("a", "b"))


def test_missing_and_infinite_values_are_named():
    with pytest.raises(InputError, match=r"X has 2 missing of 12 values \(first at row 1, column 'rate'\)"):
        check_features(pl.DataFrame(COLUMNS), allow_missing=False)
    with pytest.raises(InputError, match=r"X has 1 infinite value\(s\) \(first at row 1, column 'x0'\)"):
        check_features([[1.0], [np.inf]])


def test_shapes_that_are_no_table_are_refused():
    with pytest.raises(InputError, match=r"must be a table \(n, d\), got shape \(2, 2, 2\)"):
        check_features(np.zeros((2, 2, 2)))
    with pytest.raises(InputError, match="at least one column"):
        check_features(np.zeros((2, 0)))
    assert check_features([1.0, 2.0]).values.shape == (2, 1)


def test_integer_features_become_floats():
    assert check_features(np.array([[1, 2]], dtype=np.int8)).values.dtype == np.float64
