"""Decisions under unequal costs, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from calipers.calibration import bayes_decision, cost_curve, loss_ratio, loss_ratio_curve
from calipers.datasets import ScoreWorld
from calipers.exceptions import DeprecatedNameWarning, InputError

Y = np.array([1, 1, 0, 0, 1, 0])
BEFORE = np.array([0.9, 0.15, 0.3, 0.05, 0.5, 0.25])
AFTER = np.array([0.9, 0.25, 0.1, 0.05, 0.5, 0.25])
COSTS = {"false_positive_cost": 1.0, "false_negative_cost": 4.0}  # threshold 0.2


def test_the_threshold_itself_acts() -> None:
    p = [0.1999, 0.2, 0.2001]
    assert bayes_decision(p, **COSTS).tolist() == [False, True, True]


@pytest.mark.parametrize(("fp", "fn", "t"), [(1, 9, 0.1), (0.3, 0.7, 0.3), (7, 3, 0.7), (3, 1, 0.75)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_probability_equal_to_the_threshold_acts_in_every_precision(
    fp: float, fn: float, t: float, dtype: type
) -> None:
    assert bayes_decision(np.array([t], dtype), false_positive_cost=fp, false_negative_cost=fn)[0]


def test_free_mistakes() -> None:
    p = [0.0, 0.5, 1.0]
    assert bayes_decision(p, false_positive_cost=0, false_negative_cost=1).all()
    assert bayes_decision(p, false_positive_cost=1, false_negative_cost=0).tolist() == [False, False, True]


def test_two_columns_and_torch() -> None:
    torch = pytest.importorskip("torch")
    matrix = torch.tensor([[0.9, 0.1], [0.3, 0.7]])
    assert bayes_decision(matrix, **COSTS).tolist() == [False, True]


def test_claim_1_no_rule_on_calibrated_levels_costs_less() -> None:
    """All 2^4 rules on four calibrated levels, by enumeration of the population."""
    levels, shares = np.array([0.1, 0.3, 0.6, 0.9]), np.array([0.4, 0.3, 0.2, 0.1])
    act = shares * (1 - levels) * 1.0
    refrain = shares * levels * 2.5
    rules = (np.arange(16)[:, None] >> np.arange(4)) & 1
    best = np.where(rules == 1, act, refrain).sum(axis=1).min()
    chosen = bayes_decision(levels, false_positive_cost=1.0, false_negative_cost=2.5)
    assert np.where(chosen, act, refrain).sum() == pytest.approx(best, rel=1e-15)


def test_loss_ratio_by_hand() -> None:
    # Before: row 1 is a false negative (4), rows 2 and 5 false positives (1 each): 6. After: row 5 only: 1.
    ratio = loss_ratio(Y, BEFORE, AFTER, **COSTS)
    assert ratio.value == pytest.approx(1 / 6)
    assert ratio.details["loss_before"] == pytest.approx(1.0)
    assert ratio.details["loss_after"] == pytest.approx(1 / 6)
    assert ratio.details["changed"] == 2
    assert ratio.n == 6


def test_weights_mean_repetition() -> None:
    times = np.array([1, 3, 2, 0, 1, 2])
    weighted = loss_ratio(Y, BEFORE, AFTER, **COSTS, sample_weight=times)
    index = np.repeat(np.arange(6), times)
    repeated = loss_ratio(Y[index], BEFORE[index], AFTER[index], **COSTS)
    for field in ("value", "std_error", "low", "high", "p_value", "n"):
        assert getattr(weighted, field) == pytest.approx(getattr(repeated, field)), field


def test_the_order_of_rows_does_not_matter() -> None:
    order = np.array([3, 1, 0, 5, 4, 2])
    one = loss_ratio(Y, BEFORE, AFTER, **COSTS)
    other = loss_ratio(Y[order], BEFORE[order], AFTER[order], **COSTS)
    assert (one.low, one.high) == (other.low, other.high)


def test_nothing_lost_before_is_undefined_with_a_reason() -> None:
    ratio = loss_ratio([0, 1], [0.1, 0.9], [0.6, 0.9], **COSTS)
    assert np.isnan(ratio.value)
    assert "nothing was lost before" in ratio.reason


def test_no_change_is_a_ratio_of_one_with_an_error_bar() -> None:
    # Decisions that did not change in six rows may still change in others.
    ratio = loss_ratio(Y, BEFORE, BEFORE, **COSTS)
    assert ratio.value == 1
    assert ratio.low < 1 < ratio.high
    assert ratio.p_value == 1


def test_nothing_lost_after_has_an_upper_end() -> None:
    ratio = loss_ratio(Y, BEFORE, Y.astype(float), **COSTS)
    assert ratio.value == ratio.low == 0
    assert 0 < ratio.high < np.inf


def test_equal_costs_are_tested_as_discordant_rows() -> None:
    # 9 false negatives become right, 2 negatives become false positives: 2 P(K <= 2), K of 11.
    y = np.r_[np.ones(9), np.zeros(2), np.zeros(20)].astype(int)
    before = np.r_[np.full(9, 0.2), np.full(22, 0.1)]
    after = np.r_[np.full(11, 0.8), np.full(20, 0.1)]
    ratio = loss_ratio(y, before, after, false_positive_cost=1, false_negative_cost=1)
    assert ratio.p_value == pytest.approx(2 * stats.binom.cdf(2, 11, 0.5))
    assert ratio.details["difference"] == pytest.approx(-7 / 31)


def test_the_interval_and_the_standard_error_shrink_with_the_rows() -> None:
    p, y = ScoreWorld("uniform", "shift", 1.0).sample(4000, random_state=0)
    after = np.clip(p + 0.1, 0, 1)
    plain = loss_ratio(y, p, after, **COSTS)
    heavy = loss_ratio(y, p, after, **COSTS, sample_weight=np.full(4000, 1000))
    assert heavy.value == pytest.approx(plain.value)
    assert heavy.std_error == pytest.approx(plain.std_error / np.sqrt(1000), rel=0.001)
    # Many rows: the interval of the delta method.
    assert heavy.high - heavy.low == pytest.approx(2 * 1.96 * heavy.std_error, rel=0.01)


def test_the_curves_are_their_points() -> None:
    grid = [0.2, 0.5]
    cost = cost_curve(Y, BEFORE, thresholds=grid)
    # Threshold 0.2: one false negative 0.8, two false positives 0.2 each, of six rows. Threshold 0.5: row
    # 1, 0.5.
    assert cost.y.tolist() == pytest.approx([1.2 / 6, 0.5 / 6])
    ratio = loss_ratio_curve(Y, BEFORE, AFTER, thresholds=grid)
    assert ratio.y.tolist() == pytest.approx([1 / 6, 1.0])
    assert ratio.details["mean"] == pytest.approx((1 / 6 + 1) / 2)
    assert cost_curve(Y, BEFORE).x.size == loss_ratio_curve(Y, BEFORE, AFTER).x.size == 19


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ((-1, 1), "false_positive_cost must be a finite number of at least 0, got -1"),
        ((1, np.inf), "false_negative_cost must be a finite number"),
        ((1, "2"), "false_negative_cost must be a finite number of at least 0, got '2'"),
        ((0, 0), "must not both be 0"),
    ],
)
def test_impossible_costs_are_named(costs: tuple, message: str) -> None:
    with pytest.raises(InputError, match=message):
        bayes_decision([0.5], false_positive_cost=costs[0], false_negative_cost=costs[1])


def test_bad_rows_are_named() -> None:
    with pytest.raises(InputError, match=r"after must lie in \[0, 1\]"):
        loss_ratio([0, 1], [0.1, 0.9], [0.1, 9.0], **COSTS)
    with pytest.raises(InputError, match="must have the same length"):
        loss_ratio([0, 1], [0.1, 0.9], [0.1], **COSTS)
    with pytest.raises(InputError, match="thresholds must lie strictly between 0 and 1"):
        cost_curve([0, 1], [0.1, 0.9], thresholds=[0.0, 0.5])


@pytest.mark.parametrize("function", [loss_ratio, loss_ratio_curve])
@pytest.mark.parametrize("option", [{"n_draws": 99}, {"random_state": 0}])
def test_options_of_draws_that_are_no_longer_made_warn(function, option):
    costs = COSTS if function is loss_ratio else {"thresholds": [0.5]}
    with pytest.warns(DeprecatedNameWarning, match=f"{next(iter(option))} has no effect"):
        drawn = function(Y, BEFORE, AFTER, **costs, **option)
    assert drawn.to_dict() == function(Y, BEFORE, AFTER, **costs).to_dict()
