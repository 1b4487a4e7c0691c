"""The regression analogues of S and N: integrated p-value and Lebesgue size of the prediction set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from calipers.deprecation import renamed_arguments
from calipers.exceptions import InputError
from calipers.inference import Moments, State, mean_estimate
from calipers.inputs import check_alphas, check_confidence, exact_level
from calipers.inputs.option_checks import check_flag
from calipers.inputs.rows import Rows
from calipers.metrics.entry import MetricEntry
from calipers.metrics.states.moments import MomentState
from calipers.metrics.states.one_block import over_one_block
from calipers.results import Estimate, EstimateTable

_INTEGRAL = "integrated p-value"
_NO_NULL = "no null: how narrow intervals can be depends on the noise of the outcome"


@renamed_arguments("0.4", alphas="alpha")
def regression_efficiency(
    intervals: Any,
    *,
    alpha: Any,
    sample_weight: Any = None,
    confidence: float = 0.95,
    step: bool = False,
) -> EstimateTable:
    """Mean width of intervals at each level, and the p-value integrated over the outcome; smaller is better.

    Width is the regression analogue of N; the integral of the p-value over all outcomes y, which equals
    the integral of the width over alpha, is the analogue of S. It diverges at alpha = 0, so it is
    taken over the levels given.

    Parameters
    ----------
    intervals : array of shape (n, 2, L), or (n, 2)
        Lower and upper ends at L nested levels.
    alpha : sequence of L levels, or one
        Allowed miscoverage of each level.
    sample_weight : array of shape (n,), optional
        Weights: whole numbers are repetitions, others importance weights.
    confidence : float
        Level of the intervals around the estimates.
    step : bool
        Treat the width as constant from each level to the next (exact when the levels are the multiples of
        1/(n + 1) of a conformal predictor) rather than linear between them.

    Returns
    -------
    EstimateTable
        Keys ``"size at 0.1"``, ... and, with two levels or more, ``"integrated p-value"``, whose details hold
        the range of levels and the sums that bound it for a width that never increases in alpha.

    Notes
    -----
    Student t intervals for the rows that carry the noise, not below 0: widths have no known largest value, so
    few rows of very different widths make them long. An infinite interval makes the mean infinite, without
    error bar.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import regression_efficiency
    >>> ends = np.stack([np.full((4, 2), 3.0), np.full((4, 2), 1.0)], axis=-1) * [[-1], [1]]
    >>> table = regression_efficiency(ends, alpha=[0.1, 0.3])
    >>> {name: round(float(e), 3) for name, e in table.items()}
    {'size at 0.1': 6.0, 'size at 0.3': 2.0, 'integrated p-value': 0.8}
    """
    options = {
        "alpha": alpha,
        "confidence": check_confidence(confidence),
        "step": check_flag(step, name="step"),
    }
    given = {"intervals": intervals, "sample_weight": sample_weight}
    return cast("EstimateTable", over_one_block(widths_state(_ENTRY, options), given))


def size_rows(sizes: np.ndarray, alphas: Any, *, step: bool = False) -> dict[str, np.ndarray]:
    """What each row adds: its width at every level and, over several, the integral and its bounds."""
    exact = np.array([float(exact_level(a)) for a in alphas])
    rows = {f"size at {a:g}": sizes[:, i] for i, a in enumerate(exact)}
    if len(exact) > 1:
        order = np.argsort(exact, kind="stable")
        gaps, ordered = np.diff(exact[order]), sizes[:, order]
        upper, lower = ordered[:, :-1] @ gaps, ordered[:, 1:] @ gaps
        rows |= {_INTEGRAL: upper if step else (upper + lower) / 2, "lower": lower, "upper": upper}
    return rows


def sizes_from_moments(moments: Mapping[str, Moments], *, alphas: Any, confidence: float) -> EstimateTable:
    """The table of `regression_efficiency` from the moments of each row's contributions."""
    exact = sorted(float(exact_level(a)) for a in alphas)
    table = [_mean(name, m, confidence) for name, m in moments.items() if name not in ("lower", "upper")]
    if len(exact) > 1:
        bounds = {name: moments[name].mean for name in ("lower", "upper")}
        table[-1] = replace(table[-1], details={"alpha_low": exact[0], "alpha_high": exact[-1], **bounds})
    return EstimateTable(table, title="Efficiency of intervals")


def _mean(name: str, moments: Moments, confidence: float) -> Estimate:
    mean = mean_estimate(moments, name=name, confidence=confidence)
    low = None if mean.low is None else max(mean.low, 0.0)  # no width is negative
    return replace(mean, low=low, reason="; ".join(filter(None, [mean.reason, _NO_NULL])))


def _width_rows(block: Rows, *, alphas: Any, step: bool) -> dict[str, np.ndarray]:
    """Widths of every row at every level, and what their integral adds up from."""
    ends = block["intervals"].astype(np.float64)
    ends = ends[:, :, None] if ends.ndim == 2 else ends
    if len(alphas) != ends.shape[2]:
        raise InputError(
            f"alpha must name the {ends.shape[2]} level(s) of intervals, got {len(alphas)}. "
            "Give one alpha per level, in their order."
        )
    return size_rows(ends[:, 1] - ends[:, 0], alphas, step=step)


def widths_state(entry: MetricEntry, options: dict[str, Any]) -> State:
    """Moments of the widths at every level."""
    levels, _ = check_alphas(options["alpha"])
    rows = partial(_width_rows, alphas=levels, step=bool(options.get("step", False)))
    finish = partial(sizes_from_moments, alphas=levels, confidence=options["confidence"])
    return MomentState(rows, finish, ("intervals",), tails=True)


_ENTRY = MetricEntry(
    function=regression_efficiency,
    question="narrow",
    inputs=("intervals",),
    returns="table",
    direction="lower",
    good="as small as the noise allows; compare predictors on the same rows",
    bounds=(0.0, float("inf")),
    no_null=_NO_NULL,
    interval="Student t for the rows that carry the noise",
    merge="moments",
    state=widths_state,
    weighted=True,
    array_api=True,
)
ENTRIES = (_ENTRY,)
