"""A dataframe that names its columns after the labels cannot be read in another order."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calipers
from calipers import metrics
from calipers.exceptions import InputError

Y = ["a", "b", "c", "a"]
P = np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8], [0.3, 0.5, 0.2]])
ORDER = r"named c, b, a but the labels of y_true in order are a, b, c"


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    "measure",
    [
        lambda table: metrics.coverage(
            Y, table > 0.4 if isinstance(table, pd.DataFrame) else table.select(pl.all() > 0.4)
        ),
        lambda table: metrics.efficiency(Y, table),
        lambda table: metrics.calibration_error(Y, table),
        lambda table: metrics.true_rank(Y, table),
        lambda table: calipers.audit(Y, probabilities=table),
    ],
)
def test_columns_named_after_the_labels_in_another_order_are_refused(measure, frame):
    reverse = frame({name: P[:, "abc".index(name)] for name in "cba"})
    with pytest.raises(InputError, match=ORDER):
        measure(reverse)


def test_classes_in_column_order_and_other_names_are_taken():
    reverse = pd.DataFrame(P[:, ::-1], columns=["c", "b", "a"])
    expected = metrics.true_rank(Y, P).tolist()
    assert metrics.true_rank(Y, reverse, classes=["c", "b", "a"]).tolist() == expected
    assert metrics.true_rank(Y, pd.DataFrame(P, columns=["p_a", "p_b", "p_c"])).tolist() == expected
    assert metrics.true_rank(Y, pd.DataFrame(P, columns=["a", "b", "c"])).tolist() == expected


def test_two_columns_in_another_order_are_refused_too():
    reverse = pd.DataFrame({"yes": [0.2, 0.9, 0.4], "no": [0.8, 0.1, 0.6]})
    with pytest.raises(InputError, match="named yes, no but the labels of y_true in order are no, yes"):
        metrics.calibration_error(["no", "yes", "no"], reverse)


def test_classes_name_the_two_columns_of_binary_probabilities():
    y, p = ["no", "yes", "no", "yes"], np.array([0.2, 0.9, 0.4, 0.3])
    expected = metrics.calibration_error(y, p, random_state=0)
    two = np.column_stack([p, 1 - p])
    found = metrics.calibration_error(y, two, classes=["yes", "no"], pos_label="yes", random_state=0)
    assert found.value == pytest.approx(expected.value)
    sign = metrics.calibration_error(y, two, classes=["yes", "no"], random_state=0).details["sign"]
    assert sign == -expected.details["sign"]  # the last class counts as positive: the other side of the coin
    with pytest.raises(InputError, match="pos_label='maybe' is not in classes"):
        metrics.calibration_error(y, two, classes=["yes", "no"], pos_label="maybe")
