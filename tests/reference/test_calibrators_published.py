"""Numbers of other programs, stored with the lines that made them."""

from __future__ import annotations

import numpy as np
import pytest

from calipers.calibration import LinkCalibrator, VennAbersCalibrator

P = np.array(
    [0.02, 0.05, 0.11, 0.13, 0.2, 0.24, 0.31, 0.37, 0.42, 0.48, 0.55, 0.61, 0.66, 0.7, 0.74, 0.81, 0.86, 0.9, 0.93, 0.98]
)  # fmt: skip
Y = np.array([0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1])
NEW = np.array([0.1, 0.35, 0.5, 0.77, 0.95])


def test_venn_abers_as_the_venn_abers_package_1_5_4() -> None:
    # Made by VennAbers, fitted to both columns of P and asked for both columns of NEW.
    pairs = [[0.0, 0.375], [2 / 7, 0.5], [1 / 3, 0.6], [0.5, 0.75], [0.75, 1.0]]
    merged = [0.27272727, 0.41176471, 0.47368421, 0.6, 0.8]
    venn = VennAbersCalibrator().fit(P, Y)
    np.testing.assert_allclose(venn.predict_interval(NEW), pairs, atol=1e-8)
    np.testing.assert_allclose(venn.predict(NEW), merged, atol=1e-8)


def test_beta_calibration_as_betacal_1_1_0() -> None:
    # BetaCalibration(parameters="abm").fit(P[:, None], Y): map_ holds a, b, m; it adds a ridge of 1e-8.
    a, b, m = 0.39993987090207306, 1.2378754190808863, 0.5532279706943434
    offset = b * np.log(1 - m) - a * np.log(m)
    calibrator = LinkCalibrator("beta").fit(P, Y)
    assert calibrator.coefficients_ == pytest.approx([offset, a, b], abs=1e-4)
    expected = [0.17493034, 0.3436168, 0.45517197, 0.7219466, 0.94917581]
    np.testing.assert_allclose(calibrator.predict(NEW), expected, atol=5e-6)
