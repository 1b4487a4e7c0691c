"""Does each predicted quantile lie where it says? Shares of outcomes up to it, level by level."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self, cast

import numpy as np

from calipers.conformal import conformal_rank
from calipers.inference import NO_EXACT_LAW, CoverageLaw, State, clopper_pearson
from calipers.inference.null_law import NULL_LEVEL
from calipers.inputs import check_confidence, check_count, check_same_length, check_weights
from calipers.inputs.rows import Rows
from calipers.inputs.weights import effective_size
from calipers.metrics.distributions.quantile_columns import (
    check_quantile_levels,
    check_quantiles,
    crossing_rows,
)
from calipers.metrics.entry import MetricEntry, known_options
from calipers.results import Estimate, EstimateTable


def quantile_calibration(
    y_true: Any,
    quantiles: Any,
    *,
    levels: Any,
    n_calibration: int | None = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> EstimateTable:
    """Share of outcomes up to each predicted quantile; a good value is the level itself.

    Parameters
    ----------
    y_true : array of shape (n,)
        Outcomes.
    quantiles : array of shape (n, L), or (n,) for one level
        Predicted quantiles, one column per level; infinite ones are allowed. Each level is a promise of
        its own, so that columns may cross; ``details`` count the rows where they do.
    levels : sequence of L numbers
        Level of every column, strictly between 0 and 1.
    n_calibration : int, optional
        Rows the quantiles were conformalised on.
    sample_weight : array of shape (n,), optional
        Weights. Whole numbers are repeated rows; with others there is no test.
    confidence : float
        Level of the intervals.

    Returns
    -------
    EstimateTable
        Keys "0.1", ...: the share of outcomes at or below the quantile. ``details``: "below" (share strictly
        below), "rows" and "crossing" (rows with crossed quantiles).

    Raises
    ------
    InputError
        For lengths or levels that do not fit, and missing values.

    Notes
    -----
    The promise of a quantile q of level tau is P(y < q) <= tau <= P(y <= q): where outcomes have atoms the
    two differ, and a quantile may lie on one. The test is twice the smaller of two one-sided exact tests: too
    few outcomes at or below q, or too many below it. Without ties it is the two-sided binomial test. With
    ``n_calibration`` = n the law is beta-binomial with the rank k = ceil((n + 1) tau) of a quantile from
    above (tau >= 1/2), and its mirror image for a quantile from below. Interval: Clopper-Pearson, of the
    share at or below. p-values are for each level on its own; for all together adjust them (Holm).

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import quantile_calibration
    >>> y = np.arange(1.0, 101.0)
    >>> table = quantile_calibration(y, np.tile([10.0, 80.0], (100, 1)), levels=[0.1, 0.9])
    >>> {level: (e.value, round(e.p_value, 3)) for level, e in table.items()}
    {'0.1': (0.1, 1.0), '0.9': (0.8, 0.004)}
    """
    n = check_same_length(y_true=y_true, quantiles=quantiles, sample_weight=sample_weight)
    check_weights(sample_weight, n)
    options = {"levels": levels, "n_calibration": n_calibration, "confidence": check_confidence(confidence)}
    state = quantile_state(_ENTRY, options)
    state.absorb(Rows({"y_true": y_true, "quantiles": quantiles, "sample_weight": sample_weight}))
    return cast("EstimateTable", state.finish())


@dataclass(slots=True, eq=False)
class QuantileState(State):
    """Rows below and up to every quantile.

    Parameters
    ----------
    levels : tuple of float
        Level of every column of quantiles.
    n_calibration : int or None
        Rows the quantiles were conformalised on.
    confidence : float
        Level of the intervals.
    """

    levels: tuple[float, ...]
    n_calibration: int | None = None
    confidence: float = 0.95
    below: np.ndarray = field(init=False)
    up_to: np.ndarray = field(init=False)
    total: float = 0.0
    squares: float = 0.0
    crossing: float = 0.0
    whole: bool = True

    def __post_init__(self) -> None:
        self.below, self.up_to = np.zeros(len(self.levels)), np.zeros(len(self.levels))

    @property
    def needs(self) -> frozenset[str]:
        """Outcomes, quantiles and weights."""
        return frozenset({"y_true", "quantiles", "sample_weight"})

    def absorb(self, block: Rows) -> None:
        """Count the rows of the block."""
        y, table = check_quantiles(block["y_true"], block["quantiles"], self.levels)
        w = np.ones(block.n) if block.weights is None else block.weights
        self.below += w @ (y[:, None] < table)
        self.up_to += w @ (y[:, None] <= table)
        self.crossing += float(w @ crossing_rows(table, self.levels))
        self.total, self.squares = self.total + float(w.sum()), self.squares + float(w @ w)
        self.whole = self.whole and bool(np.all(w == np.floor(w)))

    def merge(self, other: Self) -> Self:
        """Add the counts."""
        self.below, self.up_to = self.below + other.below, self.up_to + other.up_to
        self.total, self.squares = self.total + other.total, self.squares + other.squares
        self.crossing, self.whole = self.crossing + other.crossing, self.whole and other.whole
        return self

    def finish(self) -> EstimateTable:
        """The table of shares."""
        table = {f"{level:g}": self._of_level(i) for i, level in enumerate(self.levels)}
        return EstimateTable(table, title="Calibration of quantiles")

    def _of_level(self, i: int) -> Estimate:
        share = min(self.up_to[i] / self.total, 1.0)
        trials = effective_size(self.total, self.squares, whole=self.whole)
        low, high = clopper_pearson(share * trials, trials, confidence=self.confidence)
        fields: dict[str, Any] = {
            "name": f"quantile {self.levels[i]:g}",
            "value": float(share),
            "std_error": math.sqrt(share * (1 - share) / trials),
            "low": float(low),
            "high": float(high),
            "confidence": self.confidence,
            "n": trials,
            "method": "share of outcomes up to the quantile, Clopper-Pearson interval",
            "details": {
                "below": float(self.below[i] / self.total),
                "rows": trials,
                "crossing": self.crossing,
            },
        }
        if not self.whole:
            return Estimate(**fields, reason=NO_EXACT_LAW)
        return Estimate(**(fields | self._tested(i, fields["method"])))

    def _tested(self, i: int, method: str) -> dict[str, Any]:
        law = QuantileLaw.of(int(self.total), self.levels[i], self.n_calibration)
        few, many = law.at_most(round(self.up_to[i])), law.at_least(round(self.below[i]))
        low, high = law.band(NULL_LEVEL)
        kind = "binomial" if self.n_calibration is None else "beta-binomial"
        return {
            "p_value": min(1.0, 2.0 * min(few, many)),
            "alternative": "two-sided",
            "null_low": low,
            "null_high": high,
            "null_level": NULL_LEVEL,
            "method": f"{method}, two one-sided {kind} tests",
        }


@dataclass(frozen=True, slots=True)
class QuantileLaw:
    """Law of the number of n outcomes up to a quantile that keeps its promise.

    Parameters
    ----------
    law : CoverageLaw
        Law of the outcomes on the side that the quantile covers: up to it from above, beyond it from below.
    is_mirrored : bool
        Whether the quantile is one from below.

    Examples
    --------
    >>> from calipers.metrics.distributions.quantile_shares import QuantileLaw
    >>> law = QuantileLaw.of(10, 0.9, None)
    >>> round(law.at_most(9), 4)                                  # 1 - 0.9^10
    0.6513
    """

    law: CoverageLaw
    is_mirrored: bool

    @classmethod
    def of(cls, n: int, level: float, n_calibration: int | None) -> QuantileLaw:
        """Of n test rows; a quantile below 1/2 is conformalised as the mirror image of one above."""
        is_mirrored = level < 0.5
        alpha = level if is_mirrored else 1.0 - level
        rank = None if n_calibration is None else conformal_rank(n_calibration, alpha)
        return cls(CoverageLaw(n, alpha, n_calibration=n_calibration, rank=rank), is_mirrored)

    def at_most(self, count: int) -> float:
        """P(outcomes up to the quantile <= count)."""
        return float(self.law.sf(self.law.n - count - 1) if self.is_mirrored else self.law.cdf(count))

    def at_least(self, count: int) -> float:
        """P(outcomes up to the quantile >= count)."""
        return float(self.law.cdf(self.law.n - count) if self.is_mirrored else self.law.sf(count - 1))

    def band(self, level: float) -> tuple[float, float]:
        """Shares that hold ``level`` of the law."""
        low, high = self.law.share_interval(level)
        return (1.0 - float(high), 1.0 - float(low)) if self.is_mirrored else (float(low), float(high))


def quantile_state(entry: MetricEntry, options: dict[str, Any]) -> State:
    """Counts below and up to every quantile."""
    chosen = known_options(entry, options, ("levels", "n_calibration", "confidence"))
    rows = chosen.get("n_calibration")
    calibration = None if rows is None else check_count(rows, name="n_calibration")
    return QuantileState(check_quantile_levels(chosen.get("levels")), calibration, chosen["confidence"])


_ENTRY = MetricEntry(
    function=quantile_calibration,
    question="probabilities",
    inputs=("y_true", "quantiles"),
    returns="table",
    direction="target",
    good="the level of the quantile",
    bounds=(0.0, 1.0),
    null="P(y < q) <= tau <= P(y <= q) (binomial; beta-binomial with n_calibration)",
    interval="Clopper-Pearson",
    merge="counts",
    state=quantile_state,
    weighted=True,
)
ENTRIES = (_ENTRY,)
