"""Columns of a file as a matrix: any slice is the slice of the whole."""

import numpy as np
import polars as pl
import pytest

from calipers.inputs.column_matrix import ColumnMatrix, column_matrix


def in_chunks(values, cuts):
    return pl.concat([pl.Series(values[a:b]) for a, b in zip([0, *cuts], [*cuts, len(values)], strict=True)])


@pytest.mark.parametrize("kind", [bool, np.float32, np.float64, np.int8])
@pytest.mark.parametrize("cuts", [[], [8], [3, 50, 51]])
def test_a_slice_is_the_slice_of_the_matrix(kind, cuts):
    matrix = np.random.default_rng(0).integers(0, 2, (100, 3)).astype(kind)
    table = ColumnMatrix([in_chunks(matrix[:, k], cuts) for k in range(3)])
    assert table.shape == (100, 3)
    for rows in (slice(None), slice(8, 72), slice(3, 4), slice(48, 100), slice(5, 5), slice(90, 200)):
        found = np.asarray(table[rows])
        assert (found == matrix[rows]).all()
        assert found.shape == matrix[rows].shape
        assert found.dtype == (kind if kind in (bool, np.float32) else np.float64)
    assert (np.asarray(table[10:60][7:20]) == matrix[17:30]).all()


def test_bits_are_read_from_wherever_the_column_was_cut():
    values = np.random.default_rng(1).random(200) < 0.5
    table = ColumnMatrix([pl.Series(values).slice(13, 150), pl.Series(values).slice(16, 150)])
    assert (np.asarray(table[5:140]) == np.stack([values[18:153], values[21:156]], axis=1)).all()


def test_missing_values_are_not_numbers():
    found = column_matrix([pl.Series([1.0, None]), pl.Series([None, 2.0])])
    assert np.isnan(found).tolist() == [[False, True], [True, False]]
    found = column_matrix([pl.Series([True, None]), pl.Series([False, True])])
    assert found.dtype == np.float64
    assert np.isnan(found).tolist() == [[False, False], [True, False]]
