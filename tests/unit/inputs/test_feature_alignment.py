"""Two tables of features side by side: columns by name, categories coded together."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from calipers.exceptions import InputError
from calipers.inputs import align_features, check_features


def aligned(first, second):
    return align_features(
        check_features(first, name="X_old"), check_features(second, name="X_new"), names=("X_old", "X_new")
    )


def test_a_category_has_one_code_in_both_tables():
    old = pl.DataFrame({"city": ["Bonn", "Rome", None]})
    new = pl.DataFrame({"city": ["Zug", "Rome"]})
    first, second = aligned(old, new)
    assert first.categories == second.categories == (("Bonn", "Rome", "Zug"),)
    np.testing.assert_array_equal(first.values[:, 0], [0.0, 1.0, np.nan])
    assert second.values[:, 0].tolist() == [2.0, 1.0]


def test_columns_are_matched_by_name():
    first, second = aligned(
        pl.DataFrame({"age": [1.0], "city": ["Rome"]}), pl.DataFrame({"city": ["Bonn"], "age": [2.0]})
    )
    assert first.names == second.names == ("age", "city")
    assert (first.values.tolist(), second.values.tolist()) == ([[1.0, 1.0]], [[2.0, 0.0]])


def test_numbers_and_mixed_kinds_of_missing_stay_numbers():
    first, second = aligned(pl.DataFrame({"x": [1.0, 2.0]}), pl.DataFrame({"x": [None, None]}))
    assert first.categories == second.categories == (None,)
    first, second = aligned(pl.DataFrame({"x": ["a", "b"]}), pl.DataFrame({"x": [None, None]}))
    assert first.categories == second.categories == (("a", "b"),)


def test_matrices_go_by_position():
    first, second = aligned([[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]])
    assert (first.values.shape, second.values.shape) == ((1, 2), (2, 2))


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            {"age": [1.0]},
            {"years": [1.0]},
            "X_old and X_new must have the same columns; only X_old has 'age'",
        ),
        ({"a": [1.0]}, {"a": [1.0], "b": [1.0]}, "only X_new has 'b'"),
        ({"a": [1.0]}, {"a": ["x"]}, "column 'a' holds numbers in X_old and text in X_new"),
    ],
)
def test_tables_that_do_not_match_are_refused(first, second, message):
    with pytest.raises(InputError, match=message):
        aligned(pl.DataFrame(first), pl.DataFrame(second))


def test_a_matrix_of_another_width_is_refused():
    with pytest.raises(InputError, match="only X_old has 'x1'"):
        aligned([[1.0, 2.0]], [[1.0]])
