"""Is it wider exactly where the case is harder? Coverage and size along difficulty."""

from calipers.metrics.adaptivity.concordance import difficulty_concordance
from calipers.metrics.adaptivity.coverage_violation import escv, rank_cv, sscv, t_cv
from calipers.metrics.adaptivity.rank_gaps import deficit, excess
from calipers.metrics.adaptivity.ranks import true_rank
from calipers.metrics.adaptivity.size_and_difficulty import rank_ss, t_ss
from calipers.metrics.adaptivity.width_and_error import width_against_error

__all__ = [
    "deficit",
    "difficulty_concordance",
    "escv",
    "excess",
    "rank_cv",
    "rank_ss",
    "sscv",
    "t_cv",
    "t_ss",
    "true_rank",
    "width_against_error",
]


def __dir__() -> list[str]:
    return sorted(__all__)
