"""The state of a monitor in the text format of Prometheus, for a textfile collector."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calipers.performance import GroupMonitor, PromiseMonitor, RiskMonitor

# Metric -> (kind, what it is, field of the details).
METRICS: dict[str, tuple[str, str, str]] = {
    "calipers_monitor_rows_total": ("counter", "Rows taken in.", "rows"),
    "calipers_monitor_alarm": ("gauge", "1 once the alarm has been raised.", "alarm"),
    "calipers_monitor_alarm_row": ("gauge", "0-based row that raised the alarm.", "alarm_at"),
    "calipers_monitor_e_value": ("gauge", "Evidence against the promise; starts at 1.", "e_value"),
    "calipers_monitor_mean": ("gauge", "Running coverage or mean loss.", "mean"),
    "calipers_monitor_mean_low": ("gauge", "Lower end of its confidence sequence.", "mean_low"),
    "calipers_monitor_mean_high": ("gauge", "Upper end of its confidence sequence.", "mean_high"),
    "calipers_monitor_promised": ("gauge", "What was promised.", "promised"),
}


def prometheus_text(monitor: PromiseMonitor | RiskMonitor | GroupMonitor) -> str:
    """Every metric with one line for all rows or, where groups are watched, one per group.

    Examples
    --------
    >>> from calipers.cli.monitor_metrics import prometheus_text
    >>> from calipers.performance import PromiseMonitor
    >>> print(prometheus_text(PromiseMonitor(alpha=0.1).update([True])).splitlines()[2])
    calipers_monitor_rows_total 1
    """
    lines = []
    values = samples(monitor)
    for name, (kind, means, field) in METRICS.items():
        found = [(labels, fields[field]) for labels, fields in values if fields.get(field) is not None]
        if found:
            lines += [f"# HELP {name} {means}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{_labels(labels)} {_number(value)}" for labels, value in found]
    return "\n".join(lines) + "\n"


def samples(
    monitor: PromiseMonitor | RiskMonitor | GroupMonitor,
) -> list[tuple[dict[str, str], dict[str, Any]]]:
    """Labels and fields: of the monitor, and of each group where it has some."""
    from calipers.performance import GroupMonitor

    if not isinstance(monitor, GroupMonitor):
        return [({}, status(monitor))]
    merged = {"rows": monitor.n_rows_, "alarm": monitor.alarm_, "alarm_at": monitor.alarm_at_}
    total = [({"group": ""}, merged | {"e_value": monitor.e_value_})]
    return total + [
        ({"group": str(name)}, status(one) | {"alarm_at": monitor.alarms_.get(name)})
        for name, one in monitor.monitors_.items()
    ]


def status(monitor: PromiseMonitor | RiskMonitor) -> dict[str, Any]:
    """Where a monitor stands, as plain values."""
    details = monitor.result().details
    kept = ("alarm_at", "changed_at", "e_value", "mean", "mean_low", "mean_high", "promised")
    return {"rows": monitor.n_rows_, "alarm": monitor.alarm_} | {key: details[key] for key in kept}


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    words = (f'{key}="{_escaped(value)}"' for key, value in labels.items())
    return "{" + ",".join(words) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: Any) -> str:
    number = float(value)
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)
