"""calibration_error: fields, refusals, weights, soft labels, several classes."""

import math

import numpy as np
import pytest

from calipers.exceptions import InputError
from calipers.metrics import calibration_error
from calipers.metrics.reliability import asymptotic_upper_bound, upper_bound


def world(seed, n=800, power=1.0, decimals=None):
    rng = np.random.default_rng(seed)
    f = rng.random(n)
    f = f if decimals is None else np.round(f, decimals)
    return rng.random(n) < f**power, f


def test_fields_say_what_the_contract_promises():
    y, f = world(1, power=2.0)
    error = calibration_error(y, f, random_state=0)
    low, high = error.details["interval"]
    inside = (f > low) & (f <= high)
    assert error.details["sign"] == -1
    assert -np.sum((y - f)[inside]) / 800 == pytest.approx(error.value)
    assert error.low == error.details["low_bound"] > 0
    assert error.high == upper_bound(error.value, float(np.mean((y - f) ** 2)), 800)
    assert error.details["low_bound"] < error.value < error.details["asymptotic_high"] < error.high
    assert error.p_value == 0.001
    assert error.null_high < 0.05
    assert error.details["guaranteed"] is True
    assert "guaranteed" in error.method


def test_the_sentence_names_place_direction_and_size():
    f = np.repeat([0.1, 0.7, 0.9], 100)
    y = np.concatenate([np.arange(100) < 10, np.arange(100) < 40, np.arange(100) < 90])
    error = calibration_error(y, f, random_state=0)
    assert error.value == pytest.approx(0.1)
    assert error.details["interval"] == (0.1, 0.7)
    assert error.details["sentence"] == (
        "between 0.10 and 0.70 the model is over-confident by 0.30: "
        "it states 0.700 on average and 0.400 happens (33.3 % of rows)"
    )


def test_a_calibrated_constant_is_not_accused_when_positives_come_first():
    error = calibration_error(np.repeat([1, 0], 500), np.full(1000, 0.5), random_state=0)
    assert error.value == 0.0
    assert error.p_value == 1.0
    assert error.details["interval"] is None
    assert "no interval" in error.details["sentence"]


def test_the_p_value_does_not_depend_on_the_order_of_rows():
    y, f = world(2, decimals=1)
    readings = [
        calibration_error(y[order], f[order], random_state=3)
        for order in (np.arange(800), np.argsort(y), np.argsort(-f))
    ]
    assert len({r.p_value for r in readings}) == 1
    assert len({r.null_high for r in readings}) == 1


@pytest.mark.parametrize(("bad", "match"), [(np.nan, "1 NaN of 50"), (1.5, r"\[0, 1\]"), (-0.1, r"\[0, 1\]")])
def test_scores_that_are_no_probabilities_are_refused(bad, match):
    f = np.full(50, 0.5)
    f[7] = bad
    with pytest.raises(InputError, match=match):
        calibration_error(np.arange(50) % 2, f)


def test_refusals_name_the_argument():
    with pytest.raises(InputError, match="multiclass must be one of top_label, classwise, max"):
        calibration_error([0, 1], [0.5, 0.5], multiclass="all")
    with pytest.raises(InputError, match="n_models must be a whole number of at least 1, got 0"):
        calibration_error([0, 1], [0.5, 0.5], n_models=0)
    with pytest.raises(InputError, match="same length"):
        calibration_error([0, 1, 1], [0.5, 0.5])
    with pytest.raises(InputError, match="at least one row"):
        calibration_error([], [])


@pytest.mark.parametrize("label", [0, 1])
def test_a_single_class_is_allowed(label):
    error = calibration_error(np.full(200, label), np.full(200, 0.25), random_state=0)
    assert error.value == pytest.approx(abs(label - 0.25))
    assert error.p_value == 0.001


def test_one_row_is_enough():
    error = calibration_error([1], [0.75], random_state=0)
    assert error.value == 0.25
    assert 0.9 < error.high <= 1.0


def test_two_columns_and_pos_label_name_the_same_event():
    y, f = world(3)
    names = np.where(y, "sick", "healthy")
    P = np.column_stack([f, 1 - f])[:, ::-1]  # columns: healthy, sick
    one = calibration_error(y, f, random_state=0)
    assert calibration_error(names, P, random_state=0).value == pytest.approx(one.value)
    sick = calibration_error(names, P, pos_label="sick", random_state=0)
    healthy = calibration_error(names, P, pos_label="healthy", random_state=0)
    assert sick.value == pytest.approx(healthy.value)
    assert sick.details["sign"] == -healthy.details["sign"]


def test_the_column_of_an_unknown_single_label_is_asked_for():
    with pytest.raises(InputError, match="column of probabilities is unknown"):
        calibration_error(["a", "a"], [[0.5, 0.5], [0.4, 0.6]], pos_label="a")


def test_soft_labels_have_a_bound_and_no_test():
    rng = np.random.default_rng(4)
    f = rng.random(500)
    error = calibration_error(np.clip(f + 0.1, 0, 1), f)
    assert error.p_value is None
    assert "soft labels" in error.reason
    assert error.high > error.value
    assert error.details["guaranteed"]


