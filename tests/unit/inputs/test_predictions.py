from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from calipers.exceptions import InputError, InputTypeError
from calipers.inputs import (
    check_binary,
    check_covered,
    check_intervals,
    check_p_values,
    check_positive_probabilities,
    check_prediction,
    check_probabilities,
    check_sets,
    is_covered,
)


def test_a_nan_is_named_with_its_row_and_column():
    P = np.full((10, 4), 0.25)
    P[7, 3] = np.nan
    with pytest.raises(
        InputError, match=r"probabilities has 1 NaN of 40 values \(first at row 7, column 3\)"
    ):
        check_probabilities(P)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0.5, 0.6]], r"must sum to 1, 1 of 1 rows do not \(first at row 0: 1\.1\)"),
        (
            [[0.5, 0.5], [-0.1, 1.1]],
            r"must lie in \[0, 1\], 2 of 4 values do not \(first at row 1, column 0: -0\.1\)",
        ),
        ([[40.0, 60.0]], "Percentages and logits must be converted first"),
        ([0.5, 0.5], r"must be \(n, K\)"),
        ([[np.inf, 0.0]], "infinite"),
    ],
)
def test_bad_probabilities_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        check_probabilities(values)


def test_probabilities_are_neither_clipped_nor_renormalised():
    P = np.array([[0.30005, 0.7]])
    assert check_probabilities(P) is P


def test_float32_rounding_above_one_is_not_an_error():
    P = np.array([[np.nextafter(np.float32(1), np.float32(2)), 0]], dtype=np.float32)
    assert check_probabilities(P).dtype == np.float32


def test_p_values_need_not_sum_to_one():
    assert check_p_values([[1.0, 1.0]]).tolist() == [[1.0, 1.0]]


def test_crossed_ends_are_counted_and_placed():
    intervals = np.array([[0.0, 1.0], [0.4, 0.1], [2.0, 1.0]])
    with pytest.raises(
        InputError, match=r"lower exceeds upper in 2 of 3 rows of intervals \(first at row 1: 0\.4 > 0\.1\)"
    ):
        check_intervals(intervals)


def test_infinite_ends_are_allowed_and_nan_is_not():
    assert check_intervals([[-np.inf, np.inf]]).shape == (1, 2)
    with pytest.raises(InputError, match="1 NaN of 2 values"):
        check_intervals([[np.nan, 1.0]])


def test_levels_ride_on_the_last_axis():
    assert check_sets(np.ones((4, 3, 2), bool)).shape == (4, 3, 2)
    crossed = np.zeros((2, 2, 2))
    crossed[1, 0, 1] = 1
    with pytest.raises(InputError, match="first at row 1, column 1"):
        check_intervals(crossed)


def test_kinds_of_prediction_are_told_by_dtype():
    assert check_prediction(np.ones((2, 2), bool))[0] == "sets"
    assert check_prediction(np.array([[0, 1, 1]]))[0] == "sets"
    assert check_prediction(np.array([[0, 5]]))[0] == "intervals"
    with pytest.raises(InputError, match="could be sets or intervals"):
        check_prediction(np.array([[0, 1]]))
    with pytest.raises(InputError, match=r"pass one at a time, for instance prediction\[:, :, 0\]"):
        check_prediction(np.ones((2, 2, 3), bool))


@pytest.mark.parametrize("values", [[0, 1, 2], [0.5, 1, 0], [np.nan, 1.0]])
def test_covered_must_be_zero_or_one(values):
    with pytest.raises(InputError, match="covered must hold booleans, or zeros and ones"):
        check_covered(values)


def test_covered_takes_frames_columns_with_any_index():
    assert check_covered(pd.Series([True, False], index=["b", "a"])).tolist() == [True, False]
    assert check_covered(pl.Series([1, 0])).tolist() == [True, False]
    with pytest.raises(InputTypeError, match="covered must hold booleans"):
        check_covered(["yes", "no"])


def test_positive_probabilities_take_the_second_of_two_columns():
    assert check_positive_probabilities([[0.25, 0.75], [1.0, 0.0]]).tolist() == [0.75, 0.0]
    with pytest.raises(InputError, match=r"\(n,\) or \(n, 2\), got shape \(1, 3\)"):
        check_positive_probabilities([[0.2, 0.3, 0.5]])


