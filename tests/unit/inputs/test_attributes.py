"""Groups by one attribute or by several, however they are given."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from calipers.exceptions import InputError
from calipers.inputs.attributes import check_attributes

SEX, AGE = ["f", "m", "f"], [30, 40, 30]
FORMS = {
    "mapping": {"sex": SEX, "age": AGE},
    "polars": pl.DataFrame({"sex": SEX, "age": AGE}),
    "pandas": pd.DataFrame({"sex": SEX, "age": AGE}, index=[7, 1, 3]),
    "categorical": pd.DataFrame({"sex": pd.Categorical(SEX, ["m", "f"]), "age": AGE}),
}


@pytest.mark.parametrize("form", FORMS)
def test_tables_keep_the_names_of_their_attributes(form):
    found = check_attributes(FORMS[form])
    assert found.names == ("sex", "age")
    assert found.codes.tolist() == [[0, 0], [1, 1], [0, 0]]
    assert found.group_name((0, 1), (1, 1)) == "sex=m and age=40"
    assert found.group_name((1,), (0,)) == "age=30"


def test_plain_labels_are_their_own_names():
    assert check_attributes(SEX).group_name((0,), (1,)) == "m"


def test_the_columns_of_a_plain_table_are_numbered():
    found = check_attributes(np.array([SEX, AGE], dtype=object).T)
    assert found.names == ("g0", "g1")
    assert found.group_name((0, 1), (0, 1)) == "g0=f and g1=40"


def test_attributes_are_taken_as_they_are():
    once = check_attributes(SEX)
    assert check_attributes(once) is once


def test_codes_are_as_small_as_the_number_of_labels_allows():
    assert check_attributes(np.arange(255)).codes.dtype == np.uint8
    assert check_attributes(np.arange(70_000)).codes.dtype == np.uint32


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({"sex": SEX, "age": [30, 40]}, "must have the same length"),
        ({"sex": ["f", None, "m"]}, r"groups\['sex'\] has 1 missing of 3 values \(first at row 1\)"),
        ({}, "at least one attribute"),
        (np.zeros((2, 2, 2)), r"labels \(n,\) or a table \(n, G\), got shape \(2, 2, 2\)"),
        ({"income": np.linspace(0, 1, 101)}, r"groups\['income'\] has 101 distinct fractional numbers"),
    ],
)
def test_what_is_no_grouping_is_refused(groups, said):
    with pytest.raises(InputError, match=said):
        check_attributes(groups)


def test_many_whole_numbers_are_labels():
    assert len(check_attributes(np.arange(500.0)).labels[0]) == 500
