"""What a forecast promises, in numbers and in one sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from calipers.arrays import short_repr
from calipers.conformal import conformal_rank, interval_ranks, smallest_calibration_size
from calipers.exceptions import InputError
from calipers.inference import CalibrationLaw
from calipers.inputs import exact_level
from calipers.results.formatting import format_end

Side = Literal["two-sided", "upper", "lower"]
_SIDES = ("two-sided", "upper", "lower")
# Ends that each side asks for; the others are infinite by design.
_ENDS = {"two-sided": ("lower", "upper"), "upper": ("upper",), "lower": ("lower",)}


def losses_needed(alpha: Any, side: Side, *, tight: bool = False) -> int:
    """Fewest losses for which every end that ``side`` asks for is finite.

    Examples
    --------
    >>> from calipers.performance.guarantee import losses_needed
    >>> losses_needed(0.1, "upper"), losses_needed(0.1, "two-sided")
    (9, 20)
    """
    level = exact_level(alpha)
    if side != "two-sided":
        return smallest_calibration_size(level)
    if tight:
        return smallest_calibration_size(level / 2)
    # ceil((n+1) alpha/2) - 1 >= 1  <=>  n + 1 > 2 / alpha; the upper end is finite from n + 1 = 2 / alpha.
    return (2 * level.denominator) // level.numerator


def end_ranks(n: int, alpha: Any, side: Side, *, tight: bool = False) -> tuple[int, int]:
    """Ranks of the two ends among n losses; 0 and n + 1 stand for the infinite ends."""
    if side == "two-sided":
        return interval_ranks(n, alpha, tight=tight)
    if side == "upper":
        return 0, conformal_rank(n, alpha)
    if side == "lower":
        # The upper bound of the negated losses.
        return n + 1 - conformal_rank(n, alpha), n + 1
    raise InputError(f"side must be one of {', '.join(_SIDES)}, got {side!r}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """The exact promise of one interval.

    Parameters
    ----------
    target : str
        What is forecast, e.g. "the loss of this trained model on one new row".
    condition : str
        What must hold for the promise.
    n : int
        Losses (or scores) the interval is made of.
    alpha : float
        Allowed miscoverage.
    low_rank, high_rank : int
        Ranks of the ends; 0 and n + 1 stand for infinite ends.
    needed : int
        Losses for which all ends are finite.
    rows_per_loss : int
        Rows that one more loss costs.
    train_size : int or None
        Training rows of the algorithm whose loss is forecast; None for one trained model.
    n_rows : int or None
        Rows at hand, where these are more than one training sample.
    low, high : float or None
        The ends themselves; None when they depend on the case.
    region : str
        What the promise is about when they do.
    side : {"two-sided", "upper", "lower"}
        Which ends were asked for.

    Examples
    --------
    >>> from calipers.performance import forecast_losses
    >>> g = forecast_losses(range(1, 100), alpha=0.1).guarantee()
    >>> g.coverage, g.law.interval(0.95).low > 0.83
    (Fraction(91, 100), True)
    """

    target: str
    condition: str
    n: int
    alpha: float
    low_rank: int
    high_rank: int
    low: float | None
    high: float | None
    needed: int
    rows_per_loss: int = 1
    train_size: int | None = None
    n_rows: int | None = None
    region: str = "its predicted interval"
    side: Side = "two-sided"

    __repr__ = short_repr

    @property
    def coverage(self) -> Fraction:
        """Exact probability for distinct losses: difference of the ranks over n + 1."""
        return Fraction(self.high_rank - self.low_rank, self.n + 1)

    @property
    def law(self) -> CalibrationLaw:
        """Law of the coverage given the calibration set, Beta(r, n + 1 - r) with r the rank difference."""
        return CalibrationLaw(self.n, self.high_rank - self.low_rank)

    @property
    def rows_needed(self) -> int:
        """Rows for which all ends are finite."""
        return self.needed * self.rows_per_loss

    def __str__(self) -> str:
        parts = [self._promise(), self._size(), self._beta(), self._ends(), self.condition]
        return "; ".join(filter(None, parts)) + "."

    def _promise(self) -> str:
        place = self.region if self.low is None or self.high is None else _closed(self.low, self.high)
        exact = f"exactly {_percent(self.coverage)} = {self.high_rank - self.low_rank}/{self.n + 1}"
        return (
            f"{self.target} lies in {place} with probability at least "
            f"{_percent(1 - exact_level(self.alpha))} ({exact} when losses are distinct), "
            f"over the draw of the n = {self.n} calibration losses and of the new one"
        )

    def _size(self) -> str:
        if self.train_size is None or self.n_rows is None:
            return ""
        return (
            f"it speaks of training samples of {self.train_size} rows, not of the {self.n_rows} at hand: for "
            "samples as large as these no forecast without assumptions is possible (Luo and Barber 2024)"
        )

    def _beta(self) -> str:
        rank = self.high_rank - self.low_rank
        if rank == self.n + 1:
            return ""
        low, high = self.law.interval(0.95)
        return (
            f"given one calibration set of independent rows the coverage is a draw from "
            f"Beta({rank}, {self.n + 1 - rank}), between {_percent(low)} and {_percent(high)} "
            "for 95 % of such sets"
        )

    def _ends(self) -> str:
        short = {
            name: end
            for name, rank, stop, end in (
                ("lower", self.low_rank, 0, self.low),
                ("upper", self.high_rank, self.n + 1, self.high),
            )
            if rank == stop and name in _ENDS[self.side]
        }
        if not short:
            return ""
        rows = f" ({self.rows_needed} rows)" if self.rows_per_loss > 1 else ""
        return (
            f"{_short_ends(short)} because {self.n} losses are fewer than the {self.needed} needed at "
            f"alpha = {self.alpha:g}{rows}"
        )


def _short_ends(ends: dict[str, float | None]) -> str:
    """What ends without an order statistic are: infinite, or the least or most a loss can be."""
    infinite = [name for name, end in ends.items() if end is None or math.isinf(end)]
    limited = [
        f"the {name} end is the {'least' if name == 'lower' else 'most'} a loss can be"
        for name in ends
        if name not in infinite
    ]
    plural = "s are" if len(infinite) > 1 else " is"
    return " and ".join(
        ([f"the {' and '.join(infinite)} end{plural} infinite"] if infinite else []) + limited
    )


def _percent(share: Fraction | float) -> str:
    return f"{100 * float(share):.4g} %"


def _closed(low: float, high: float) -> str:
    """The interval, rounded outward: what is promised for it holds for what is printed."""
    spread = high - low if abs(high - low) < float("inf") else None
    left = "(" if low == -float("inf") else "["
    right = ")" if high == float("inf") else "]"
    return f"{left}{format_end(low, spread, side='low')}, {format_end(high, spread, side='high')}{right}"
