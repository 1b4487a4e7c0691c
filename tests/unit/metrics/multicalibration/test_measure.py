"""The multicalibration error against its definition, written out group by group."""

from itertools import combinations, product

import numpy as np
import polars as pl
import pytest

from calipers.exceptions import InputError
from calipers.metrics import calibration_error, multicalibration_error

N = 400


def rows(seed=0, n=N, decimals=2, levels=3, n_attributes=3):
    rng = np.random.default_rng(seed)
    stated = np.round(rng.uniform(0.05, 0.95, n), decimals)
    return rng.random(n) < stated, stated, rng.integers(0, levels, (n, n_attributes))


def walk_range(outcomes, stated):
    """Every interval of scores, one by one: |events - stated| inside, the largest."""
    ends = np.unique(stated)
    totals = [np.sum((outcomes - stated)[stated == end]) for end in ends]
    sums = [abs(sum(totals[i:j])) for i in range(len(ends)) for j in range(i + 1, len(ends) + 1)]
    return max(sums)


def brute_force(outcomes, stated, groups, depth):
    found = {}
    for size in range(1, depth + 1):
        for which in combinations(range(groups.shape[1]), size):
            for labels in product(*(np.unique(groups[:, j]) for j in which)):
                inside = np.all(groups[:, list(which)] == labels, axis=1)
                if inside.any():
                    name = " and ".join(f"g{j}={label}" for j, label in zip(which, labels, strict=True))
                    spread = np.sqrt(np.sum(stated[inside] * (1 - stated[inside])))
                    found[name] = walk_range(outcomes[inside], stated[inside]) / spread
    return found


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_every_group_reads_its_largest_difference_over_its_spread(depth):
    y, t, groups = rows(n_attributes=3, levels=2)
    error = multicalibration_error(y, t, groups, depth=depth, random_state=0)
    expected = brute_force(y, t, groups, depth)
    found = {name: group["value"] for name, group in error.details["groups"].items()}
    assert found == pytest.approx(expected, rel=1e-9)
    assert error.value == pytest.approx(max(expected.values()))
    assert error.details["worst"] == max(expected, key=expected.get)


def test_one_group_of_all_rows_is_the_calibration_error_on_its_own_scale():
    y, t, _ = rows()
    error = multicalibration_error(y, t, np.zeros(N), random_state=0)
    assert error.value == pytest.approx(
        float(calibration_error(y, t, random_state=0)) * N / np.sqrt(np.sum(t * (1 - t)))
    )
    assert error.details["worst"] == "0.0"


def test_a_constant_score_is_read_once_and_not_along_the_order_of_rows():
    # 20 of 40 happen, all stated at one half: no order of the rows shows a difference.
    y = np.repeat([True, False], 20)
    assert multicalibration_error(y, np.full(40, 0.5), np.zeros(40), random_state=0).value == 0.0


def test_the_order_of_rows_changes_nothing_at_all():
    y, t, groups = rows()
    order = np.random.default_rng(1).permutation(N)
    first = multicalibration_error(y, t, groups, random_state=0)
    again = multicalibration_error(y[order], t[order], groups[order], random_state=0)
    assert first == again


def test_whole_weights_are_repeated_rows_in_every_number():
    y, t, groups = rows()
    weights = np.random.default_rng(1).integers(0, 4, N)
    written_out = np.repeat(np.arange(N), weights)
    weighted = multicalibration_error(y, t, groups, sample_weight=weights, random_state=0)
    repeated = multicalibration_error(y[written_out], t[written_out], groups[written_out], random_state=0)
    assert weighted == repeated
    assert weighted.n == weights.sum()


def test_importance_weights_have_no_scale_and_no_test():
    y, t, groups = rows()
    weights = np.random.default_rng(1).uniform(0.5, 1.5, N)
    found = [multicalibration_error(y, t, groups, sample_weight=c * weights) for c in (1.0, 1000.0)]
    assert found[0].value == pytest.approx(found[1].value)
    assert found[0].p_value is None
    assert "importance" in found[0].reason or "whole" in found[0].reason


def test_importance_weights_enter_the_difference_and_its_spread():
    weights = np.array([0.5, 2.0, 1.5, 0.25])
    t, y = np.array([0.2, 0.4, 0.6, 0.8]), np.array([True, True, True, True])
    error = multicalibration_error(y, t, ["a"] * 4, sample_weight=weights)
    expected = np.sum(weights * (1 - t)) / np.sqrt(np.sum(weights**2 * t * (1 - t)))
    assert error.details["groups"]["a"]["value"] == pytest.approx(expected)


