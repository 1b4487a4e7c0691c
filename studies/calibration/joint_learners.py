"""Section 3.2.2: learners calibrated by construction, and how far two steps are from one minimisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from calipers.calibration import CalibrationConstrainedClassifier, IsotonicCalibrator, IsotronClassifier
from calipers.datasets import ScoreWorld
from calipers.metrics import calibration_error
from studies.calibration.settings import SEED, Settings
from studies.calibration.tables import Table


class JointReading(NamedTuple):
    """One learner on one data set: calibration error and squared error on its own and on the test rows."""

    dataset: str
    learner: str
    own_error: float
    test_error: float
    guaranteed_high: float
    own_brier: float
    test_brier: float


def joint_learners(settings: Settings) -> dict[str, Callable[[], Any]]:
    """Learners under the constraint c_emp = 0, and logistic regression beside them."""
    rounds: dict[str, Any] = {"n_rounds": settings.isotron_rounds, "random_state": SEED}
    return {
        "logistic regression": lambda: LogisticRegression(max_iter=1000),
        "Isotron": lambda: IsotronClassifier(**rounds),
        "SLIsotron": lambda: IsotronClassifier(variant="slisotron", slope=2.0, **rounds),
        "constrained, squared hinge": lambda: _constrained("squared_hinge"),
        "constrained, log": lambda: _constrained("log"),
        "constrained, squared": lambda: _constrained("squared"),
    }


def _constrained(loss: str) -> CalibrationConstrainedClassifier:
    return CalibrationConstrainedClassifier(loss, random_state=SEED)


def read_joint_learners(dataset: str, table: Table, settings: Settings) -> list[JointReading]:
    """Train every learner of `joint_learners` and read it on both kinds of rows."""
    makers, readings = joint_learners(settings), []
    for name, make in makers.items():
        model = make().fit(table.X_train, table.y_train)
        own, test = (model.predict_proba(X)[:, 1] for X in (table.X_train, table.X_test))
        options: dict[str, Any] = {"n_draws": 1, "n_models": len(makers), "random_state": SEED}
        held_out = calibration_error(table.y_test, test, **options)
        reading = JointReading(
            dataset,
            name,
            float(calibration_error(table.y_train, own, **options)),
            float(held_out),
            float(held_out.high or 1.0),
            float(np.mean((own - table.y_train) ** 2)),
            float(np.mean((test - table.y_test) ** 2)),
        )
        readings.append(reading)
    return readings


class JointGap(NamedTuple):
    """Squared error on the training rows under c_emp = 0: the best of all directions, and of learners."""

    seed: int
    joint: float
    constrained: float
    isotron: float
    unconstrained: float  # the best constant: where a learner that finds nothing stays


def joint_gaps(settings: Settings, n_angles: int = 720) -> list[JointGap]:
    """Two features, so that every direction can be tried: min over w and monotone u of the squared error.

    Every non-decreasing u(w . x) fitted by isotonic regression has c_emp = 0, so the best of them over all w
    is the joint minimiser of section 3.2.2 over single-index models. The constrained learner takes w from the
    loss alone and then fits u; its distance from the joint minimum is what two steps cost.
    """
    angles = 2 * np.pi * np.arange(n_angles) / n_angles
    world, gaps = ScoreWorld("uniform", "square"), []
    for seed in range(settings.joint_seeds):
        rng = np.random.default_rng([SEED, seed])
        X = rng.normal(size=(settings.joint_rows, 2))
        # a skewed link and an outlying feature: the case that two steps find hard
        X[:, 1] += (rng.random(len(X)) < 0.05) * 6
        score = X @ [1.0, 0.4]
        place = (np.argsort(np.argsort(score)) + 0.5) / len(X)
        y = (rng.random(len(X)) < world.link_at(place)).astype(float)
        errors = [_isotonic_error(X @ [np.cos(a), np.sin(a)], y) for a in angles]
        options: dict[str, Any] = {"n_rounds": settings.isotron_rounds, "validation_fraction": 0}
        models = (_constrained("squared"), IsotronClassifier(**options))
        found = [float(np.mean((m.fit(X, y).predict_proba(X)[:, 1] - y) ** 2)) for m in models]
        gaps.append(JointGap(seed, min(errors), found[0], found[1], float(y.var())))
    return gaps


def _isotonic_error(scores: np.ndarray, y: np.ndarray) -> float:
    fitted = IsotonicCalibrator(inputs="scores").fit_predict(scores, y == 1)
    return float(np.mean((np.asarray(fitted) - y) ** 2))
