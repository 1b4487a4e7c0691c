"""The tests and the interval of ERT keep their level; the default classifier sees what is there."""

import numpy as np
import pytest
from scipy import stats
from sklearn.naive_bayes import GaussianNB

from calipers.datasets import HeteroscedasticWorld
from calipers.metrics import ert, ert_table
from calipers.metrics.conditional.cross_fit import make_splits
from calipers.metrics.conditional.losses import DISTANCES

WORLD = HeteroscedasticWorld()


def upper(level, runs):
    return stats.binom.ppf(0.9999, runs, level) / runs


def p_values(draw, runs, n, **options):
    found = []
    for i in range(runs):
        rng = np.random.default_rng([i, n])
        X = rng.uniform(-1, 1, size=(n, 3))
        e = ert(X, rng.random(n) < draw(X), alpha=0.1, random_state=i, **options)
        found.append([e.details["p_target"], e.details["p_flat"]])
    return np.array(found)


def test_neither_null_is_rejected_too_often_when_it_holds():
    p = p_values(lambda X: np.full(len(X), 0.9), 100, 200, classifier=GaussianNB())
    for level in (0.05, 0.2):
        assert (p <= level).mean(axis=0).max() <= upper(level, 100)


def test_a_level_that_is_off_by_luck_breaks_the_target_but_not_the_flat_null():
    p = p_values(lambda X: np.full(len(X), 0.8), 30, 300, classifier=GaussianNB())
    assert (p[:, 0] <= 0.05).mean() > 0.8
    assert (p[:, 1] <= 0.05).mean() <= upper(0.05, 30)


def test_stratified_folds_leave_the_tests_valid():
    p = p_values(lambda X: np.full(len(X), 0.9), 60, 150, classifier=GaussianNB(), stratify=True)
    assert (p <= 0.05).mean(axis=0).max() <= upper(0.05, 60)


def test_a_target_per_row_leaves_the_test_valid():
    p = []
    for i in range(50):
        rng = np.random.default_rng(i)
        alpha = rng.choice([0.05, 0.3], size=200)
        z = rng.random(200) < 1 - alpha
        X = rng.uniform(size=(200, 2))
        p.append(ert(X, z, alpha=alpha, classifier=GaussianNB(), random_state=i).p_value)
    assert (np.array(p) <= 0.05).mean() <= upper(0.05, 50)


def test_the_default_accuses_sound_sets_rarely_and_sees_the_failing_ones():
    sound, failing, found = [], [], []
    for i in range(8):
        X, y = WORLD.sample(500, random_state=i)
        rng = np.random.default_rng(i)
        for intervals, kept in (
            (WORLD.oracle_intervals(X, alpha=0.1), sound),
            (WORLD.constant_intervals(X, alpha=0.1), failing),
        ):
            z = (intervals[:, 0] <= y) & (y <= intervals[:, 1])
            e = ert(X, z, alpha=0.1, random_state=rng)
            kept.append(e.p_value)
            found.append(e.value)
    assert (np.array(sound) <= 0.05).sum() <= 4  # 0.9999 point of Binomial(8, 0.05)
    assert (np.array(failing) <= 0.05).sum() >= 6
    # truth 0.0947; the default recovers nine tenths of it, with a standard deviation of 0.0155 a run
    assert np.mean(found[1::2]) > 0.065
    assert np.mean(found[1::2]) < WORLD.ert(alpha=0.1)["l1"] + 4 * 0.0155 / np.sqrt(8)
    assert abs(np.mean(found[::2])) < 0.014


@pytest.mark.parametrize("sound", [True, False])
def test_the_interval_holds_the_mean_excess_risk_of_the_fitted_classifiers(sound):
    """Folds are given, so that the same classifiers can be judged on a huge fresh sample."""
    rng = np.random.default_rng(int(sound))
    fresh = rng.uniform(-1, 1, size=(5_000, 2))
    inside, runs, n = {"l1": 0, "l2": 0, "kl": 0}, 60, 200

    def coverage(X):
        return np.full(len(X), 0.9) if sound else 0.9 + 0.09 * X[:, 0]

    truth, t = coverage(fresh), np.full(len(fresh), 0.9)
    for _ in range(runs):
        X = rng.uniform(-1, 1, size=(n, 2))
        z = rng.random(n) < coverage(X)
        splits = make_splits(5, X, z, False, None, rng)
        table = ert_table(X, z, alpha=0.1, classifier=GaussianNB(), cv=splits, null=None)
        h = [GaussianNB().fit(X[a], z[a]).predict_proba(fresh)[:, 1] for a, _ in splits]
        for loss in inside:
            risk = np.mean([DISTANCES[loss].contributions(q, truth, t).mean() for q in h])
            inside[loss] += table[loss].low <= risk <= table[loss].high
    assert min(inside.values()) >= stats.binom.ppf(0.0001, runs, 0.95)


@pytest.mark.slow
@pytest.mark.parametrize("n", [500, 2000])
def test_the_default_keeps_its_level_and_its_power_in_500_runs(n):
    rejected = {"sound": 0, "failing": 0}
    for i in range(500):
        X, y = WORLD.sample(n, random_state=i)
        for name, ends in (
            ("sound", WORLD.oracle_intervals(X, alpha=0.1)),
            ("failing", WORLD.constant_intervals(X, alpha=0.1)),
        ):
            z = (ends[:, 0] <= y) & (y <= ends[:, 1])
            rejected[name] += ert(X, z, alpha=0.1, random_state=i).p_value <= 0.05
    assert rejected["sound"] <= 0.07 * 500
    assert rejected["failing"] >= 0.95 * 500
