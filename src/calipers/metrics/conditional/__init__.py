"""Whether coverage holds everywhere, by how much it fails, and where."""

from calipers.metrics.conditional.attribution import ert_attribution
from calipers.metrics.conditional.coverage_ensemble import CoverageClassifier
from calipers.metrics.conditional.dependence import size_coverage_correlation, size_coverage_hsic
from calipers.metrics.conditional.excess_risk import ert, ert_curve, ert_table
from calipers.metrics.conditional.groups import (
    coverage_gap,
    equal_opportunity_gap,
    feature_stratified_coverage,
    label_stratified_coverage,
    size_stratified_coverage,
)
from calipers.metrics.conditional.losses import Distance, convex_distance
from calipers.metrics.conditional.regions import failing_regions
from calipers.metrics.conditional.slab import worst_slab_coverage

__all__ = [
    "CoverageClassifier",
    "Distance",
    "convex_distance",
    "coverage_gap",
    "equal_opportunity_gap",
    "ert",
    "ert_attribution",
    "ert_curve",
    "ert_table",
    "failing_regions",
    "feature_stratified_coverage",
    "label_stratified_coverage",
    "size_coverage_correlation",
    "size_coverage_hsic",
    "size_stratified_coverage",
    "worst_slab_coverage",
]


def __dir__() -> list[str]:
    return sorted(__all__)
