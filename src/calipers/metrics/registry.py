"""Every public metric, in one list that drives the contract tests, the audit and the engines.

A module of metrics states its own entries in ``ENTRIES``; adding a module means adding its name here.
A public metric that no entry names fails a test.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from calipers.exceptions import InputError
from calipers.inference import State
from calipers.inputs.rows import Rows
from calipers.metrics.entry import MetricEntry

_MODULES = (
    "marginal",
    "probability_scores",
    "adaptivity.coverage_violation",
    "adaptivity.size_and_difficulty",
    "adaptivity.rank_gaps",
    "adaptivity.concordance",
    "adaptivity.width_and_error",
    "reliability",
    "multicalibration.measure",
    "distributions.pit",
    "distributions.quantile_shares",
    "distributions.ranked_score",
    "p_value_laws",
    "criteria",
    "interval_size",
    "over_time.measure",
    "selective.certified_share",
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


def metrics_of(rows: Rows) -> list[MetricEntry]:
    """The metrics whose inputs these rows hold, given or derived.

    Examples
    --------
    >>> from calipers.engines import Rows
    >>> [entry.name for entry in metrics_of(Rows({"pit": [0.2, 0.7]}))]
    ['pit_uniformity']
    """
    return [entry for entry in metric_entries() if entry.fits(rows)]


def state_of(
    metric: str,
    *,
    alpha: Any = 0.1,
    confidence: float = 0.95,
    by_row: tuple[str, ...] = (),
    **options: Any,
) -> State:
    """The state of a registered metric, ready to absorb blocks of rows.

    Parameters
    ----------
    metric : str
        Name of a registered metric.
    alpha : float
        Allowed miscoverage, for the metrics that take it.
    confidence : float
        Level of the intervals.
    by_row : tuple of str
        What differs by row: "promised", a column of the blocks that stands for one minus alpha, and
        "cluster"; for the metrics that take them.
    **options
        Further keyword arguments of the metric.

    Returns
    -------
    State
        Its ``finish`` gives what the metric itself would give for all rows at once.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.engines import Rows, state_of
    >>> state = state_of("coverage", alpha=0.1)
    >>> for y in ([0.0, 5.0], [1.0]):
    ...     state.absorb(Rows({"y_true": y, "intervals": np.tile([-1.0, 1.0], (len(y), 1))}))
    >>> round(float(state.finish()), 3)
    0.667
    """
    return metric_entry(metric).new_state(alpha=alpha, confidence=confidence, by_row=by_row, **options)


def merge_rules() -> dict[str, str]:
    """How each registered metric is measured: by "counts", "moments", "bins", "passes" or "gather".

    Returns
    -------
    dict
        Metric to rule.

    Examples
    --------
    >>> from calipers.engines import merge_rules
    >>> merge_rules()["coverage"], merge_rules()["efficiency"]
    ('counts', 'moments')
    """
    return {entry.name: entry.merge for entry in metric_entries()}
