"""Every way of walking gives the same answer: few levels, many ties, sorted rows, buckets."""

import numpy as np
import pytest

from calipers.metrics.reliability import host_walk
from calipers.metrics.reliability.rows import BinaryRows
from calipers.metrics.reliability.worst_interval import sup_interval

N = 3 * (1 << 15) + 777


def plain(f, y, w=None):
    """Sort, cumulate, read at block ends."""
    w = np.ones(f.size) if w is None else w
    order = np.argsort(f)
    walk = np.cumsum((w * (y - f))[order])[np.append(np.diff(f[order]) > 0, True)]
    return (max(0.0, walk.max()) - min(0.0, walk.min())) / w.sum()


def scores(kind, rng):
    f = rng.random(N)
    if kind == "few levels":
        return np.round(f, 1)
    if kind == "few levels and a stranger":
        f = np.round(f, 1)
        f[-1] = 0.123
        return f
    if kind == "many ties":
        return np.round(f, 2)
    if kind == "sorted":
        return np.sort(f)
    if kind == "sorted with ties":
        return np.sort(np.round(f, 4))
    if kind == "sorted but for the last":
        return np.append(np.sort(f)[1:], 0.5)
    return f


KINDS = ["few levels", "few levels and a stranger", "many ties", "sorted", "sorted with ties",
         "sorted but for the last", "spread"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("slope", [1.0, 0.8])
def test_all_ways_agree_with_a_plain_sort(kind, weighted, slope, seed):
    rng = np.random.default_rng(seed)
    f = scores(kind, rng)
    y, w = rng.random(N) < slope * f, rng.random(N) if weighted else None
    found = sup_interval(BinaryRows(f, y, w))
    assert found.value == pytest.approx(plain(f, y, w), rel=1e-10)
    inside = (f > found.low) & (f <= found.high)
    weights = np.ones(N) if w is None else w
    signed = found.sign * np.sum((weights * (y - f))[inside]) / weights.sum()
    assert signed == pytest.approx(found.value, rel=1e-10)


def test_each_kind_takes_the_way_it_is_meant_for(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    taken = []
    for name in ("_walk_levels", "_extremes_by_buckets"):
        real = getattr(host_walk, name)
        monkeypatch.setattr(
            host_walk, name, lambda *a, _real=real, _name=name: taken.append(_name) or _real(*a)
        )
    for kind in KINDS:
        taken.append(kind)
        f = scores(kind, rng)
        sup_interval(BinaryRows(f, rng.random(N) < f))
    assert taken == [
        "few levels", "_walk_levels", "few levels and a stranger", "_walk_levels", "many ties", "_walk_levels",
        "sorted", "sorted with ties", "sorted but for the last", "_extremes_by_buckets",
        "spread", "_extremes_by_buckets",
    ]  # fmt: skip


def test_a_level_stated_rightly_steps_by_exactly_zero():
    # 100 of 1000 at 0.1 summed row by row leaves rounding noise; counts do not.
    f = np.repeat([0.1, 0.3], 1000)
    y = np.concatenate([np.arange(1000) < 100, np.arange(1000) < 300])
    assert sup_interval(BinaryRows(f, y)).value == 0.0