def test_unequal_weights_have_an_asymptotic_bound_only():
    y, f = world(5, power=1.5)
    w = np.random.default_rng(5).random(800) + 0.5
    error = calibration_error(y, f, sample_weight=w, random_state=0)
    n_effective = w.sum() ** 2 / np.sum(w**2)
    second = float(np.average((y - f) ** 2, weights=w**2))
    assert error.high == pytest.approx(asymptotic_upper_bound(error.value, second, n_effective))
    assert error.details["guaranteed"] is False
    assert error.details["guaranteed_band"] is None
    assert "not guaranteed" in error.reason
    assert "guaranteed" not in error.method


def test_equal_weights_change_no_bound():
    y, f = world(6)
    plain = calibration_error(y, f, random_state=0)
    halved = calibration_error(y, f, sample_weight=np.full(800, 0.5), random_state=0)
    assert halved.high == pytest.approx(plain.high)
    assert halved.details["guaranteed"]


def test_whole_number_weights_give_the_p_value_of_repeated_rows():
    y, f = world(7, n=200, decimals=1)
    w = np.random.default_rng(7).integers(0, 4, 200)
    weighted = calibration_error(y, f, sample_weight=w, random_state=1)
    repeated = calibration_error(np.repeat(y, w), np.repeat(f, w), random_state=1)
    assert weighted.value == pytest.approx(repeated.value)
    assert weighted.p_value == repeated.p_value
    assert weighted.null_high == pytest.approx(repeated.null_high)


def test_several_models_on_the_same_rows_share_the_allowed_error():
    y, f = world(8)
    ten = calibration_error(y, f, n_models=10, random_state=0)
    assert ten.high == pytest.approx(calibration_error(y, f, confidence=0.995, random_state=0).high)


def test_more_levels_than_coins_use_the_asymptotic_law():
    y, f = world(9, n=3000)
    error = calibration_error(y, f, n_draws=50_000)
    assert "Brownian" in error.method
    x = error.value * 3000 / math.sqrt(np.sum(f * (1 - f)))
    assert error.p_value == pytest.approx(error.details["asymptotic_p_value"])
    assert (x > 2.4977) == (error.p_value < 0.05)


def test_outcomes_stated_to_be_impossible_are_counted():
    error = calibration_error([1, 0, 1, 0], [0.0, 0.0, 1.0, 1.0], random_state=0)
    assert error.details["impossible"] == 2
    assert error.p_value == 0.001


def classes(seed, n=400, k=3):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), n)
    codes = (rng.random((n, 1)) > np.cumsum(P, axis=1)).sum(axis=1)
    return codes, P


def test_top_label_is_the_binary_error_of_the_largest_probability():
    codes, P = classes(10)
    error = calibration_error(codes, P, random_state=0)
    binary = calibration_error(P.argmax(axis=1) == codes, P.max(axis=1), random_state=0)
    assert error.value == binary.value
    assert error.p_value == binary.p_value
    assert error.details["multiclass"] == "top_label"


@pytest.mark.parametrize(("kind", "combine"), [("max", np.max), ("classwise", np.mean)])
def test_class_errors_are_combined_and_bounded_for_all_classes_at_once(kind, combine):
    codes, P = classes(11)
    error = calibration_error(codes, P, multiclass=kind, random_state=0)
    each = [calibration_error(codes == k, P[:, k], n_models=3, random_state=0) for k in range(3)]
    assert error.value == pytest.approx(combine([e.value for e in each]))
    assert error.high == pytest.approx(combine([e.high for e in each]))
    assert list(error.details["per_class"]) == [0, 1, 2]
    assert 0.001 <= error.p_value <= 1


def test_a_wrong_class_is_found_and_named():
    rng = np.random.default_rng(12)
    codes, P = classes(12, n=1500)
    codes = np.where((codes == 2) & (rng.random(1500) < 0.5), 0, codes)
    names = np.array(["ant", "bee", "cat"])[codes]
    error = calibration_error(names, P, multiclass="max", random_state=0)
    assert error.details["class"] in {"ant", "cat"}
    assert error.p_value == 0.001
    assert calibration_error(names, P, multiclass="classwise", random_state=0).p_value == 0.001


def test_too_many_labels_to_draw_fall_back_on_bonferroni():
    codes, P = classes(13, n=400)
    error = calibration_error(codes, P, multiclass="max", sample_weight=np.full(400, 1000), random_state=0)
    assert "Bonferroni" in error.method


def test_repeated_rows_and_weights_agree_with_several_classes():
    codes, P = classes(14, n=120)
    w = np.random.default_rng(14).integers(1, 4, 120)
    weighted = calibration_error(codes, P, multiclass="max", sample_weight=w, random_state=1)
    repeated = calibration_error(
        np.repeat(codes, w), np.repeat(P, w, axis=0), multiclass="max", random_state=1
    )
    assert weighted.value == pytest.approx(repeated.value)
    assert weighted.p_value == repeated.p_value


