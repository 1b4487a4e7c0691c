"""Predictors grouped by difficulty keep what they promise: O-LAC, O-SAPS, O-CPA and O-PAC."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from calipers.conformal import ConformalClassifier, ConformalRegressor
from calipers.difficulty import DifficultyBins
from calipers.exceptions import SmallSampleWarning
from calipers.metrics import is_covered, t_cv, t_ss, true_rank


class Hesitant(ClassifierMixin, BaseEstimator):
    """A fixed classifier of three labels that is overconfident where the feature is small."""

    classes_ = np.arange(3)

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        logits = np.column_stack([X[:, 0], -X[:, 0], 0.5 * X[:, 1]]) * 1.5
        e = np.exp(logits - logits.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)

    def __sklearn_is_fitted__(self):
        return True


def labelled(rng, n):
    X = rng.normal(size=(n, 2))
    P = Hesitant().predict_proba(X) ** 0.4
    P /= P.sum(axis=1, keepdims=True)
    return X, (P.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)


def grouped(nonconformity, seed, **options):
    bins = DifficultyBins(n_bins=4, n_transforms=4, scale=0.3, random_state=seed, **options)
    return ConformalClassifier(FrozenEstimator(Hesitant()), nonconformity=nonconformity, groups=bins)


def test_coverage_in_every_bin_follows_the_beta_binomial_law(seed):
    # Separate rows place the edges: the guarantee is per bin, over calibration sets.
    rng = np.random.default_rng(seed)
    p_values = []
    for run in range(60):
        X, y = labelled(rng, 500)
        model = grouped("lac", run, split=0.4).conformalize(X, y)
        assert model.grouping_.guarantee_ == "group-conditional"
        test, truth = labelled(rng, 800)
        covered = is_covered(truth, model.predict_set(test, alpha=0.1), classes=[0, 1, 2])
        calibration, bins = model.grouping_.assign_calibration(X), model.grouping_.assign(test)
        for b in range(model.grouping_.n_bins_):
            n, m = int(np.sum(calibration == b)), int(np.sum(bins == b))
            k = int(np.ceil((n + 1) * 0.9 - 1e-9))
            law = stats.betabinom(m, k, n + 1 - k)
            hits = int(covered[bins == b].sum())
            p_values.append(law.cdf(hits - 1) + rng.random() * law.pmf(hits))
    # Randomised p-values of independent runs are uniform; bins of one run are nearly independent.
    assert stats.kstest(p_values, "uniform").pvalue > 0.001


@pytest.mark.parametrize("nonconformity", ["lac", "saps"])
def test_shared_rows_keep_coverage_on_average(nonconformity, seed):
    rng = np.random.default_rng(seed)
    hits = []
    for run in range(50):
        X, y = labelled(rng, 300)
        model = grouped(nonconformity, run).conformalize(X, y)
        assert model.grouping_.guarantee_ == "group-conditional"
        test, truth = labelled(rng, 200)
        hits.append(is_covered(truth, model.predict_set(test, alpha=0.1), classes=[0, 1, 2]).mean())
    error = np.std(hits) / np.sqrt(50)
    assert 0.9 - 3 * error <= np.mean(hits) <= 0.9 + 4 / 76 + 3 * error


class GivenEase(DifficultyBins):
    """Difficulty bins over the first column of the rows."""

    def ease(self, X):
        return np.asarray(X)[:, 0]

    def _draw(self, X, predict, rng):
        pass


class Zero(RegressorMixin, BaseEstimator):
    """Predicts 0, so that the score of a row is its outcome."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def __sklearn_is_fitted__(self):
        return True


def coverage_by_bin(rng, n, n_bins, draw, outcome, runs, alpha=0.1):
    """Coverage of every bin over calibration sets, its standard error, and what the bins promise."""
    hits, rows = np.zeros((2, runs, n_bins))
    for run in range(runs):
        ease = draw(n + 200)
        X, y = ease[:, None], outcome(ease)
        model = ConformalRegressor(FrozenEstimator(Zero()), groups=GivenEase(n_bins=n_bins, alpha=alpha))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SmallSampleWarning)  # bins are merged
            model.conformalize(X[:n], y[:n])
        covered = is_covered(y[n:], model.predict_interval(X[n:], alpha))
        bins = model.grouping_.assign(X[n:])
        hits[run] = np.bincount(bins[covered], minlength=n_bins)
        rows[run] = np.bincount(bins, minlength=n_bins)
    hits, rows = hits[:, rows.sum(axis=0) > 0], rows[:, rows.sum(axis=0) > 0]
    coverage = hits.sum(axis=0) / rows.sum(axis=0)
    error = np.std(hits - coverage * rows, axis=0) / rows.mean(axis=0) / np.sqrt(runs)
    return coverage, error, model.grouping_.guarantee_


