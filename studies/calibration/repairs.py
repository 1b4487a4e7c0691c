"""Figures 2 and 3: calibration error before and after, the cost of decisions, and what a test says."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calipers.calibration import IsotonicCalibrator, calibrate_if_needed, loss_ratio_curve
from calipers.metrics import calibration_error
from calipers.results import Curve, Estimate
from studies.calibration.settings import SEED
from studies.calibration.tables import LEARNERS, Stated

THRESHOLDS = np.arange(1, 20) / 20


class Repair(NamedTuple):
    """One learner on one data set."""

    dataset: str
    learner: str
    before: Estimate
    after: Estimate
    own_rows: float
    ratio: Curve
    repaired: bool
    repaired_error: float
    verdict: str


def judge(dataset: str, learner: str, stated: Stated, n_draws: int) -> Repair:
    """Certificates hold for all five learners at once; isotonic regression sees the validation rows only."""
    options: dict[str, Any] = {"n_models": len(LEARNERS), "n_draws": n_draws, "random_state": SEED}
    isotonic = IsotonicCalibrator().fit(stated.validation, stated.y_validation)
    after = isotonic.predict(stated.test)
    own = isotonic.predict(stated.validation)
    chosen = calibrate_if_needed(stated.validation, stated.y_validation, random_state=SEED)
    return Repair(
        dataset=dataset,
        learner=learner,
        before=calibration_error(stated.y_test, stated.test, **options),
        after=calibration_error(stated.y_test, after, **options),
        own_rows=float(calibration_error(stated.y_validation, own, n_draws=1, random_state=SEED)),
        ratio=loss_ratio_curve(stated.y_test, stated.test, after, thresholds=THRESHOLDS),
        repaired=chosen.repaired_,
        repaired_error=float(
            calibration_error(stated.y_test, chosen.predict(stated.test), n_draws=1, random_state=SEED)
        ),
        verdict=chosen.verdict_,
    )


HEADER = (
    "dataset",
    "learner",
    "n_test",
    "c_emp",
    "guaranteed_high",
    "asymptotic_high",
    "null_high",
    "p_value",
    "c_emp_after_isotonic",
    "guaranteed_high_after",
    "c_emp_isotonic_own_rows",
    "mean_loss_ratio",
    "test_says_repair",
    "c_emp_after_test_then_repair",
    "verdict",
)


def row_of(repair: Repair) -> tuple[object, ...]:
    """One line of the table."""
    before, after = repair.before, repair.after
    return (
        repair.dataset,
        repair.learner,
        before.n,
        before.value,
        before.high,
        before.details["asymptotic_high"],
        before.null_high,
        before.p_value,
        after.value,
        after.high,
        repair.own_rows,
        repair.ratio.details["mean"],
        repair.repaired,
        repair.repaired_error,
        repair.verdict,
    )
