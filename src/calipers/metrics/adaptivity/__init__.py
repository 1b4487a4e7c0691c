"""Is it wider exactly where the case is harder? Coverage and size along difficulty."""

from calipers.metrics.adaptivity.concordance import difficulty_concordance
from calipers.metrics.adaptivity.rank_gaps import deficit, excess
from calipers.metrics.adaptivity.ranks import true_rank
from calipers.metrics.adaptivity.regression import width_against_error
from calipers.metrics.adaptivity.size import rank_ss, t_ss
from calipers.metrics.adaptivity.violation import escv, rank_cv, sscv, t_cv

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
