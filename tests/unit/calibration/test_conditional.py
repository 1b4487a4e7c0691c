"""Test first, then repair."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from calipers.calibration import IsotonicCalibrator, LinkCalibrator, calibrate_if_needed
from calipers.calibration.conditional import cross_fit
from calipers.datasets import ScoreWorld
from calipers.exceptions import InputError


def test_a_calibrated_model_is_left_exactly_as_it_is() -> None:
    p, y = ScoreWorld("beta").sample(3000, random_state=1)
    chosen = calibrate_if_needed(p, y, random_state=0)
    assert not chosen.needed_
    assert not chosen.repaired_
    assert np.array_equal(chosen.predict(p), p)
    assert chosen.verdict_.startswith("Left alone: calibration error 0.0")
    assert chosen.after_ is None


@pytest.mark.parametrize(("link", "strength"), [("shift", 0.8), ("square", 2.0), ("bump", 0.3)])
def test_a_broken_model_is_repaired(link: str, strength: float) -> None:
    world = ScoreWorld("uniform", link, strength)
    p, y = world.sample(3000, random_state=2)
    chosen = calibrate_if_needed(p, y, random_state=0)
    assert chosen.repaired_
    grid = np.linspace(0.02, 0.98, 97)
    before, after = np.abs(grid - world.link_at(grid)), np.abs(chosen.predict(grid) - world.link_at(grid))
    assert after.mean() < before.mean()
    assert float(chosen.after_) < float(chosen.before_)
    assert "on rows it did not see" in chosen.verdict_


def test_a_smooth_fault_takes_the_simple_candidate_and_a_step_the_flexible_one() -> None:
    p, y = ScoreWorld("uniform", "shift", 1.0).sample(3000, random_state=0)
    assert isinstance(calibrate_if_needed(p, y, random_state=0).calibrator_, LinkCalibrator)
    step = ScoreWorld("uniform", lambda f: np.where(f < 0.5, 0.1, 0.9), corners=(0.5,))
    p, y = step.sample(20_000, random_state=0)
    assert isinstance(calibrate_if_needed(p, y, random_state=0).calibrator_, IsotonicCalibrator)


def test_calibrated_models_are_touched_as_rarely_as_alpha_says() -> None:
    rng, runs = np.random.default_rng(0), 150
    touched = 0
    for _ in range(runs):
        p, y = ScoreWorld("levels").sample(300, random_state=rng)
        touched += calibrate_if_needed(p, y, alpha=0.1, random_state=rng).needed_
    assert touched <= stats.binom.ppf(0.9995, runs, 0.1)


def test_a_candidate_that_does_not_help_is_refused() -> None:
    # Rejected, but the only candidate is a temperature, which cannot repair a shift at one half.
    y = np.r_[np.ones(70), np.zeros(30)].astype(int)
    chosen = calibrate_if_needed(
        np.full(100, 0.5), y, calibrators=[LinkCalibrator("temperature")], random_state=0
    )
    assert chosen.needed_
    assert not chosen.repaired_
    assert "no candidate lowers the Brier score" in chosen.verdict_


def test_cross_fit_never_shows_a_row_to_its_own_calibrator() -> None:
    p, y = np.array([0.2, 0.4, 0.6, 0.8]), np.array([True, False, True, False])
    found = cross_fit(IsotonicCalibrator(), p, y, None, np.array([0, 0, 1, 1]))
    # Rows 0 and 1 from {0.6: 1, 0.8: 0}, pooled to 1/2; rows 2 and 3 from {0.2: 1, 0.4: 0}, pooled to 1/2.
    assert found.tolist() == [0.5, 0.5, 0.5, 0.5]
    found = cross_fit(IsotonicCalibrator(), p, ~y, None, np.array([0, 1, 1, 1]))
    # Row 0 from {0.4: 1, 0.6: 0, 0.8: 1}: 1/2 below 0.4. The others from row 0 alone: 0.
    assert found.tolist() == [0.5, 0.0, 0.0, 0.0]


def test_bad_options_are_named() -> None:
    with pytest.raises(InputError, match="alpha must lie strictly between 0 and 1"):
        calibrate_if_needed([0.2, 0.8], [0, 1], alpha=5)
    with pytest.raises(InputError, match="n_folds must be a whole number of at least 2"):
        calibrate_if_needed([0.2, 0.8], [0, 1], n_folds=1)
    with pytest.raises(InputError, match="soft labels have no test"):
        calibrate_if_needed([0.2, 0.8], [0.1, 0.7])
