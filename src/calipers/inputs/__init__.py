"""Reading and checking what was predicted and what happened, once, at the door.

Each check takes the argument's name, so that the message can say it, and returns the canonical form
the kernels work on. Arrays of torch, CuPy or JAX stay on their device.
"""

from calipers.inputs.covered import covered_by_intervals, covered_by_sets, is_covered
from calipers.inputs.feature_alignment import align_features
from calipers.inputs.features import Features, check_features
from calipers.inputs.labels import check_classes, encode_labels, require_column_order
from calipers.inputs.levels import (
    check_alpha,
    check_alphas,
    check_confidence,
    check_fraction,
    check_row_alpha,
    exact_level,
)
from calipers.inputs.other_libraries import unpack_intervals, unpack_sets
from calipers.inputs.p_value_sets import sets_at
from calipers.inputs.predictions import (
    check_binary,
    check_covered,
    check_intervals,
    check_p_values,
    check_positive_probabilities,
    check_prediction,
    check_probabilities,
    check_sets,
    sets_from_labels,
)
from calipers.inputs.row_checks import (
    check_count,
    check_groups,
    check_same_length,
    check_vector,
    check_weights,
    require_finite,
)
from calipers.inputs.weights import NO_EXACT_LAW, Weights

__all__ = [
    "NO_EXACT_LAW",
    "Features",
    "Weights",
    "align_features",
    "check_alpha",
    "check_alphas",
    "check_binary",
    "check_classes",
    "check_confidence",
    "check_count",
    "check_covered",
    "check_features",
    "check_fraction",
    "check_groups",
    "check_intervals",
    "check_p_values",
    "check_positive_probabilities",
    "check_prediction",
    "check_probabilities",
    "check_row_alpha",
    "check_same_length",
    "check_sets",
    "check_vector",
    "check_weights",
    "covered_by_intervals",
    "covered_by_sets",
    "encode_labels",
    "exact_level",
    "is_covered",
    "require_column_order",
    "require_finite",
    "sets_at",
    "sets_from_labels",
    "unpack_intervals",
    "unpack_sets",
]


def __dir__() -> list[str]:
    return sorted(__all__)
