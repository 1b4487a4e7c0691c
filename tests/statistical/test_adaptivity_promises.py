"""Intervals and p-values of the adaptivity metrics, over worlds where the truth is known.

Tolerances: the share of N runs that fall on one side of a level is binomial; the limits below are its
99.9 % points (one side) unless a comment says otherwise.
"""

import numpy as np
import pytest
from scipy import stats

from calipers.metrics import difficulty_concordance, escv, rank_ss, sscv, t_cv, t_ss, width_against_error
from calipers.metrics.adaptivity.binning import bin_by_ease
from calipers.metrics.adaptivity.largest_violation import mean_squared_violation

RUNS = 500


def at_most(level, runs=RUNS):
    """Largest plausible share of runs for an event of probability at most ``level``."""
    return stats.binom.ppf(0.999, runs, level) / runs


def at_least(level, runs=RUNS):
    return stats.binom.ppf(0.001, runs, level) / runs


def test_t_cv_p_values_are_valid_and_randomised_ones_uniform(seed):
    rng = np.random.default_rng(seed)
    plain, randomized = np.empty(RUNS), np.empty(RUNS)
    for i in range(RUNS):
        covered, ease = rng.random(2000) < 0.9, rng.random(2000)
        plain[i] = t_cv(covered, ease, alpha=0.1, n_bins=20).p_value
        randomized[i] = t_cv(covered, ease, alpha=0.1, n_bins=20, randomized=True, random_state=rng).p_value
    for u in (0.01, 0.05, 0.1):
        assert np.mean(plain <= u) <= at_most(u)
    assert stats.kstest(randomized, "uniform").pvalue > 0.001


def test_t_cv_p_values_are_valid_with_shared_ties(seed):
    rng = np.random.default_rng(seed)
    p = np.empty(200)
    for i in range(200):
        covered, ease = rng.random(600) < 0.9, rng.integers(0, 7, 600)
        p[i] = t_cv(covered, ease, alpha=0.1, n_bins=10, n_draws=199, random_state=rng).p_value
    for u in (0.05, 0.1):
        assert np.mean(p <= u) <= at_most(u, 200)
    # Not needlessly large either: the law is discrete but fine.
    assert np.mean(p <= 0.5) >= at_least(0.35, 200)


@pytest.mark.parametrize("rows_per_bin", [400, 99])
def test_a_mondrian_predictor_is_not_accused(rows_per_bin, seed):
    rng = np.random.default_rng(seed)
    rank, runs = int(np.ceil((rows_per_bin + 1) * 0.9 - 1e-9)), 200
    known, unknown, values = np.empty(runs), np.empty(runs), np.empty(runs)
    ease = np.repeat(np.arange(50), 400) + rng.random(20_000)
    for i in range(runs):
        luck = np.repeat(rng.beta(rank, rows_per_bin + 1 - rank, 50), 400)
        covered = rng.random(20_000) < luck
        e = t_cv(covered, ease, alpha=0.1, n_calibration=np.full(50, rows_per_bin))
        known[i], values[i] = e.p_value, e.value
        unknown[i] = t_cv(covered, ease, alpha=0.1).p_value
    assert np.mean(known <= 0.05) <= at_most(0.05, runs)
    assert np.mean(unknown <= 0.05) > 0.4
    if rows_per_bin == 400:
        assert np.median(values) == pytest.approx(0.0525, abs=0.0015)


def test_the_law_of_one_shared_threshold_keeps_its_level_and_is_not_wasteful(seed):
    rng = np.random.default_rng(seed)
    p = []
    for _ in range(300):
        covered = rng.random(4000) < rng.beta(180, 20)  # one threshold, rank 180 of 199
        p.append(t_cv(covered, rng.random(4000), alpha=0.1, n_bins=20, n_calibration=199).p_value)
    for u in (0.05, 0.1):
        assert np.mean(np.array(p) <= u) <= at_most(u, 300)
    # Thresholds of their own, with the same rows, would have this share far below a half.
    assert np.mean(np.array(p) <= 0.5) >= at_least(0.4, 300)


