"""Intervals without labels hold what is realised, without a shift and under simulated covariate shift."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score, roc_auc_score

from calipers.performance import LabelFreePerformance

SURE = 1e-4  # probability that a right program fails one check
PROMISE = 0.93


@pytest.fixture(params=[15, pytest.param(300, marks=pytest.mark.slow)], ids=["short", "long"])
def runs(request):
    """How many samples of reference and new rows."""
    return request.param


def features(rng, n, shift):
    """Three features; the shift moves one and spreads another."""
    X = rng.normal(size=(n, 3))
    X[:, 0] += shift
    X[:, 1] *= 1.3 if shift else 1.0
    return X


def classified(rng, n, shift):
    """Features, probabilities that are too extreme and miss an interaction, labels."""
    X = features(rng, n, shift)
    odds = 1.2 * X[:, 0] - 0.8 * X[:, 1]
    y = rng.random(n) < 1 / (1 + np.exp(-(odds + 0.5 * X[:, 0] * X[:, 1])))
    return X, 1 / (1 + np.exp(-1.5 * odds)), y.astype(int)


def measured(rng, n, shift):
    """Features, predictions and outcomes whose noise grows with a feature."""
    X = features(rng, n, shift)
    prediction = X[:, 0] - X[:, 1]
    return X, prediction, prediction + (0.3 + 0.3 * np.abs(X[:, 0])) * rng.normal(size=n)


REALISED = {
    "zero_one": lambda q, z: np.mean((q >= 0.5) != z),
    "brier": lambda q, z: np.mean(2 * (q - z) ** 2),
    "log": lambda q, z: -np.mean(np.log(np.where(z, q, 1 - q))),
    (1.0, 5.0): lambda q, z: np.mean(np.where(q >= 1 / 6, 1.0 * (z == 0), 5.0 * (z == 1))),
    "f1": lambda q, z: f1_score(z, q >= 0.5),
    "auroc": lambda q, z: roc_auc_score(z, q),
    "squared": lambda q, z: np.mean((q - z) ** 2),
    "absolute": lambda q, z: np.mean(np.abs(q - z)),
}


def check(rows, loss, sizes, shift, runs, *, with_features=True):
    """How often the interval holds what is realised on the new rows."""
    rng, hits, errors, naive = np.random.default_rng(runs), [], [], []
    for _ in range(runs):
        X, p, y = rows(rng, sizes[0], 0.0)
        X_new, q, z = rows(rng, sizes[1], shift)
        model = LabelFreePerformance(loss=loss, random_state=rng).fit(p, y, X if with_features else None)
        found = model.estimate(q, X_new if with_features else None)
        realised = REALISED[loss](q, z)
        hits.append(found.low <= realised <= found.high)
        errors.append(abs(found.value - realised))
        naive.append(abs(REALISED[loss](p, y) - realised))
    print(
        f"{loss} {sizes} shift {shift}: holds {np.mean(hits):.3f} of {runs}, mean absolute error "
        f"{np.mean(errors):.4f}, that of the reference value {np.mean(naive):.4f}"
    )
    assert np.sum(hits) >= stats.binom.ppf(SURE, runs, PROMISE)
    return np.mean(errors), np.mean(naive)


@pytest.mark.parametrize(
    ("loss", "sizes"),
    [("zero_one", (500, 500)), ("brier", (1000, 300)), ("log", (1000, 1000)), ("f1", (1000, 1000))],
)
@pytest.mark.parametrize("with_features", [True, False])
def test_without_a_shift(loss, sizes, with_features, runs):
    check(classified, loss, sizes, 0.0, runs, with_features=with_features)


@pytest.mark.parametrize(
    ("loss", "shift"),
    [("zero_one", 0.7), ("brier", 0.15), ("brier", 1.3), ((1.0, 5.0), 0.7), ("auroc", 0.7)],
)
def test_under_covariate_shift(loss, shift, runs):
    error, naive = check(classified, loss, (1000, 1000), shift, runs)
    if shift == 0.7 and loss in ("zero_one", (1.0, 5.0)):
        assert error < 0.8 * naive


@pytest.mark.parametrize(("loss", "shift"), [("squared", 0.0), ("absolute", 0.7)])
def test_regression(loss, shift, runs):
    check(measured, loss, (1000, 1000), shift, runs)
