"""Whether a promise is kept at all times."""

from calipers.metrics.over_time.measure import change_over_time

__all__ = ["change_over_time"]


def __dir__() -> list[str]:
    return sorted(__all__)
