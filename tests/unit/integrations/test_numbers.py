"""Estimates as named numbers that every tracker takes."""

from __future__ import annotations

import math
import re

from calipers.integrations import flat_numbers
from calipers.results import Estimate


def estimate(**fields):
    return Estimate(name="any", **fields)


def test_value_ends_and_p_value_have_names_of_their_own():
    numbers = flat_numbers({"t_cv": estimate(value=0.2, low=0.1, high=0.3, p_value=0.04)}, prefix="calipers/")
    assert numbers == {
        "calipers/t_cv": 0.2, "calipers/t_cv.low": 0.1, "calipers/t_cv.high": 0.3, "calipers/t_cv.p_value": 0.04,
    }  # fmt: skip


def test_what_is_missing_or_not_finite_is_left_out():
    stated = {"a": estimate(value=math.inf, low=1.0, high=None), "b": estimate(value=None, reason="too few")}
    assert flat_numbers(stated) == {"a.low": 1.0}


def test_names_hold_only_characters_that_trackers_take():
    names = ["coverage where age <= 30 & city = 'Rome'", "90 % band (left)", "β < α", "x" * 400]
    numbers = flat_numbers({name: estimate(value=1.0) for name in names})
    assert len(numbers) == 4
    assert all(re.fullmatch(r"[/\w.\- :]{1,250}", name) for name in numbers)
    assert list(numbers)[:2] == ["coverage where age 30 city Rome", "90 percent band left"]


def test_names_that_become_equal_keep_apart():
    numbers = flat_numbers(
        {"x=1": estimate(value=1.0), "x 1": estimate(value=2.0), "x<1": estimate(value=3.0)}
    )
    assert numbers == {"x 1": 1.0, "x 1 2": 2.0, "x 1 3": 3.0}