def test_binary_labels():
    assert check_binary([0, 0]).tolist() == [False, False]
    assert check_binary(["a", "b"], pos_label="a").tolist() == [True, False]
    assert check_binary([-1, 1]).tolist() == [False, True]
    with pytest.raises(InputError, match=r"pos_label='c' does not occur"):
        check_binary(["a", "b"], pos_label="c")
    with pytest.raises(InputError, match="must hold two labels"):
        check_binary([1, 2, 3])
    with pytest.raises(InputError, match="must hold two labels"):
        check_binary(["a", "a"])


def test_masked_sparse_and_ragged_inputs_are_refused():
    from scipy.sparse import csr_matrix

    with pytest.raises(InputTypeError, match="masked array"):
        check_covered(np.ma.masked_array([1, 0], mask=[0, 1]))
    with pytest.raises(InputTypeError, match="sparse matrix"):
        check_probabilities(csr_matrix(np.eye(2)))
    with pytest.raises(InputTypeError, match="rectangular"):
        check_probabilities([[0.5, 0.5], [1.0]])
    with pytest.raises(InputTypeError, match="got NoneType"):
        check_covered(None)


def test_a_probability_a_little_above_one_is_shown_as_it_is():
    with pytest.raises(InputError, match=r"row 1: 1\.0000012\)"):
        check_positive_probabilities([0.5, 1.0000012])


def test_booleans_as_objects_are_sets_and_no_intervals() -> None:
    # False, False is the empty set and was read as the interval from 0 to 0, which holds the label 0.
    sets = pd.DataFrame({"a": [False, True], "b": [False, True]}).astype("boolean")
    assert is_covered([0, 1], sets).tolist() == [False, True]
    assert is_covered([0, 1], np.array([[False, False], [True, True]], dtype=object)).tolist() == [
        False,
        True,
    ]
    with pytest.raises(InputError, match=r"1 of 4 values are neither \(first at row 0, column 1: nan\)"):
        is_covered([0, 1], sets.mask([[False, True], [False, False]]))


@pytest.mark.parametrize("labels", [[[0], [0, 1]], [{0}, {1}], np.array([[0], [0, 1]], dtype=object)])
def test_lists_of_labels_are_refused_with_what_makes_sets_of_them(labels: Any) -> None:
    with pytest.raises(
        InputTypeError, match=r"got lists of labels\. Pass calipers\.inputs\.sets_from_labels"
    ):
        is_covered([0, 1], labels)
    with pytest.raises(InputTypeError, match="got lists of labels"):
        check_sets(labels)


def test_floats_of_three_columns_are_neither_sets_nor_intervals() -> None:
    with pytest.raises(
        InputError, match=r"bool \(n, K\) for sets or numbers \(n, 2\) .* float64 of shape \(1, 3\)"
    ):
        is_covered([0], [[0.0, 1.0, 0.0]])


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_whole_numbers_that_doubles_round_are_refused(kind: type) -> None:
    # As doubles 2**53 + 1 is 2**53, which lies in the interval; in exact arithmetic it does not.
    ends = np.full((3, 2), 2**53, dtype=kind)
    with pytest.raises(InputError, match=r"y_true holds 9007199254740993, which no double holds exactly"):
        is_covered(np.array([2**53 + 1] * 3, dtype=kind), ends)
    assert is_covered(np.array([2**53, 2**53 + 2, 2**62], dtype=kind), ends).tolist() == [True, False, False]
    assert is_covered(np.array([-(2**63), 0, 2**53]), ends).tolist() == [False, False, True]


@pytest.mark.parametrize(
    "labels",
    [
        [True, 0, 1, False],
        [1.0, 0, 1, 0],
        [np.str_("b"), "a", "b", np.str_("a")],
        [np.bool_(1), 0, 1.0, False],
    ],
)
def test_labels_of_several_types_are_ordered_by_value(labels: Any) -> None:
    # They were ordered by the name of their type, so that 0 was the positive one of True and 0.
    assert check_binary(np.array(labels, dtype=object)).tolist() == [True, False, True, False]


def test_a_positive_label_of_another_kind_is_refused_where_one_label_is_present() -> None:
    assert check_binary(["no", "no"], pos_label="yes").tolist() == [False, False]
    for labels, positive in (([1, 1], "yes"), (["1", "1"], 1), ([b"yes"], "yes")):
        with pytest.raises(InputError, match="does not occur in y_true, which holds"):
            check_binary(labels, pos_label=positive)
