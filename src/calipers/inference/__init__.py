"""From contributions to uncertainty: intervals, exact laws, null laws, resampling, many tests.

Everything here takes plain numpy arrays that `calipers.inputs` has checked, and checks its own options.
"""

from calipers.inference.bootstrap import (
    BootstrapResult,
    PoissonSums,
    bca_bootstrap,
    bca_interval,
    poisson_sums,
)
from calipers.inference.bounded import BOUNDED_METHOD, bounded_mean_interval, bounded_mean_p_value
from calipers.inference.cluster_signs import FEWEST_CLUSTERS, cluster_sign_test, design_effect
from calipers.inference.correlation import RowCorrelation, correlation_interval
from calipers.inference.coverage_law import CalibrationLaw, CoverageLaw
from calipers.inference.effective_number import effective_quantile, effective_rows
from calipers.inference.logistic import LogisticFit, fit_logistic, logistic_log_likelihood
from calipers.inference.means import Moments, mean_estimate, paired_difference
from calipers.inference.monte_carlo import MonteCarloP, monte_carlo_p
from calipers.inference.multiplicity import benjamini_hochberg, bonferroni, holm, sidak, sidak_confidence
from calipers.inference.normal_law import normal_quantile
from calipers.inference.null_law import ExactLaw, NullLaw, SimulatedLaw
from calipers.inference.permutation import PermutationResult, permutation_test, run_sum_permutation_test
from calipers.inference.poisson_binomial import PoissonBinomialLaw
from calipers.inference.proportions import (
    Interval,
    binomial_p_value,
    clopper_pearson,
    wilson,
)
from calipers.inference.rank_tests import (
    average_shared_rank,
    block_ranks,
    compare_ranks,
    critical_difference,
    friedman_test,
)
from calipers.inference.ratio import bounded_ratio_interval
from calipers.inference.shares import ShareCounts
from calipers.inference.state import Result, State
from calipers.inference.symmetry import SymmetryTest, symmetry_test
from calipers.inference.violation_law import ViolationLaw
from calipers.inputs.weights import NO_EXACT_LAW, repetitions

__all__ = [
    "BOUNDED_METHOD",
    "FEWEST_CLUSTERS",
    "NO_EXACT_LAW",
    "BootstrapResult",
    "CalibrationLaw",
    "CoverageLaw",
    "ExactLaw",
    "Interval",
    "LogisticFit",
    "Moments",
    "MonteCarloP",
    "NullLaw",
    "PermutationResult",
    "PoissonBinomialLaw",
    "PoissonSums",
    "Result",
    "RowCorrelation",
    "ShareCounts",
    "SimulatedLaw",
    "State",
    "SymmetryTest",
    "ViolationLaw",
    "average_shared_rank",
    "bca_bootstrap",
    "bca_interval",
    "benjamini_hochberg",
    "binomial_p_value",
    "block_ranks",
    "bonferroni",
    "bounded_mean_interval",
    "bounded_mean_p_value",
    "bounded_ratio_interval",
    "clopper_pearson",
    "cluster_sign_test",
    "compare_ranks",
    "correlation_interval",
    "critical_difference",
    "design_effect",
    "effective_quantile",
    "effective_rows",
    "fit_logistic",
    "friedman_test",
    "holm",
    "logistic_log_likelihood",
    "mean_estimate",
    "monte_carlo_p",
    "normal_quantile",
    "paired_difference",
    "permutation_test",
    "poisson_sums",
    "repetitions",
    "run_sum_permutation_test",
    "sidak",
    "sidak_confidence",
    "symmetry_test",
    "wilson",
]


def __dir__() -> list[str]:
    return sorted(__all__)
