"""Times of rows in every kind that people have, and mixtures of them."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calipers
from calipers.exceptions import InputError
from calipers.inputs.row_checks import check_time

NOON = dt.datetime(2024, 5, 31, 12)
BERLIN = dt.timezone(dt.timedelta(hours=2))
MICROSECONDS = 1_717_156_800_000_000.0  # noon in UTC

SAME = {
    "datetimes": [NOON],
    "datetimes with a zone": [NOON.replace(tzinfo=BERLIN) + dt.timedelta(hours=2)],
    "text": ["2024-05-31T12:00"],
    "text with a zone": ["2024-05-31T14:00+02:00"],
    "text in UTC": ["2024-05-31 12:00:00Z"],
    "bytes": np.array([b"2024-05-31T12:00"]),
    "pandas with a zone": pd.Series([NOON]).dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin"),
    "an index of pandas with a zone": pd.DatetimeIndex([NOON], tz="UTC"),
    "polars with a zone": pl.Series([NOON]).dt.replace_time_zone("UTC"),
    "seconds of numpy": np.array(["2024-05-31T12:00:00"], dtype="datetime64[s]"),
    "numbers as objects": np.array([MICROSECONDS], dtype=object),
}


@pytest.mark.parametrize("kind", SAME)
def test_one_moment_is_one_number_in_every_kind(kind):
    assert check_time(SAME[kind]).tolist() == [MICROSECONDS]


def test_dates_beside_times_and_spans_have_an_order():
    assert check_time([dt.date(1970, 1, 1), dt.datetime(1970, 1, 1, 0, 0, 1)]).tolist() == [0.0, 1e6]
    assert check_time(pd.to_timedelta([1, 2], unit="s")).tolist() == [1e6, 2e6]


MIXED = {
    "with and without a zone": (
        [NOON, NOON.replace(tzinfo=BERLIN)],
        "one kind, got a time and a time with a zone",
    ),
    "text with and without a zone": (
        ["2024-05-31T12:00", "2024-05-31T12:00Z"],
        "got text and text with a zone",
    ),
    "numbers and text": (np.array([1, "2024-05-31"], dtype=object), "got a number and text"),
    "a list of numbers and text": ([1, "2024"], "got a number and text"),
    "a missing one": (pd.Series([NOON, None]).dt.tz_localize("UTC"), r"1 missing values \(first at row 1\)"),
    "none": ([NOON, None], r"1 missing values \(first at row 1\)"),
    "a number without end": (
        [10**400, 1],
        "must hold numbers, dates or text like 2024-05-31T12:00, got '1000",
    ),
    "words": (["noon", "evening"], "text like 2024-05-31T12:00, got 'noon'"),
    "words with a zone": (["2024-99-31T12:00Z"], "text like 2024-05-31T12:00"),
}


@pytest.mark.parametrize("case", MIXED)
def test_times_that_cannot_be_put_in_order_are_refused(case):
    values, said = MIXED[case]
    with pytest.raises(InputError, match=said):
        check_time(values)
    with pytest.raises(InputError, match="time"):
        calipers.audit(covered=[True] * len(values), promised=[0.9] * len(values), time=values)


def test_nanoseconds_since_1970_are_times():
    begin = 1_700_000_000_000_000_001
    assert check_time(begin + np.arange(3) * 10**9).tolist() == [float(begin + i * 10**9) for i in range(3)]
