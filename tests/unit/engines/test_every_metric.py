"""Every registered metric, however its rows are split and ordered."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calipers.engines import Rows, merge_rules, state_of
from calipers.exceptions import InputError
from calipers.metrics import metric_entries, metric_entry
from tests.contract.examples import EXAMPLES
from tests.unit.engines.passes import finished_over

N = 160
FIELDS = ("value", "low", "high", "p_value", "null_low", "null_high", "n", "std_error")
# What a declared rule may become: counts and moments add, sketches need passes or bins.
KINDS = {
    "CountState": "counts", "GatherState": "gather", "MomentState": "moments", "LabelState": "moments",
    "DifferenceState": "moments", "CriteriaState": "moments", "BinState": "bins", "ScoreState": "moments",
    "TimeState": "counts", "QuantileState": "counts",
}  # fmt: skip
SLOW = {"ert", "ert_table", "failing_regions", "worst_slab_coverage", "difficulty_concordance"}


def example(name):
    data, options = EXAMPLES[name](np.random.default_rng(7), N)
    if metric_entry(name).randomized:
        options = options | {"random_state": 0}
    return {key: np.asarray(value) for key, value in data.items()}, options


def classes_of(data):
    wide = next((data[r] for r in ("probabilities", "p_values") if r in data and data[r].ndim == 2), None)
    return None if wide is None else np.arange(wide.shape[1])


def finished(name, data, options, cuts, order):
    """The state of shuffled rows, cut at the given places, its parts merged backwards, pass after pass."""
    shuffled = {key: value[order] for key, value in data.items()}
    bounds = [0, *sorted(cuts), N]
    blocks = [
        Rows(
            {k: v[a:b] for k, v in shuffled.items()},
            classes=classes_of(data),
            alpha=options.get("alpha", 0.1),
        )
        for a, b in pairwise(bounds)
        if b > a
    ]
    return finished_over(state_of(name, **options), blocks)


def fields(result):
    table = dict(result) if hasattr(result, "items") else {"": result}
    return {(key, f): getattr(e, f) for key, e in table.items() for f in FIELDS}


def assert_same(left, right):
    left, right = fields(left), fields(right)
    assert list(left) == list(right)
    for key, a in left.items():
        assert (a is None) == (right[key] is None), key
        if a is not None:
            assert a == pytest.approx(right[key], rel=1e-11, abs=1e-12, nan_ok=True), key


@pytest.mark.parametrize("name", [entry.name for entry in metric_entries()])
def test_no_split_and_no_order_changes_any_metric(name):
    data, options = example(name)
    once = finished(name, data, options, [], np.arange(N))

    @given(cuts=st.lists(st.integers(1, N - 1), max_size=5), seed=st.integers(0, 2**16))
    @settings(max_examples=2 if name in SLOW else 8, deadline=None, derandomize=True)
    def check(cuts, seed):
        order = np.random.default_rng(seed).permutation(N)
        assert_same(finished(name, data, options, cuts, order), once)

    check()


def test_every_declared_rule_is_kept():
    for name, rule in merge_rules().items():
        state = state_of(name, **example(name)[1])
        assert rule == KINDS.get(type(state).__name__, "passes"), name


def test_unknown_options_of_a_metric_are_refused():
    with pytest.raises(InputError, match="t_cv over blocks of rows takes .* got 'n_bin'"):
        state_of("t_cv", n_bin=3)


def test_gathering_has_a_limit_that_is_named(monkeypatch):
    monkeypatch.setattr("calipers.metrics.states.all_rows.MAX_ROWS", 100)
    data, options = example("calibration_slope")
    with pytest.raises(InputError, match="calibration_slope needs all rows at once .* more than 100"):
        finished("calibration_slope", data, options, [80], np.arange(N))
