"""The exact sup-interval error against brute force over all intervals."""

import math

import numpy as np
import pytest

from calipers.metrics.reliability.binary_rows import BLOCK, BinaryRows
from calipers.metrics.reliability.bucket_walk import sup_interval
from tests.contract.libraries import LIBRARIES, move


def brute_force(f, y, w=None):
    """Every pair of ends, every row: the definition."""
    w = np.ones(len(f)) if w is None else w
    ends = np.concatenate([[-np.inf], np.unique(f)])
    sums = [
        abs(np.sum((w * (y - f))[(f > low) & (f <= high)]))
        for i, low in enumerate(ends)
        for high in ends[i + 1 :]
    ]
    return max(sums) / w.sum()


def signed_sum(found, f, y, w=None):
    w = np.ones(len(f)) if w is None else w
    inside = (f > found.low) & (f <= found.high)
    return float(np.sum((w * (y - f))[inside]) / w.sum())


SCORES = {
    "continuous": lambda rng, n: rng.random(n),
    "one decimal": lambda rng, n: np.round(rng.random(n), 1),
    "certainties and both zeros": lambda rng, n: rng.choice([0.0, -0.0, 0.5, 1.0], n),
    "crowded": lambda rng, n: 0.5 + 1e-9 * np.round(rng.random(n), 2),
    "crowded with outliers": lambda rng, n: np.where(rng.random(n) < 0.2, rng.integers(0, 2, n), 0.5 + 1e-12 * rng.random(n)),
    "subnormal": lambda rng, n: 5e-324 * rng.integers(0, 4, n),
    "constant": lambda rng, n: np.full(n, 0.3),
}  # fmt: skip


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("soft", [False, True])
def test_the_value_and_the_interval_agree_with_brute_force(kind, weighted, soft, seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        n = int(rng.integers(1, 25))
        f = SCORES[kind](rng, n)
        y = rng.random(n) if soft else rng.random(n) < 0.5
        w = rng.random(n) if weighted else None
        found = sup_interval(BinaryRows(f, y, w))
        assert found.value == pytest.approx(brute_force(f, y, w), abs=1e-13)
        if found.sign:
            assert found.sign * signed_sum(found, f, y, w) == pytest.approx(found.value, abs=1e-13)


def test_a_calibrated_constant_reads_exactly_zero_whatever_the_order_of_rows():
    # Two peers walk row by row and read 0.25 here.
    f, y = np.full(1000, 0.5), np.repeat([True, False], 500)
    found = sup_interval(BinaryRows(f, y))
    assert found.value == 0.0
    assert found.sign == 0
    assert math.isnan(found.low)


def test_hand_computed_interval_and_sign():
    # C = 0, -0.2, -0.6, 0.2, 1.0 (scores .2 .4 .6 .8... y = 0 0 1 1): rise from -0.6 to 0.0 is
    # (1-.6) + (1-.8) = 0.6, fall from 0 to -0.6 is -(.2 + .4): both 0.6; top is the leading 0.
    f, y = np.array([0.2, 0.4, 0.6, 0.9]), np.array([False, False, True, True])
    found = sup_interval(BinaryRows(f, y))
    # readings 0, -.2, -.6, -.2, -.1: highest 0 at -inf, lowest -.6 at .4
    assert found.value == pytest.approx(0.15)
    assert (found.low, found.high, found.sign) == (-math.inf, 0.4, -1)


def test_the_largest_row_counts_of_a_block_boundary_are_exact(seed):
    # Longer than one block, with ties across the block boundary: against a plain sort.
    rng = np.random.default_rng(seed)
    n = BLOCK + 1001
    for f in (rng.random(n), np.round(rng.random(n), 2), np.where(rng.random(n) < 0.9, 0.25, rng.random(n))):
        y = rng.random(n) < 0.9 * f + 0.02
        order = np.argsort(f)
        walk = np.cumsum((y - f)[order])[np.append(np.diff(f[order]) > 0, True)]
        expected = (max(0, walk.max()) - min(0, walk.min())) / n
        found = sup_interval(BinaryRows(f, y))
        assert found.value == pytest.approx(expected, rel=1e-10)
        assert found.sign * signed_sum(found, f, y) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("kind", ["continuous", "one decimal"])
def test_the_order_of_rows_changes_neither_value_nor_interval(kind, seed):
    rng = np.random.default_rng(seed)
    f = SCORES[kind](rng, 3000)
    y = rng.random(3000) < f
    first = sup_interval(BinaryRows(f, y))
    for order in (np.argsort(y), np.argsort(f), rng.permutation(3000)):
        again = sup_interval(BinaryRows(f[order], y[order]))
        assert (again.low, again.high, again.sign) == (first.low, first.high, first.sign)
        assert again.value == pytest.approx(first.value, abs=1e-14)


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
@pytest.mark.parametrize("kind", SCORES)
def test_other_array_libraries_give_the_same_interval(library, kind, seed):
    xp = pytest.importorskip(library)
    rng = np.random.default_rng(seed)
    for weighted in (False, True):
        f = SCORES[kind](rng, 200)
        y, w = rng.random(200) < 0.4, rng.random(200) if weighted else None
        host = sup_interval(BinaryRows(f, y, w))
        device = sup_interval(BinaryRows(xp.asarray(f), xp.asarray(y), None if w is None else xp.asarray(w)))
        assert device.value == pytest.approx(host.value, abs=1e-14)
        assert (device.low, device.high, device.sign) == pytest.approx(
            (host.low, host.high, host.sign), nan_ok=True
        )


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", ["continuous", "one decimal"])
def test_many_rows_of_other_array_libraries_give_the_same_interval(library, kind, seed):
    rng = np.random.default_rng(seed)
    f = SCORES[kind](rng, 100_001)
    y = rng.random(f.size) < f
    host, device = (
        sup_interval(BinaryRows(f, y)),
        sup_interval(BinaryRows(move(f, library), move(y, library))),
    )
    assert device.value == pytest.approx(host.value, abs=1e-14)
    assert (device.low, device.high, device.sign) == pytest.approx((host.low, host.high, host.sign))


def test_a_float32_softmax_one_unit_above_one_is_read_as_one():
    f = np.array([np.nextafter(np.float32(1), np.float32(2)), 0.5], dtype=np.float32)
    assert sup_interval(BinaryRows(f, np.array([True, True]))).value == 0.25
