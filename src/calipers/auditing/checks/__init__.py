"""The table of checks: one file per question.

To add a check: write its function in the file of its question, add a `Check` to that file's ``CHECKS``,
and describe its code in docs/findings.md (a test compares the two).
"""

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
from calipers.auditing.reading import Check

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
