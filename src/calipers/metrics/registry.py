"""Every public metric, in one list that drives the contract tests, the audit and the engines.

A module of metrics states its own entries in ``ENTRIES``; adding a module means adding its name here.
A public metric that no entry names fails a test.
"""

from __future__ import annotations

import importlib
from functools import cache

from calipers.exceptions import InputError
from calipers.metrics.entry import MetricEntry

_MODULES = (
    "marginal",
    "adaptivity.violation",
    "adaptivity.size",
    "adaptivity.rank_gaps",
    "adaptivity.concordance",
    "adaptivity.regression",
    "reliability",
    "p_value_laws",
    "criteria",
    "interval_size",
    "conditional.excess_risk",
    "conditional.slab",
    "conditional.groups",
    "conditional.dependence",
    "conditional.regions",
)


@cache
def metric_entries() -> tuple[MetricEntry, ...]:
    """All entries, in the order of the six questions.

    Returns
    -------
    tuple of MetricEntry
        One per public metric.

    Examples
    --------
    >>> from calipers.metrics import metric_entries
    >>> "coverage" in [entry.name for entry in metric_entries()]
    True
    """
    modules = (importlib.import_module(f"calipers.metrics.{name}") for name in _MODULES)
    return tuple(entry for module in modules for entry in module.ENTRIES)


def metric_entry(name: str) -> MetricEntry:
    """The entry of one metric.

    Parameters
    ----------
    name : str
        Name of the public function.

    Returns
    -------
    MetricEntry
        What the registry knows about it.

    Examples
    --------
    >>> from calipers.metrics import metric_entry
    >>> metric_entry("coverage").direction
    'target'
    """
    found = {entry.name: entry for entry in metric_entries()}
    if name not in found:
        raise InputError(f"there is no metric {name!r}; known are {', '.join(found)}.")
    return found[name]
