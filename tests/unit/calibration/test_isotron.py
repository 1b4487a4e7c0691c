"""Isotron and SLIsotron, and the limited-slope isotonic step against a bounded least-squares solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.special import expit

from calipers.calibration import IsotronClassifier
from calipers.calibration.isotonic import fit_blocks, interpolated_values, pool_ties
from calipers.calibration.lipschitz import fit_points, lipschitz_isotonic
from calipers.exceptions import InputError
from calipers.metrics import calibration_error


def by_least_squares(z: np.ndarray, y: np.ndarray, w: np.ndarray, slope: float) -> np.ndarray:
    """First value free, then increments in [0, slope dz]: an active-set solver over increments."""
    rises, root = np.tril(np.ones((z.size, z.size))), np.sqrt(w)
    low, high = np.r_[-np.inf, np.zeros(z.size - 1)], np.r_[np.inf, slope * np.diff(z)]
    found = lsq_linear(root[:, None] * rises, root * y, bounds=(low, high), method="bvls", tol=1e-14)
    return rises @ found.x


@pytest.mark.parametrize("slope", [0.1, 0.5, 1.0, 5.0, 100.0])
@pytest.mark.parametrize("n", [1, 2, 3, 12, 30])
def test_the_limited_slope_fit_is_the_least_squares_one(n: int, slope: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(5):
        z, y = np.sort(rng.normal(size=n)), rng.random(n).round(1)
        w = rng.integers(1, 4, n).astype(float)
        fit = lipschitz_isotonic(z, y, w, slope)
        np.testing.assert_allclose(fit, by_least_squares(z, y, w, slope), atol=1e-8)


def test_limited_slope_by_hand() -> None:
    # Targets 0 and 1 one unit apart, slope 0.4: the best pair is 0.5 -+ 0.2.
    fit = lipschitz_isotonic(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.ones(2), 0.4)
    np.testing.assert_allclose(fit, [0.3, 0.7])


def test_a_steep_limit_is_plain_isotonic_regression(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z = np.sort(rng.random(200))
    y = rng.random(200) < z
    blocks = fit_blocks(pool_ties(z, y))
    fit = lipschitz_isotonic(z, y.astype(float), np.ones(200), 1e9)
    np.testing.assert_allclose(fit, interpolated_values(blocks, z), atol=1e-6)


@pytest.mark.parametrize("slope", [0.001, 0.05, 0.25, 1.0, 50.0])
@pytest.mark.parametrize("signal", [0.0, 3.0, -1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_long_fit_meets_the_conditions_of_a_minimum(
    slope: float, signal: float, weighted: bool, seed: int
) -> None:
    """Residuals summed from the left: >= 0 where the fit could fall, <= 0 where it could rise."""
    rng = np.random.default_rng(seed)
    z = np.sort(rng.normal(size=5000))
    y = (rng.random(z.size) < expit(signal * z)).astype(float)
    w = rng.pareto(1, z.size) + 1e-3 if weighted else np.ones(z.size)
    fit, rooms = lipschitz_isotonic(z, y, w, slope), slope * np.diff(z)
    rises, sums = np.diff(fit), np.cumsum(w * (y - fit))
    tolerance = 1e-9
    assert (rises >= -tolerance).all()
    assert (rises <= rooms + tolerance).all()
    assert abs(sums[-1]) < 1e-9 * w.sum()
    assert (sums[:-1][rises < rooms - tolerance] > -1e-9 * w.sum()).all()
    assert (sums[:-1][rises > tolerance] < 1e-9 * w.sum()).all()
    np.testing.assert_allclose(fit, fit_points(y, w, rooms), atol=1e-8)


def test_rounding_cannot_trap_the_stacks() -> None:
    # A slope equal to that of the truth makes thousands of pieces move by rounding-size amounts.
    rng = np.random.default_rng(0)
    z = np.sort(rng.normal(size=20_000))
    y = (rng.random(20_000) < expit(z)).astype(float)
    fit = lipschitz_isotonic(z, y, np.ones(z.size), 0.25)
    assert (np.diff(fit) >= 0).all()
    assert (np.diff(fit) <= 0.25 * np.diff(z) + 1e-12).all()
    assert np.abs(fit - expit(z)).max() < 0.1


def single_index(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1.0, 10.0, 0.1, 1.0] + 3
    eta = expit(2 * (X - 3) @ [1.0, 0.1, 0.0, -1.0])
    return X, (rng.random(n) < eta).astype(int), eta


@pytest.mark.parametrize("variant", ["isotron", "slisotron"])
def test_a_single_index_model_is_found(variant: str) -> None:
    X, y, eta = single_index(3000, 0)
    model = IsotronClassifier(variant=variant, n_rounds=40, slope=2.0, random_state=0).fit(X, y)
    spread = X.std(axis=0)  # compare where a step in every feature means the same
    direction, truth = model.coef_ * spread, np.array([1.0, 0.1, 0.0, -1.0]) * spread
    assert direction @ truth > 0.99 * np.linalg.norm(direction) * np.linalg.norm(truth)
    assert np.mean(np.abs(model.predict_proba(X)[:, 1] - eta)) < 0.04


def test_isotron_is_calibrated_on_its_rows_and_slisotron_is_not() -> None:
    X, y, _ = single_index(1000, 1)
    plain = IsotronClassifier(n_rounds=10, random_state=0).fit(X, y).predict_proba(X)[:, 1]
    assert float(calibration_error(y, plain, random_state=0)) < 1e-12
    limited = IsotronClassifier(variant="slisotron", slope=0.5, n_rounds=10, random_state=0).fit(X, y)
    error = float(calibration_error(y, limited.predict_proba(X)[:, 1], random_state=0))
    assert error > 1e-4  # slip 3 of the paper


def test_one_update_per_round_by_hand() -> None:
    """Round 0 is the step from the constant link; round 1 adds mean((y - u) x) once."""
    X, y, _ = single_index(300, 2)
    first = IsotronClassifier(n_rounds=1, validation_fraction=0).fit(X, y)
    second = IsotronClassifier(n_rounds=2, validation_fraction=0).fit(X, y)
    spread = X.std(axis=0) * 2  # unit spread each, four features
    Z = (X - X.mean(axis=0)) / spread
    w = Z.T @ (y - y.mean()) / 300
    np.testing.assert_allclose(first.coef_, w / spread, rtol=1e-10)
    u = interpolated_values(fit_blocks(pool_ties(Z @ w, y == 1)), Z @ w)
    w = w + Z.T @ (y - u) / 300
    if second.n_rounds_ == 1:
        np.testing.assert_allclose(second.coef_, w / spread, rtol=1e-10)
    u = interpolated_values(fit_blocks(pool_ties(Z @ w, y == 1)), Z @ w)
    assert second.validation_errors_[1] == pytest.approx(np.mean((y - u) ** 2))


@pytest.mark.parametrize("variant", ["isotron", "slisotron"])
def test_whole_weights_are_repeated_rows(variant: str) -> None:
    X, y, _ = single_index(200, 4)
    weights = np.random.default_rng(4).integers(0, 4, 200)
    options = {"variant": variant, "n_rounds": 6, "validation_fraction": 0}
    weighted = IsotronClassifier(**options).fit(X, y, sample_weight=weights)
    repeated = IsotronClassifier(**options).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)
    np.testing.assert_allclose(weighted.validation_errors_, repeated.validation_errors_, rtol=1e-9)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-9)


def test_the_scale_of_weights_does_not_matter() -> None:
    X, y, _ = single_index(300, 5)
    weights = np.random.default_rng(5).random(300)
    first, second = (
        IsotronClassifier(n_rounds=6, random_state=0).fit(X, y, sample_weight=c * weights) for c in (1, 64)
    )
    np.testing.assert_allclose(first.predict_proba(X), second.predict_proba(X), atol=1e-12)
    plain = IsotronClassifier(n_rounds=6, random_state=0).fit(X, y)
    assert np.abs(first.coef_ - plain.coef_).max() > 1e-6
    with pytest.raises(InputError, match="sample_weight must not be negative"):
        IsotronClassifier().fit(X, y, sample_weight=-weights)


def test_a_constant_feature_gets_no_weight() -> None:
    X, y, _ = single_index(300, 3)
    X[:, 2] = 7.0
    model = IsotronClassifier(n_rounds=5, random_state=0).fit(X, y)
    assert model.coef_[2] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "perceptron"}, 'variant must be "isotron" or "slisotron"'),
        ({"n_rounds": 0}, "n_rounds must be a whole number of at least 1, got 0"),
        ({"validation_fraction": 1.0}, r"validation_fraction must lie in \[0, 1\), got 1.0"),
        ({"variant": "slisotron", "slope": 0}, "slope must be positive, got 0"),
    ],
)
def test_bad_options_are_named(options: dict, message: str) -> None:
    X, y, _ = single_index(50, 0)
    with pytest.raises(InputError, match=message):
        IsotronClassifier(**options).fit(X, y)


def test_three_classes_are_refused() -> None:
    with pytest.raises(InputError, match="y must hold two classes, got 3"):
        IsotronClassifier().fit(np.eye(3), [0, 1, 2])
