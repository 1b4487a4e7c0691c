"""The ten criteria against their definitions, and the identities between them."""

import numpy as np
import pytest

from calipers.conformal import ConformalRegressor, conformal_p_values
from calipers.exceptions import DeprecatedNameWarning, InputError
from calipers.metrics import (
    average_p_value,
    efficiency,
    efficiency_by_label,
    efficiency_curve,
    efficiency_difference,
    p_value_uniformity,
    regression_efficiency,
)

NAMES = ("S", "N", "U", "F", "M", "E", "OU", "OF", "OM", "OE", "credibility", "empty")


def by_definition(p, y, alpha):
    """One row, in the words of section 2."""
    kept = {k for k in range(len(p)) if p[k] > alpha}
    false = [p[k] for k in range(len(p)) if k != y]
    ordered = sorted(p)
    return {
        "S": sum(p),
        "N": len(kept),
        "U": min(max(p[j] for j in range(len(p)) if j != k) for k in range(len(p))),
        "F": sum(p) - max(p),
        "M": len(kept) > 1,
        "E": max(len(kept) - 1, 0),
        "OU": max(false),
        "OF": sum(false),
        "OM": bool(kept - {y}),
        "OE": len(kept - {y}),
        "credibility": ordered[-1],
        "empty": not kept,
    }


@pytest.fixture
def rows():
    rng = np.random.default_rng(8)
    p = rng.integers(1, 21, (90, 5)) / 20  # ties within rows, and p-values equal to alpha
    p[:9] = rng.integers(1, 3, (9, 5)) / 20
    return rng.integers(0, 5, 90), p


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.35])
def test_the_table_holds_the_means_of_the_definitions(rows, alpha):
    y, p = rows
    expected = [by_definition(row.tolist(), k, alpha) for row, k in zip(p, y, strict=True)]
    table = efficiency(y, p, alpha=alpha)
    assert tuple(table) == NAMES
    for name in NAMES:
        assert float(table[name]) == pytest.approx(np.mean([e[name] for e in expected]), abs=1e-12), name


def test_the_printed_table_says_which_criteria_are_probabilistic(rows):
    table = efficiency(*rows)
    assert {name for name in NAMES if table[name].details["probabilistic"]} == {"S", "N", "OF", "OE"}
    assert "S, N, OF, OE are probabilistic" in str(table)
    assert table["U"].details["tie_break"] == table["F"].details["tie_break"] == "credibility"
    assert table["M"].details["tie_break"] == table["E"].details["tie_break"] == "empty"
    assert "true probabilities, ties broken well" in str(efficiency(rows[0] % 2, rows[1][:, :2]))


@pytest.mark.parametrize(
    ("free", "level"),
    [("S", "N"), ("U", "M"), ("F", "E"), ("OU", "OM"), ("OF", "OE"), ("credibility", "empty")],
)
def test_level_free_criteria_are_integrals_of_their_partners(rows, free, level):
    # p-values are multiples of 1/20: the curves are constant on [k/20, (k+1)/20).
    y, p = rows
    curve = efficiency_curve(y, p, criterion=level, alpha=(np.arange(20) + 0.5) / 20)
    integral = float(curve.y.mean())
    value = float(efficiency(y, p)[free])
    assert value == pytest.approx(1 - integral if free == "credibility" else integral, abs=1e-12)


def test_with_two_labels_ten_criteria_become_six(rows):
    y, p = rows[0] % 2, rows[1][:, :2]
    table = efficiency(y, p, alpha=0.35)
    for one, two in (("U", "F"), ("M", "E"), ("OU", "OF"), ("OM", "OE")):
        assert float(table[one]) == pytest.approx(float(table[two]), abs=1e-12)


def test_one_label_has_no_second_and_no_false_one():
    table = efficiency(np.zeros(4, dtype=int), np.full((4, 1), 0.5))
    assert [float(table[k]) for k in ("S", "U", "F", "OU", "OF", "OE")] == [0.5, 0, 0, 0, 0, 0]


