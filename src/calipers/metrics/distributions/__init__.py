"""Whether predicted distributions and quantiles can be taken at their word, and how sharp they are."""

from calipers.metrics.distributions.pit import pit_uniformity
from calipers.metrics.distributions.quantile_shares import quantile_calibration
from calipers.metrics.distributions.ranked_score import crps

__all__ = ["crps", "pit_uniformity", "quantile_calibration"]


def __dir__() -> list[str]:
    return sorted(__all__)