@pytest.mark.parametrize("slope", [0.0, 0.16])
def test_t_cv_interval_holds_the_largest_violation_of_the_bins(slope, seed):
    rng = np.random.default_rng(seed)
    hits, errors, values = 0, [], []
    for _ in range(RUNS):
        ease = rng.random(2000)
        probability = 0.9 + slope * (ease - 0.5)
        truth = np.abs(bin_by_ease([probability], ease, 10).means()[0] - 0.9).max()
        e = t_cv(rng.random(2000) < probability, ease, alpha=0.1, n_bins=10)
        hits += e.low <= truth <= e.high
        errors.append(e.std_error)
        values.append(e.value)
    assert hits / RUNS >= at_least(0.95)
    # The worst bin's standard error: not below the spread of the reading.
    assert np.std(values) <= 1.15 * np.mean(errors)


def test_mean_squared_violation_is_unbiased_and_its_error_right(seed):
    rng = np.random.default_rng(seed)
    p = np.linspace(0.8, 0.99, 25)
    n, target = np.full(25, 60), np.full(25, 0.9)
    readings = np.array([mean_squared_violation(rng.binomial(60, p) / 60, n, target) for _ in range(4000)])
    truth = np.mean((p - 0.9) ** 2)
    spread = readings[:, 0].std()
    assert abs(readings[:, 0].mean() - truth) < 4 * spread / np.sqrt(4000)
    # Keeping the variance above its value at a sound predictor costs up to a fifth of width.
    assert 0.95 * spread <= np.sqrt(np.mean(readings[:, 1] ** 2)) <= 1.25 * spread


def test_size_strata_p_values_are_valid(seed):
    rng = np.random.default_rng(seed)
    runs, p = 250, []
    for _ in range(runs):
        size = 1 + rng.poisson(3, 300)
        covered = rng.random(300) < 0.9
        p.append([sscv(covered, size, alpha=0.1).p_value, escv(covered, size, alpha=0.1).p_value])
    for u in (0.01, 0.05, 0.1):
        assert (np.mean(np.array(p) <= u, axis=0) <= at_most(u, runs)).all()


def adaptive_world(rng, n, strength):
    ease = rng.random(n)
    return 1 + rng.poisson(1 + strength * (1 - ease)), 1 + rng.poisson(2 + strength * (1 - ease)), ease


