import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calipers.arrays import SortedColumn, as_numpy, search, search_sorted
from tests.contract.libraries import LIBRARIES, move

RNG = np.random.default_rng(0)
COLUMNS = {
    "spread": RNG.random(500),
    "skewed": RNG.exponential(size=500) ** 3,
    "ties": np.round(RNG.random(500), 2),
    "a few ties": np.append(RNG.random(497), [0.5, 0.5, 0.5]),
    "crowded": np.append(0.5 + 1e-9 * RNG.random(498), [0.0, 1.0]),
    "constant": np.full(500, 0.25),
    "few": RNG.random(7),
    "infinite ends": np.append(RNG.random(498), [-np.inf, np.inf]),
    "a range beyond the largest number": np.append(RNG.random(498), [-1.7e308, 1.7e308]),
    "wide": np.append(RNG.random(498), [-1e300, 1e300]),
    "smallest numbers": 5e-324 * np.arange(500),
    "signed zeros": np.append(RNG.random(30), [-0.0, 0.0]),
}
side = pytest.mark.parametrize("side", ["left", "right"])


def values_for(column):
    """Entries themselves, their neighbours, what lies between and beyond them, infinities and NaN."""
    with np.errstate(over="ignore"):
        near = [np.nextafter(column, -np.inf), column, np.nextafter(column, np.inf)]
    low, high = (np.clip(float(end), -1e300, 1e300) for end in (column.min(), column.max()))
    between = RNG.uniform(low / 2 - 0.1, high / 2 + 0.1, 500)
    return np.concatenate([*near, between, [-np.inf, np.inf, np.nan, -0.0, 0.0]])


@side
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", COLUMNS)
def test_values_are_found_where_numpy_finds_them(name, dtype, side):
    with np.errstate(over="ignore"):
        ordered = np.sort(COLUMNS[name].astype(dtype))
        values = values_for(ordered).astype(dtype)
    expected = np.searchsorted(ordered, values, side=side)
    np.testing.assert_array_equal(search_sorted(ordered, values, side=side), expected)


@given(
    st.lists(st.floats(allow_nan=False), min_size=16, max_size=60),
    st.lists(st.floats(), min_size=60, max_size=120),
    st.sampled_from(["left", "right"]),
)
@settings(max_examples=200, deadline=None)
def test_any_floats_are_found_where_numpy_finds_them(column, values, side):
    ordered, asked = np.sort(np.array(column)), np.array(values + column)
    found = search_sorted(ordered, asked, side=side)
    np.testing.assert_array_equal(found, np.searchsorted(ordered, asked, side=side))


def test_the_table_is_used_for_many_values_and_passes_over_crowded_cells(monkeypatch):
    searched = []
    plain = np.searchsorted

    def counting(ordered, values, side="left"):
        searched.append(np.size(values))
        return plain(ordered, values, side=side)

    ordered, values = np.sort(RNG.random(2000)), RNG.random(50_000)
    expected = plain(ordered, values)
    monkeypatch.setattr(search.np, "searchsorted", counting)
    np.testing.assert_array_equal(search_sorted(ordered, values), expected)
    # 2000 entries in 8192 cells: a Poisson(0.244) share of 2.5 % of the cells holds two or more.
    assert 0.015 * values.size < sum(searched) < 0.035 * values.size


@side
def test_a_column_searched_in_pieces_gives_the_same_positions(side):
    ordered, values = np.sort(RNG.random(300)), RNG.random(2000)
    column = SortedColumn(ordered)
    found = np.concatenate([column.search(part, side=side) for part in np.array_split(values, 23)])
    np.testing.assert_array_equal(found, np.searchsorted(ordered, values, side=side))


@side
def test_blocks_meet_without_a_gap(monkeypatch, side):
    monkeypatch.setattr(search, "_BLOCK", 64)
    ordered, values = np.sort(RNG.random(100)), RNG.random(1000)
    values[640:] = 0.5 * (ordered[7] + ordered[8])
    np.testing.assert_array_equal(
        search_sorted(ordered, values, side=side), np.searchsorted(ordered, values, side=side)
    )


def test_whole_numbers_and_other_types_are_searched_as_they_are():
    ordered, values = np.arange(0, 90, 3), np.arange(200)
    np.testing.assert_array_equal(search_sorted(ordered, values), np.searchsorted(ordered, values))
    halves = values / 2
    np.testing.assert_array_equal(search_sorted(ordered, halves), np.searchsorted(ordered, halves))


def test_nothing_is_found_in_an_empty_column():
    assert search_sorted(np.zeros(0), np.array([0.5, 1.0])).tolist() == [0, 0]


@side
@pytest.mark.parametrize("library", LIBRARIES)
def test_other_libraries_find_the_same_positions(library, side):
    ordered, values = np.sort(RNG.random(50)), RNG.random(200)
    there = search_sorted(move(ordered, library), move(values, library), side=side)
    np.testing.assert_array_equal(as_numpy(there), np.searchsorted(ordered, values, side=side))
