"""Whether probabilities can be read as probabilities in every group and intersection of groups."""

from calipers.metrics.multicalibration.measure import multicalibration_error

__all__ = ["multicalibration_error"]


def __dir__() -> list[str]:
    return sorted(__all__)
