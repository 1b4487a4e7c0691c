import numpy as np
import pytest

from calipers.arrays import as_numpy, pick_columns
from tests.contract.libraries import LIBRARIES, assert_lies_with, move

TABLE = np.arange(24.0).reshape(6, 4)
COLUMNS = np.array([3, 0, 2, 2, 1, 3])
PICKED = [3.0, 4.0, 10.0, 14.0, 17.0, 23.0]


@pytest.mark.parametrize("library", LIBRARIES)
def test_each_row_gives_the_entry_of_its_own_column(library):
    table = move(TABLE, library)
    found = pick_columns(table, move(COLUMNS, library))
    assert_lies_with(found, table)
    assert as_numpy(found).tolist() == PICKED


@pytest.mark.parametrize(
    "lie", [np.asfortranarray, lambda t: np.repeat(t, 2, axis=1)[:, ::2], lambda t: t[::-1][::-1]]
)
def test_it_does_not_matter_how_the_table_lies_in_memory(lie):
    assert pick_columns(lie(TABLE), COLUMNS.astype(np.int32)).tolist() == PICKED


def test_no_rows_give_no_entries():
    assert pick_columns(np.zeros((0, 3)), np.zeros(0, dtype=np.int64)).shape == (0,)
