"""The only room that knows array and dataframe libraries differ.

Array libraries are recognised by the array itself (never by importing them): numpy, torch, CuPy and
JAX arrays stay where they are; lists, pandas, polars and arrow columns become numpy at the door.
"""

from calipers.arrays.frames import build_frame, frame_columns, is_frame
from calipers.arrays.fusion import fused
from calipers.arrays.library import (
    Array,
    as_array,
    as_numpy,
    count_along,
    count_in_order,
    floating,
    is_array,
    namespace,
    not_negative,
    on_device_of,
    pick_columns,
    put_rows,
    running_sums,
    smallest_and_largest,
    sort_with_order,
    take_at,
    undo_row_order,
)
from calipers.arrays.one_line_repr import short_repr
from calipers.arrays.optional import import_optional, is_installed
from calipers.arrays.random import RandomState, generator, spawn
from calipers.arrays.search import SortedColumn, search_sorted

__all__ = [
    "Array",
    "RandomState",
    "SortedColumn",
    "as_array",
    "as_numpy",
    "build_frame",
    "count_along",
    "count_in_order",
    "floating",
    "frame_columns",
    "fused",
    "generator",
    "import_optional",
    "is_array",
    "is_frame",
    "is_installed",
    "namespace",
    "not_negative",
    "on_device_of",
    "pick_columns",
    "put_rows",
    "running_sums",
    "search_sorted",
    "short_repr",
    "smallest_and_largest",
    "sort_with_order",
    "spawn",
    "take_at",
    "undo_row_order",
]


def __dir__() -> list[str]:
    return sorted(__all__)
