"""Rows needed: against the exact power of every number of rows, and what cannot be had."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from calipers.auditing import rows_needed
from calipers.auditing.checks.adaptive import n_parts_of, parts_of
from calipers.auditing.checks.features import pick_worst
from calipers.auditing.group_power import GroupTest, hypergeometric_tail
from calipers.auditing.slice_power import FeatureTest
from calipers.auditing.slices import flat_p_values, labelled_parts
from calipers.conformal import conformal_rank
from calipers.exceptions import InputError
from calipers.inference import Moments, ShareCounts, bounded_mean_p_value, holm
from calipers.inputs import Weights, check_features
from calipers.inputs.derived_columns import CELL_JOINT
from calipers.metrics import change_over_time, pit_uniformity


def exact_power(n, alpha, effect, level):
    """Power of the one-sided binomial test with n rows, for an array of n."""
    null = alpha if effect > 0 else 1 - alpha
    events = stats.binom.isf(level, n, null) + 1  # the smallest count m with P(M >= m) <= level
    return stats.binom.sf(events - 1, n, null + abs(effect))


def last_failure(powers, power):
    """The number of rows after the last one with too little power; the first entry is for one row."""
    return int(np.flatnonzero(powers < power)[-1]) + 2


EFFECTS = [
    (alpha, effect)
    for alpha in (0.01, 0.1, 0.3, 0.8)
    for effect in (0.03, 0.1, 0.19, -0.008, -0.09)
    if 0 <= 1 - alpha - effect <= 1
]


@pytest.mark.parametrize(("alpha", "effect"), EFFECTS)
@pytest.mark.parametrize(("power", "level"), [(0.8, 0.05), (0.95, 0.01)])
def test_the_power_stays_from_these_rows_on_and_not_from_fewer(alpha, effect, power, level):
    rows = rows_needed(effect=effect, alpha=alpha, power=power, level=level)
    powers = exact_power(np.arange(1, 3 * rows + 200), alpha, effect, level)
    assert rows == last_failure(powers, power)


def test_the_power_is_not_monotone_so_the_first_rows_with_enough_are_not_the_answer():
    powers = exact_power(np.arange(1, 900), 0.1, 0.05, 0.05)
    first = int(np.argmax(powers >= 0.8)) + 1
    assert first < rows_needed(effect=0.05) == last_failure(powers, 0.8)


@pytest.mark.parametrize(
    ("effect", "alpha", "n_calibration", "power"),
    [(0.1, 0.1, 200, 0.8), (-0.08, 0.2, 400, 0.6), (0.2, 0.2, 50, 0.7)],
)
def test_with_calibration_rows_the_law_is_a_mixture_over_calibration_sets(
    effect, alpha, n_calibration, power
):
    rows = rows_needed(effect=effect, alpha=alpha, n_calibration=n_calibration, power=power)
    rank = conformal_rank(n_calibration, alpha)
    shape = (rank, n_calibration + 1 - rank)
    events = shape[::-1] if effect > 0 else shape
    chances = stats.beta.ppf((np.arange(2000) + 0.5) / 2000, *events)
    powers = []
    for n in range(1, 2 * rows):
        tail = stats.betabinom.sf(np.arange(n + 1) - 1, n, *events)
        needed = int(np.argmax(tail <= 0.05)) if (tail <= 0.05).any() else n + 1
        powers.append(stats.binom.sf(needed - 1, n, np.clip(chances + abs(effect), 0, 1)).mean())
    assert rows == pytest.approx(last_failure(np.array(powers), power), abs=1)


def test_what_no_number_of_rows_can_find_is_told():
    with pytest.raises(InputError, match=r"effect=0.05 with power 0.8: with 200 .* never exceeds 0.722"):
        rows_needed(effect=0.05, n_calibration=200)
    # Just within reach, and just out of it: the limit is the power with infinitely many rows.
    assert rows_needed(effect=0.05, n_calibration=200, power=0.7) > 1000
    with pytest.raises(InputError, match="never exceeds 0.722"):
        rows_needed(effect=0.05, n_calibration=200, power=0.7225)


def test_the_limit_is_what_many_rows_give():
    rng, n, rank = np.random.default_rng(0), 200, conformal_rank(200, 0.1)
    coverage = rng.beta(rank, n + 1 - rank, 200_000) - 0.05
    found = (coverage < stats.beta.ppf(0.05, rank, n + 1 - rank)).mean()
    assert found == pytest.approx(0.722, abs=0.005)


def test_a_share_of_the_rows_multiplies_them():
    assert rows_needed(effect=0.05, share=0.2) == 5 * rows_needed(effect=0.05)
    assert rows_needed(effect=0.05, share=1 / 3) == 3 * rows_needed(effect=0.05)


def test_groups_share_the_level():
    plain = {"check": "group", "effect": 0.05, "share": 0.1}
    one = rows_needed(**plain)
    holm = rows_needed(n_groups=10, **plain)
    assert holm == rows_needed(level=0.005, **plain)
    sidak = rows_needed(n_groups=10, correction="sidak", **plain)
    assert sidak == rows_needed(level=1 - 0.95**0.1, **plain)
    assert one < sidak <= holm


def test_a_group_of_all_rows_is_one_of_equal_groups():
    plain = {"check": "group", "effect": 0.1, "n_groups": 5}
    assert rows_needed(**plain) == rows_needed(share=0.2, **plain)
    # The other rows are a sample, too: a small group needs hardly more than the test against the promise.
    assert rows_needed(**plain) > rows_needed(effect=0.1, share=0.2, level=0.01)


def test_luck_of_the_calibration_set_moves_all_rows_and_hides_no_group():
    plain = {"check": "group", "effect": 0.05, "share": 0.2, "n_groups": 5}
    assert rows_needed(n_calibration=200, **plain) == pytest.approx(rows_needed(**plain), rel=0.05)


def share_of_audits_that_find_the_group(n, share, effect, n_groups, n_draws=4000):
    """How often the comparison that an audit makes rejects, groups and outcomes drawn row by row."""
    rng = np.random.default_rng(7)
    inside = rng.binomial(n, share, n_draws).astype(float)
    hits = rng.binomial(inside.astype(int), 0.9 - effect).astype(float)
    all_hits = hits + rng.binomial((n - inside).astype(int), 0.9)
    group = ShareCounts(hits, inside, hits, inside)
    return np.mean(n_groups * flat_p_values(group, (all_hits, np.full(n_draws, float(n)))) <= 0.05)


@pytest.mark.parametrize(
    ("share", "effect", "n_groups", "power"),
    [
        (0.3, 0.01, 3, 0.8),
        (0.5, 0.05, 2, 0.8),
        (0.2, 0.1, 5, 0.95),
        (0.1, 0.2, 10, 0.95),
        (0.05, 0.3, 20, 0.8),
    ],
)
def test_rows_of_a_group_are_within_five_percent_of_what_an_audit_needs(share, effect, n_groups, power):
    rows = rows_needed(check="group", effect=effect, share=share, n_groups=n_groups, power=power)
    below, above = (
        share_of_audits_that_find_the_group(round(k * rows), share, effect, n_groups) for k in (0.95, 1.05)
    )
    assert below < power < above


@pytest.mark.parametrize(
    ("misses", "total", "inside", "outside"),
    [(0, 5, 4, 9), (7, 30, 50, 200), (3, 8, 6, 3), (500, 9000, 30_000, 70_000)],
)
def test_the_tail_of_misses_is_hypergeometric(misses, total, inside, outside):
    expected = stats.hypergeom.sf(misses - 1, inside + outside, total, inside)
    found = hypergeometric_tail(np.array([float(misses)]), np.array([float(total)]), inside, outside)
    assert found[0] == pytest.approx(expected, rel=1e-9)


def ranges_of_walks(rng, n, effect, share):
    """Standardised ranges of cumulated z - t, where the middle share of the probabilities is off."""
    t = np.sort(rng.uniform(0.4, 0.6, (20_000, n)), axis=1)
    z = rng.random(t.shape) < t - effect * (np.abs(t - 0.5) <= 0.1 * share)
    walk = np.cumsum(np.concatenate([np.zeros((len(t), 1)), z - t], axis=1), axis=1)
    return np.ptp(walk, axis=1) / np.sqrt((t * (1 - t)).sum(axis=1))


@pytest.mark.parametrize(("share", "effect"), [(1.0, 0.1), (0.5, 0.15)])
def test_calibration_rows_give_the_power_within_five_percent_of_rows(share, effect):
    rows = rows_needed(check="calibration", effect=effect, alpha=0.5, share=share)
    rng, powers = np.random.default_rng(1), []
    for n in (int(0.95 * rows), int(1.05 * rows)):
        # The test draws its null law, so the critical value is that of walks of n steps.
        critical = np.quantile(ranges_of_walks(rng, n, 0.0, share), 0.95)
        powers.append(np.mean(ranges_of_walks(rng, n, effect, share) > critical))
    assert powers[0] < 0.8 < powers[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"effect": 0.0}, "effect must differ from 0"),
        ({"effect": 0.95}, "lie between -alpha = -0.1 and 1 - alpha = 0.9, got 0.95"),
        ({"effect": -0.2}, "effect must differ from 0 and lie between"),
        ({"effect": 0.05, "share": 0}, "share must lie above 0 and be at most 1, got 0"),
        ({"effect": 0.05, "power": 1}, "power must lie strictly between 0 and 1"),
        ({"effect": 0.05, "level": 0}, "level must lie strictly between 0 and 1"),
        ({"effect": 0.05, "check": "ert"}, "check must be one of coverage, group, .*, features, got 'ert'"),
        ({"effect": 0.05, "check": "group"}, "give the share of the group, below 1, or n_groups"),
        ({"effect": -0.05, "check": "group", "share": 0.2}, "covered less often than the others, got"),
        ({"effect": 0.05, "n_groups": 3}, 'n_groups belongs to check="group" and "loss", got 3'),
        ({"effect": 0.05, "correction": "none"}, "correction must be one of holm, sidak"),
        ({"effect": 0.05, "n_calibration": 5}, "the threshold at alpha=0.1 is infinite"),
        ({"effect": 0.05, "check": "calibration", "n_calibration": 50}, "n_calibration is about coverage"),
        ({"effect": 0.05, "check": "loss", "n_calibration": 50}, "a mean loss has none"),
        ({"effect": -0.05, "check": "loss"}, "effect must lie above 0 and be at most 1 - alpha = 0.9"),
        ({"effect": 0.05, "check": "loss", "spread": 0.6}, "spread must lie between 0 and 0.357"),
        ({"effect": 0.05, "spread": 0.1}, 'spread belongs to check="loss"'),
        ({"effect": 0.05, "check": "time"}, "give their share, below 1"),
        ({"effect": -0.05, "check": "difficulty", "share": 0.2}, "covered less often than the others, got"),
        ({"effect": 0.05, "check": "features", "share": 0.2, "n_features": 0}, "n_features"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        rows_needed(**options)


@pytest.mark.parametrize("share", [0.5, 0.15])
@pytest.mark.parametrize("n", [100_000, 250_000])
def test_many_misses_are_normal(share: float, n: int) -> None:
    """Where both can be had, the normal approximation and the exact law agree."""
    test = GroupTest(0.01, 0.1, 0.006 * (0.5 / share) ** 0.5 * (1e5 / n) ** 0.5, share, None)
    exact = test._exact(round(n * share), n - round(n * share), 0.1)
    assert 0.2 < exact < 0.99999
    assert test._normal(n, 0.1) == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize(("alpha", "effect"), [(0.1, 0.05), (0.1, -0.05), (0.9, 0.05), (0.5, 0.1)])
def test_rows_of_a_quantile_are_those_of_the_two_sided_test(alpha, effect):
    rows, tau = rows_needed(check="quantile", effect=effect, alpha=alpha), 1 - alpha
    powers = []
    for n in range(1, 2 * rows):
        k = np.arange(n + 1)
        side = stats.binom.cdf(k, n, tau) if effect > 0 else stats.binom.sf(k - 1, n, tau)
        powers.append(stats.binom.pmf(k, n, tau - effect)[2 * side <= 0.05].sum())
    assert rows == last_failure(np.array(powers), 0.8)


def test_luck_of_the_calibration_set_hides_a_quantile_too():
    assert rows_needed(check="quantile", effect=0.05, n_calibration=1000) > 362
    # With endless rows the coverage itself is seen; it must lie below all but half the level of its law.
    law = stats.beta(conformal_rank(200, 0.1), 201 - conformal_rank(200, 0.1))
    limit = np.floor(1000 * law.cdf(law.ppf(0.025) + 0.05)) / 1000
    with pytest.raises(InputError, match=f"200 calibration rows the power never exceeds {limit:.3f}"):
        rows_needed(check="quantile", effect=0.05, n_calibration=200)


def test_losses_at_both_ends_of_the_range_are_counts():
    assert rows_needed(check="loss", effect=0.05) == rows_needed(effect=0.05)


def test_rows_of_a_loss_give_the_power_of_the_test_of_means():
    bound, mean, spread = 0.2, 0.24, 0.15
    rows = rows_needed(check="loss", effect=mean - bound, alpha=bound, spread=spread)
    size = mean + spread**2 / mean  # losses of this size or 0 have this mean and spread
    rng, powers = np.random.default_rng(3), []
    for n in (rows - 1, rows):
        losses = size * (rng.random((2000, n)) < mean / size)
        powers.append(np.mean([mean_is_above(loss, bound) for loss in losses]))
    noise = 3 * np.sqrt(0.16 / 2000)
    assert powers[0] < 0.8 + noise
    assert 0.8 - noise < powers[1] < 0.9


def mean_is_above(loss, bound):
    p = bounded_mean_p_value(Moments.of(loss), null=bound, low=0, high=1)
    return loss.mean() > bound and p / 2 <= 0.05


@pytest.mark.parametrize("n_calibration", [None, 200])
def test_a_change_over_time_is_found_with_the_planned_rows(n_calibration):
    rows = rows_needed(check="time", effect=0.2, share=0.4, n_calibration=n_calibration)
    rng, n_sets, found = np.random.default_rng(5), 60, []
    late = np.arange(rows) >= rows - round(0.4 * rows)
    for _ in range(n_sets):
        kept = (0.9 if n_calibration is None else rng.beta(181, 20)) - 0.2 * late
        change = change_over_time(rng.random(rows) < kept, np.arange(rows), alpha=0.1, random_state=rng)
        found.append(change.p_value <= 0.05)
    # Three standard errors of a share of 60, and the noise of the plan.
    assert np.mean(found) == pytest.approx(0.8, abs=3 * np.sqrt(0.16 / n_sets) + 0.02)


@pytest.mark.parametrize(("effect", "share", "n_calibration"), [(0.1, 0.2, None), (0.1, 0.25, 200)])
def test_the_hardest_rows_are_found_with_the_planned_rows(effect, share, n_calibration):
    plan = {"check": "difficulty", "effect": effect, "share": share, "n_calibration": n_calibration}
    rows, rng, found = rows_needed(**plan), np.random.default_rng(6), []
    for _ in range(800):
        coverage = 0.9 if n_calibration is None else rng.beta(181, 20)
        ease = rng.random(rows)
        covered = rng.random(rows) < coverage - effect * (ease < np.quantile(ease, share))
        codes, n_parts = parts_of(ease, n_parts_of(rows))
        found.append(n_parts * flat_p_values(ShareCounts.of(covered, None, codes, n_parts)).min() <= 0.05)
    assert np.mean(found) == pytest.approx(0.8, abs=3 * np.sqrt(0.16 / 800) + 0.02)
    assert rows == rows_needed(random_state=0, **plan)


@pytest.mark.parametrize("n_calibration", [None, 100])
def test_the_power_to_find_a_region_is_that_of_the_audit(n_calibration):
    """Outcomes drawn anew for picked rows give the same power as whole data sets, with fewer fits."""
    n, rng, found = 300, np.random.default_rng(8), []
    planned = FeatureTest(0.05, 0.1, 0.3, 0.25, n_calibration).power(n, 24, rng)
    for _ in range(60):
        X, half = rng.random((n, 4)), rng.permutation(n) < n // 2
        level = 0.9 if n_calibration is None else rng.beta(91, 10)
        covered, p = rng.random(n) < level - 0.3 * (X[:, 0] < 0.25), []
        for train in (half, ~half):
            picked = pick_worst(check_features(X), covered, train, ~train, rng)
            p.append(flat_p_values(ShareCounts.of(covered[~train], None, (~picked).astype(int), 2))[0])
        found.append(2 * min(p) <= 0.05)
    assert 0.2 < planned < 0.98
    assert planned == pytest.approx(np.mean(found), abs=3 * np.sqrt(0.25 / 60))


def test_a_region_that_cannot_be_found_is_told_with_the_power_that_can(monkeypatch):
    monkeypatch.setattr(FeatureTest, "most_rows", 400)
    with pytest.raises(InputError, match="up to 400 finds effect=0.05 .* with 400 rows the power is 0"):
        rows_needed(check="features", effect=0.05, share=0.2)


@pytest.mark.parametrize("n_tests", [5, 30])
def test_a_plan_for_an_audit_holds_after_holm_over_its_tests(n_tests):
    rows, rng = rows_needed(effect=0.05, power=0.9, n_tests=n_tests), np.random.default_rng(11)
    assert rows == rows_needed(effect=0.05, power=0.9, level=0.05 / n_tests)
    found = []
    for n in (round(0.93 * rows), rows):
        own = stats.binom.sf(rng.binomial(n, 0.15, 4000) - 1, n, 0.1)
        others = rng.random((4000, n_tests - 1))
        found.append(
            np.mean([holm(np.append(p, rest))[0] <= 0.05 for p, rest in zip(own, others, strict=True)])
        )
    assert found[0] < 0.9 < found[1] + 3 * np.sqrt(0.09 / 4000)


def test_an_intersection_is_found_with_the_planned_rows():
    """Two attributes of two and three labels: eleven groups, of which one intersection has the effect."""
    rows = rows_needed(check="group", effect=0.2, share=1 / 6, n_groups=11)
    rng, found, n_sets = np.random.default_rng(12), [], 500
    for _ in range(n_sets):
        sex, site = rng.integers(0, 2, rows), rng.integers(0, 3, rows)
        covered = rng.random(rows) < 0.9 - 0.2 * ((sex == 1) & (site == 2))
        cell = np.array([f"{a}{CELL_JOINT}{b}" for a in range(2) for b in range(3)])[3 * sex + site]
        parts = labelled_parts(covered, cell, Weights.check(np.ones(rows), rows), ("sex", "site"))
        found.append(flat_p_values(parts.counts, parts.whole)[parts.labels.index("sex=1 and site=2")])
        assert len(parts.labels) == 11
    assert np.mean(11 * np.array(found) <= 0.05) == pytest.approx(0.8, abs=3 * np.sqrt(0.16 / n_sets) + 0.02)


@pytest.mark.parametrize(("share", "spread", "n_groups"), [(0.25, None, 4), (0.1, 0.2, 6)])
def test_a_group_that_loses_more_is_found_with_the_planned_rows(share, spread, n_groups):
    bound, mean = 0.1, 0.2
    rows = rows_needed(
        check="loss", effect=mean - bound, alpha=bound, share=share, spread=spread, n_groups=n_groups
    )
    size = mean + (mean * (1 - mean) if spread is None else spread**2) / mean
    rng, found = np.random.default_rng(13), []
    for n in (round(0.95 * rows), round(1.05 * rows)):
        hits = []
        for _ in range(3000):
            own = rng.random(n) < share
            loss = size * (rng.random(n) < np.where(own, mean, bound) / size)
            null, moments = max(bound, loss.mean()), Moments.of(loss[own])
            p = bounded_mean_p_value(moments, null=null, low=0, high=1) / 2 if moments.mean > null else 1.0
            hits.append(n_groups * p <= 0.05)
        found.append(np.mean(hits))
    assert found[0] < 0.8 < found[1]


@pytest.mark.parametrize(("alpha", "effect", "share"), [(0.1, 0.05, 1.0), (0.5, -0.1, 1.0), (0.1, 0.08, 0.5)])
def test_pit_values_are_found_uneven_with_the_planned_rows(alpha, effect, share):
    rows = rows_needed(check="pit", effect=effect, alpha=alpha, share=share)
    rng, n_sets = np.random.default_rng(14), 500
    shift = stats.norm.ppf(1 - alpha) - stats.norm.ppf(1 - alpha - effect)
    pits = stats.norm.cdf(rng.normal(size=(n_sets, rows)) + shift * (rng.random((n_sets, rows)) < share))
    found = [pit_uniformity(pit).p_value <= 0.05 for pit in pits]
    assert np.mean(found) == pytest.approx(0.8, abs=3 * np.sqrt(0.16 / n_sets) + 0.02)
