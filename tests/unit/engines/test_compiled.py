"""Compiled kernels against their twins in numpy: counts bit for bit, sums to rounding, the same refusals."""

import math
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from calipers.arrays import compiled as choice
from calipers.arrays.compiled import are_in_unit, are_probabilities, columns_of
from calipers.engines import ArraySource, FileSource, measure
from calipers.exceptions import InputError
from calipers.inference import Moments, ShareCounts
from calipers.inputs import sets_at
from calipers.inputs.files import ColumnChoice
from calipers.metrics.contributions import criterion_rows
from calipers.metrics.criteria import SHARES
from calipers.metrics.criteria_states import compiled_moments
from calipers.metrics.reliability.block_scores import impossible_rows
from calipers.metrics.reliability.score_buckets import BucketSums, EqualBuckets, Grid
from calipers.metrics.row_scores import (
    LOG_LOSS_FLOOR,
    brier_rows,
    brier_scale,
    is_at_floor,
    log_loss_rows,
    stated_probability,
)

compiled = pytest.importorskip("calipers.arrays.compiled_kernels", reason="numba is not installed")
KINDS = (np.float32, np.float64)
# Below, at and beyond the rows of one strip; odd and even numbers of columns.
SHAPES = ((1, 2), (7, 3), (2047, 4), (2048, 5), (2049, 10), (6001, 3), (300, 1))


def table(n, k, kind, *, seed=0, tied=False):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(k, 0.7), n)
    if tied:
        P = np.round(P * 4) / 4
    return np.asfortranarray(P.astype(kind)), rng.integers(0, k, n)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_criteria_are_those_of_the_rows(n, k, kind, tied):
    p, codes = table(n, k, kind, tied=tied)
    assert_moments_of_rows(p, codes, 0.25)


def assert_moments_of_rows(p, codes, alpha):
    found = compiled_moments(p, codes, alpha, compiled)
    rows = criterion_rows(p, codes, sets_at(p, alpha))
    assert set(found) == set(rows)
    for name, x in rows.items():
        exact = Moments.of(np.asarray(x))
        assert found[name].n == exact.n
        assert found[name].mean == pytest.approx(exact.mean, rel=1e-13, abs=1e-15), name
        assert found[name].squares == pytest.approx(exact.squares, rel=1e-9, abs=1e-13), name
        if name in SHARES:  # counts that pass through a mean are whole again
            assert ShareCounts.of_moments(found[name]).hits[0] == x.sum(), name


def test_a_level_for_every_label_counts_the_label_by_its_own_level():
    assert_moments_of_rows(*table(5000, 4, np.float64), [0.05, 0.1, 0.3, 0.6])


def test_a_criterion_without_spread_has_squares_of_exactly_zero():
    p = np.asfortranarray(np.tile([0.1, 0.2, 0.7], (5000, 1)))
    found = compiled_moments(p, np.zeros(5000, dtype=np.int64), 0.1, compiled)
    assert {m.squares for m in found.values()} == {0.0}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_the_most_probable_label_is_the_first_of_tied_ones(n, k, kind, tied):
    P, codes = table(n, k, kind, tied=tied)
    top, label = np.empty(n, dtype=kind), np.empty(n, dtype=np.int32)
    compiled.find_top(columns_of(P), top, label)
    assert (label == P.argmax(axis=1)).all()
    assert (top == P.max(axis=1)).all()
    own = np.empty(n, dtype=kind)
    compiled.gather(columns_of(P), codes, 0, own)
    assert (own == P[np.arange(n), codes]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_proper_scores_are_those_of_the_rows(n, k, kind):
    P, codes = table(n, k, kind)
    if n > 4:
        P[3], codes[3] = np.eye(k, dtype=kind)[0], k - 1  # what happened was stated with probability 0
        P[4], codes[4] = P[3], 0
    stated, moments = stated_probability(P, codes), np.zeros((2, 3))
    rows = log_loss_rows(stated), brier_rows(P, stated)
    floored = compiled.add_scores(columns_of(P), codes, LOG_LOSS_FLOOR, brier_scale(k), moments)
    assert floored == is_at_floor(rows[0]).sum() == (n > 4 and k > 1)
    for found, row in zip(moments.tolist(), rows, strict=True):
        exact = Moments.of(row)
        assert found == pytest.approx([exact.n, exact.mean, exact.squares], rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "k"), [(1, 2), (2049, 4), (6001, 3)])
