"""The hash is the same on every machine and forever: stored numbers, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from calipers.arrays.hashing import finalise, mix, text_key, unit_floats
from calipers.conformal.draws import row_draws
from calipers.difficulty.row_keys import row_keys
from calipers.inputs.row_keys import Place, draws, keys_of_ids, keys_of_place


def hexes(keys: np.ndarray) -> list[str]:
    return [hex(key) for key in keys.tolist()]


def test_mixed_keys_are_those_of_splitmix64():
    # The first two are outputs of the reference generator with seeds 0 and 1.
    found = mix(np.array([0, 1, 2**63], dtype=np.uint64))
    assert hexes(found) == ["0xe220a8397b1dcdaf", "0x910a2dec89025cc1", "0x481ec0a212a9f3db"]


def test_the_finaliser_is_one_to_one():
    keys = np.arange(100_000, dtype=np.uint64)
    assert len(np.unique(finalise(keys))) == len(keys)


def test_keys_of_texts_do_not_change():
    assert [hex(text_key(text)) for text in ("tau", "é")] == ["0x284525571d3325ca", "0x2f19f3ef8bbf1acb"]


def test_floats_fill_the_unit_interval():
    keys = np.array([0, 1 << 11, 2**64 - 1], dtype=np.uint64)
    assert unit_floats(keys).tolist() == [0.0, 2.0**-53, 1 - 2.0**-53]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (lambda: keys_of_ids(np.array([7, -1])), ["0x63cbe1e459320dd7", "0xe4d971771b652c20"]),
        (
            lambda: keys_of_ids(np.array(["row-1", "a longer row name"])),
            ["0x875860874bb514b5", "0x6eb690944975fd0a"],
        ),
        (lambda: keys_of_place(Place("a.csv", 3), 2), ["0x605898d614496f3f", "0x1066f60ff279ff98"]),
        (
            lambda: row_keys(np.array([[1.5, -0.0], [2.5, 3.0]])),
            [hex(1918674596110), hex(4143836851520)],
        ),
        (
            lambda: row_keys(np.array([[1.5, 0.0], [2.5, 3.0]], dtype=np.float32)),
            [hex(434302134461), hex(1093893712556)],
        ),
    ],
    ids=["numbers", "texts", "places", "content", "float32 content"],
)
def test_keys_of_rows_do_not_change(found, expected):
    assert hexes(found()) == expected


def test_draws_of_rows_do_not_change():
    by_id = draws(keys_of_ids(np.array([7, 8])), "tau", 5)
    assert [u.hex() for u in by_id.tolist()] == ["0x1.4dc02efe44880p-4", "0x1.92a175e359288p-2"]
    by_row = row_draws(np.array([[0.25, 0.75], [0.5, 0.5], [0.25, 0.75]]), seed=3, stream=1)
    assert [u.hex() for u in by_row.tolist()] == [
        "0x1.a61f6a67f6772p-2",
        "0x1.d3fb30f88c918p-2",
        "0x1.0b515e00f15a0p-6",
    ]