@pytest.mark.parametrize("multiclass", ["top_label", "max", "classwise"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_of_weight_zero_leave_the_guarantee_of_the_bound(n_classes, multiclass):
    rng = np.random.default_rng(11)
    P = rng.dirichlet(np.ones(n_classes), 300)
    y = np.array([rng.choice(n_classes, p=p) for p in P])
    weights = np.repeat([0.0, 1.0], 150)
    options = {"multiclass": multiclass, "random_state": 0} if n_classes > 2 else {"random_state": 0}
    found = calibration_error(y, P, sample_weight=weights, **options)
    expected = calibration_error(y[150:], P[150:], **options)
    assert found.high == pytest.approx(expected.high, rel=1e-12)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    assert found.details["guaranteed"] is expected.details["guaranteed"] is True


@pytest.mark.parametrize("expected", [0.2, 0.5])
def test_one_event_where_few_are_expected_is_no_surprise(expected):
    # 20 000 distinct scores: the asymptotic law gave p = 1e-4 and less to the one event of 0.2 expected ones.
    f = np.random.default_rng(0).random(20_000)
    f *= expected / f.sum()
    y = np.zeros(20_000, dtype=bool)
    y[np.argsort(f)[10_000]] = True
    error = calibration_error(y, f, random_state=0)
    at_least_one = 1 - np.exp(-expected)
    assert "cells of the score" in error.method
    assert error.p_value == pytest.approx(at_least_one, abs=0.06)


def test_few_non_events_count_like_few_events():
    f = np.random.default_rng(0).random(20_000)
    f *= 1.0 / f.sum()
    y = np.random.default_rng(1).random(20_000) < f
    rare, sure = (calibration_error(o, p, random_state=0) for o, p in ((y, f), (~y, 1 - f)))
    assert sure.value == pytest.approx(rare.value)
    assert sure.p_value == pytest.approx(rare.p_value, abs=0.05)


def test_many_events_among_many_scores_have_the_asymptotic_law():
    y, f = world(8, n=20_000)
    assert "asymptotic law" in calibration_error(y, f, random_state=0).method


@pytest.mark.parametrize("decimals", [1, None])
def test_whole_weights_give_every_field_of_repeated_rows(decimals):
    y, f = world(9, n=3000, power=1.3, decimals=decimals)
    w = np.random.default_rng(9).integers(0, 4, 3000)
    weighted = calibration_error(y, f, sample_weight=w, random_state=1)
    repeated = calibration_error(np.repeat(y, w), np.repeat(f, w), random_state=1)
    for field in ("value", "std_error", "low", "high", "p_value", "null_high", "n"):
        assert getattr(weighted, field) == pytest.approx(getattr(repeated, field)), field
    assert weighted.details["guaranteed"]
    assert weighted.details["asymptotic_p_value"] == pytest.approx(repeated.details["asymptotic_p_value"])


def test_importance_weights_have_no_test_and_no_scale():
    y, f = world(10, power=1.5)
    w = np.random.default_rng(10).random(800)
    one, other = (calibration_error(y, f, sample_weight=c * w, random_state=0) for c in (1.0, 7.3))
    assert one.p_value is None
    assert "importance weights" in one.reason
    assert one.n == pytest.approx(w.sum() ** 2 / np.sum(w**2))
    for field in ("value", "std_error", "high", "n"):
        assert getattr(one, field) == pytest.approx(getattr(other, field)), field


def test_the_lower_end_is_zero_exactly_when_the_test_does_not_reject():
    ends = []
    for seed in range(40):
        y, f = world(seed, n=300, power=1.0 + 0.02 * seed, decimals=1)
        for confidence in (0.8, 0.95):
            error = calibration_error(y, f, confidence=confidence, n_draws=199, random_state=0)
            assert (error.low > 0) == (error.p_value <= 1 - confidence)
            assert error.low <= error.value <= error.high
            ends.append(error.low)
    # All three kinds are met: nothing shown, above 0 shown, a number shown.
    smallest = np.finfo(float).tiny
    assert {0.0, smallest} < set(ends)
    assert max(ends) > 0.01


def test_the_printed_line_says_that_both_ends_are_one_sided():
    y, f = world(1, power=2.0)
    assert "at 95 %, each end one-sided" in str(calibration_error(y, f, random_state=0))
    # Four impossible rows of 40: the test rejects, the asymptotic bound shows nothing.
    rare = calibration_error(np.arange(40) < 4, np.zeros(40), random_state=0)
    assert rare.p_value < 0.05
    assert "[> 0, " in str(rare)


def test_the_lower_end_over_classes_inverts_the_joint_test():
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(4), 2000)
    y = (rng.random((2000, 1)) > P.cumsum(axis=1)).sum(axis=1)
    skewed = P**2 / np.sum(P**2, axis=1, keepdims=True)
    for multiclass in ("classwise", "max"):
        sound, off = (calibration_error(y, p, multiclass=multiclass, random_state=0) for p in (P, skewed))
        assert (sound.low, sound.p_value > 0.05) == (0.0, True)
        assert off.p_value < 0.05
        assert 0 < off.low < off.value