def test_only_tables_that_the_check_takes_pass_unseen(n, k, kind):
    P, _ = table(n, k, kind)
    assert are_probabilities(P, compiled, 1e-3)
    assert are_in_unit(P, compiled)
    for wrong in (np.nan, np.inf, -1e-3, 1.5):
        for row in {0, n // 2, n - 1}:
            broken = P.copy(order="F")
            broken[row, k - 1] = wrong
            assert not are_probabilities(broken, compiled, 1e-3), (wrong, row)
            assert not are_in_unit(broken, compiled), (wrong, row)
    shifted = P.copy(order="F")
    shifted[0, 0] += kind(0.01)
    assert not are_probabilities(shifted, compiled, 1e-3)


def test_a_probability_above_one_is_seen_although_the_row_sums_to_one():
    P = np.asfortranarray(np.array([[1.0005, 0.0, 0.0], [0.2, 0.3, 0.5]]))
    assert not are_probabilities(P, compiled, 1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_buckets_are_those_of_the_rows(kind):
    place = EqualBuckets(256)
    rng = np.random.default_rng(3)
    f = np.concatenate([rng.random(5000), [0.0, 1.0, 0.0, 1.0, -0.0, 1e-30], np.full(50, 0.25)]).astype(kind)
    y = rng.random(f.size) < 0.5
    found, exact = BucketSums(256), BucketSums(256)
    impossible = compiled.add_to_buckets(f, y, found.table)
    rows = np.minimum(f.astype(float) + 0.0, 1.0), y, None
    exact.add(place, rows)
    np.testing.assert_allclose(found.table, exact.table, rtol=1e-12, atol=1e-12)
    assert (found.sums[2] == exact.sums[2]).all()
    assert (found.sums[4] == exact.sums[4]).all()
    assert (found.low == exact.low).all()
    assert (found.high == exact.high).all()
    assert impossible == impossible_rows(rows[0], y)
    again = BucketSums(256)
    again.add(place, rows, compiled)
    np.testing.assert_allclose(again.table, exact.table, rtol=1e-12, atol=1e-12)


def test_rows_near_open_buckets_are_found_in_order():
    rng = np.random.default_rng(4)
    f, near = np.append(rng.random(3000), 1.0), rng.random(64) < 0.3
    room = np.empty(f.size + 1, dtype=np.int64)
    found = room[: compiled.rows_near(f, near, room)]
    assert (found == np.flatnonzero(near[EqualBuckets(64)(f)])).all()


def test_an_equal_bucket_is_touched_when_it_holds_a_marked_one():
    cuts = np.array([0.3, 0.31, 0.9])
    edges, grid = np.unique(np.concatenate([np.arange(1, 8) / 8, cuts])), Grid(EqualBuckets(8), cuts)
    assert grid.n == edges.size + 1
    for marked in range(grid.n):
        is_open = np.arange(grid.n) == marked
        middle = np.concatenate([[0.0], edges, [1.0]])[marked : marked + 2].mean()
        assert np.flatnonzero(grid.touched(is_open)).tolist() == [int(middle * 8)]
        assert grid(np.array([middle])).tolist() == [marked]
    # An edge belongs to the bucket above it.
    assert (grid(edges) == np.arange(1, grid.n)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_buckets_of_the_ease_are_those_of_numpy_to_the_last_bit(kind):
    rng = np.random.default_rng(9)
    ease = np.concatenate([rng.normal(size=20_000), np.linspace(-3, 3, 5000)]).astype(kind)
    low, high = float(ease.min()), float(ease.max())
    place = EqualBuckets(1 << 16, low, high)
    counts, lows, highs = np.zeros(place.n), np.full(place.n, np.inf), np.full(place.n, -np.inf)
    compiled.count_in_buckets(ease, low, place.scale, counts, lows, highs)
    bucket = place(ease.astype(float))
    assert (counts == np.bincount(bucket, minlength=place.n)).all()
    filled = np.flatnonzero(counts)
    assert (place(lows[filled]) == filled).all()
    assert (place(highs[filled]) == filled).all()
    assert (lows.min(), highs.max()) == (low, high)
    table = rng.integers(-1, 40, 1 << 16).astype(np.int32)
    found, room = np.empty(ease.size, dtype=np.int64), np.empty(ease.size + 1, dtype=np.int64)
    n = compiled.look_up_buckets(ease, low, place.scale, table, found, room)
    assert (found == table[bucket]).all()
    assert (room[:n] == np.flatnonzero(found < 0)).all()


def test_logarithms_are_right_to_two_units_in_the_last_place():
    rng = np.random.default_rng(10)
    ends = [1.0, np.nextafter(1.0, 0.0), 0.5, 0.7071067811865475, 0.7071067811865476, 1e-45, 2.3e-308]
    x = np.concatenate([rng.random(5000), 10.0 ** rng.uniform(-307, 0, 5000), ends])
    found = np.empty_like(x)
    compiled.minus_logs(x, x.size, found)
    exact = np.array([-math.log(value) for value in x])
    assert (np.abs(found - exact) <= 2 * np.spacing(np.abs(exact))).all()


def test_pairs_are_counted():
    rng = np.random.default_rng(5)
    a, b = rng.random(4000) < 0.3, rng.integers(0, 7, 4000)
    counts = np.zeros(14)
    compiled.count_pairs(a.view(np.uint8), b, 7, counts)
    assert (counts == np.bincount(7 * a + b, minlength=14)).all()


METRICS = (
    "coverage",
    "sscv",
    "escv",
    "coverage_gap",
    "efficiency",
    "proper_scores",
    "calibration_error",
    "t_cv",
)
FIELDS = ("value", "low", "high", "p_value", "null_low", "null_high", "n", "std_error")


def streamed_rows(n=9000, kind=np.float32):
    rng = np.random.default_rng(6)
    P = rng.dirichlet(np.ones(5), n).astype(kind)
    sets = P > 0.15
    p_values = rng.random((n, 5)).astype(kind)
    y = np.array([rng.choice(5, p=p / p.sum()) for p in P.astype(float)])
    columns = {"y_true": y, "ease": rng.random(n).astype(kind), "group": rng.integers(0, 4, n)}
    columns |= {
        f"{stem}_{k}": M[:, k] for stem, M in (("p", P), ("set", sets), ("pv", p_values)) for k in range(5)
    }
    return columns


def in_memory(columns):
    wide = {name: np.stack([columns[f"{stem}_{k}"] for k in range(5)], axis=1)
            for name, stem in (("probabilities", "p"), ("sets", "set"), ("p_values", "pv"))}  # fmt: skip
    narrow = {"y_true": columns["y_true"], "ease": columns["ease"], "groups": columns["group"]}
    return ArraySource(wide | narrow, piece_rows=2500)


@pytest.mark.parametrize("where", ["files", "arrays"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_answers_the_same_with_and_without_compiled_kernels(where, kind, tmp_path, monkeypatch):
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._SMALL", 100)
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._PACKED_ROWS", 0)
    columns = streamed_rows(kind=kind)
    pl.DataFrame(columns).write_parquet(tmp_path / "rows.parquet", row_group_size=1700)
    choice = ColumnChoice(p_values=("pv_*",), probabilities=("p_*",))
    source = FileSource(str(tmp_path / "rows.parquet"), choice, piece_rows=4000)
    options = {name: {"random_state": 0} for name in ("t_cv", "calibration_error", "coverage_gap")}
    answers = []
    for many in (10**9, 1):
        monkeypatch.setattr("calipers.engines.sources.MANY_ROWS", many)
        rows = source if where == "files" else in_memory(columns)
        answers.append(measure(rows, METRICS, alpha=0.1, options=options))
    plain, fused = answers
    assert list(plain) == list(fused)
    for name, estimate in plain.items():
        for field in FIELDS:
            a, b = getattr(estimate, field), getattr(fused[name], field)
            assert (a is None) == (b is None), (name, field)
            assert a is None or b == pytest.approx(a, rel=1e-11, abs=1e-13, nan_ok=True), (name, field)


def test_a_large_run_refuses_bad_rows_in_the_same_words(tmp_path, monkeypatch):
    columns = streamed_rows(3000)
    columns["pv_2"] = columns["pv_2"].copy()
    columns["pv_2"][1234] = 1.25
    pl.DataFrame(columns).write_parquet(tmp_path / "rows.parquet")
    choice = ColumnChoice(p_values=("pv_*",), probabilities=("p_*",))
    said = []
    for many in (10**9, 1):
        monkeypatch.setattr("calipers.engines.sources.MANY_ROWS", many)
        with pytest.raises(InputError, match="1.25") as caught:
            measure(FileSource(str(tmp_path / "rows.parquet"), choice), ["efficiency"])
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_a_large_run_without_numba_is_one_of_numpy(monkeypatch):
    columns = streamed_rows(3000)
    expected = measure(in_memory(columns), ["efficiency", "coverage"])
    monkeypatch.setattr("calipers.engines.sources.MANY_ROWS", 1)
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "calipers.arrays.compiled_kernels")
    monkeypatch.delattr("calipers.arrays.compiled_kernels")
    choice.kernels.cache_clear()
    try:
        assert choice.kernels() is None
        assert measure(in_memory(columns), ["efficiency", "coverage"]) == expected
    finally:
        choice.kernels.cache_clear()


def test_small_runs_do_not_load_numba():
    words = (
        "import sys, numpy as np; from calipers.engines import ArraySource, measure; "
        "measure(ArraySource({'y_true': np.zeros(9), 'intervals': np.zeros((9, 2))})); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
