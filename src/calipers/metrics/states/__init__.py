"""Kinds of states that serve many metrics: counts of distinct rows, moments, gathered rows, a sample."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return sorted(__all__)
