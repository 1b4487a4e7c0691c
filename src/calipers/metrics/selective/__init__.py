"""What a model that may stay silent costs: the loss of the rows it is most certain of."""

from calipers.metrics.selective.certified_share import selective_threshold
from calipers.metrics.selective.risk_curve import selective_risk

__all__ = ["selective_risk", "selective_threshold"]


def __dir__() -> list[str]:
    return sorted(__all__)
