"""Numbers other programs printed for the same 500 rows.

Made with MCGrad 0.1.5 (``mcgrad.metrics.ecce``, ``ecce_pvalue``), netcal 1.4.0 (``ECE(15).measure``), probcal 0.4.0
(``metrics.spiegelhalter_z``, ``calibration_slope``, ``calibration_intercept``) and relplot 1.0.3 (``smECE``) on the
rows of `rows`, whose scores are distinct, so that ignoring ties does no harm.
"""

import numpy as np
import pytest

from calipers.metrics import (
    calibration_error,
    calibration_slope,
    calibration_tests,
    expected_calibration_error,
    smooth_calibration_error,
)

MCGRAD_ECCE = 0.07538252425815145
MCGRAD_P_VALUE = 0.00014346068405990398
NETCAL_ECE = 0.08805187625928805
PROBCAL_Z = -2.0469108600817614
PROBCAL_SLOPE = 1.2294036285525718
PROBCAL_INTERCEPT = -0.40095384049552973
RELPLOT_SMECE = 0.07236560442111101


def rows():
    rng = np.random.default_rng(123)
    f = rng.random(500)
    return (rng.random(500) < f**1.2).astype(int), f


def test_without_ties_the_error_and_its_asymptotic_p_value_are_those_of_mcgrad():
    error = calibration_error(*rows(), random_state=0)
    assert error.value == pytest.approx(MCGRAD_ECCE, rel=1e-12)
    assert error.details["asymptotic_p_value"] == pytest.approx(MCGRAD_P_VALUE, rel=1e-9)


def test_fifteen_uniform_bins_give_the_number_of_netcal():
    assert expected_calibration_error(*rows(), random_state=0).value == pytest.approx(NETCAL_ECE, rel=1e-12)


def test_spiegelhalter_slope_and_intercept_are_those_of_probcal():
    z = calibration_tests(*rows(), n_draws=19, random_state=0)["spiegelhalter"].value
    assert z == pytest.approx(PROBCAL_Z, rel=1e-12)
    line = calibration_slope(*rows())
    assert line["slope"].value == pytest.approx(PROBCAL_SLOPE, rel=1e-9)
    assert line["in_the_large"].value == pytest.approx(PROBCAL_INTERCEPT, rel=1e-9)


def test_the_smooth_error_is_that_of_its_authors_up_to_their_search_step():
    # relplot searches the bandwidth in steps of 0.001.
    value = smooth_calibration_error(*rows(), n_draws=1, random_state=0).value
    assert value == pytest.approx(RELPLOT_SMECE, abs=1e-3)