@pytest.mark.parametrize(
    ("n", "n_bins", "alpha"), [(90, 10, 0.1), (190, 10, 0.1), (200, 10, 0.1), (27, 9, 0.25), (36, 9, 0.25)]
)
def test_coverage_holds_in_every_bin_with_edges_from_the_calibration_rows(n, n_bins, alpha, seed):
    # The harder the row the larger its score: the row at the edge has the smallest score of its bin.
    rng = np.random.default_rng(seed)
    coverage, error, guarantee = coverage_by_bin(
        rng, n, n_bins, rng.random, lambda ease: 1 - ease, runs=1000, alpha=alpha
    )
    assert guarantee == "group-conditional"
    assert (coverage >= 1 - alpha - 4 * error).all()


@pytest.mark.parametrize("levels", [6, 40])
def test_tied_ease_values_cost_little_coverage_and_lose_the_guarantee(levels, seed):
    rng = np.random.default_rng(seed)
    coverage, error, guarantee = coverage_by_bin(
        rng, 90, 4, lambda m: rng.integers(levels, size=m) / levels,
        lambda ease: 1 - ease + rng.random(ease.size), runs=1000,
    )  # fmt: skip
    assert guarantee == "approximate"
    assert (coverage >= 0.89 - 4 * error).all()


def test_difficulty_bins_repair_what_one_threshold_breaks(seed):
    # One threshold over-covers easy rows and under-covers hard ones; the bins do neither.
    rng = np.random.default_rng(seed)
    X, y = labelled(rng, 4000)
    test, truth = labelled(rng, 4000)
    readings = {}
    for name, model in {
        "LAC": ConformalClassifier(FrozenEstimator(Hesitant())),
        "O-LAC": grouped("lac", 0),
    }.items():
        model.conformalize(X, y)
        sets = model.predict_set(test, alpha=0.1)
        ease = grouped("lac", 1).groups.fit(X, Hesitant().predict_proba).ease(test)
        covered = is_covered(truth, sets, classes=[0, 1, 2])
        readings[name] = t_cv(covered, ease, alpha=0.1, n_bins=10, n_calibration=np.full(10, 400))
        rank = true_rank(truth, Hesitant().predict_proba(test))
        assert float(t_ss(rank, sets.sum(axis=1), ease, n_bins=10, random_state=0)) > 0.5
    assert readings["LAC"].p_value < 1e-3
    assert float(readings["O-LAC"]) < float(readings["LAC"])


class GaussianModel(RegressorMixin, BaseEstimator):
    """mean sin(2x), spread known up to a factor, as a model with return_std."""

    def fit(self, X, y):
        return self

    def predict(self, X, return_std=False):
        mean = np.sin(2 * X[:, 0])
        return (mean, 0.2 + 0.1 * np.abs(X[:, 0])) if return_std else mean

    def __sklearn_is_fitted__(self):
        return True


def measured(rng, n):
    X = rng.uniform(-2, 2, (n, 1))
    return X, np.sin(2 * X[:, 0]) + (0.1 + 0.4 * np.abs(np.cos(2 * X[:, 0]))) * rng.normal(size=n)


@pytest.mark.parametrize(
    ("name", "options", "least"),
    [
        ("O-CPA", {"nonconformity": "normalized"}, 0.8),
        ("O-PAC", {"nonconformity": "normalized", "guarantee": "pac", "delta": 0.01}, 0.8),
        ("CP", {"nonconformity": "absolute"}, 0.8),
    ],
)
def test_regression_predictors_cover(name, options, least, seed):
    rng = np.random.default_rng(seed)
    X, y = measured(rng, 1500)
    groups = DifficultyBins(n_bins=5, scale=0.2, min_rows=40, random_state=0) if name != "CP" else None
    model = ConformalRegressor(FrozenEstimator(GaussianModel()), alpha=0.2, groups=groups, **options)
    model.conformalize(X, y)
    test, truth = measured(rng, 4000)
    intervals = model.predict_interval(test)
    covered = is_covered(truth, intervals)
    assert np.isfinite(intervals).all()
    spread = np.sqrt(0.16 / 1500 + 0.16 / 4000)
    assert covered.mean() >= least - 4 * spread
    if name == "O-PAC":
        # At delta = 0.01 every bin covers on the safe side.
        bins = model.grouping_.assign(test)
        assert min(covered[bins == b].mean() for b in range(5)) >= 0.78
    if name == "CP":
        assert np.ptp(intervals[:, 1] - intervals[:, 0]) < 1e-9


def test_default_bins_work_in_both_predictors(seed):
    rng = np.random.default_rng(seed)
    X, y = labelled(rng, 400)
    classifier = ConformalClassifier(
        LogisticRegression(), groups=DifficultyBins(n_bins=5), calibration_size=0.5, random_state=0
    ).fit(X, y)
    assert classifier.predict_set(X[:7]).shape == (7, 3)
    regressor = ConformalRegressor(groups=DifficultyBins(n_bins=5), calibration_size=0.5, random_state=0)
    assert regressor.fit(X, X[:, 0] + rng.normal(size=400)).predict_interval(X[:7]).shape == (7, 2)
