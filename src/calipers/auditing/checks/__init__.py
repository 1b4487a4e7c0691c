"""The table of checks: one file per question.

To add a check: write a file with its states and how they are read, ending in a tuple ``CHECKS``; name the
file here; describe its code in docs/findings.md (a test compares the two). It works in memory and streamed.
"""

from calipers.auditing.check import Check
from calipers.auditing.checks import (
    adaptive,
    coverage,
    everywhere,
    features,
    forecast,
    narrow,
    probabilities,
    regions,
)

CHECKS: tuple[Check, ...] = (
    *coverage.CHECKS,
    *everywhere.CHECKS,
    *features.CHECKS,
    *regions.CHECKS,
    *narrow.CHECKS,
    *adaptive.CHECKS,
    *probabilities.CHECKS,
    *forecast.CHECKS,
)

__all__ = ["CHECKS"]


def __dir__() -> list[str]:
    return sorted(__all__)
