"""The five tests of calibration against textbook formulas written out row by row."""

import numpy as np
import pytest
from scipy import stats

from calipers.exceptions import InputError
from calipers.metrics import (
    brier_decomposition,
    calibration_error,
    calibration_slope,
    calibration_tests,
    cumulative_difference_curve,
    expected_calibration_error,
    reliability_curve,
    smooth_calibration_error,
)
from calipers.metrics.reliability.combined_tests import min_p_verdict, rank_p_values


def world(seed, n=600, power=1.0, decimals=None):
    rng = np.random.default_rng(seed)
    f = rng.random(n) if decimals is None else np.round(rng.random(n), decimals)
    return rng.random(n) < f**power, f


def test_spiegelhalter_is_its_row_by_row_formula():
    y, f = world(0, power=1.1)
    z = np.sum((y - f) * (1 - 2 * f)) / np.sqrt(np.sum((1 - 2 * f) ** 2 * f * (1 - f)))
    row = calibration_tests(y, f, random_state=0)["spiegelhalter"]
    assert row.value == pytest.approx(z)
    assert row.details["asymptotic_p_value"] == pytest.approx(2 * stats.norm.sf(abs(z)))
    assert row.p_value == pytest.approx(2 * stats.norm.sf(abs(z)), abs=0.05)


def test_hosmer_lemeshow_is_its_table_formula():
    y, f = world(1, n=1000, power=1.1)
    order = np.argsort(f)
    chi2 = sum((y[g].sum() - f[g].sum()) ** 2 / np.sum(f[g] * (1 - f[g])) for g in np.split(order, 10))
    row = calibration_tests(y, f, random_state=0)["hosmer_lemeshow"]
    assert row.value == pytest.approx(chi2)
    assert row.details["asymptotic_p_value"] == pytest.approx(stats.chi2.sf(chi2, 10))


def test_groups_never_split_equal_scores():
    # Half of the rows share one score: moving rows of that score about must change nothing.
    rng = np.random.default_rng(2)
    f = np.where(np.arange(400) < 200, 0.5, rng.random(400))
    y = rng.random(400) < f
    order = np.argsort(y)
    first, second = (calibration_tests(y[o], f[o], random_state=3) for o in (np.arange(400), order))
    assert [e.p_value for e in first.values()] == [e.p_value for e in second.values()]
    assert first["hosmer_lemeshow"].value == pytest.approx(second["hosmer_lemeshow"].value)


def test_the_score_test_agrees_with_the_likelihood_ratio_near_the_truth():
    y, f = world(3, n=4000)
    score = calibration_tests(y, f, n_draws=19, random_state=0)["recalibration"].value
    line = calibration_slope(y, f)
    eta = line["intercept"].value + line["slope"].value * np.log(f / (1 - f))

    def log_likelihood(p):
        return np.sum(np.where(y, np.log(p), np.log1p(-p)))

    ratio = 2 * (log_likelihood(1 / (1 + np.exp(-eta))) - log_likelihood(f))
    assert score == pytest.approx(ratio, rel=0.05)


def test_the_sup_interval_row_is_the_calibration_error():
    y, f = world(4, decimals=2)
    row = calibration_tests(y, f, random_state=5)["sup_interval"]
    error = calibration_error(y, f, random_state=5)
    assert row.value == pytest.approx(error.value)
    assert row.p_value == error.p_value
    assert row.null_high == pytest.approx(error.null_high)


def test_an_outcome_stated_as_impossible_decides_the_verdict():
    y, f = world(5, n=1000)
    y[0], f[0] = True, 0.0
    table = calibration_tests(y, f, random_state=0)
    assert table["impossible"].value == 1
    assert table["impossible"].p_value == 0.001
    assert table["verdict"].details["decided_by"] == "impossible"


def test_beyond_the_budget_the_verdict_is_bonferroni():
    y, f = world(6, n=2000, power=1.6)
    table = calibration_tests(y, f, n_draws=100_000)
    smallest = min(table[name].p_value for name in table if name != "verdict")
    assert table["verdict"].p_value == pytest.approx(5 * smallest)
    assert "Bonferroni" in table["verdict"].method


