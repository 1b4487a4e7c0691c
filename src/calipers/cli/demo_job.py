"""The work behind ``calipers demo``: four predictors, two of which promise more than they keep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calipers.conformal import conformal_quantile
from calipers.metrics import coverage
from calipers.results import Estimate, EstimateTable

NOTES = (
    (
        "Each model states its uncertainty twice about the same held-out rows. As it comes: the most "
        "probable labels up to the promised mass (digits, logistic regression), the spread of the residuals "
        "on its own training rows (diabetes, random forest). Conformal: with a threshold from rows kept "
        "aside, by split conformal prediction."
    ),
    (
        "The null band holds 95 % of the readings of a predictor that keeps its promise; for a conformal "
        "predictor it allows for the finite calibration sample."
    ),
)


def measure(*, alpha: float, seed: int) -> EstimateTable:
    """Coverage of the four predictors on held-out rows, each with its interval and its test."""
    estimates = [*measure_digits(alpha, seed), *measure_diabetes(alpha, seed)]
    return EstimateTable(estimates, title=f"Coverage at {1 - alpha:.4g} promised", notes=NOTES)


def three_parts(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    """Training, calibration and test rows, a third each: X, X, X, y, y, y."""
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=2 / 3, random_state=seed)
    X_calibration, X_test, y_calibration, y_test = train_test_split(
        X_rest, y_rest, test_size=0.5, random_state=seed
    )
    return X_train, X_calibration, X_test, y_train, y_calibration, y_test


def measure_digits(alpha: float, seed: int) -> list[Estimate]:
    """Label sets for 8 x 8 pictures of digits."""
    X, y = load_digits(return_X_y=True)
    X_train, X_calibration, X_test, y_train, y_calibration, y_test = three_parts(X, y, seed)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X_train, y_train)
    P = model.predict_proba(X_test)
    calibration_scores = 1 - model.predict_proba(X_calibration)[np.arange(len(y_calibration)), y_calibration]
    threshold = conformal_quantile(calibration_scores, alpha)
    n_calibration = len(calibration_scores)
    return [
        named(coverage(y_test, most_probable(P, 1 - alpha), alpha=alpha), "digits, as it comes"),
        named(
            coverage(y_test, threshold >= 1 - P, alpha=alpha, n_calibration=n_calibration),
            "digits, conformal",
        ),
    ]


def most_probable(P: np.ndarray, mass: float) -> np.ndarray:
    """The smallest sets of labels whose probabilities add up to the mass."""
    order = np.argsort(-P, axis=1, kind="stable")
    before = np.cumsum(np.take_along_axis(P, order, axis=1), axis=1) - np.take_along_axis(P, order, axis=1)
    sets = np.zeros(P.shape, dtype=bool)
    np.put_along_axis(sets, order, before < mass, axis=1)
    return sets


def measure_diabetes(alpha: float, seed: int) -> list[Estimate]:
    """Intervals for the progress of diabetes after one year."""
    X, y = load_diabetes(return_X_y=True)
    X_train, X_calibration, X_test, y_train, y_calibration, y_test = three_parts(X, y, seed)
    model = RandomForestRegressor(n_estimators=100, random_state=seed).fit(X_train, y_train)
    centre = model.predict(X_test)
    claimed = float(np.quantile(np.abs(y_train - model.predict(X_train)), 1 - alpha))
    calibration_scores = np.abs(y_calibration - model.predict(X_calibration))
    threshold = conformal_quantile(calibration_scores, alpha)
    n_calibration = len(calibration_scores)
    return [
        named(coverage(y_test, around(centre, claimed), alpha=alpha), "diabetes, as it comes"),
        named(
            coverage(y_test, around(centre, threshold), alpha=alpha, n_calibration=n_calibration),
            "diabetes, conformal",
        ),
    ]


def around(centre: np.ndarray, half_width: float) -> np.ndarray:
    """Intervals of one width, (n, 2)."""
    return np.column_stack([centre - half_width, centre + half_width])


def named(estimate: Estimate, name: str) -> Estimate:
    """The estimate under the predictor's name."""
    return replace(estimate, name=name)
