import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calipers.exceptions import InputError
from calipers.inference import benjamini_hochberg, bonferroni, holm, sidak, sidak_confidence

ADJUSTMENTS = [bonferroni, sidak, holm, benjamini_hochberg]
families = st.lists(st.floats(0, 1) | st.just(np.nan), min_size=1, max_size=12).map(np.array)


@pytest.mark.parametrize("adjust", ADJUSTMENTS)
@given(p=families)
def test_an_untested_hypothesis_stays_nan_and_is_not_counted(adjust, p):
    tested = ~np.isnan(p)
    adjusted = adjust(p)
    np.testing.assert_array_equal(np.isnan(adjusted), ~tested)
    np.testing.assert_array_equal(adjusted[tested], adjust(p[tested]))


@pytest.mark.parametrize("adjust", ADJUSTMENTS)
@given(p=families)
def test_adjusting_raises_and_keeps_the_order(adjust, p):
    p = p[~np.isnan(p)]
    adjusted = adjust(p)
    assert np.all(adjusted >= p * (1 - 1e-12))
    assert np.all(adjusted <= 1)
    assert np.all(np.diff(adjusted[np.argsort(p)]) >= 0)


@given(p=families)
def test_holm_rejects_as_the_step_down_procedure_does(p):
    p = p[~np.isnan(p)]
    order, rejected = np.argsort(p), np.zeros(p.size, dtype=bool)
    for step, i in enumerate(order):
        if p[i] * (p.size - step) > 0.1:
            break
        rejected[i] = True
    np.testing.assert_array_equal(holm(p) <= 0.1, rejected)


@given(p=families)
def test_benjamini_hochberg_rejects_as_the_step_up_procedure_does(p):
    p = p[~np.isnan(p)]
    ordered = np.sort(p)
    passing = [k for k in range(1, p.size + 1) if p.size * ordered[k - 1] / k <= 0.2]
    threshold = ordered[max(passing) - 1] if passing else -1.0
    np.testing.assert_array_equal(benjamini_hochberg(p) <= 0.2, p <= threshold)


@pytest.mark.parametrize("adjust", ADJUSTMENTS)
def test_families_lie_along_the_axis(adjust):
    p = np.array([[0.01, 0.2, np.nan], [0.04, 0.03, 0.5]])
    np.testing.assert_array_equal(adjust(p), [adjust(row) for row in p])
    np.testing.assert_array_equal(adjust(p, axis=0), np.transpose([adjust(column) for column in p.T]))


@pytest.mark.parametrize("adjust", ADJUSTMENTS)
@pytest.mark.parametrize("value", [-0.1, 1.2])
def test_values_that_are_not_probabilities_are_refused(adjust, value):
    with pytest.raises(InputError, match=r"p_values must lie in \[0, 1\]"):
        adjust([0.5, value])


def test_tiny_p_values_do_not_vanish_in_sidak():
    assert sidak([1e-20, 0.5])[0] == pytest.approx(2e-20, rel=1e-12)


def test_sidak_levels_multiply_back_to_the_confidence():
    assert sidak_confidence(0.9, 7) ** 7 == pytest.approx(0.9)
    with pytest.raises(InputError, match="n_intervals must be a whole number of at least 1, got 0"):
        sidak_confidence(0.9, 0)
