"""On real data: a calibrated model is left alone, broken ones are repaired."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from calipers.calibration import calibrate_if_needed
from calipers.metrics import calibration_error
from studies.calibration.settings import FULL
from studies.calibration.tables import load_table, state_probabilities


@pytest.mark.slow
def test_logistic_regression_on_adult_is_left_alone_and_margin_methods_are_repaired(data_dir: Path) -> None:
    settings = replace(FULL, n_trees=20)
    table = load_table("adult", data_dir, settings)
    for learner, broken in (("logistic regression", False), ("SVM", True), ("boosted trees", True)):
        stated = state_probabilities(learner, table, settings)
        chosen = calibrate_if_needed(stated.validation, stated.y_validation, random_state=0)
        assert chosen.repaired_ is broken, learner
        before, after = (
            float(calibration_error(stated.y_test, p, n_draws=1, random_state=0))
            for p in (stated.test, chosen.predict(stated.test))
        )
        assert after < 0.25 * before if broken else after == before
