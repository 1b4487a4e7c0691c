"""Counts per time and promise: what is kept of rows that stream by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from calipers.arrays import as_numpy
from calipers.exceptions import InputError
from calipers.inference.state import Result, State
from calipers.inputs.rows import Rows
from calipers.metrics.over_time.time_units import TimeUnits

# Distinct times (and promises) that are kept.
MAX_TIMES = 5_000_000


class TimeState(State):
    """Rows, covered rows and their weights at every time.

    Parameters
    ----------
    finisher : callable
        Pooled rows to the result.
    alpha : float
        Allowed miscoverage of rows without a promise of their own (the column ``promised``).
    """

    __slots__ = ("alpha", "finisher", "units")

    def __init__(self, finisher: Callable[[TimeUnits], Result], alpha: float) -> None:
        self.finisher, self.alpha = finisher, alpha
        self.units: TimeUnits | None = None

    @property
    def needs(self) -> frozenset[str]:
        """Outcomes, times, promises and weights."""
        return frozenset({"covered", "time", "promised", "sample_weight"})

    def absorb(self, block: Rows) -> None:
        """Count the rows of the block; times are kept as they were given, so that dates stay dates."""
        given = block.given["time"] if "time" in block.given else block["time"]
        times = as_numpy(given, name="time")
        if times.size != block.n:
            raise InputError(f"time must have one entry per row, got shape {times.shape} for {block.n} rows.")
        times = times.reshape(-1)
        promised: Any = block.get("promised")
        t = np.full(block.n, 1.0 - self.alpha) if promised is None else np.asarray(promised, dtype=float)
        self._add(TimeUnits.of_rows(times, t, block["covered"], block.weights))

    def merge(self, other: Self) -> Self:
        """Add the counts."""
        if other.units is not None:
            self._add(other.units)
        return self

    def _add(self, units: TimeUnits) -> None:
        self.units = units if self.units is None else self.units.with_other(units)
        if len(self.units) > MAX_TIMES:
            raise InputError(
                f"time takes more than {MAX_TIMES:,} values; round it, for instance to minutes or hours."
            )

    def finish(self) -> Result:
        """The result over all times."""
        if self.units is None or not len(self.units):
            raise InputError("sample_weight must not be zero everywhere.")
        return self.finisher(self.units)