def test_levels_may_differ_by_label(rows):
    y, p = rows
    levels = [0.05, 0.1, 0.2, 0.4, 0.8]
    sizes = (p > np.array(levels)).sum(axis=1)
    table = efficiency(y, p, label_alpha=levels)
    assert float(table["N"]) == pytest.approx(sizes.mean())
    named = efficiency(y, p, label_alpha=dict(zip(range(5), levels, strict=True)))
    assert named.to_dict() == table.to_dict()
    by_label = efficiency_by_label(y, p, label_alpha=levels, criteria=["N"])
    assert float(by_label["N | 1"]) == pytest.approx(sizes[y == 1].mean())
    difference = efficiency_difference(y, p, p / 2, label_alpha=levels)["N"]
    halved = (p / 2 > np.array(levels)).sum(axis=1)
    assert float(difference) == pytest.approx((sizes - halved).mean())


def test_a_level_per_label_as_alpha_warns_and_works(rows):
    y, p = rows
    levels = [0.05, 0.1, 0.2, 0.4, 0.8]
    with pytest.warns(DeprecatedNameWarning, match="now called label_alpha"):
        old = efficiency(y, p, alpha=levels)
    assert old.to_dict() == efficiency(y, p, label_alpha=levels).to_dict()
    with pytest.raises(InputError, match="label_alpha must have one level per label, 5, got 2"):
        efficiency(y, p, label_alpha=[0.1, 0.2])
    with pytest.raises(InputError, match=r"one per label \(5\), got 2.*efficiency_curve"):
        efficiency(y, p, alpha=[0.1, 0.2])


def test_float32_p_values_equal_to_alpha_are_dropped():
    p = np.array([[0.1, 0.5]], dtype=np.float32)
    assert float(efficiency([1], p, alpha=0.1, classes=[0, 1])["N"]) == 1
    assert float(efficiency([1], p.astype(float), alpha=0.1, classes=[0, 1])["N"]) == 2  # float32(0.1) > 0.1


def test_levels_given_as_one_minus_a_confidence_mean_what_people_mean():
    assert float(efficiency([1], [[0.1, 0.5]], alpha=1 - 0.9, classes=[0, 1])["N"]) == 1


def test_s_phi_sums_transformed_p_values(rows):
    y, p = rows
    table = efficiency(y, p, phi=np.sqrt)
    assert float(table["S_phi"]) == pytest.approx(np.sqrt(p).sum(axis=1).mean())
    assert table["S_phi"].details["probabilistic"]
    for bad in (lambda x: -x, lambda x: x * 0, lambda x: 1 / x):
        with np.errstate(all="ignore"), pytest.raises(InputError, match="strictly increasing"):
            efficiency(y, p, phi=bad)


def test_by_label_averages_over_the_rows_of_each_label(rows):
    y, p = rows
    names = np.array(["e", "d", "c", "b", "a"])
    table = efficiency_by_label(names[y], p, classes=names, criteria=["OF", "M"], alpha=0.3)
    expected = efficiency(y[y == 1], p[y == 1], alpha=0.3, classes=range(5))
    for name in ("OF", "M"):
        assert float(table[f"{name} | d"]) == pytest.approx(float(expected[name]))
    with pytest.raises(InputError, match="no criterion 'Z'"):
        efficiency_by_label(y, p, criteria=["Z"])


def test_the_difference_is_paired_and_prefers_the_smaller(rows):
    y, p = rows
    table = efficiency_difference(y, p, p**1.5, alpha=0.2)
    gap = p.sum(axis=1) - (p**1.5).sum(axis=1)
    assert float(table["S"]) == pytest.approx(gap.mean())
    assert table["S"].std_error == pytest.approx(gap.std(ddof=1) / np.sqrt(90))
    assert table["S"].details["preferred"] == "second"
    assert table["S"].p_value < 1e-6


def test_ties_are_broken_by_credibility_and_by_empty_sets():
    y = np.zeros(3, dtype=int)
    first, second = np.full((3, 3), 0.3), np.full((3, 3), 0.3)
    first[:, 0], second[:, 0] = 0.6, 0.9  # same U and F, smaller credibility first
    table = efficiency_difference(y, first, second, alpha=0.7)
    assert float(table["U"]) == float(table["M"]) == 0
    assert table["U"].details["preferred"] == table["F"].details["preferred"] == "first"
    assert table["M"].details["preferred"] == table["E"].details["preferred"] == "first"  # more empty sets
    assert table["N"].details["preferred"] == "first"
    assert efficiency_difference(y, first, first)["U"].details["preferred"] is None


