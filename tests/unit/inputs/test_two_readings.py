"""What could be read in two ways is refused with the remedy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calipers
from calipers.calibration import IsotonicCalibrator
from calipers.engines import ArraySource, measure
from calipers.exceptions import InputError, InputTypeError
from calipers.metrics import calibration_error, coverage, coverage_gap, efficiency

SETS = np.array([[True, False, False], [False, True, False], [False, True, False]])


def test_labels_without_a_zero_could_be_counted_from_one():
    with pytest.raises(
        InputError, match=r"classes 0 to 2 or 1 to 3. Pass classes=range\(3\) or classes=range\(1, 4\)"
    ):
        coverage([1, 2, 2], SETS)
    assert float(coverage([1, 2, 2], SETS, classes=range(1, 4))) == 1.0
    assert float(coverage([1, 2, 2], SETS, classes=range(3))) == 0.0
    assert float(coverage([0, 1, 1], SETS)) == 1.0


def test_of_two_classes_the_label_one_is_the_second():
    assert float(coverage([1, 1], [[False, True], [True, False]])) == 0.5


def test_streamed_labels_are_looked_at_together():
    rows = ArraySource(
        {"y_true": np.array([1, 2, 0, 1]), "sets": np.eye(3, dtype=bool)[[1, 2, 0, 0]]}, piece_rows=1
    )
    assert measure(rows, ["coverage"])["coverage"].value == 0.75
    rows = ArraySource({"y_true": np.array([1, 2]), "sets": np.eye(3, dtype=bool)[[1, 2]]}, piece_rows=1)
    with pytest.raises(InputError, match="Pass classes"):
        measure(rows, ["coverage"])


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
@pytest.mark.parametrize("names", [["1", "2", "3"], ["cat", "dog", "eel"]])
def test_columns_of_a_frame_are_named_after_their_classes(frame, names):
    labels = [int(n) for n in names] if names[0] == "1" else names
    y, table = [labels[0], labels[1], labels[1]], frame(dict(zip(names, SETS.T, strict=True)))
    assert float(coverage(y, table)) == 1.0
    rows = ArraySource({"y_true": np.array(y), "sets": table})
    assert measure(rows, ["coverage"])["coverage"].value == 1.0


def test_an_audit_takes_the_classes_from_the_columns_too():
    rng = np.random.default_rng(0)
    P = pd.DataFrame(rng.dirichlet(np.ones(3), 60), columns=["a", "b", "c"])
    found = calipers.audit(rng.choice(["a", "b"], 60), probabilities=P, random_state=0)
    assert found.rows == 60


def test_default_names_of_columns_name_no_classes():
    with pytest.raises(InputError, match="Pass classes"):
        coverage([1, 2, 2], pd.DataFrame(SETS))


def test_probabilities_in_the_place_of_labels_are_refused():
    rng = np.random.default_rng(0)
    p = rng.random(50)
    y = (rng.random(50) < p).astype(int)
    with pytest.raises(InputError, match=r"swapped.*order is \(y_true, probabilities\)"):
        calibration_error(p, y)
    with pytest.raises(InputError, match=r"swapped.*order is \(probabilities, y\)"):
        IsotonicCalibrator().fit(y, p)


@pytest.mark.parametrize("groups", [["a", "b", "a"], [0, 1, 2]])
def test_groups_in_the_place_of_covered_are_refused(groups):
    with pytest.raises(InputError, match=r"swapped.*order is \(covered, groups\)"):
        coverage_gap(groups, [True, True, False], alpha=0.1)


def test_columns_of_pandas_belong_together_by_their_index():
    y = pd.Series([1, 0, 1], index=[0, 1, 2])
    p = pd.Series([0.9, 0.1, 0.8], index=[2, 1, 0])
    with pytest.raises(
        InputError, match=r"y_true and probabilities have different indexes \(first at row 0: 0 and 2\)"
    ):
        calibration_error(y, p)
    assert calibration_error(y, p.loc[y.index], random_state=0).value > 0
    assert calibration_error(y, p.to_numpy(), random_state=0).value > 0
    with pytest.raises(InputError, match="y_true and sample_weight"):
        calibration_error(y, p.to_numpy(), sample_weight=p)
    with pytest.raises(InputError, match="covered and groups have"):
        coverage_gap(y == 1, p, alpha=0.1)
    with pytest.raises(InputError, match="y_true and p_values"):
        efficiency(y, pd.DataFrame({"0": p, "1": p}))
    with pytest.raises(InputError, match="y_true and intervals"):
        calipers.audit(y.astype(float), intervals=pd.DataFrame({"lower": p, "upper": p + 1}))


def test_what_can_be_read_only_once_is_refused():
    with pytest.raises(
        InputTypeError, match=r"got generator, which can be read only once. Pass list\(probabilities\)"
    ):
        calibration_error([1, 0], (p for p in (0.5, 0.1)))


def test_a_single_value_is_no_column():
    with pytest.raises(InputError, match="y_true must have one entry per row, got a single value"):
        calibration_error(np.array(1), np.array(0.5))


@pytest.mark.parametrize("labels", [[[1], [2, 3]], [{"a": 1}, {"a": 2}]])
def test_labels_that_have_no_order_are_refused(labels):
    column = np.empty(2, dtype=object)
    column[:] = labels
    with pytest.raises(InputTypeError, match="y_true must hold labels such as text or numbers, got"):
        coverage(column, SETS[:2])
    with pytest.raises(InputTypeError, match="groups must hold labels"):
        coverage_gap([True, False], column, alpha=0.1)


def test_an_infinite_label_is_no_column_number():
    with pytest.raises(InputError, match=r"2 distinct labels \(1.0, inf\) but there are 3 columns"):
        coverage([np.inf, 1.0, 1.0], SETS)


def test_two_columns_of_one_name_are_refused_in_our_words():
    table = pd.DataFrame(SETS, columns=["a", "b", "a"])
    with pytest.raises(InputError, match="column names must differ, 'a' appears more than once"):
        coverage(["a", "b", "a"], table)


def test_integers_of_128_bits_are_numbers():
    assert float(coverage(pl.Series([0, 1, 1]).cast(pl.Int128), SETS)) == 1.0


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([1, "1", 1, "1"], "holds 1 and '1', which read the same"),
        (np.array([True, "True", True, "True"], dtype=object), "holds True and 'True', which read the same"),
    ],
)
def test_labels_that_read_the_same_are_refused(labels, said):
    # They were one group, silently, in lists that numpy makes text of and in the table of an audit.
    with pytest.raises(InputError, match=said):
        coverage_gap([1, 0, 1, 1], labels, alpha=0.1)
    with pytest.raises(InputError, match=said):
        calipers.audit(covered=[1, 0, 1, 1], promised=[0.9] * 4, groups=labels)


def test_a_missing_label_in_a_list_is_no_text():
    with pytest.raises(InputError, match=r"groups has 1 missing of 3 values \(first at row 1\)"):
        coverage_gap([1, 0, 1], ["a", float("nan"), "a"], alpha=0.1)


def test_whole_numbers_that_floats_cannot_tell_apart_are_labels():
    labels = [5, 2**63, 2**63 + 1]
    assert coverage_gap([1, 0, 1], labels, alpha=0.1).details["groups"].keys() == {str(v) for v in labels}
    sets = np.eye(3, dtype=bool)
    assert coverage([2**63, 5, 2**63 + 1], sets[[1, 0, 2]], alpha=0.1).value == 1.0


def test_a_lazy_frame_is_told_to_be_collected():
    lazy = pl.DataFrame({"y": [1.0]}).lazy()
    with pytest.raises(
        InputTypeError, match=r"y_true is a lazy frame and holds no rows yet; pass y_true.collect\(\)"
    ):
        calipers.audit(y_true=lazy, intervals=[[0.0, 2.0]])
    with pytest.raises(InputTypeError, match=r"X is a lazy frame"):
        calipers.audit(y_true=[1.0], intervals=[[0.0, 2.0]], X=lazy)


@pytest.mark.parametrize("nothing", [[], ()])
def test_an_empty_list_is_refused_in_our_words(nothing):
    with pytest.raises(InputError):
        coverage_gap(nothing, nothing, alpha=0.1)
    with pytest.raises(InputError):
        coverage([0, 1], SETS[:2, :2], classes=nothing)
