"""Numbers printed in papers and manuals, and stored output of statsmodels 0.15.0.

The stored output was made by ``statsmodels.stats.multitest.multipletests(p, method=m)[1]`` and
``statsmodels.stats.proportion.proportion_confint(s, n, 0.05, method)``, printed with ``%.12g``, so to a relative 5e-12.
"""

import numpy as np
import pytest

from calipers.inference import (
    bca_bootstrap,
    benjamini_hochberg,
    bonferroni,
    clopper_pearson,
    holm,
    sidak,
    wilson,
)
from calipers.inference.bootstrap import _acceleration

# The fifteen p-values of Benjamini and Hochberg (1995), section 4.
THROMBOLYSIS = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
    0.7590, 1.0000,
]  # fmt: skip
TIED = [0.04, 0.001, 0.04, 0.2, 1e-12, 0.9, 0.011, 0.04]

STORED = [
    (holm, THROMBOLYSIS, [
        0.0015, 0.0056, 0.0247, 0.114, 0.2211, 0.278, 0.278, 0.278, 0.3213, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (benjamini_hochberg, THROMBOLYSIS, [
        0.0015, 0.003, 0.0095, 0.035625, 0.0603, 0.0638571428571, 0.0638571428571, 0.0645, 0.0765, 0.486,
        0.581181818182, 0.714875, 0.753230769231, 0.813214285714, 1.0]),
    (sidak, THROMBOLYSIS, [
        0.00149895045486, 0.00598322908509, 0.0281240531303, 0.133402966346, 0.26256055315, 0.344859796798,
        0.36478747279, 0.408494405814, 0.505793517505, 0.997186801099, 0.999759337647, 0.999997027113,
        0.999999871561, 0.999999999463, 1.0]),
    (bonferroni, THROMBOLYSIS, [
        0.0015, 0.006, 0.0285, 0.1425, 0.3015, 0.417, 0.447, 0.516, 0.6885, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (holm, TIED, [0.2, 0.007, 0.2, 0.4, 8e-12, 0.9, 0.066, 0.2]),
    (benjamini_hochberg, TIED, [
        0.0533333333333, 0.004, 0.0533333333333, 0.228571428571, 8e-12, 0.9, 0.0293333333333, 0.0533333333333]),
    (sidak, TIED, [
        0.278610421016, 0.00797205593006, 0.278610421016, 0.83222784, 7.99999999997e-12, 0.99999999,
        0.0846855200994, 0.278610421016]),
    (bonferroni, TIED, [0.32, 0.008, 0.32, 1.0, 8e-12, 1.0, 0.088, 0.32]),
]  # fmt: skip


@pytest.mark.parametrize(("adjust", "p_values", "expected"), STORED)
def test_adjusted_p_values_equal_the_stored_ones(adjust, p_values, expected):
    np.testing.assert_allclose(adjust(p_values), expected, rtol=6e-12)


def test_the_thrombolysis_trial_rejects_as_printed():
    # Benjamini and Hochberg (1995): Bonferroni rejects the three smallest at 0.05, their procedure four.
    assert np.sum(bonferroni(THROMBOLYSIS) <= 0.05) == 3
    assert np.sum(benjamini_hochberg(THROMBOLYSIS) <= 0.05) == 4


# Newcombe (1998), Statistics in Medicine 17, 857-872, table I, methods 3 (score) and 5 (exact).
NEWCOMBE = [
    (81, 263, (0.2553, 0.3662), (0.2527, 0.3676)),
    (15, 148, (0.0624, 0.1605), (0.0578, 0.1617)),
    (0, 20, (0.0000, 0.1611), (0.0000, 0.1684)),
    (1, 29, (0.0061, 0.1718), (0.0009, 0.1776)),
]


@pytest.mark.parametrize(("successes", "n", "score", "exact"), NEWCOMBE)
def test_proportion_intervals_equal_newcombes_table(successes, n, score, exact):
    assert tuple(round(end, 4) for end in wilson(successes, n)) == score
    assert tuple(round(end, 4) for end in clopper_pearson(successes, n)) == exact


STORED_INTERVALS = [
    (clopper_pearson, 81, 263, (0.252736745585, 0.367621922601)),
    (wilson, 81, 263, (0.255288519878, 0.366209576983)),
    (clopper_pearson, 1, 29, (0.00087264688358, 0.177644295489)),
    (wilson, 1, 29, (0.00611321429276, 0.171755218793)),
    (clopper_pearson, 29, 29, (0.88055513093, 1.0)),
    (wilson, 29, 29, (0.8830302015, 1.0)),
    (clopper_pearson, 682, 925, (0.707668264079, 0.765406558242)),
    (wilson, 682, 925, (0.70799598762, 0.764635800971)),
]


@pytest.mark.parametrize(("interval", "successes", "n", "expected"), STORED_INTERVALS)
def test_proportion_intervals_equal_the_stored_ones(interval, successes, n, expected):
    assert interval(successes, n) == pytest.approx(expected, rel=6e-12)


def test_clopper_pearson_equals_the_example_of_rs_binom_test():
    # binom.test(682, 925), Conover's example in R's manual: 0.7076683 0.7654066.
    assert tuple(round(end, 7) for end in clopper_pearson(682, 925)) == (0.7076683, 0.7654066)


# Efron and Tibshirani (1993), An Introduction to the Bootstrap, table 14.1: spatial test, column A.
SPATIAL = np.array(
    [48, 36, 20, 29, 42, 42, 20, 42, 22, 41, 45, 14, 6, 0, 33, 28, 34, 4, 32, 24, 47, 41, 24, 26, 30, 41],
    dtype=float,
)


def test_bca_equals_the_spatial_test_example():
    # Section 14.2-14.3: variance 171.5, acceleration 0.061, 90 % BCa interval (115.8, 259.6) from 2000 draws.
    leave_one_out = np.array([np.var(np.delete(SPATIAL, i)) for i in range(SPATIAL.size)])
    assert round(float(np.var(SPATIAL)), 1) == 171.5
    assert round(_acceleration(leave_one_out), 3) == 0.061
    ours = bca_bootstrap(np.var, SPATIAL, confidence=0.9, n_draws=20_000, vectorized=True, random_state=0)
    # Theirs carries the Monte-Carlo error of 2000 draws, 10 times the variance of ours.
    assert ours.low == pytest.approx(115.8, abs=4 * np.sqrt(11) * ours.low_error)
    assert ours.high == pytest.approx(259.6, abs=4 * np.sqrt(11) * ours.high_error)
