"""One definition per number: weights mean what the registry says, and blocks of rows give what arrays give.

Driven by the registry: a new metric is held to all of it, or its entry names the exception.
"""

import inspect
from itertools import pairwise

import numpy as np
import pytest

from calipers.engines import Rows, state_of
from calipers.exceptions import InputError
from calipers.metrics import metric_entries
from calipers.results import EstimateTable
from tests.contract.examples import EXAMPLES
from tests.unit.engines.passes import finished_over

FIELDS = ("value", "std_error", "low", "high", "p_value", "null_low", "null_high", "n")
N = 150
ENTRIES = metric_entries()
WEIGHTED = [e for e in ENTRIES if e.weighted]
# Their folds follow the order of the rows: in another order, or with copies, they are equal in law only.
LEARNED = {"ert", "ert_table"}
SLOW = {
    *LEARNED,
    "failing_regions",
    "worst_slab_coverage",
    "difficulty_concordance",
    "smooth_calibration_error",
}
BLOCKS = (1, 7, 100)


def of(entries):
    return pytest.mark.parametrize("entry", entries, ids=lambda e: e.name)


def example(entry, n=N):
    data, options = EXAMPLES[entry.name](np.random.default_rng(4), n)
    seed = {"random_state": 7} if entry.randomized else {}
    # Nothing here depends on the number of draws.
    few = {"n_draws": 29} if entry.name == "smooth_calibration_error" else {}
    return {name: np.asarray(values) for name, values in data.items()}, options | seed | few


def weights_of(kind, n=N):
    rng = np.random.default_rng(5)
    whole, importance = rng.integers(1, 4, n).astype(float), rng.random(n) + 0.1
    return {"none": None, "whole": whole, "importance": importance}[kind]


def in_memory(entry, data, options, weights=None):
    given = {} if weights is None else {"sample_weight": weights}
    return entry.function(**data, **options, **given)


def streamed(entry, data, options, n_blocks, weights=None, seed=0):
    """The finished state of rows in another order, cut at random into so many blocks."""
    rng, n = np.random.default_rng(seed), len(next(iter(data.values())))
    columns = data if weights is None else data | {"sample_weight": weights}
    order = rng.permutation(n)
    cuts = [0, *np.sort(rng.choice(np.arange(1, n), n_blocks - 1, replace=False)), n]
    wide = next((data[r] for r in ("probabilities", "p_values") if r in data and data[r].ndim == 2), None)
    shared = {
        "classes": None if wide is None else np.arange(wide.shape[1]),
        "alpha": options.get("alpha", 0.1),
    }
    blocks = [
        Rows({name: values[order[a:b]] for name, values in columns.items()}, **shared)
        for a, b in pairwise(cuts)
    ]
    return finished_over(state_of(entry.name, **options), blocks)


def estimates(result):
    return dict(result) if isinstance(result, EstimateTable) else {result.name: result}


def assert_same(found, expected, *, fields=FIELDS, rel=1e-9):
    found, expected = estimates(found), estimates(expected)
    assert list(found) == list(expected)
    for name, e in found.items():
        for field in fields:
            a, b = getattr(e, field), getattr(expected[name], field)
            assert (a is None) == (b is None), (name, field, a, b)
            if a is not None:
                assert a == pytest.approx(b, rel=rel, abs=1e-12, nan_ok=True), (name, field)


@of([e for e in WEIGHTED if not e.splits_rows])
def test_whole_weights_are_repeated_rows_in_every_field(entry):
    data, options = example(entry)
    weights = weights_of("whole")
    times = weights.astype(int)
    repeated = {name: np.repeat(values, times, axis=0) for name, values in data.items()}
    assert_same(in_memory(entry, data, options, weights), in_memory(entry, repeated, options))


@of(WEIGHTED)
def test_rows_of_weight_zero_are_not_there(entry):
    data, options = example(entry)
    for kind in ("whole", "importance"):
        if kind == "importance" and entry.importance == "refused":
            continue
        weights = weights_of(kind)
        weights[::5] = 0.0
        there = np.flatnonzero(weights)
        kept = {name: values[there] for name, values in data.items()}
        assert_same(in_memory(entry, data, options, weights), in_memory(entry, kept, options, weights[there]))


@of([e for e in WEIGHTED if e.importance != "refused"])
@pytest.mark.parametrize("factor", [1 / 600, 7.3])
def test_the_scale_of_weights_changes_no_point_estimate(entry, factor):
    data, options = example(entry)
    importance, whole = weights_of("importance"), weights_of("whole")
    # Importance weights of any scale give every number again.
    assert_same(
        in_memory(entry, data, options, factor * importance), in_memory(entry, data, options, importance)
    )
    if not entry.scaled:
        scaled, plain = (in_memory(entry, data, options, w) for w in (factor * whole, whole))
        assert_same(scaled, plain, fields=("value",))


