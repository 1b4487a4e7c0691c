"""A registered metric on one simulated sample: its intervals against the truth, its tests under the null."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calipers.metrics import metric_entry
from calipers.results import Estimate, EstimateTable
from tests.grid.readings import Reading, estimate_reading
from tests.grid.regimes import CALIBRATION, CLUSTERS, IMPORTANCE, WHOLE, Regime


@dataclass(frozen=True, slots=True)
class Sample:
    """Arguments of a metric, what its intervals should hold, and whether its null is true.

    ``truth``: per key of the table ("value" for a single estimate); a key that is missing has no known truth.
    "mean" as the truth stands for the mean reading over all runs.
    """

    data: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    truth: Mapping[str, float] | str = field(default_factory=dict)
    null: bool = True


def measured(name: str, data: dict[str, Any], **options: Any) -> dict[str, Estimate]:
    """The estimates of a metric by key; "value" when there is one."""
    result = metric_entry(name).function(**data, **options)
    return dict(result) if isinstance(result, EstimateTable) else {"value": result}


def values_of(name: str, data: dict[str, Any], **options: Any) -> dict[str, float]:
    """The point estimates alone: of a weighted table that is the population, its true values."""
    entry = metric_entry(name)
    quick = {"n_draws": 1, "random_state": 0} if entry.randomized else {}
    known = {k: v for k, v in quick.items() if k in inspect.signature(entry.function).parameters}
    found = measured(name, data, **(known | options))
    return {key: float(e.value) for key, e in found.items() if e.value is not None}


def read_metric(name: str, sample: Sample, rng: np.random.Generator, prefix: str = "") -> list[Reading]:
    """The readings of one sample."""
    entry = metric_entry(name)
    seeded = {"random_state": rng} if entry.randomized else {}
    found = measured(name, sample.data, **sample.options, **seeded)
    return [
        reading
        for key, e in found.items()
        for reading in estimate_readings(name, prefix + key, key, e, sample)
    ]


def estimate_readings(name: str, label: str, key: str, e: Estimate, sample: Sample) -> list[Reading]:
    """One reading; two where both ends are one-sided."""
    entry, by_mean = metric_entry(name), sample.truth == "mean"
    truth = None if by_mean or isinstance(sample.truth, str) else sample.truth.get(key)
    tested = bool(entry.null) and sample.null and has_test(name, key)
    if name == "calibration_error":
        return one_sided(label, e, truth, tested)
    asked = bool(entry.interval) and has_interval(name, key)
    return [estimate_reading(label, e, truth, interval=asked, test=tested, exact_truth=not by_mean)]


def one_sided(label: str, e: Estimate, truth: float | None, tested: bool) -> list[Reading]:
    """The two ends of the calibration error, each promised on its own."""
    known = truth is not None
    upper = Reading(f"{label}: upper bound", e.value, -np.inf, e.high, truth, known, reason=e.reason or "")
    if e.high is None:
        upper = Reading(f"{label}: upper bound", e.value, truth=truth, asks_interval=known, reason=e.reason)
    low = {"low": e.low, "high": None if e.low is None else np.inf}
    test = {"p_value": e.p_value, "asks_test": tested, "reason": e.reason or ""}
    return [upper, Reading(label, e.value, truth=truth, asks_interval=known, **low, **test)]


# Keys of tables without an interval or a test of their own, as their metrics document.
WITHOUT_INTERVAL = {"brier_decomposition": ("miscalibration", "discrimination", "uncertainty")}
WITHOUT_TEST = {"brier_decomposition": ("brier", "discrimination", "uncertainty")}


def has_interval(name: str, key: str) -> bool:
    """Whether the metric promises an interval for this key."""
    return key not in WITHOUT_INTERVAL.get(name, ())


def has_test(name: str, key: str) -> bool:
    """Whether the metric promises a test for this key."""
    return key not in WITHOUT_TEST.get(name, ())


def able(name: str, regimes: tuple[Regime, ...]) -> tuple[Regime, ...]:
    """The regimes, and those that the metric's entry and signature say that it serves."""
    entry = metric_entry(name)
    parameters = inspect.signature(entry.function).parameters
    more = WHOLE if entry.weighted else ()
    more += IMPORTANCE if entry.weighted and entry.importance != "refused" else ()
    more += CALIBRATION if "n_calibration" in parameters else ()
    more += CLUSTERS if "cluster" in parameters else ()
    return regimes + more
