"""Outputs of other libraries in our layout: every reading that is not certain is refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import calipers
from calipers.exceptions import CalipersError, InputError
from calipers.inputs import unpack_intervals, unpack_sets

Y = np.array([0, 1, 2, 1])
MATRIX = np.eye(3, dtype=bool)[Y]


@pytest.mark.parametrize(
    "lists",
    [
        [[0], [1], [2], [1]],
        [(0,), (1,), (2,), (1,)],
        [{0}, {1}, {2}, {1}],
        [np.array([0]), np.array([1]), np.array([2]), np.array([1])],
        [[np.int64(0)], [np.int64(1)], [np.int64(2)], [np.int64(1)]],
        pl.Series([[0], [1], [2], [1]]),
        np.array([None, [0], [1], [2], [1]], dtype=object)[1:],
    ],
    ids=["lists", "tuples", "sets", "arrays", "numpy scalars", "polars list column", "object array"],
)
def test_labels_in_any_collection_become_columns(lists):
    sets, classes = unpack_sets(lists, Y)
    assert sets.tolist() == MATRIX.tolist()
    assert classes == [0, 1, 2]


def test_lists_of_several_lengths_and_empty_ones_become_columns():
    sets, classes = unpack_sets([["b", "a"], [], ["c"]], ["a", "a", "c"])
    assert classes == ["a", "b", "c"]
    assert sets.tolist() == [[True, True, False], [False, False, False], [False, False, True]]


def test_only_empty_lists_are_empty_sets_of_the_labels_that_happened():
    sets, classes = unpack_sets([[], []], ["x", "y"])
    assert classes == ["x", "y"]
    assert not sets.any()


def test_a_label_that_was_predicted_but_never_happened_has_its_own_column():
    found = calipers.audit([1, 2, 1, 2] * 10, sets=[[1], [2, 3], [1], [2]] * 10, random_state=0)
    assert found.design.classes == (1, 2, 3)
    assert float(found.estimates["coverage"]) == 1.0


def test_lists_follow_the_columns_of_the_probabilities_beside_them():
    P = np.full((4, 5), 0.2)
    sets, classes = unpack_sets([[4], [1], [2], [1]], Y, n_classes=P.shape[1])
    assert classes == [0, 1, 2, 3, 4]
    assert sets[0].tolist() == [False, False, False, False, True]


def test_lists_follow_the_classes_that_were_named():
    sets, classes = unpack_sets([["b"], ["a", "b"]], ["b", "a"], classes=np.array(["b", "a"]))
    assert classes == ["b", "a"]
    assert sets.tolist() == [[True, False], [True, True]]


@pytest.mark.parametrize("matrix", [MATRIX, MATRIX.tolist(), MATRIX.astype(int).tolist(), [[1, 1], [1, 0]]])
def test_a_matrix_stays_a_matrix(matrix):
    sets, classes = unpack_sets(matrix, np.arange(len(matrix)) % 2)
    assert sets is matrix
    assert classes is None


def test_zeros_and_ones_that_could_be_either_are_refused():
    with pytest.raises(InputError, match="all labels of two, or one column that is true"):
        unpack_sets([[0, 1], [1, 0], [0, 1]], [0, 1, 1])


def test_booleans_are_columns_unless_the_labels_are_booleans_too():
    rows = [[False, True], [True, False]]
    assert unpack_sets(rows, [0, 1])[0] is rows
    with pytest.raises(InputError, match="all labels of two, or one column that is true"):
        unpack_sets(rows, [False, True])


def test_boolean_labels_in_lists_of_several_lengths_are_read():
    sets, classes = unpack_sets([[True], [False, True]], [True, False])
    assert classes == [False, True]
    assert sets.tolist() == [[False, True], [True, True]]


def test_numbers_and_words_for_the_same_labels_are_refused():
    with pytest.raises(InputError, match=r"one holds 'cat' and the other 0\. Translate one of them"):
        unpack_sets([[0], [0]], ["cat", "cat"])


def test_probabilities_are_not_taken_for_lists_of_labels():
    with pytest.raises(CalipersError, match="sets must hold booleans, or zeros and ones"):
        calipers.audit(Y, sets=[[0.2, 0.3, 0.5]] * 4)


@pytest.mark.parametrize("point", [Y, np.full((4, 3), 1 / 3)], ids=["labels", "probabilities"])
@pytest.mark.parametrize("sets", [MATRIX, MATRIX[:, :, None], [[0], [1], [2], [1]]])
def test_a_point_prediction_beside_the_sets_is_left_aside(point, sets):
    found = calipers.audit(Y, sets=(point, sets), random_state=0)
    assert float(found.estimates["coverage"]) == 1.0


def test_a_pair_of_two_rows_is_refused_because_it_could_be_either():
    with pytest.raises(InputError, match="two rows, or a point prediction and its sets"):
        unpack_sets(([True, False], [False, True]), [0, 1])
    with pytest.raises(InputError, match="two rows, or all lower and all upper ends"):
        unpack_intervals(([0.0, 1.0], [2.0, 3.0]), 2)


V = np.array([0.5, 1.5, 2.5])
LOWER, UPPER = V - 1.0, V + 2.0
ENDS = np.column_stack([LOWER, UPPER])


@pytest.mark.parametrize(
    "intervals",
    [
        (V, LOWER, UPPER),
        (LOWER, UPPER),
        (pl.Series(LOWER), UPPER.tolist()),
        (V, ENDS),
        ENDS[:, None, :],
    ],
    ids=["point and ends", "ends", "columns", "point and intervals", "one output"],
)
def test_intervals_of_every_library_become_rows(intervals):
    assert np.asarray(unpack_intervals(intervals, 3)).tolist() == ENDS.tolist()


def test_several_levels_beside_a_point_prediction_keep_their_axis():
    levels = np.stack([ENDS, ENDS + np.array([-1.0, 1.0])], axis=2)
    assert unpack_intervals((V, levels), 3) is levels
    assert unpack_intervals(levels, 3) is levels


def test_rows_in_a_tuple_stay_rows():
    rows = tuple(map(tuple, ENDS.tolist()))
    assert unpack_intervals(rows, 3) is rows


def test_swapped_ends_are_refused_with_their_row():
    with pytest.raises(InputError, match=r"lower exceeds upper in 3 of 3 rows of intervals \(first at row 0"):
        calipers.audit(V, intervals=(V, UPPER, LOWER))