def test_groups_of_the_same_rows_count_once_under_the_shorter_name():
    y, t, groups = rows(n_attributes=1)
    twice = {"city": groups[:, 0], "country": groups[:, 0] // 2}
    error = multicalibration_error(y, t, twice, random_state=0)
    # country 1 is city 2; city 0 and country 0 together are city 0.
    assert set(error.details["groups"]) == {"city=0", "city=1", "city=2", "country=0"}


def test_a_rare_event_in_a_tiny_group_is_no_matter_of_ten_standard_deviations():
    y, t, _ = rows(n=1001)
    y[-1], t[-1] = True, 0.01
    groups = np.append(np.repeat(["many"], 1000), "one")
    error = multicalibration_error(y, t, groups, random_state=0)
    tiny = error.details["groups"]["one"]
    assert 0.99 / np.sqrt(0.0099) > 9.9
    assert tiny["value"] < 3
    # One in a hundred; the other group adds to it.
    assert 0.005 < tiny["p_value"] < 0.2


def test_an_outcome_that_was_promised_not_to_happen_rejects_by_itself():
    y, t, groups = rows(n=2000)
    y[5], t[5] = False, 1.0
    error = multicalibration_error(y, t, groups, random_state=0)
    held = [name for name, group in error.details["groups"].items() if group["value"] > 8]
    assert error.details["worst"] in held
    single = [f"g{j}={groups[5, j]}" for j in range(3)]
    assert set(held) == {*single, *(" and ".join(pair) for pair in combinations(single, 2))}
    assert 0 < error.p_value <= error.details["resolution"]
    assert np.isfinite(error.value)


def test_certain_statements_that_come_true_are_no_evidence():
    t = np.tile([0.0, 1.0], 20)
    error = multicalibration_error(t == 1, t, np.arange(40) % 3, random_state=0)
    assert error.value == 0.0
    assert error.p_value == 1.0


def test_several_classes_are_read_by_the_top_label():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(4), N)
    y, groups = rng.integers(0, 4, N), rng.integers(0, 2, N)
    error = multicalibration_error(y, P, groups, random_state=0)
    expected = multicalibration_error(P.argmax(axis=1) == y, P.max(axis=1), groups, random_state=0)
    assert error == expected


def test_the_positive_class_may_be_named():
    y, t, groups = rows()
    named = multicalibration_error(
        np.where(y, "ham", "spam"), 1 - t, groups, pos_label="spam", random_state=0
    )
    assert named.value == pytest.approx(multicalibration_error(y, t, groups, random_state=0).value)


def test_soft_labels_have_a_value_and_no_test():
    _, t, groups = rows()
    error = multicalibration_error(np.clip(t + 0.05, 0, 1), t, groups)
    assert error.p_value is None
    assert error.value > 0


def test_mean_promise_and_outcome_of_a_group_are_told():
    y, t, groups = rows()
    error = multicalibration_error(y, t, pl.DataFrame({"a": groups[:, 0]}), random_state=0)
    inside = groups[:, 0] == 1
    group = error.details["groups"]["a=1"]
    assert group["rows"] == inside.sum()
    assert group["stated"] == pytest.approx(t[inside].mean())
    assert group["happened"] == pytest.approx(y[inside].mean())


def test_the_adjusted_p_value_of_the_worst_group_is_the_p_value():
    y, t, groups = rows()
    error = multicalibration_error(y, t, groups, random_state=0)
    by_value = sorted(error.details["groups"].values(), key=lambda group: -group["value"])
    assert by_value[0]["p_value"] == error.p_value
    p_values = [group["p_value"] for group in by_value]
    assert p_values == sorted(p_values)


def test_small_p_values_are_resolved():
    y, t, groups = rows(n=300)
    y |= (groups[:, 0] == 0) & (np.random.default_rng(2).random(300) < 0.5)
    error = multicalibration_error(y, t, groups, random_state=0)
    assert 0 < error.p_value < 1e-4


def test_draws_are_added_while_few_of_them_reach_the_value():
    y, t, groups = rows(n=100, n_attributes=1)
    assert multicalibration_error(y, t, groups, random_state=0).details["n_draws"] == 999
    y = y | ((groups[:, 0] == 0) & (np.random.default_rng(2).random(100) < 0.35))
    error = multicalibration_error(y, t, groups, random_state=0)
    assert 1e-4 < error.p_value < 0.01
    assert error.details["n_draws"] > 999
    assert error.details["resolution"] == 1 / (error.details["n_draws"] + 1)


def test_too_many_walks_for_draws_are_judged_by_the_sum_of_tails(monkeypatch):
    y, t, groups = rows(n=2000)
    drawn = multicalibration_error(y, t, groups, random_state=0)
    monkeypatch.setattr("calipers.inference.staged_law.WORK", 0)
    bounded = multicalibration_error(y, t, groups)
    assert bounded.details["n_draws"] == 0
    assert bounded.value == drawn.value
    # An upper bound that is close: the groups share few rows.
    assert drawn.null_high < bounded.null_high < 1.1 * drawn.null_high
    assert drawn.p_value < bounded.p_value


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"groups": np.zeros(3)}, "must have the same length"),
        ({"depth": 0}, "depth must be a whole number of at least 1"),
        ({"probabilities": np.full(N, 1.5)}, r"probabilities must lie in \[0, 1\]"),
    ],
)
def test_what_cannot_be_measured_is_refused(change, said):
    y, t, groups = rows()
    with pytest.raises(InputError, match=said):
        multicalibration_error(**({"y_true": y, "probabilities": t, "groups": groups} | change))
