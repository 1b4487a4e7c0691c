"""What one simulated data set says about one promise, and how runs of it are counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

from calipers.results import Estimate

# The bars: share of intervals that hold the truth, and sizes of the test at two levels.
INTERVAL_BAR = 0.93
SIZE_BARS = {0.05: 0.07, 0.01: 0.017}
# A count is beyond Monte-Carlo error when its tail under the bar is below this.
TAIL = 1e-3


@dataclass(frozen=True, slots=True)
class Reading:
    """One interval, test or guarantee in one run.

    ``truth`` None together with an interval means: the mean reading over all runs. ``held`` is given where
    the promise is not an interval; ``level`` is the probability that was promised for it, and its bar.
    """

    key: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    truth: float | None = None
    asks_interval: bool = False
    p_value: float | None = None
    asks_test: bool = False
    held: bool | None = None
    level: float | None = None
    reason: str = ""


def estimate_reading(
    key: str, e: Estimate, truth: float | None, *, interval: bool, test: bool, exact_truth: bool = True
) -> Reading:
    """The reading of an Estimate; ``exact_truth`` False takes the mean reading for the truth."""
    asks = interval and (truth is not None or not exact_truth)
    return Reading(key, e.value, e.low, e.high, truth, asks, e.p_value, test, reason=e.reason or "")


@dataclass(slots=True)
class Count:
    """Runs of one key of a cell."""

    intervals: int = 0
    held: int = 0
    no_interval: int = 0
    tests: int = 0
    rejected: dict[float, int] = field(default_factory=lambda: dict.fromkeys(SIZE_BARS, 0))
    no_test: int = 0
    level: float | None = None
    reasons: dict[str, int] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        """Runs in which the key was asked for."""
        return max(self.intervals + self.no_interval, self.tests + self.no_test)

    @property
    def bar(self) -> float:
        """Least share of intervals or guarantees that must hold."""
        return INTERVAL_BAR if self.level is None else self.level

    def failures(self) -> list[str]:
        """The bars that are missed beyond Monte-Carlo error."""
        missed = []
        if self.intervals and stats.binom.cdf(self.held, self.intervals, self.bar) < TAIL:
            missed.append(f"holds in {self.held} of {self.intervals}, bar {self.bar:g}")
        for level, bar in SIZE_BARS.items():
            if self.tests and stats.binom.sf(self.rejected[level] - 1, self.tests, bar) < TAIL:
                missed.append(f"rejects {self.rejected[level]} of {self.tests} at {level:g}, bar {bar:g}")
        return missed

    def is_beyond(self) -> bool:
        """Whether the counts themselves lie beyond a bar, be it by chance."""
        missed = bool(self.intervals) and self.held < self.bar * self.intervals
        return missed or any(
            bool(self.tests) and self.rejected[level] > bar * self.tests for level, bar in SIZE_BARS.items()
        )

    def is_clear(self) -> bool:
        """Whether the counts lie on the safe side of what exact intervals and tests give."""
        share = 1.0 if self.level is None else self.level
        holds = not self.intervals or self.held >= min(0.965, share + 0.01) * self.intervals
        return holds and all(
            not self.tests or self.rejected[level] <= level * self.tests + 0.5 for level in SIZE_BARS
        )

    def to_json(self) -> dict[str, Any]:
        """Plain numbers and text, without what is 0 or missing."""
        rejected = {str(level): times for level, times in self.rejected.items() if self.tests}
        whole = {
            "intervals": self.intervals, "held": self.held, "no_interval": self.no_interval, "tests": self.tests,
            "rejected": rejected, "no_test": self.no_test, "level": self.level, "reasons": self.reasons,
        }  # fmt: skip
        return {name: value for name, value in whole.items() if value}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Count:
        """What `to_json` gave."""
        rejected = {float(k): v for k, v in stored.get("rejected", {}).items()}
        return cls(**(stored | {"rejected": dict.fromkeys(SIZE_BARS, 0) | rejected}))


def count_readings(runs: list[list[Reading]]) -> dict[str, Count]:
    """The counts of every key over all runs."""
    means = mean_readings(runs)
    counts: dict[str, Count] = {}
    for reading in (reading for run in runs for reading in run):
        add_reading(counts.setdefault(reading.key, Count()), reading, means)
    return counts


def mean_readings(runs: list[list[Reading]]) -> dict[str, float]:
    """The mean value of every key, over the readings that have an interval: others may be of other strata."""
    values: dict[str, list[float]] = {}
    for reading in (reading for run in runs for reading in run):
        if reading.low is not None and reading.value is not None and not np.isnan(reading.value):
            values.setdefault(reading.key, []).append(reading.value)
    return {key: float(np.mean(found)) for key, found in values.items()}


def add_reading(count: Count, reading: Reading, means: dict[str, float]) -> None:
    """Count one reading; what is missing is counted with its reason."""
    if reading.held is not None:
        count.level = reading.level
        count.intervals += 1
        count.held += reading.held
    if reading.asks_interval and reading.low is not None and reading.high is not None:
        truth = means[reading.key] if reading.truth is None else reading.truth
        slack = 1e-9 * max(1.0, abs(truth))
        count.intervals += 1
        count.held += bool(reading.low - slack <= truth <= reading.high + slack)
    elif reading.asks_interval:
        count.no_interval += 1
        add_reason(count, reading)
    if reading.asks_test and reading.p_value is not None:
        count.tests += 1
        for level in SIZE_BARS:
            count.rejected[level] += reading.p_value <= level
    elif reading.asks_test:
        count.no_test += 1
        add_reason(count, reading)


def add_reason(count: Count, reading: Reading) -> None:
    """Keep why a number is missing; one without a reason is a fault of its own."""
    reason = reading.reason or "NO REASON GIVEN"
    count.reasons[reason] = count.reasons.get(reason, 0) + 1
