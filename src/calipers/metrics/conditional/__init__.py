"""Whether coverage holds everywhere, by how much it fails, and where."""

from calipers.metrics.conditional.classifier import CoverageClassifier
from calipers.metrics.conditional.excess_risk import ert, ert_curve, ert_table
from calipers.metrics.conditional.losses import Distance, convex_distance

__all__ = [
    "CoverageClassifier",
    "Distance",
    "convex_distance",
    "ert",
    "ert_curve",
    "ert_table",
]