def test_sums_that_are_equal_in_exact_arithmetic_do_not_differ():
    # F is 0.5 in both; 0.6 + 0.3 + 0.2 - 0.6 is not 0.5 in floating point. Smaller credibility: the second.
    table = efficiency_difference([0, 0], [[0.6, 0.3, 0.2]] * 2, [[0.5, 0.2, 0.3]] * 2, classes=range(3))
    assert float(table["F"]) == 0
    assert (table["F"].details["preferred"], table["F"].p_value) == ("second", 1.0)
    assert table["OF"].details["preferred"] is None
    # 0.1 + 0.2 against 0.3 + 0, and +0.1 in one row with -0.1 in another.
    table = efficiency_difference([0, 0], [[1, 0.1, 0.2], [1, 0.3, 0.2]], [[1, 0.3, 0], [1, 0.2, 0.3]])
    assert float(table["OF"]) == 0
    table = efficiency_difference([0, 0], [[1, 0.1], [1, 0.4]], [[1, 0.2], [1, 0.3]], classes=[0, 1])
    assert float(table["S"]) == 0
    assert table["S"].details["preferred"] is None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_permuted_false_labels_are_no_difference(dtype):
    for seed in range(50):
        rng = np.random.default_rng(seed)
        p = (rng.integers(1, 1001, (60, 6)) / 1001).astype(dtype)
        other = np.c_[p[:, :1], rng.permuted(p[:, 1:], axis=1)]
        table = efficiency_difference(np.zeros(60, dtype=int), p, other, classes=range(6))
        assert {float(table[name]) for name in NAMES} == {0.0}
        assert {table[name].details["preferred"] for name in NAMES} == {None}
        assert {table[name].p_value for name in NAMES} == {1.0}


def test_a_constant_shift_is_a_difference_without_a_p_value_of_0():
    p = 0.2 + 0.8 * np.random.default_rng(0).random((40, 3))
    e = efficiency_difference(np.zeros(40, dtype=int), p, p - 0.1, classes=range(3))["S"]
    assert float(e) == pytest.approx(0.3)
    assert 0 < e.p_value < 1e-6
    # What equal predictors with differences of this size would read, not rounding.
    assert 0.05 < e.null_high < 0.3
    assert e.low < 0.3 < e.high
    assert "two equal predictors would read -0.1" in str(e)


def test_ends_stay_in_the_range_and_excess_has_an_interval_whenever_multiple_has():
    y, p = np.zeros(2, dtype=int), np.array([[0.9, 0.05, 0.05, 0.05], [0.95, 0.3, 0.3, 0.3]])
    table = efficiency(y, p, classes=range(4))
    tops = dict.fromkeys(NAMES, 1) | {"S": 4, "N": 4, "F": 3, "E": 3, "OF": 3, "OE": 3}
    for name, e in table.items():
        assert 0 <= e.low <= e.value <= e.high <= tops[name], name
    nothing = efficiency(y[:1], p[:1], classes=range(4))
    for name, e in nothing.items():
        assert e.low is not None, name
    assert nothing["OE"].high == pytest.approx(3 * nothing["OM"].high)


def test_discordant_rows_are_tested_exactly():
    y = np.zeros(12, dtype=int)
    first = np.tile([0.9, 0.05], (12, 1))
    second = first.copy()
    second[:9, 1] = 0.5
    e = efficiency_difference(y, first, second, classes=[0, 1])["M"]
    assert (e.details["first_only"], e.details["second_only"]) == (0, 9)
    assert e.p_value == pytest.approx(2 / 2**9)
    with pytest.raises(InputError, match="same columns, got 2 and 3"):
        efficiency_difference(y, first, np.ones((12, 3)), classes=[0, 1])