def test_soft_labels_are_refused_where_there_is_no_law():
    with pytest.raises(InputError, match="soft labels"):
        calibration_tests([0.2, 0.4], [0.5, 0.5])
    with pytest.raises(InputError, match="soft labels"):
        calibration_slope([0.2, 0.4], [0.5, 0.5])


def test_rank_p_values_count_ties_within_rounding():
    readings = np.array([[0.3], [0.1 + 0.2], [0.1], [0.5]])
    np.testing.assert_allclose(rank_p_values(readings)[:, 0], [0.75, 0.75, 1.0, 0.25])
    assert min_p_verdict(np.array([[0.5, 0.25], [0.25, 1.0], [1.0, 0.5], [0.75, 0.75]])) == 0.5


def test_slope_and_intercept_recover_a_known_line():
    rng = np.random.default_rng(7)
    f = rng.random(200_000)
    logits = np.log(f / (1 - f))
    y = rng.random(f.size) < 1 / (1 + np.exp(-(0.3 + 0.7 * logits)))
    table = calibration_slope(y, f)
    assert table["slope"].value == pytest.approx(0.7, abs=4 * table["slope"].std_error)
    assert table["intercept"].value == pytest.approx(0.3, abs=4 * table["intercept"].std_error)
    assert table["in_the_large"].value == pytest.approx(0.3, abs=0.1)


