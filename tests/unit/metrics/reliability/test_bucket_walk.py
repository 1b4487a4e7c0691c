"""Every way of walking gives the same answer: few levels, many ties, sorted rows, buckets."""

import numpy as np
import pytest

from calipers.metrics.reliability import bucket_walk
from calipers.metrics.reliability.binary_rows import BinaryRows
from calipers.metrics.reliability.block_scores import Tally
from calipers.metrics.reliability.bucket_walk import sup_interval, walk_of_rows
from calipers.metrics.reliability.calibration_states import CalibrationOptions
from calipers.metrics.reliability.cumulative_differences import table_of_rows

N = 2 * (1 << 16) + 777


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
    ways = {"_count_levels": bucket_walk, "extremes_of_sorted": bucket_walk, "CalibrationState": bucket_walk}
    for name, module in ways.items():
        real = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *a, _real=real, _name=name, **k: taken.append(_name) or _real(*a, **k)
        )
    for kind in KINDS:
        taken.append(kind)
        f = scores(kind, rng)
        sup_interval(BinaryRows(f, rng.random(N) < f))
    assert taken == [
        "few levels", "_count_levels", "few levels and a stranger", "_count_levels", "CalibrationState",
        "many ties", "CalibrationState", "sorted", "extremes_of_sorted", "sorted with ties", "extremes_of_sorted",
        "sorted but for the last", "extremes_of_sorted", "CalibrationState", "spread", "CalibrationState",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "kind", [*KINDS, "narrow", "few events", "whole weights", "importance weights", "soft"]
)
def test_every_way_finds_all_that_sorted_rows_show(kind, seed):
    """Error, interval, moments and levels, against the table of all scores."""
    rng = np.random.default_rng(seed)
    f, w = scores(kind, rng), None
    if kind == "narrow":
        f = 0.5 + 1e-7 * rng.random(N)
    elif kind == "few events":
        f = 1e-4 * rng.random(N) ** 3
    elif kind == "whole weights":
        w = rng.integers(1, 4, N).astype(float)
    elif kind == "importance weights":
        w = rng.random(N)
    y = np.clip(f + 0.1 * rng.normal(size=N), 0, 1) if kind == "soft" else rng.random(N) < 0.9 * f
    rows, options = BinaryRows(f, y, w), CalibrationOptions()
    walk, table = walk_of_rows(rows, options), table_of_rows(rows)
    found = table.sup_interval()
    assert walk.found.value == pytest.approx(found.value, rel=1e-10)
    assert (walk.found.low, walk.found.high, walk.found.sign) == (found.low, found.high, found.sign)
    expected = table.moments(found, tally_of(rows))
    for field in (
        "total",
        "rows",
        "second_moment",
        "variance",
        "inside",
        "stated",
        "happened",
        "inside_square",
    ):
        if (kind, field) != ("soft", "variance"):  # soft outcomes have no Bernoulli variance
            assert getattr(walk.moments, field) == pytest.approx(getattr(expected, field), rel=1e-9), field
    assert walk.soft == (kind == "soft")
    if kind in ("few levels", "few levels and a stranger", "many ties"):
        assert not walk.levels.pooled
        for field in ("values", "trials", "hits"):
            assert (getattr(walk.levels, field) == getattr(table.levels(), field)).all()
    elif kind == "few events":
        assert walk.levels.pooled
        assert walk.levels.trials.sum() == N
        # No cell holds much more than its share of the variance.
        assert walk.levels.unit_variance.max() < 2 * walk.levels.variance / 500
    else:
        assert walk.levels is None


def tally_of(rows):
    tally = Tally()
    for block in rows.blocks():
        tally.add(block)
    return tally


def test_crowded_ties_are_told_apart_by_further_passes():
    # 500 distinct scores inside one bucket: the exact test needs each of them.
    rng = np.random.default_rng(0)
    f = 0.5 + 1e-9 * rng.integers(0, 500, N)
    walk = walk_of_rows(BinaryRows(f, rng.random(N) < f), CalibrationOptions())
    assert walk.levels.size == 500
    assert not walk.levels.pooled


def test_a_level_stated_rightly_steps_by_exactly_zero():
    # 100 of 1000 at 0.1 summed row by row leaves rounding noise; counts do not.
    f = np.repeat([0.1, 0.3], 1000)
    y = np.concatenate([np.arange(1000) < 100, np.arange(1000) < 300])
    assert sup_interval(BinaryRows(f, y)).value == 0.0