def test_the_curve_refuses_level_free_criteria(rows):
    with pytest.raises(InputError, match="criterion must be one of N, M, E, OM, OE, empty"):
        efficiency_curve(*rows, criterion="S")


def test_the_integrated_p_value_of_absolute_residuals_is_twice_their_sum():
    # #{s_i >= |y - f|} integrated over y is 2 sum s_i: beyond alpha = 1/(n+1) the integral is 2 sum / (n+1).
    rng = np.random.default_rng(3)
    X, y = np.zeros((24, 1)), rng.normal(size=24)
    model = ConformalRegressor().fit(np.zeros((5, 1)), np.zeros(5)).conformalize(X, y)
    levels = [k / 25 for k in range(1, 25)]
    intervals = model.predict_interval(X[:3], levels)
    table = regression_efficiency(intervals, alpha=levels, step=True)
    # The last level, 24/25, has the smallest residual; from there to 1 the set keeps that width.
    tail = 2 * np.abs(y).min() / 25
    assert float(table["integrated p-value"]) + tail == pytest.approx(2 * np.abs(y).sum() / 25)
    details = table["integrated p-value"].details
    assert details["lower"] < float(table["integrated p-value"]) == pytest.approx(details["upper"])


def test_infinite_intervals_give_an_infinite_size():
    table = regression_efficiency([[-np.inf, np.inf], [0.0, 1.0]], alpha=0.1)
    assert float(table["size at 0.1"]) == np.inf
    with pytest.raises(InputError, match=r"alpha must name the 1 level\(s\)"):
        regression_efficiency([[0.0, 1.0]], alpha=[0.1, 0.2])


def test_the_old_name_of_alpha_warns_and_works():
    with pytest.warns(DeprecatedNameWarning, match="alphas is now called alpha"):
        old = regression_efficiency([[0.0, 1.0], [0.0, 3.0]], alphas=0.1)
    assert float(old["size at 0.1"]) == 2.0


def test_no_mean_width_is_negative():
    table = regression_efficiency([[0.0, 0.1], [0.0, 9.0]], alpha=0.1)
    assert (table["size at 0.1"].low, float(table["size at 0.1"])) == (0.0, pytest.approx(4.55))


def test_uniformity_is_the_kolmogorov_distance():
    from scipy import stats

    rng = np.random.default_rng(1)
    p = np.stack([rng.random(80) ** 1.3, np.ones(80)], axis=1)
    y = np.zeros(80, dtype=int)
    e = p_value_uniformity(y, p)
    reference = stats.kstest(p[:, 0], "uniform")
    assert float(e) == pytest.approx(reference.statistic)
    assert e.p_value == pytest.approx(reference.pvalue)
    one = p_value_uniformity(y, p, smoothed=False)
    reference = stats.kstest(p[:, 0], "uniform", alternative="greater")
    assert (float(one), one.p_value) == (pytest.approx(reference.statistic), pytest.approx(reference.pvalue))


def test_the_average_p_value_of_anomalies_is_small():
    rng = np.random.default_rng(2)
    p = conformal_p_values(rng.normal(size=99), rng.normal(3, 1, size=50))
    assert float(average_p_value(p)) == pytest.approx(p.mean())
    assert average_p_value(p).high < 0.1
    with pytest.raises(InputError, match=r"p_values must lie in \[0, 1\]"):
        average_p_value([1.2])


def test_the_old_name_of_the_levels_of_a_curve_warns():
    with pytest.warns(DeprecatedNameWarning, match="alphas is now called alpha"):
        old = efficiency_curve([0], [[0.5, 0.25]], alphas=[0.1, 0.3])
    assert old.y.tolist() == efficiency_curve([0], [[0.5, 0.25]], alpha=[0.1, 0.3]).y.tolist()


def test_the_name_of_a_label_does_not_depend_on_which_zero_came_first():
    p = np.random.default_rng(0).random((4, 2))
    for y in ([-0.0, 1.0, 0.0, 1.0], [0.0, 1.0, -0.0, 1.0]):
        assert list(efficiency_by_label(y, p, criteria=["OF"])) == ["OF | 0.0", "OF | 1.0"]
