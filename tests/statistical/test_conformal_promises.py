"""The promises of the predictors, on rows whose law is known, with tolerances from the exact laws."""

import numpy as np
import pytest
from scipy import stats
from sklearn.frozen import FrozenEstimator

from calipers.conformal import ConformalClassifier, ConformalRegressor, conformal_p_values, conformal_rank
from calipers.inference import CoverageLaw
from tests.unit.conformal.worlds import FirstColumn, KnownProbabilities, labelled

ALPHA = 0.1
# One false alarm in 10^4 per assertion when nothing is wrong.
LEVEL = 1e-4


def classifier(**options):
    return ConformalClassifier(FrozenEstimator(KnownProbabilities(labels=range(4))), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"nonconformity": "lac"},
        {"nonconformity": "margin"},
        {"nonconformity": "aps", "randomized": True},
        {"nonconformity": "raps", "randomized": True},
        {"nonconformity": "saps", "randomized": True},
        {"nonconformity": "top_k", "randomized": True},
    ],
    ids=lambda o: o["nonconformity"],
)
def test_marginal_coverage_follows_the_beta_binomial_law(options, seed):
    # Scores without ties: the covered count of m rows is BetaBinomial(m, k, n + 1 - k) exactly.
    n, m, runs = 199, 50, 60
    law = CoverageLaw(m, ALPHA, n_calibration=n, rank=conformal_rank(n, ALPHA))
    counts = []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        P, y = labelled(rng, n + m)
        model = classifier(random_state=run, **options).conformalize(P[:n], y[:n])
        sets = model.predict_set(P[n:], ALPHA)
        counts.append(int(sets[np.arange(m), y[n:]].sum()))
    randomised = [law.cdf(c - 1) + rng.random() * (law.cdf(c) - law.cdf(c - 1)) for c in counts]
    assert stats.kstest(randomised, "uniform").pvalue > LEVEL


def test_label_conditional_and_group_coverage_hold_in_every_cell(seed):
    # One test row per label and per group for each calibration draw: plain binomial counts.
    runs, hits, trials = 150, np.zeros((2, 4)), np.zeros((2, 4))
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        P, y = labelled(rng, 400)
        kinds = (P[:, 0] > 0.3).astype(int)
        by_label = classifier(label_conditional=True).conformalize(P[:300], y[:300])
        by_group = classifier().conformalize(P[:300], y[:300], groups=kinds[:300])
        for k in range(4):
            row = 300 + int(np.argmax(y[300:] == k))
            hits[0, k] += by_label.predict_set(P[row : row + 1], ALPHA)[0, y[row]]
            trials[0, k] += 1
        for g in range(2):
            row = 300 + int(np.argmax(kinds[300:] == g))
            hits[1, g] += by_group.predict_set(P[row : row + 1], ALPHA, groups=[g])[0, y[row]]
            trials[1, g] += 1
    for cell in np.argwhere(trials > 0):
        count = int(hits[tuple(cell)])
        assert stats.binom.cdf(count, runs, 1 - ALPHA) > LEVEL


@pytest.mark.parametrize("conditional", [False, True])
def test_smoothed_p_values_of_true_labels_are_uniform_over_calibration_draws(seed, conditional):
    # Heavy ties: only smoothing makes them uniform. One test row per calibration draw.
    p = []
    for run in range(600):
        rng = np.random.default_rng([seed, run])
        scores, labels = rng.integers(0, 4, 31).astype(float), rng.integers(0, 2, 31)
        table = np.zeros((1, 2))
        table[0, labels[30]] = scores[30]
        options = {"calibration_labels": labels[:30]} if conditional else {}
        ours = conformal_p_values(scores[:30], table, smoothed=True, random_state=rng, **options)
        p.append(ours[0, labels[30]])
    assert stats.kstest(p, "uniform").pvalue > LEVEL


def test_unsmoothed_p_values_of_true_labels_are_never_too_small(seed):
    p = np.empty(2000)
    for run in range(2000):
        rng = np.random.default_rng([seed, run])
        scores = rng.integers(0, 6, 21).astype(float)
        p[run] = conformal_p_values(scores[:20], scores[20:])[0]
    for u in (0.05, 0.1, 0.25, 0.5, 0.75):
        assert stats.binom.sf(int((p <= u).sum()) - 1, 2000, u) > LEVEL


@pytest.mark.parametrize("nonconformity", ["absolute", "normalized"])
def test_intervals_follow_the_beta_binomial_law(nonconformity, seed):
    n, m, runs = 99, 40, 60
    law = CoverageLaw(m, ALPHA, n_calibration=n, rank=conformal_rank(n, ALPHA))
    places = []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        X = rng.random((n + m, 2))
        y = X[:, 0] + (0.2 + X[:, 1]) * rng.standard_t(3, n + m)
        model = ConformalRegressor(
            FrozenEstimator(FirstColumn()), nonconformity=nonconformity, difficulty=lambda X: 0.2 + X[:, 1]
        ).conformalize(X[:n], y[:n])
        low, high = model.predict_interval(X[n:], ALPHA).T
        count = int(((low <= y[n:]) & (y[n:] <= high)).sum())
        places.append(law.cdf(count - 1) + rng.random() * (law.cdf(count) - law.cdf(count - 1)))
    assert stats.kstest(places, "uniform").pvalue > LEVEL


def test_the_pac_guarantee_fails_in_at_most_a_share_delta_of_calibration_sets(seed):
    # Uniform residuals: the coverage of the threshold q is q itself.
    runs, delta, unlucky = 600, 0.1, 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        model = ConformalRegressor(FrozenEstimator(FirstColumn()), guarantee="pac", delta=delta)
        model.conformalize(np.zeros((80, 1)), rng.random(80))
        unlucky += model.predict_interval(np.zeros((1, 1)), ALPHA)[0, 1] < 1 - ALPHA
    assert stats.binom.sf(unlucky - 1, runs, delta) > LEVEL
    assert stats.binom.cdf(unlucky, runs, delta / 4) > LEVEL  # and not by giving everything away


def test_weights_restore_coverage_under_covariate_shift(seed):
    # Source uniform on [0, 1], target density 2x; noise grows with x, so unweighted intervals fail.
    runs, plain, weighted = 500, 0, 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        X = rng.random((120, 1))
        y = X[:, 0] + X[:, 0] ** 2 * rng.normal(size=120) * 3
        Z = np.sqrt(rng.random((1, 1)))
        z = Z[0, 0] + Z[0, 0] ** 2 * rng.normal() * 3
        one = ConformalRegressor(FrozenEstimator(FirstColumn())).conformalize(X, y)
        two = ConformalRegressor(
            FrozenEstimator(FirstColumn()), likelihood_ratio=lambda X: 2 * np.asarray(X)[:, 0]
        )
        two.conformalize(X, y)
        plain += abs(z - Z[0, 0]) <= np.diff(one.predict_interval(Z, 0.2))[0, 0] / 2
        weighted += abs(z - Z[0, 0]) <= np.diff(two.predict_interval(Z, 0.2))[0, 0] / 2
    assert stats.binom.cdf(weighted, runs, 0.8) > LEVEL
    assert stats.binom.cdf(plain, runs, 0.8) < LEVEL  # the shift is real
