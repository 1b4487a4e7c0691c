import numpy as np
import pandas as pd
import pytest
from scipy import stats

from calipers.exceptions import InputError
from calipers.inputs import encode_labels
from calipers.metrics import coverage, is_covered


def test_coverage_counts_the_closed_ends():
    intervals = [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]
    assert is_covered([0.0, 1.0, -1e-12, 1 + 1e-12], intervals).tolist() == [True, True, False, False]


def test_coverage_reads_the_column_of_the_label():
    sets = np.array([[True, False, False], [True, True, False], [False, False, True]])
    assert is_covered(["b", "b", "c"], sets, classes=["a", "b", "c"]).tolist() == [False, True, True]
    assert float(coverage([1, 1, 2], sets, classes=range(3))) == pytest.approx(2 / 3)


def test_interval_is_clopper_pearson():
    # 83 of 90: Beta(83, 8) and Beta(84, 7) quantiles at 2.5 % and 97.5 %.
    y = np.r_[np.zeros(83), np.full(7, 9.0)]
    e = coverage(y, np.tile([-1.0, 1.0], (90, 1)), alpha=0.1)
    assert e.low == pytest.approx(stats.beta.ppf(0.025, 83, 8))
    assert e.high == pytest.approx(stats.beta.ppf(0.975, 84, 7))
    assert e.details["covered"] == 83
    assert e.std_error == pytest.approx(np.sqrt(83 / 90 * 7 / 90 / 90))


def test_binomial_test_doubles_the_smaller_tail():
    y = np.r_[np.zeros(80), np.full(20, 9.0)]
    e = coverage(y, np.tile([-1.0, 1.0], (100, 1)), alpha=0.1)
    assert e.p_value == pytest.approx(2 * stats.binom.cdf(80, 100, 0.9))
    less = coverage(y, np.tile([-1.0, 1.0], (100, 1)), alpha=0.1, alternative="less")
    assert less.p_value == pytest.approx(stats.binom.cdf(80, 100, 0.9))
    assert less.null_high is None
    assert less.null_low == stats.binom.ppf(0.05, 100, 0.9) / 100


def test_finite_calibration_uses_the_beta_binomial_law():
    # n = 99, alpha = 0.1: rank 90, BetaBinomial(1000, 90, 10).
    y = np.r_[np.zeros(860), np.full(140, 9.0)]
    e = coverage(y, np.tile([-1.0, 1.0], (1000, 1)), alpha=0.1, n_calibration=99)
    assert e.p_value == pytest.approx(2 * stats.betabinom.cdf(860, 1000, 90, 10), rel=1e-9)
    assert e.details["rank"] == 90
    assert e.null_low < 0.86
    plain = coverage(y, np.tile([-1.0, 1.0], (1000, 1)), alpha=0.1)
    assert plain.p_value < 0.001 < e.p_value


def test_too_few_calibration_rows_promise_every_row():
    # 8 rows at alpha 0.1: the threshold is infinite, so a single miss cannot happen.
    inside = coverage(np.zeros(5), np.tile([-1.0, 1.0], (5, 1)), alpha=0.1, n_calibration=8)
    missed = coverage([0, 0, 0, 0, 9.0], np.tile([-1.0, 1.0], (5, 1)), alpha=0.1, n_calibration=8)
    assert inside.p_value == 1.0
    assert 0.0 < missed.p_value < 1e-300  # impossible, and no p-value is 0


def test_weights_mean_repetition():
    y, intervals = np.array([0.0, 9.0, 0.5]), np.tile([-1.0, 1.0], (3, 1))
    weighted = coverage(y, intervals, alpha=0.1, sample_weight=[5, 2, 4])
    repeated = coverage(np.repeat(y, [5, 2, 4]), np.repeat(intervals, [5, 2, 4], axis=0), alpha=0.1)
    for field in ("value", "low", "high", "std_error", "p_value", "null_low", "null_high", "n"):
        assert getattr(weighted, field) == pytest.approx(getattr(repeated, field))


def test_fractional_weights_have_an_interval_and_no_test():
    e = coverage([0.0, 9.0], [[-1.0, 1.0]] * 2, alpha=0.1, sample_weight=[0.5, 1.25])
    assert float(e) == pytest.approx(0.5 / 1.75)
    assert e.p_value is None
    assert "whole numbers" in e.reason


def test_without_alpha_there_is_no_test():
    e = coverage([0.0], [[-1.0, 1.0]])
    assert e.p_value is None
    assert e.null_low is None
    assert "promise" in e.reason


def test_frames_with_different_indexes_are_refused():
    y = pd.Series([0.0, 9.0, 0.0], index=[2, 0, 1])
    intervals = pd.DataFrame({"lower": [-1.0, -1.0, 5.0], "upper": [1.0, 1.0, 6.0]}, index=["a", "b", "c"])
    with pytest.raises(InputError, match=r"different indexes \(first at row 0: 2 and 'a'\)"):
        is_covered(y, intervals)
    assert is_covered(y, intervals.to_numpy()).tolist() == [True, False, False]


def test_float32_and_integer_inputs():
    assert is_covered(np.array([1, 2]), np.array([[0, 1], [3, 4]])).tolist() == [True, False]
    assert float(coverage(np.float32([0.5]), np.float32([[0.5, 1.0]]))) == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ([1.0, 2.0, 3.0], [[0.0, 1.0]]),
            "y_true and prediction must have the same length, got y_true: 3, prediction: 1",
        ),
        (([np.nan], [[0.0, 1.0]]), "y_true has 1 NaN of 1 values"),
        (([], np.zeros((0, 2))), "at least one row"),
    ],
)
def test_bad_rows_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        coverage(*arguments)


def test_bad_options_are_refused():
    with pytest.raises(InputError, match="alpha must lie strictly between 0 and 1, got 90"):
        coverage([1.0], [[0.0, 1.0]], alpha=90)
    with pytest.raises(InputError, match="n_calibration must be a whole number of at least 1, got 0"):
        coverage([1.0], [[0.0, 1.0]], alpha=0.1, n_calibration=0)
    with pytest.raises(InputError, match="alternative must be"):
        coverage([1.0], [[0.0, 1.0]], alpha=0.1, alternative="both")
    with pytest.raises(InputError, match="classes belong to sets"):
        coverage([1.0], [[0.0, 1.0]], classes=[0, 1])


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_other_array_libraries_stay_where_they_are(library):
    xp = pytest.importorskip(library)
    sets = np.array([[True, False], [False, True], [False, True]])
    covered = is_covered(xp.asarray([0, 0, 1]), xp.asarray(sets))
    assert type(covered).__module__.split(".")[0] == library
    assert np.asarray(covered).tolist() == [True, False, True]
    assert float(coverage(xp.asarray([0, 0, 1]), xp.asarray(sets), alpha=0.1)) == pytest.approx(2 / 3)


def test_labels_that_may_not_be_written_to_are_read_without_a_copy():
    y, sets = np.array([0, 2, 1, 2]), np.eye(3, dtype=bool)[[0, 2, 2, 2]]
    y.setflags(write=False)
    assert encode_labels(y, 3) is y
    assert float(coverage(y, sets)) == 0.75
    assert y.tolist() == [0, 2, 1, 2]
