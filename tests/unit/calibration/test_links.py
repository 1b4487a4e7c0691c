"""Link families: maximum likelihood against its equations, minimum error against a search."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.base import clone

from calipers.calibration import LinkCalibrator
from calipers.calibration.link_families import FAMILIES, make_family
from calipers.calibration.minimum_error import index_error
from calipers.datasets import ScoreWorld
from calipers.exceptions import InputError

BENT = ScoreWorld("uniform", lambda f: 0.1 + 0.8 * f**3)


def log_loss(p: np.ndarray, y: np.ndarray) -> float:
    return -float(np.mean(np.where(y == 1, np.log(p), np.log1p(-p))))


def error_over_rows(p: np.ndarray, y: np.ndarray, after: np.ndarray) -> float:
    order = np.argsort(p)
    return index_error(np.cumsum((y - after)[order]) / y.size)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_identity_is_in_every_family(family: str) -> None:
    p = np.linspace(0.01, 0.99, 50)
    link = make_family(family, "probabilities", p, np.ones(50), 5)
    wide = np.linspace(0.0001, 0.9999, 501)  # beyond the outer knots too
    np.testing.assert_allclose(expit(link.features(wide) @ link.start), wide, atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_likelihood_equations_hold(family: str, seed: int) -> None:
    p, y = BENT.sample(1000, random_state=seed)
    calibrator = LinkCalibrator(family).fit(p, y)
    gradient = calibrator.link_.features(p).T @ (calibrator.predict(p) - y)
    at_bound = calibrator.coefficients_ <= calibrator.link_.lower + 1e-9
    assert np.abs(gradient[~at_bound]).max() < 1e-3
    assert (gradient[at_bound] > -1e-3).all()  # pushing further down is forbidden, not useful


@pytest.mark.parametrize("family", ["platt", "beta"])
def test_a_general_optimiser_finds_the_same_link(family: str) -> None:
    p, y = BENT.sample(500, random_state=3)
    ours = LinkCalibrator(family).fit(p, y)
    features, lower = ours.link_.features(p), ours.link_.lower

    def loss(theta: np.ndarray) -> float:
        odds = features @ theta
        return float(np.sum(np.logaddexp(0, odds) - y * odds))

    found = minimize(loss, ours.link_.start, bounds=[(b, None) for b in lower], tol=1e-12)
    np.testing.assert_allclose(ours.coefficients_, found.x, atol=2e-3)
    assert loss(ours.coefficients_) <= found.fun + 1e-6


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("objective", ["likelihood", "calibration_error"])
def test_the_map_never_decreases(family: str, objective: str, seed: int) -> None:
    p, y = ScoreWorld("beta", "bump", 0.3).sample(400, random_state=seed)
    model = LinkCalibrator(family, objective).fit(p, y)
    after = model.predict(np.linspace(0, 1, 2001))
    # The log-odds are a sum of terms, rounded at the size of the largest: where the map is flat that shows.
    rounding = np.finfo(float).eps * np.abs(model.coefficients_).sum()
    assert (np.diff(after) >= -rounding).all()
    assert ((after >= 0) & (after <= 1)).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_minimum_error_is_smaller_and_pays_in_likelihood(family: str, seed: int) -> None:
    p, y = BENT.sample(1500, random_state=seed)
    likely = LinkCalibrator(family).fit_predict(p, y)
    least = LinkCalibrator(family, "calibration_error").fit_predict(p, y)
    assert error_over_rows(p, y, least) <= error_over_rows(p, y, likely) + 1e-12
    assert log_loss(least, y) >= log_loss(likely, y) - 1e-9


def test_minimum_error_of_a_shift_and_slope_is_that_of_a_grid() -> None:
    p, y = BENT.sample(300, random_state=5)
    ours = LinkCalibrator("platt", "calibration_error").fit(p, y)
    reached = error_over_rows(p, y, ours.predict(p))
    best = min(
        error_over_rows(p, y, expit(a * logit(p) + b))
        for a in np.linspace(0.3, 1.6, 66)
        for b in np.linspace(-2.0, 0.0, 81)
    )
    assert reached <= best + 1e-4


def test_a_calibrated_model_is_left_nearly_as_it_is() -> None:
    p, y = ScoreWorld().sample(50_000, random_state=0)
    grid = np.linspace(0.02, 0.98, 49)
    for family in FAMILIES:
        assert np.abs(LinkCalibrator(family).fit(p, y).predict(grid) - grid).max() < 0.02


def test_a_known_shift_is_found() -> None:
    p, y = ScoreWorld("uniform", "shift", 0.7).sample(100_000, random_state=1)
    offset, slope = LinkCalibrator("platt").fit(p, y).coefficients_
    # Standard errors are near 0.008 and 0.006.
    assert offset == pytest.approx(0.7, abs=0.04)
    assert slope == pytest.approx(1.0, abs=0.03)


def test_an_inverted_score_becomes_a_constant_not_an_inversion() -> None:
    p, y = ScoreWorld().sample(2000, random_state=2)
    after = LinkCalibrator("platt").fit_predict(1 - p, y)
    np.testing.assert_allclose(after, np.mean(y), atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_separated_classes_give_finite_probabilities(family: str) -> None:
    p, y = np.array([0.1, 0.2, 0.7, 0.9]), np.array([0, 0, 1, 1])
    after = LinkCalibrator(family).fit(p, y).predict([0.0, 0.1, 0.9, 1.0])
    assert np.isfinite(after).all()
    assert after[1] < 0.2
    assert after[2] > 0.8


@pytest.mark.parametrize("family", FAMILIES)
def test_certainties_and_constants_are_accepted(family: str) -> None:
    p, y = np.array([0.0, 0.0, 1.0, 1.0, 0.5]), np.array([0, 1, 1, 0, 1])
    assert np.isfinite(LinkCalibrator(family).fit_predict(p, y)).all()
    constant = LinkCalibrator(family).fit_predict(np.full(10, 0.3), np.arange(10) % 2)
    assert np.ptp(constant) == 0
    if family != "temperature":
        assert constant[0] == pytest.approx(0.5, abs=1e-5)


def test_weights_mean_repetition(seed: int) -> None:
    p, y = BENT.sample(200, random_state=seed)
    times = np.random.default_rng(seed).integers(0, 4, 200)
    weighted = LinkCalibrator("spline").fit(p, y, sample_weight=times).predict(p)
    repeated = LinkCalibrator("spline").fit(np.repeat(p, times), np.repeat(y, times)).predict(p)
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)


def test_scores_are_taken_as_log_odds(seed: int) -> None:
    p, y = BENT.sample(500, random_state=seed)
    by_score = LinkCalibrator("platt", inputs="scores").fit(logit(p), y)
    np.testing.assert_allclose(by_score.coefficients_, LinkCalibrator("platt").fit(p, y).coefficients_)


def test_it_can_be_cloned() -> None:
    assert clone(LinkCalibrator("beta", n_knots=3)).get_params()["family"] == "beta"


def test_torch_stays_torch() -> None:
    torch = pytest.importorskip("torch")
    p, y = BENT.sample(200, random_state=0)
    after = LinkCalibrator("beta").fit(torch.asarray(p), torch.asarray(y)).predict(torch.asarray(p))
    np.testing.assert_allclose(after.numpy(), LinkCalibrator("beta").fit_predict(p, y), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": "probit"}, "family must be one of platt, temperature, beta, spline, got 'probit'"),
        ({"objective": "brier"}, "objective must be one of likelihood, calibration_error, got 'brier'"),
        ({"n_knots": -1}, "n_knots must be a whole number of at least 0, got -1"),
        ({"family": "beta", "inputs": "scores"}, 'family="beta" needs probabilities'),
    ],
)
def test_bad_options_are_named(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        LinkCalibrator(**options).fit([0.2, 0.8], [0, 1])
