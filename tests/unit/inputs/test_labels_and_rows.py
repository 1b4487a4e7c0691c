import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calipers.exceptions import InputError, InputTypeError
from calipers.inputs import (
    check_binary,
    check_classes,
    check_count,
    check_groups,
    check_same_length,
    check_vector,
    check_weights,
    encode_labels,
)
from calipers.inputs.row_checks import numeric


def test_sorted_labels_name_the_columns_when_their_number_fits():
    assert encode_labels(["b", "a", "c", "a"], 3).tolist() == [1, 0, 2, 0]
    assert encode_labels([10, 20, 10], 2).tolist() == [0, 1, 0]


def test_integers_are_column_indices_when_a_class_is_missing():
    assert encode_labels([0, 2, 2], 4).tolist() == [0, 2, 2]
    assert encode_labels([0.0, 3.0], 4).tolist() == [0, 3]


def test_labels_that_fit_neither_way_ask_for_classes():
    with pytest.raises(
        InputError, match=r"y_true has 2 distinct labels \('a', 'b'\) but there are 3 columns\. Pass classes="
    ):
        encode_labels(["a", "b"], 3)
    assert encode_labels(["a", "b"], 3, classes=["z", "b", "a"]).tolist() == [2, 1]


def test_a_label_without_a_column_is_named_with_its_row():
    with pytest.raises(InputError, match="y_true holds 'q' at row 2"):
        encode_labels(["a", "b", "q"], 2, classes=["a", "b"])
    with pytest.raises(InputError, match="y_true holds 7 at row 1"):
        encode_labels([1, 7], 2, classes=[1, 2])


def test_repeated_or_miscounted_classes_are_refused():
    with pytest.raises(InputError, match="repeated label"):
        encode_labels([0, 1], 2, classes=[1, 1])
    with pytest.raises(InputError, match=r"name the 2 columns, got shape \(3,\)"):
        encode_labels([0, 1], 2, classes=[0, 1, 2])


def test_missing_labels_are_refused_with_their_row():
    with pytest.raises(InputError, match=r"1 missing of 3 labels \(first at row 1\)"):
        encode_labels(pd.Series(["a", None, "b"]), 2)


@given(st.lists(st.sampled_from(["x", "y", "z", "w"]), min_size=1, max_size=30))
def test_encoding_then_decoding_gives_the_labels_back(labels):
    classes = ["w", "z", "y", "x"]
    assert [classes[c] for c in encode_labels(labels, 4, classes=classes)] == labels


@pytest.mark.parametrize("name", ["torch", "array_api_strict"])
def test_other_array_libraries_give_the_same_codes(name):
    xp = pytest.importorskip(name)
    labels = np.array([5, 3, 5, 9])
    assert np.asarray(encode_labels(xp.asarray(labels), 3)).tolist() == encode_labels(labels, 3).tolist()
    with pytest.raises(InputError, match="holds 9 at row 3"):
        encode_labels(xp.asarray(labels), 2, classes=[3, 5])


def test_lengths_are_listed_by_name():
    with pytest.raises(
        InputError, match="y_true and covered must have the same length, got y_true: 3, covered: 2"
    ):
        check_same_length(y_true=[1, 2, 3], covered=[0, 1])
    with pytest.raises(InputError, match="at least one row"):
        check_same_length(y_true=[])


def test_weights():
    assert check_weights(None, 3) is None
    with pytest.raises(InputError, match="not be negative, got -1.0 at row 1"):
        check_weights([1, -1], 2)
    with pytest.raises(InputError, match="zero everywhere"):
        check_weights([0, 0], 2)
    with pytest.raises(InputError, match="sample_weight has 1 NaN of 2 values"):
        check_weights([1, np.nan], 2)


def test_groups_of_any_kind_keep_their_labels():
    labels, codes = check_groups(pd.Series(["b", "a", "b"], index=[9, 8, 7]), 3)
    assert labels.tolist() == ["a", "b"]
    assert codes.tolist() == [1, 0, 1]
    labels, codes = check_groups(np.array([1, "a", 1], dtype=object), 3)
    assert labels.tolist() == [1, "a"]
    with pytest.raises(InputError, match=r"groups has 1 missing of 2 values \(first at row 1\)"):
        check_groups(["a", None], 2)


@pytest.mark.parametrize("labels", [[-0.0, 0.0, 2.0], [0.0, -0.0, 2.0], [-0.0, -0.0, 2.0]])
def test_minus_zero_and_zero_are_one_label_of_one_name(labels):
    named, codes = check_groups(np.array(labels, dtype="float32"), 3)
    assert [str(label) for label in named.tolist()] == ["0.0", "2.0"]
    assert codes.tolist() == [0, 0, 1]
    assert named.dtype == "float32"
    assert str(check_classes(None, np.array(labels), 2).tolist()) == "[0.0, 2.0]"


def test_vectors_keep_float32_and_widen_integers():
    assert check_vector(np.array([1.0], dtype=np.float32), name="v").dtype == np.float32
    assert check_vector([1, 2], name="v").dtype == np.float64
    with pytest.raises(InputError, match="one dimension"):
        check_vector(np.ones((2, 2)), name="v")


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3", None])
def test_counts_are_whole_numbers(value):
    with pytest.raises(InputError, match="n_bins must be a whole number of at least 1"):
        check_count(value, name="n_bins")


@pytest.mark.parametrize("labels", [[1, None, 0], ["yes", None, "no"], [1.0, float("nan"), 0.0]])
@pytest.mark.parametrize("pos_label", [None, "given"])
def test_a_missing_label_is_neither_class(labels, pos_label):
    positive = labels[0] if pos_label else None
    with pytest.raises(InputError, match=r"y_true has 1 missing of 3 labels \(first at row 1\)"):
        check_binary(np.array(labels, dtype=object), pos_label=positive)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (["1", "2", "n/a"], "'n/a' at row 2"),
        ([1.0, {}, "x"], r"\{\} at row 1"),
        ([[1, 2], [3, "x"]], "'x' at row 1"),
    ],
)
def test_the_value_that_is_no_number_is_shown(values, shown):
    with pytest.raises(InputTypeError, match=f"must hold numbers, got {shown}"):
        numeric(np.array(values, dtype=object), "size")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int64", "uint64"])
@pytest.mark.parametrize("spread", [0, 5, 200])
def test_numbers_of_groups_are_those_of_a_sort(dtype, spread):
    rng, kind = np.random.default_rng(0), np.iinfo(dtype)
    for base in (kind.min, 0, kind.max - spread if spread <= kind.max else 0):
        high = min(base + spread, kind.max)
        groups = rng.integers(base, high, 100, dtype=dtype, endpoint=True)
        labels, codes = check_groups(groups, 100)
        expected = np.unique(groups, return_inverse=True)
        assert labels.dtype == groups.dtype
        assert np.array_equal(labels, expected[0])
        assert np.array_equal(codes, expected[1])
