"""Whether probabilities can be read as probabilities.

The sup-interval calibration error with its certificates and exact test, the companions that see what it
does not, the binned errors people are used to, and the curves behind all of them. Bounds for whole classes
of models (Theorem 2 of Gao, Parameswaran and Peng) are functions here too.
"""

from calipers.metrics.entry import MetricEntry
from calipers.metrics.reliability.calibration_measure import calibration_error
from calipers.metrics.reliability.certificates import (
    asymptotic_band,
    asymptotic_upper_bound,
    in_sample_isotonic_bound,
    kl_upper_bound,
    uniform_band,
    upper_bound,
)
from calipers.metrics.reliability.hypothesis_classes import (
    finite_scores_rademacher,
    interval_rademacher,
    interval_rademacher_massart,
    uniform_convergence_width,
    vc_rademacher,
    warn_if_unverifiable_in_sample,
)
from calipers.metrics.reliability.range_law import range_cdf, range_quantile, range_survival

__all__ = [
    "asymptotic_band",
    "asymptotic_upper_bound",
    "calibration_error",
    "finite_scores_rademacher",
    "in_sample_isotonic_bound",
    "interval_rademacher",
    "interval_rademacher_massart",
    "kl_upper_bound",
    "range_cdf",
    "range_quantile",
    "range_survival",
    "uniform_band",
    "uniform_convergence_width",
    "upper_bound",
    "vc_rademacher",
    "warn_if_unverifiable_in_sample",
]

ENTRIES = (
    MetricEntry(
        function=calibration_error,
        question="probabilities",
        inputs=("y_true", "probabilities"),
        direction="lower",
        good="0; a calibrated model reads up to null_high",
        bounds=(0.0, 1.0),
        null="outcomes are coins with the stated probabilities",
        interval="one-sided empirical Bernstein bound for a model fixed beforehand",
        merge="gather",
        weighted=True,
        randomized=True,
        array_api=True,
    ),
)
