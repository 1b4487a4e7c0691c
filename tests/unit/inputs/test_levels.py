from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calipers.exceptions import InputError, InputTypeError
from calipers.inputs import check_alpha, check_alphas, check_confidence, check_row_alpha, exact_level


def test_a_percentage_is_refused_with_the_remedy():
    with pytest.raises(
        InputError,
        match=r"alpha must lie strictly between 0 and 1, got 90\. It is the allowed miscoverage "
        r"\(0\.1 for 90 % coverage\), not a percentage\.",
    ):
        check_alpha(90)


def test_alphas_tell_one_level_from_a_list():
    assert check_alphas(0.1) == ((0.1,), True)
    assert check_alphas([0.1, Fraction(1, 5)]) == ((0.1, Fraction(1, 5)), False)
    assert check_alphas(np.array(0.1)) == ((0.1,), True)
    with pytest.raises(InputError, match=r"alpha\[1\] must lie strictly between 0 and 1, got 1\.5"):
        check_alphas([0.1, 1.5])
    with pytest.raises(InputError, match="at least one level"):
        check_alphas([])


@given(st.integers(1, 10**6 - 1), st.integers(1, 10**6))
def test_a_float_of_a_simple_fraction_snaps_to_it(p, q):
    level = Fraction(p, q)
    if 0 < level < 1:
        snapped = exact_level(float(level))
        assert abs(snapped - level) <= Fraction(2, 10**12)
        if q <= 1000:
            assert snapped == level


def test_levels_near_the_ends_are_never_snapped_onto_them():
    assert 0 < exact_level(1e-15) < Fraction(1, 10**14)
    assert exact_level(1 - 1e-15) < 1
    assert exact_level(Decimal("1e-30")) == Fraction(1, 10**30)


def test_row_alpha_names_the_row():
    assert check_row_alpha([0.1, 0.2], 2).tolist() == [0.1, 0.2]
    with pytest.raises(InputError, match=r"got nan at row 1"):
        check_row_alpha([0.1, float("nan")], 2)
    with pytest.raises(InputError, match=r"one entry per row \(3\), got shape \(2,\)"):
        check_row_alpha([0.1, 0.2], 3)


@pytest.mark.parametrize("value", ["0.95", None, True])
def test_confidence_must_be_a_number(value):
    with pytest.raises(InputTypeError, match="confidence must be a number"):
        check_confidence(value)
