"""The selected Venn-Abers probability is calibrated, at any sample size."""

from __future__ import annotations

import numpy as np

from calipers.calibration import VennAbersCalibrator
from calipers.datasets import ScoreWorld


def test_the_probability_of_the_true_label_is_calibrated_even_with_30_rows() -> None:
    """E[Y - p_Y] = 0 overall and on each half of p_Y: 3000 fresh calibration sets of 30 rows, one test row each."""
    world, rng = ScoreWorld("uniform", "square"), np.random.default_rng(3)
    chosen, outcomes = np.empty(3000), np.empty(3000)
    for i in range(3000):
        p, y = world.sample(31, random_state=rng)
        pair = VennAbersCalibrator().fit(p[:30], y[:30] == 1).predict_interval(p[30:])
        chosen[i], outcomes[i] = pair[0, int(y[30])], y[30]
    for part in (chosen <= 2, chosen <= 0.4, chosen > 0.4):
        gap = (outcomes - chosen)[part]
        assert abs(gap.mean()) < 4 * gap.std() / np.sqrt(part.sum())
