"""The one logistic regression: published numbers, scipy's optimum, offsets, weights, bounds, separation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from calipers.inference import fit_logistic, logistic_log_likelihood

# Spector and Mazzeo (1980), table 1, as in Greene, Econometric Analysis: GPA, TUCE, PSI, GRADE of 32 students.
SPECTOR = np.array(
    [
        [2.66, 20, 0, 0], [2.89, 22, 0, 0], [3.28, 24, 0, 0], [2.92, 12, 0, 0], [4.00, 21, 0, 1],
        [2.86, 17, 0, 0], [2.76, 17, 0, 0], [2.87, 21, 0, 0], [3.03, 25, 0, 0], [3.92, 29, 0, 1],
        [2.63, 20, 0, 0], [3.32, 23, 0, 0], [3.57, 23, 0, 0], [3.26, 25, 0, 1], [3.53, 26, 0, 0],
        [2.74, 19, 0, 0], [2.75, 25, 0, 0], [2.83, 19, 0, 0], [3.12, 23, 1, 0], [3.16, 25, 1, 1],
        [2.06, 22, 1, 0], [3.62, 28, 1, 1], [2.89, 14, 1, 0], [3.51, 26, 1, 0], [3.54, 24, 1, 1],
        [2.83, 27, 1, 1], [3.39, 17, 1, 1], [2.67, 24, 1, 0], [3.65, 21, 1, 1], [4.00, 23, 1, 1],
        [3.10, 21, 1, 0], [2.39, 19, 1, 1],
    ]
)  # fmt: skip


def rows(n: int = 500, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(n), rng.normal(size=n), rng.exponential(size=n)])
    y = (rng.random(n) < expit(design @ [0.3, -1.2, 0.4])).astype(float)
    return design, y, rng.normal(size=n)


def test_coefficients_and_errors_are_those_published_for_spector_and_mazzeo():
    design = np.column_stack([np.ones(32), SPECTOR[:, :3]])
    fit = fit_logistic(design, SPECTOR[:, 3])
    # statsmodels 0.14, Logit(...).fit(): params, bse and llf.
    assert fit.coefficients == pytest.approx([-13.0213, 2.8261, 0.0952, 2.3787], abs=5e-5)
    errors = np.sqrt(np.diag(np.linalg.inv(fit.information)))
    assert errors == pytest.approx([4.931, 1.263, 0.142, 1.065], abs=5e-4)
    assert fit.log_likelihood == pytest.approx(-12.890, abs=5e-4)
    assert fit.converged


@pytest.mark.parametrize(
    "ridge", [0.0, 0.02, np.array([0.0, 0.5, 0.01])], ids=["none", "one", "per coefficient"]
)
def test_offset_weights_and_ridge_reach_the_optimum_of_scipy(ridge):
    design, y, offset = rows()
    w, start = np.random.default_rng(1).gamma(2.0, size=len(y)), np.array([0.0, 1.0, 0.0])
    fit = fit_logistic(design, y, weights=w, offset=offset, start=start, ridge=ridge)

    def loss(theta: np.ndarray) -> float:
        eta = design @ theta + offset
        penalty = w.sum() / 2 * float(np.sum(ridge * (theta - start) ** 2))
        return float(w @ (np.logaddexp(0, eta) - y * eta)) + penalty

    found = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-8})
    assert fit.coefficients == pytest.approx(found.x, abs=1e-6)
    assert fit.converged
    eta = design @ fit.coefficients + offset
    assert fit.fitted == pytest.approx(expit(eta))
    assert fit.log_likelihood == pytest.approx(logistic_log_likelihood(eta, y, w))
    score = design.T @ (w * (y - fit.fitted)) - ridge * w.sum() * (fit.coefficients - start)
    assert score == pytest.approx(np.zeros(3), abs=1e-8)


def test_the_scale_of_the_weights_does_not_matter():
    design, y, offset = rows(300)
    w = np.random.default_rng(3).gamma(2.0, size=300)
    fits = [fit_logistic(design, y, weights=c * w, offset=offset, ridge=0.01) for c in (1.0, 1e-7, 1e6)]
    for fit in fits[1:]:
        assert fit.coefficients == pytest.approx(fits[0].coefficients, rel=1e-8)


def test_whole_weights_are_repeated_rows_and_soft_outcomes_are_mixed_rows():
    design, y, offset = rows(200)
    w = np.random.default_rng(2).integers(0, 4, size=200)
    by_weight = fit_logistic(design, y, weights=w.astype(float), offset=offset)
    repeated = fit_logistic(np.repeat(design, w, axis=0), np.repeat(y, w), offset=np.repeat(offset, w))
    assert by_weight.coefficients == pytest.approx(repeated.coefficients, rel=1e-9)
    # One row with mean outcome 0.25 and weight 4 is one event and three others.
    soft = fit_logistic(np.ones((1, 1)), np.array([0.25]), weights=np.array([4.0]))
    assert soft.coefficients == pytest.approx([logit(0.25)])


def test_lower_bounds_hold_where_they_bind():
    design, y, _ = rows()
    free = fit_logistic(design, y)
    assert free.coefficients[1] < -0.5
    bounded = fit_logistic(design, y, lower=np.array([-np.inf, 0.0, 0.0]), start=np.array([0.0, 1.0, 1.0]))
    without = fit_logistic(design[:, [0, 2]], y)
    assert bounded.coefficients[1] == 0.0
    assert bounded.coefficients[[0, 2]] == pytest.approx(without.coefficients, abs=1e-6)
    assert bounded.converged


def test_steps_that_would_overshoot_are_halved(seed):
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(400) < 0.2, -4.0, 1.0) + 0.3 * rng.normal(size=400)
    z = (rng.random(400) < np.where(x < -1, 0.5, 0.97)).astype(float)
    design, base = np.column_stack([np.ones(400), x]), np.full(400, logit(0.999))
    fit = fit_logistic(design, z, offset=base)
    assert fit.converged
    assert design.T @ (z - fit.fitted) == pytest.approx(np.zeros(2), abs=1e-8)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1.0, 2, 3, 4], [0, 0, 1, 1]),  # a gap between the outcomes
        ([1.0, 2, 2, 3], [0, 0, 1, 1]),  # both outcomes at the threshold
        ([1.0, 2, 3, 4], [1, 1, 1, 1]),
        ([2.0, 2, 2, 2], [0, 1, 1, 1]),  # no slope
    ],
)
def test_a_maximum_that_does_not_exist_is_said_and_a_ridge_gives_one(x, y):
    design, outcomes = np.column_stack([np.ones(4), x]), np.array(y, dtype=float)
    free = fit_logistic(design, outcomes)
    assert not free.converged
    assert np.isfinite(free.coefficients).all()
    pulled = fit_logistic(design, outcomes, ridge=1e-9)
    assert pulled.converged
    assert np.isfinite(pulled.coefficients).all()


def test_extreme_offsets_do_not_overflow():
    design, y = np.ones((4, 1)), np.array([0.0, 1.0, 0.0, 1.0])
    fit = fit_logistic(design, y, offset=np.array([-900.0, 900.0, 1.0, -1.0]))
    assert fit.coefficients == pytest.approx([0.0], abs=1e-9)
