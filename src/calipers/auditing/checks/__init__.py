"""The table of checks: one file per question.

To add a check: write a file with its states and how they are read, ending in a tuple ``CHECKS``; name the
file here; describe its code in docs/findings.md (a test compares the two). It works in memory and streamed.
"""

from calipers.auditing.check import Check
from calipers.auditing.checks import (
    abstention,
    adaptive,
    coverage,
    features,
    forecast,
    groups,
    in_the_large,
    labels,
    narrow,
    over_time,
    probabilities,
    quantiles,
    regions,
    risk,
    risk_parts,
)

CHECKS: tuple[Check, ...] = (
    *coverage.CHECKS,
    *groups.CHECKS,
    *features.CHECKS,
    *regions.CHECKS,
    *over_time.CHECKS,
    *labels.CHECKS,
    *narrow.CHECKS,
    *adaptive.CHECKS,
    *probabilities.CHECKS,
    *in_the_large.CHECKS,
    *quantiles.CHECKS,
    *forecast.CHECKS,
    *risk.CHECKS,
    *risk_parts.CHECKS,
    *abstention.CHECKS,
)

__all__ = ["CHECKS"]


def __dir__() -> list[str]:
    return sorted(__all__)