@pytest.mark.parametrize("metric", [t_ss, rank_ss])
def test_signed_r_squared_p_values_are_valid_where_size_ignores_difficulty(metric, seed):
    rng = np.random.default_rng(seed)
    p = []
    for _ in range(200):
        ranks, _, ease = adaptive_world(rng, 300, 3.0)
        size = 1 + rng.poisson(3, 300)
        columns = (ranks, size, ease) if metric is t_ss else (ranks, size)
        options = {"n_bins": 10} if metric is t_ss else {}
        p.append(metric(*columns, n_draws=99, random_state=rng, **options).p_value)
    for u in (0.05, 0.1):
        assert np.mean(np.array(p) <= u) <= at_most(u, 200)
    assert stats.kstest(p, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("strength", [0.0, 1.0, 4.0])
def test_t_ss_interval_holds_the_expected_reading(strength, seed):
    rng = np.random.default_rng(seed)
    runs = 300
    draws = [
        t_ss(*adaptive_world(rng, 1000, strength), n_bins=20, n_draws=1, random_state=rng)
        for _ in range(runs)
    ]
    truth = np.mean([float(e) for e in draws])
    assert np.mean([e.low <= truth <= e.high for e in draws]) >= at_least(0.95, runs) - 0.01
    if strength == 4.0:
        spread = np.std([float(e) for e in draws])
        assert np.mean([e.std_error for e in draws]) == pytest.approx(spread, rel=0.15)


@pytest.mark.parametrize("strength", [0.0, 2.0])
def test_concordance_interval_holds_the_expected_share(strength, seed):
    rng = np.random.default_rng(seed)
    runs, held, values, p = 120, [], [], []
    for _ in range(runs):
        ranks, size, _ = adaptive_world(rng, 400, strength)
        e = difficulty_concordance(
            ranks, size, group_size=20, n_draws=1000, n_permutations=19, random_state=rng
        )
        values.append(e.value)
        held.append((e.low, e.high))
        p.append(e.p_value)
    truth = np.mean(values)
    assert np.mean([low <= truth <= high for low, high in held]) >= at_least(0.95, runs)
    if strength == 0.0:
        assert np.mean(np.array(p) <= 0.05) <= at_most(0.05, runs)


def harsh_world(rng, n, kind):
    """Ranks with heavy tails, or above 1 in few rows only; sizes that follow the ease."""
    ease = rng.random(n)
    size = 1 + rng.poisson(2 + 3 * (1 - ease))
    if kind == "rare":
        return 1 + (rng.random(n) < 0.02 * (1 - ease)) * rng.integers(1, 50, n), size, ease
    noise = {"pareto": lambda: 1 + rng.pareto(1.8, n), "log-normal": lambda: np.exp(1.5 * rng.normal(size=n))}
    return noise[kind]() * (4 - 3 * ease), size, ease


def held(estimates, level=0.95):
    """Whether the mean reading lies in enough of the intervals that are given."""
    given = [e for e in estimates if e.low is not None]
    truth = np.nanmean([float(e) for e in estimates])
    assert len(given) > 0.9 * len(estimates)
    return np.mean([e.low <= truth <= e.high for e in given]) >= at_least(level, len(given))


@pytest.mark.parametrize(("n", "n_bins"), [(300, 10), (1000, 20), (5000, 50)])
@pytest.mark.parametrize("kind", ["pareto", "log-normal", "rare"])
def test_t_ss_interval_holds_with_heavy_tails_and_rare_hard_rows(kind, n, n_bins, seed):
    rng = np.random.default_rng(seed)
    options = {"n_bins": n_bins, "n_draws": 1, "random_state": 0}
    # The mean of heavy-tailed readings is noisy itself: 0.93 as in the bar of the grid.
    assert held([t_ss(*harsh_world(rng, n, kind), **options) for _ in range(200)], level=0.93)


@pytest.mark.parametrize(("n", "group_size"), [(400, 100), (250, 100), (60, 20), (100, 5)])
@pytest.mark.parametrize("kind", ["poisson", "pareto", "rare"])
def test_concordance_interval_holds_for_groups_as_large_as_half_the_rows(kind, n, group_size, seed):
    rng = np.random.default_rng(seed)
    options = {"group_size": group_size, "n_draws": 500, "n_permutations": 1, "random_state": rng}
    worlds = (
        adaptive_world(rng, n, 2.0) if kind == "poisson" else harsh_world(rng, n, kind) for _ in range(120)
    )
    assert held([difficulty_concordance(ranks, size, **options) for ranks, size, _ in worlds])


@pytest.mark.parametrize("dependent", [False, True])
def test_width_against_error_intervals_and_tests(dependent, seed):
    rng = np.random.default_rng(seed)
    runs, rows = 300, []
    for _ in range(runs):
        scale = rng.uniform(1, 3, 150)
        width = scale if dependent else rng.uniform(1, 3, 150)
        rows.append(width_against_error(np.abs(rng.normal(0, scale)), width, n_draws=39, random_state=rng))
    for name in ("r_squared", "kendall_tau"):
        truth = np.mean([float(t[name]) for t in rows])
        if name == "kendall_tau" or dependent:
            inside = [t[name].low <= truth <= t[name].high for t in rows]
            assert np.mean(inside) >= at_least(0.95, runs) - 0.015
        if not dependent:
            assert np.mean([t[name].p_value <= 0.05 for t in rows]) <= at_most(0.05, runs)
