"""Whether probabilities can be read as probabilities.

The sup-interval calibration error with its certificates and exact test, the companions that see what it
does not, the binned errors people are used to, and the curves behind all of them. Bounds for whole classes
of models (Theorem 2 of Gao, Parameswaran and Peng) are functions here too.
"""

import math
from typing import Any

from calipers.metrics.entry import MetricEntry
from calipers.metrics.reliability.binary_rows import BinaryRows, check_binary_rows
from calipers.metrics.reliability.binned import (
    binned_state,
    expected_calibration_error,
    smooth_calibration_error,
    smooth_state,
)
from calipers.metrics.reliability.brier import brier_decomposition
from calipers.metrics.reliability.bucket_walk import sup_interval
from calipers.metrics.reliability.calibration_measure import calibration_error
from calipers.metrics.reliability.calibration_states import calibration_state
from calipers.metrics.reliability.certificates import (
    asymptotic_band,
    asymptotic_upper_bound,
    in_sample_isotonic_bound,
    kl_upper_bound,
    uniform_band,
    upper_bound,
)
from calipers.metrics.reliability.combined_tests import calibration_tests
from calipers.metrics.reliability.curves import cumulative_difference_curve, reliability_curve
from calipers.metrics.reliability.hypothesis_classes import (
    finite_scores_rademacher,
    interval_rademacher,
    interval_rademacher_massart,
    uniform_convergence_width,
    vc_rademacher,
    warn_if_unverifiable_in_sample,
)
from calipers.metrics.reliability.range_law import (
    absolute_supremum_quantile,
    range_cdf,
    range_quantile,
    range_survival,
)
from calipers.metrics.reliability.recalibration_line import calibration_slope
from calipers.metrics.reliability.sup_interval import SupInterval

__all__ = [
    "BinaryRows",
    "SupInterval",
    "absolute_supremum_quantile",
    "asymptotic_band",
    "asymptotic_upper_bound",
    "brier_decomposition",
    "calibration_error",
    "calibration_slope",
    "calibration_tests",
    "check_binary_rows",
    "cumulative_difference_curve",
    "expected_calibration_error",
    "finite_scores_rademacher",
    "in_sample_isotonic_bound",
    "interval_rademacher",
    "interval_rademacher_massart",
    "kl_upper_bound",
    "range_cdf",
    "range_quantile",
    "range_survival",
    "reliability_curve",
    "smooth_calibration_error",
    "sup_interval",
    "uniform_band",
    "uniform_convergence_width",
    "upper_bound",
    "vc_rademacher",
    "warn_if_unverifiable_in_sample",
]


def __dir__() -> list[str]:
    return sorted(__all__)


_COINS = "outcomes are coins with the stated probabilities"
_FIXED_BINS = "guaranteed ends for bins fixed beforehand (empirical Bernstein; Bousquet)"


def _entry(function: Any, **fields: Any) -> MetricEntry:
    common = {"question": "probabilities", "inputs": ("y_true", "probabilities"), "weighted": True}
    return MetricEntry(function=function, **(common | fields))  # type: ignore[arg-type]


ENTRIES = (
    _entry(
        calibration_error, direction="lower", good="0; a calibrated model reads up to null_high",
        bounds=(0.0, 1.0), null=_COINS, randomized=True, array_api=True,
        interval="one-sided ends: the test inverted; empirical Bernstein, for a model fixed beforehand",
        merge="passes", state=calibration_state,
    ),
    _entry(
        calibration_tests, returns="table", direction="lower", good="a verdict with p above 0.05",
        bounds=(-math.inf, math.inf), null=_COINS, randomized=True, merge="gather",
        no_interval="test statistics have a null law and no interval",
        scaled="statistics are measured in the noise of the rows, which counts repetitions",
    ),
    _entry(
        calibration_slope, returns="table", direction="target", good="slope 1, intercept 0",
        bounds=(-math.inf, math.inf), null="slope 1 and intercept 0 (Wald)", interval="Wald", merge="gather",
        importance="tested",
    ),
    _entry(
        brier_decomposition, returns="table", direction="lower", bounds=(0.0, 1.0), randomized=True,
        good="miscalibration 0, discrimination near uncertainty", null=f"miscalibration: {_COINS}",
        interval="for rows of a known range, for the Brier score", merge="gather",
    ),
    _entry(
        expected_calibration_error, direction="lower", good="not above details['noise_floor']",
        bounds=(0.0, 1.0), null=_COINS, interval=_FIXED_BINS, randomized=True, merge="bins",
        state=binned_state,
    ),
    _entry(
        smooth_calibration_error, direction="lower", good="not above details['noise_floor']",
        bounds=(0.0, 1.0), null=_COINS, interval="0, and a guaranteed upper end (empirical Bernstein)",
        randomized=True, merge="bins", state=smooth_state,
    ),
)  # fmt: skip
