"""The table of checks: one file per question.

To add a check: write a file with its states and how they are read, ending in a tuple ``CHECKS``; name the
file here; describe its code in docs/findings.md (a test compares the two). It works in memory and streamed.
"""

from calipers.auditing.check import Check
from calipers.auditing.checks import (
    abstention,
    adaptive,
    calibration_in_the_large,
    coverage,
    features,
    forecast,
    groups,
    labels,
    narrow,
    over_time,
    probabilities,
    quantiles,
    regions,
    risk,
    risk_parts,
)

# Beside every file the codes that it words.
CHECKS: tuple[Check, ...] = (
    *coverage.CHECKS,  # CAL101, CAL102, CAL103
    *groups.CHECKS,  # CAL201, CAL504
    *features.CHECKS,  # CAL202, CAL505; worded in excess_risk.py where promises differ by row
    *regions.CHECKS,  # CAL203
    *over_time.CHECKS,  # CAL204, CAL506
    *labels.CHECKS,  # CAL205
    *narrow.CHECKS,  # CAL301, CAL302
    *adaptive.CHECKS,  # CAL401, CAL402, CAL508
    *probabilities.CHECKS,  # CAL501, CAL502, CAL503
    *calibration_in_the_large.CHECKS,  # CAL509
    *quantiles.CHECKS,  # CAL507
    *forecast.CHECKS,  # CAL601
    *risk.CHECKS,  # CAL602
    *risk_parts.CHECKS,  # CAL603, CAL605, CAL606, CAL607
    *abstention.CHECKS,  # CAL604
)

__all__ = ["CHECKS"]


def __dir__() -> list[str]:
    return sorted(__all__)
