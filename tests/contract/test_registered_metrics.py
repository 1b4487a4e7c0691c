"""What every metric in the registry owes its users; a metric without an example here fails."""

import inspect

import numpy as np
import pytest

import calipers.metrics
from calipers.exceptions import CalipersError
from calipers.metrics import MetricEntry, metric_entries
from calipers.results import Estimate, EstimateTable
from tests.contract.examples import EXAMPLES
from tests.contract.libraries import LIBRARIES, move

ENTRIES = metric_entries()
# Public names of the metrics room that are not metrics: they prepare inputs or describe metrics.
NOT_METRICS = {
    "MetricEntry",
    "cumulative_difference_curve",
    "reliability_curve",
    "efficiency_curve",
    "is_covered",
    "metric_entries",
    "metric_entry",
    "selective_risk",
    "true_rank",
}
FIELDS = ("value", "std_error", "low", "high", "p_value", "null_low", "null_high", "n")

each_metric = pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)


def run(entry: MetricEntry, data: dict, options: dict):
    seeded = {"random_state": 7} if entry.randomized else {}
    return entry.function(**data, **options, **seeded)


def estimates(result) -> dict[str, Estimate]:
    return dict(result) if isinstance(result, EstimateTable) else {result.name: result}


def assert_same(left, right, *, rel=1e-9, fields=FIELDS):
    left, right = estimates(left), estimates(right)
    assert list(left) == list(right)
    for name in left:
        for field in fields:
            a, b = getattr(left[name], field), getattr(right[name], field)
            assert (a is None) == (b is None), (name, field, a, b)
            if a is not None:
                assert a == pytest.approx(b, rel=rel, abs=1e-12, nan_ok=True), (name, field)


def test_every_public_metric_is_registered():
    public = set(calipers.metrics.__all__) - NOT_METRICS
    assert public == {entry.name for entry in ENTRIES}


def test_every_registered_metric_has_an_example():
    assert {entry.name for entry in ENTRIES} == set(EXAMPLES)


@each_metric
def test_the_result_is_what_the_entry_says(entry):
    result = run(entry, *EXAMPLES[entry.name](np.random.default_rng(0), 200))
    assert isinstance(result, EstimateTable if entry.returns == "table" else Estimate)
    for e in estimates(result).values():
        assert e.method, f"{e.name} does not say how it was made"
        value = float(e)
        assert np.isnan(value) or entry.bounds[0] - 1e-12 <= value <= entry.bounds[1] + 1e-12
        for field in ("std_error", "low", "p_value", "value"):
            if getattr(e, field) is None:
                assert e.reason, f"{e.name} has no {field} and does not say why"


@each_metric
def test_the_same_seed_gives_the_same_answer_and_inputs_are_not_changed(entry):
    data, options = EXAMPLES[entry.name](np.random.default_rng(3), 120)
    before = {name: np.array(values, copy=True) for name, values in data.items()}
    assert_same(run(entry, data, options), run(entry, data, options), rel=0)
    for name, values in data.items():
        np.testing.assert_array_equal(np.asarray(values), before[name])


@pytest.mark.parametrize("entry", [e for e in ENTRIES if not e.randomized], ids=lambda e: e.name)
def test_float32_inputs_give_the_same_answer(entry):
    data, options = EXAMPLES[entry.name](np.random.default_rng(6), 100)
    single = {k: v.astype(np.float32) if np.asarray(v).dtype == np.float64 else v for k, v in data.items()}
    double = {k: v.astype(np.float64) if np.asarray(v).dtype == np.float32 else v for k, v in single.items()}
    assert_same(run(entry, single, options), run(entry, double, options), rel=1e-5)


@each_metric
def test_rows_of_different_lengths_are_refused(entry):
    data, options = EXAMPLES[entry.name](np.random.default_rng(8), 50)
    if len(data) < 2:
        return
    first = next(iter(data))
    shorter = data | {first: take(data[first], np.arange(49))}
    with pytest.raises(CalipersError, match="same length|one entry per row|must have"):
        run(entry, shorter, options)


@each_metric
def test_missing_numbers_are_refused(entry):
    data, options = EXAMPLES[entry.name](np.random.default_rng(9), 60)
    for name, values in data.items():
        broken = np.array(values, copy=True)
        if broken.dtype.kind != "f" or name == "X":
            continue
        broken[17] = np.nan
        with pytest.raises(CalipersError, match="NaN|missing|neither"):
            run(entry, data | {name: broken}, options)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.array_api], ids=lambda e: e.name)
def test_every_array_library_gives_the_same_numbers(entry, library):
    data, options = EXAMPLES[entry.name](np.random.default_rng(10), 100)
    moved = {name: move(values, library) for name, values in data.items()}
    assert_same(run(entry, data, options), run(entry, moved, options), rel=1e-9)


@each_metric
def test_options_are_keyword_only_and_data_positional(entry):
    kinds = {p.name: p.kind for p in inspect.signature(entry.function).parameters.values()}
    positional = [name for name, kind in kinds.items() if kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert tuple(positional) == entry.inputs


def take(values, rows):
    return values.iloc[rows] if hasattr(values, "iloc") else np.asarray(values)[rows]
