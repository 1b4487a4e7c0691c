"""Exchangeable rows are seldom called shifted; the weighted predictor covers where a shift was found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from calipers.conformal import ConformalRegressor, LikelihoodRatio
from calipers.performance import exchangeability_test

SURE = 1e-4  # probability that a right program fails one check


@pytest.mark.parametrize("sizes", [(20, 30), (200, 500)])
@pytest.mark.parametrize("kind", ["normal", "skewed and tied"])
def test_exchangeable_rows_are_called_shifted_at_most_at_the_level(sizes, kind):
    rng, runs = np.random.default_rng(sizes[0]), 300
    shifted = 0
    for _ in range(runs):
        X, Z = (
            rng.normal(size=(n, 3)) if kind == "normal" else rng.poisson(0.7, (n, 3)) ** 2.0 for n in sizes
        )
        table = exchangeability_test(X, Z, calibration_scores=X[:, 0], test_scores=Z[:, 0], random_state=rng)
        shifted += any(estimate.details["shifted"] for estimate in table.values())
    print(f"{kind}, {sizes}: {shifted / runs:.3f} of exchangeable samples called shifted")
    assert shifted <= stats.binom.isf(SURE, runs, 0.05)


def test_halves_that_agree_by_chance_are_not_counted_twice():
    # One feature: where both halves lean the same way by chance, both rank the other half well.
    rng, runs = np.random.default_rng(5), 1000
    shifted = 0
    for _ in range(runs):
        X, Z = rng.normal(size=(100, 1)), rng.normal(size=(100, 1))
        shifted += exchangeability_test(X, Z, random_state=rng)["features"].details["shifted"]
    print(f"one feature: {shifted / runs:.3f} of exchangeable samples called shifted")
    assert shifted <= stats.binom.isf(SURE, runs, 0.05)


def test_a_found_shift_leads_to_the_weighted_predictor():
    rng, found, plain, weighted = np.random.default_rng(0), 0, [], []
    for _ in range(25):
        parts = []
        for n, shift in ((400, 0.0), (600, 0.0), (600, 1.0)):
            x = rng.normal(shift, 1, (n, 1))
            parts.append((x, x[:, 0] + np.exp(0.6 * x[:, 0]) * rng.normal(size=n)))
        (A, a), (X, y), (Z, z) = parts
        found += exchangeability_test(X, Z, random_state=rng)["features"].details["shifted"]
        for ratio, coverage in ((None, plain), (LikelihoodRatio().fit(A, Z), weighted)):
            model = (
                ConformalRegressor(LinearRegression(), likelihood_ratio=ratio).fit(A, a).conformalize(X, y)
            )
            low, high = model.predict_interval(Z, alpha=0.1).T
            coverage.append(np.mean((low <= z) & (z <= high)))
    print(f"shift found in {found} of 25; coverage {np.mean(plain):.3f}, weighted {np.mean(weighted):.3f}")
    assert found == 25
    assert np.mean(plain) < 0.8
    assert np.mean(weighted) > 0.87
