"""The test of calibration in all groups keeps its size and finds what is wrong, where it is wrong."""

import numpy as np
import pytest
from scipy import stats

from calipers.inputs.attributes import check_attributes
from calipers.metrics import multicalibration_error
from calipers.metrics.multicalibration.group_scores import RangeTails
from calipers.metrics.multicalibration.joint_draws import largest_scores
from calipers.metrics.multicalibration.measure import measure_family
from calipers.metrics.multicalibration.units import PromiseUnits

# Every rate is compared with its level at this tail of the binomial law.
TAIL = 1e-4
WORLDS = {
    "uniform": lambda rng, n: rng.random(n),
    "rare": lambda rng, n: rng.beta(1, 40, n),
    "four values": lambda rng, n: rng.choice([0.01, 0.1, 0.5, 0.9], n),
}


def most(level, runs):
    return stats.binom.isf(TAIL, runs, level)


@pytest.mark.parametrize("world", WORLDS)
def test_a_calibrated_model_is_accused_in_five_of_a_hundred_runs(world):
    rng, runs = np.random.default_rng(0), 250
    p_values = []
    for _ in range(runs):
        t, groups = WORLDS[world](rng, 300), rng.integers(0, 3, (300, 2))
        p_values.append(multicalibration_error(rng.random(300) < t, t, groups, random_state=rng).p_value)
    for level in (0.05, 0.2):
        assert np.sum(np.array(p_values) <= level) <= most(level, runs)
    # The test is exact, not merely safe: ties of rare events aside, one half lies below one half.
    assert np.sum(np.array(p_values) <= 0.5) >= stats.binom.ppf(
        TAIL, runs, 0.5 if world == "uniform" else 0.3
    )


@pytest.mark.parametrize("world", [*WORLDS, "coins", "one in a thousand"])
def test_the_sum_of_tails_is_an_upper_bound(world):
    rng = np.random.default_rng(1)
    scores = {"coins": lambda rng, n: np.full(n, 0.5), "one in a thousand": lambda rng, n: np.full(n, 1e-3)}
    t = np.sort((WORLDS | scores)[world](rng, 150) + np.linspace(0, 1e-9, 150))
    groups = check_attributes(rng.integers(0, 2, (150, 2)))
    units = PromiseUnits(t, np.ones(150), np.zeros(150), groups)
    family = measure_family(units, 2)
    draws = largest_scores(units, family.walks, rng, 20_000)
    bound = RangeTails(family.noise)
    for level in (0.2, 0.05, 0.01, 0.001):
        score = np.quantile(draws, 1 - level)
        reached = np.mean(draws >= score - 1e-9)
        assert bound(score) >= reached - 3 * np.sqrt(reached / len(draws))


@pytest.mark.parametrize(("share", "worst"), [("group", "g0=1"), ("intersection", "g0=1 and g1=2")])
def test_a_group_that_is_off_is_found_at_the_tabulated_rows_and_named(share, worst):
    # 457 rows of a group that is off by 0.1: found in 95 % (docs/guide/multicalibration.md).
    rng, runs = np.random.default_rng(2), 40
    n = 457 * (4 if share == "group" else 16)
    found, named = 0, 0
    for _ in range(runs):
        groups, t = rng.integers(0, 4, (n, 3)), 0.8 * rng.beta(2, 5, n)
        inside = groups[:, 0] == 1 if share == "group" else (groups[:, 0] == 1) & (groups[:, 1] == 2)
        error = multicalibration_error(rng.random(n) < t + 0.1 * inside, t, groups, random_state=rng)
        found += error.p_value <= 0.05
        named += error.details["worst"] == worst
    assert found >= stats.binom.ppf(TAIL, runs, 0.95)
    assert named >= stats.binom.ppf(TAIL, runs, 0.8)


def test_the_marginal_error_cannot_see_what_cancels_between_groups():
    rng = np.random.default_rng(3)
    t, group = rng.uniform(0.2, 0.8, 4000), rng.integers(0, 2, 4000)
    y = rng.random(4000) < t + np.where(group == 1, 0.06, -0.06)
    all_rows = multicalibration_error(y, t, np.zeros(4000), random_state=0)
    by_group = multicalibration_error(y, t, group, random_state=0)
    assert all_rows.p_value > 0.01
    assert by_group.p_value < 1e-4