def test_slope_agrees_with_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    y, f = world(8, n=500, power=1.4)
    logits = np.log(f / (1 - f))
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(logits[:, None], y)
    table = calibration_slope(y, f)
    assert table["slope"].value == pytest.approx(model.coef_[0, 0], rel=1e-4)
    assert table["intercept"].value == pytest.approx(model.intercept_[0], rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(
    ("y", "f", "match"),
    [([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], "separated"), ([0, 1, 1, 0], [0.3] * 4, "no slope")],
)
def test_a_slope_that_does_not_exist_says_why(y, f, match):
    row = calibration_slope(y, f)["slope"]
    assert row.value is None
    assert match in row.reason


def test_certainties_have_no_logit_and_are_counted():
    y, f = world(9)
    table = calibration_slope(np.append(y, True), np.append(f, 1.0))
    assert table["slope"].value == pytest.approx(calibration_slope(y, f)["slope"].value)
    assert table["slope"].details["excluded"] == 1
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        calibration_slope([0, 1], [0.0, 1.0])


@pytest.mark.parametrize("soft", [False, True])
def test_the_brier_parts_add_up_and_match_their_definitions(soft):
    from sklearn.isotonic import IsotonicRegression

    y, f = world(10, decimals=1, power=1.5)
    y = 0.8 * y + 0.1 if soft else y
    table = brier_decomposition(y, f, n_draws=19, random_state=0)
    g = IsotonicRegression().fit(f, y.astype(float)).predict(f)
    brier = np.mean((y - f) ** 2)
    assert table["brier"].value == pytest.approx(brier)
    assert table["miscalibration"].value == pytest.approx(brier - np.mean((y - g) ** 2))
    assert table["discrimination"].value == pytest.approx(np.var(y) - np.mean((y - g) ** 2))
    assert table["uncertainty"].value == pytest.approx(np.var(y))
    assert (table["miscalibration"].p_value is None) == soft


def test_binned_error_is_its_definition():
    y, f = world(11, power=1.3)
    value = 0.0
    for k in range(15):
        inside = (f > k / 15) & (f <= (k + 1) / 15)
        value += abs(np.sum((y - f)[inside])) / f.size
    assert expected_calibration_error(y, f, random_state=0).value == pytest.approx(value)


def test_quantile_bins_hold_equal_mass_and_keep_ties_together():
    y, f = world(12, n=1500)
    error = expected_calibration_error(y, f, strategy="quantile", random_state=0)
    assert error.details["mass"] == [100.0] * 15
    tied = expected_calibration_error(y, np.round(f, 1), strategy="quantile", random_state=0)
    assert len(tied.details["mass"]) <= 11


def test_the_noise_of_the_binned_error_matches_its_formula():
    # E|N(0, v)| = sqrt(2 v / pi), bin by bin.
    y, f = world(13, n=20_000)
    spread = np.array([np.sum((f * (1 - f))[np.ceil(f * 15) == k + 1]) for k in range(15)])
    error = expected_calibration_error(y, f, random_state=0)
    assert error.details["noise_floor"] == pytest.approx(np.sqrt(2 * spread / np.pi).sum() / f.size, rel=0.03)
    drawn = expected_calibration_error(y, f, n_draws=10_000, random_state=0)
    assert "binomial bin sums" in drawn.method
    assert drawn.details["noise_floor"] == pytest.approx(error.details["noise_floor"], rel=0.03)


def test_smooth_error_is_the_kernel_integral_written_out():
    y, f = world(14, n=300, power=2.0)
    value = smooth_calibration_error(y, f, n_draws=19, random_state=0).value
    t = (np.arange(2000) + 0.5) / 2000
    centres = np.concatenate([f + 2 * k for k in range(-2, 3)] + [-f + 2 * k for k in range(-2, 3)])
    residuals = np.tile(y - f, 10)
    smoothed = stats.norm.pdf(t[:, None], centres, value) @ residuals / f.size
    assert np.mean(np.abs(smoothed)) == pytest.approx(value, rel=2e-3)


def test_reliability_curve_is_isotonic_and_its_band_surrounds_the_diagonal():
    y, f = world(15, n=3000, decimals=2)
    curve = reliability_curve(y, f, n_draws=199, random_state=0)
    assert np.all(np.diff(curve.y) >= 0)
    assert np.mean((curve.null_low <= curve.x) & (curve.x <= curve.null_high)) > 0.95
    assert np.mean((curve.y >= curve.null_low) & (curve.y <= curve.null_high)) > 0.8


def test_long_curves_are_thinned_and_keep_the_worst_interval():
    y, f = world(16, n=20_000)
    curve = cumulative_difference_curve(y, f)
    assert len(curve) <= 1002
    low, high = curve.details["interval"]
    for end in (low, high):
        assert np.isinf(end) or end in curve.details["score"]
    assert np.ptp(np.append(curve.y, 0.0)) == pytest.approx(curve.details["error"])
    assert len(reliability_curve(y, f, n_draws=19, random_state=0)) <= 1000


def test_bands_that_do_not_exist_say_why():
    y, f = world(17)
    soft = np.clip(f + 0.01, 0, 1)
    assert "soft" in reliability_curve(soft, f).reason
    assert "soft" in cumulative_difference_curve(soft, f).reason
    weighted = reliability_curve(y, f, sample_weight=np.full(600, 0.3))
    assert weighted.null_low is None
    assert "whole numbers" in weighted.reason


def test_a_slope_without_surprises_has_a_reason_instead_of_an_interval():
    """Ten expected events of a thousand are enough, one is not, however many there were."""
    x = (np.arange(1000) + 0.5) / 1000
    for expected, events in ((10.0, 12), (1.0, 4)):
        f, y = expected / 1000 * 2 * x, np.zeros(1000, dtype=int)
        y[np.linspace(100, 999, events).astype(int)] = 1
        table = calibration_slope(y, f)
        for e in table.values():
            assert e.value is not None
            assert (e.low is None) == (e.p_value is None) == (expected == 1.0)
            assert ("surprises" in (e.reason or "")) == (expected == 1.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("stated", [5e-324, 1e-310, 1e-200])
def test_probabilities_next_to_zero_are_tested_without_overflow(stated):
    found = calibration_tests(np.arange(24) % 2, np.full(24, stated), random_state=0)
    assert all(np.isfinite(estimate.value) for estimate in found.values())
    assert found["verdict"].p_value == 0.001