@of([e for e in WEIGHTED if e.importance == "refused"])
def test_importance_weights_are_refused_where_rows_are_drawn(entry):
    data, options = example(entry)
    with pytest.raises(InputError, match="whole numbers"):
        in_memory(entry, data, options, weights_of("importance"))


@of([e for e in WEIGHTED if e.importance != "refused"])
def test_importance_weights_have_no_test_and_say_so(entry):
    data, options = example(entry)
    plain = estimates(in_memory(entry, data, options))
    tested = {name for name, e in plain.items() if e.p_value is not None}
    weighted = estimates(in_memory(entry, data, options, weights_of("importance")))
    if entry.name == "failing_regions":  # weights lead to other rules, all of which would be tested
        tested = set(weighted)
    for name, e in weighted.items():
        if entry.importance == "tested":
            assert e.p_value is not None
            continue
        # The band of an excess risk is a bound for every classifier and any weights.
        bands = {None} if entry.name not in LEARNED else {None, e.null_high}
        assert e.p_value is None
        assert {e.null_low, e.null_high} <= bands
        assert e.reason
        assert name not in tested or "weights" in e.reason


@of(ENTRIES)
@pytest.mark.parametrize("kind", ["none", "whole", "importance"])
def test_blocks_of_rows_in_any_order_give_what_arrays_give(entry, kind):
    if kind != "none" and not entry.weighted:
        pytest.skip("takes no weights")
    if kind == "importance" and entry.importance == "refused":
        pytest.skip("importance weights are refused")
    data, options = example(entry)
    weights = weights_of(kind)
    expected = in_memory(entry, data, options, weights)
    # A learner's folds follow the order of the rows.
    fields = ("value", "n") if entry.name in LEARNED else FIELDS
    for n_blocks in (7,) if entry.name in SLOW else BLOCKS:
        assert_same(streamed(entry, data, options, n_blocks, weights, n_blocks), expected, fields=fields)


@of([e for e in ENTRIES if e.name not in LEARNED])
def test_the_order_of_rows_changes_no_field(entry):
    data, options = example(entry)
    order = np.random.default_rng(2).permutation(N)
    shuffled = {name: values[order] for name, values in data.items()}
    assert_same(in_memory(entry, shuffled, options), in_memory(entry, data, options))


@of([e for e in WEIGHTED if e.importance != "refused" and e.name not in LEARNED])
def test_one_block_with_an_importance_weight_decides_for_all(entry):
    # Whole weights everywhere but in one row: per block most look like repetitions.
    data, options = example(entry)
    weights = weights_of("whole")
    weights[3] = 1.5
    assert_same(streamed(entry, data, options, 7, weights), in_memory(entry, data, options, weights))


@of([e for e in ENTRIES if "confidence" in inspect.signature(e.function).parameters])
def test_confidence_is_respected_by_every_interval(entry):
    data, options = example(entry)
    wide, narrow = (
        estimates(in_memory(entry, data, options | {"confidence": level})) for level in (0.99, 0.6)
    )
    streams = estimates(streamed(entry, data, options | {"confidence": 0.6}, 3))
    for name, e in narrow.items():
        if e.low is None or name not in wide or wide[name].low is None:
            continue
        assert (e.confidence, wide[name].confidence) == (0.6, 0.99), name
        assert wide[name].low <= e.low, name
        assert e.high <= wide[name].high, name
        assert wide[name].high - wide[name].low > e.high - e.low or e.high == e.low, name
        if entry.name not in LEARNED:
            assert (streams[name].low, streams[name].high) == pytest.approx((e.low, e.high)), name


def test_intervals_hold_for_weights_that_go_with_the_outcome():
    """A check of the linearised error bars: 95 % intervals of a weighted mean, by simulation."""
    from calipers.metrics import deficit

    rng, held, runs = np.random.default_rng(0), 0, 400
    for _ in range(runs):
        rank = 1 + rng.poisson(2.0, 200)
        weights = rng.gamma(4.0, size=200) * (0.2 + rank)
        e = deficit(rank, np.ones(200), sample_weight=weights)
        # E[(0.2 + r) (r - 1)] / E[0.2 + r] with r - 1 = k ~ Poisson(2): (1.2 * 2 + 6) / 3.2.
        held += e.low <= (1.2 * 2 + 6) / 3.2 <= e.high
    assert held / runs > 0.91
