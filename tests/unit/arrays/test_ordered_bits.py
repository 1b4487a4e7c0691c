"""Keys sort like what they are made of, and give it back to the bit."""

from __future__ import annotations

import numpy as np

from calipers.arrays.ordered_bits import (
    pack_outcomes,
    unpack_outcomes,
    unpack_scores,
)

SCORES = np.array([0.0, -0.0, 5e-324, 1e-300, 0.1, np.nextafter(0.1, 1), 0.1, 1 - 2**-53, 1.0])


def test_sorted_keys_are_rows_sorted_by_score_and_outcome():
    rng = np.random.default_rng(0)
    f = np.concatenate([np.tile(SCORES, 2), rng.random(500)])
    y = rng.random(f.size) < 0.5
    keys = np.sort(pack_outcomes(f, y))
    order = np.lexsort((y, f))
    assert (unpack_scores(keys) == f[order]).all()
    assert (unpack_outcomes(keys) == y[order]).all()
    assert (np.sort(pack_outcomes(f, y.astype(float))) == keys).all()


def test_minus_zero_is_zero():
    keys = pack_outcomes(np.array([-0.0, 0.0]), np.array([True, True]))
    assert keys[0] == keys[1]


def test_keys_take_the_place_of_the_scores_only_when_allowed():
    f, y = np.array([0.25, 0.5]), np.array([False, True])
    kept = f.copy()
    keys = pack_outcomes(f, y)
    assert (f == kept).all()
    assert (pack_outcomes(f, y, overwrite=True) == keys).all()
    assert (f.view(np.uint64) == keys).all()
