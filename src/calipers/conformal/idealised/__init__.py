"""The idealised setting: the law Q of the examples is known, and every expectation is exact.

Q is a joint probability table (objects x labels), a conformity measure A a table of the same shape where
**higher is more conforming**. p-values are ``Q{A < a} + tau Q{A = a}``, linear in tau (eq. 11), so that
expectations over tau are integrals of piecewise linear functions and nothing is sampled.
"""

from calipers.conformal.idealised.expectation import criterion_value
from calipers.conformal.idealised.measures import conformity
from calipers.conformal.idealised.optimality import is_optimal, optimal_measure
from calipers.conformal.idealised.refinement import is_refinement, refines
from calipers.conformal.idealised.transducer import p_values, prediction_sets

__all__ = [
    "conformity",
    "criterion_value",
    "is_optimal",
    "is_refinement",
    "optimal_measure",
    "p_values",
    "prediction_sets",
    "refines",
]


def __dir__() -> list[str]:
    return sorted(__all__)
