"""One measured number with its error bar, its noise floor and the method behind both."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Literal

from calipers.arrays import short_repr
from calipers.exceptions import InputError
from calipers.results.formatting import format_interval, format_number, format_percent, p_in_words
from calipers.results.frozen_details import restore_frozen
from calipers.results.html import estimate_html
from calipers.results.plotting import Plotted

Alternative = Literal["two-sided", "greater", "less"]
_ALTERNATIVES = (None, "two-sided", "greater", "less")
_PLAIN = frozenset({float, int, type(None)})
_NUMBERS = (
    "value", "std_error", "low", "high", "confidence", "n", "p_value", "null_low", "null_high", "null_level",
)  # fmt: skip

_numbers = attrgetter(*_NUMBERS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate(Plotted):
    """A measured number, how sure it is, and what it would read if nothing were wrong.

    Any field but ``name`` may be None; then ``reason`` says why.

    Parameters
    ----------
    name : str
        What was measured, as people call it ("T-CV", "coverage").
    value : float or None
        The point estimate; NaN or None where the measure is undefined.
    std_error : float or None
        Standard error of the value.
    low, high : float or None
        Ends of the interval at level ``confidence``; an infinite end makes it one-sided.
    confidence : float or None
        Level of the interval.
    n : float or None
        Rows behind the number (their total weight, when weighted).
    p_value : float or None
        Probability under the null of a reading at least as far towards ``alternative``.
    alternative : {"two-sided", "greater", "less"} or None
        Which readings count against the null.
    null_low, null_high : float or None
        The band that holds ``null_level`` of the null law, one-sided towards ``alternative``.
    null_level : float or None
        Mass of the band, 0.95 unless said otherwise.
    method : str
        How the number, the interval and the test were made, in a few words.
    reason : str
        Why something is missing or weaker than asked; empty when nothing is.
    details : mapping
        Everything else: counts, per-group values, Monte-Carlo errors.

    Examples
    --------
    >>> from calipers.results import Estimate
    >>> e = Estimate(name="T-CV", value=0.062, low=0.048, high=0.081, confidence=0.95,
    ...              null_high=0.05, null_level=0.95, alternative="greater", p_value=0.004)
    >>> print(e)
    T-CV 0.062 [0.048, 0.081] at 95 %; a valid predictor would read up to 0.050 (p = 0.004)
    >>> float(e)
    0.062
    """

    name: str
    value: float | None = None
    std_error: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    n: float | None = None
    p_value: float | None = None
    alternative: Alternative | None = None
    null_low: float | None = None
    null_high: float | None = None
    null_level: float | None = None
    method: str = ""
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if self.alternative not in _ALTERNATIVES:
            raise InputError(
                f'alternative must be None, "two-sided", "greater" or "less", got {self.alternative!r}.'
            )
        if self.p_value is not None and self.p_value <= 0:  # a tail below the smallest number is not 0
            object.__setattr__(self, "p_value", sys.float_info.min)
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))
        numbers = _numbers(self)
        if not _PLAIN.issuperset(map(type, numbers)):
            for key, number in zip(_NUMBERS, numbers, strict=True):
                if type(number) not in _PLAIN:  # scalars of array libraries are printed and stored otherwise
                    object.__setattr__(self, key, float(number))
        if isinstance(self.n, float) and self.n.is_integer():  # weights are floats, rows are counted
            object.__setattr__(self, "n", int(self.n))

    def __float__(self) -> float:
        return float("nan") if self.value is None else float(self.value)

    def __getstate__(self) -> dict[str, Any]:
        # A mapping proxy cannot be pickled; joblib and copy need one that can.
        return self.to_dict()

    __setstate__ = restore_frozen

    def __eq__(self, other: object) -> bool:
        from calipers.results.serialization import same

        return isinstance(other, Estimate) and same(self.to_dict(), other.to_dict())

    def __hash__(self) -> int:
        return hash((self.name, self.value, self.method))

    def to_dict(self) -> dict[str, Any]:
        """Every field by name, details copied."""
        return {key: getattr(self, key) for key in self.__slots__ if key != "details"} | {
            "details": dict(self.details)
        }

    def __str__(self) -> str:
        parts = [f"{self.name} {format_number(self.value, self._spread())}{self._interval()}"]
        if null := self._null():
            parts.append(null)
        if self.reason:
            parts.append(self.reason)
        return "; ".join(parts)

    def _repr_html_(self) -> str:
        return estimate_html(self)

    def _spread(self) -> float | None:
        """The scale that decides how many digits are worth printing."""
        if self.low is not None and self.high is not None:
            return self.high - self.low
        return self.std_error

    def _interval(self) -> str:
        if self.low is None or self.high is None:
            return ""
        spread = self._spread()
        level = f" at {format_percent(self.confidence)}" if self.confidence is not None else ""
        ends = ", each end one-sided" if self.details.get("one_sided_ends") else ""
        return f" [{format_interval(self.low, self.high, spread)}]{level}{ends}"

    def _null_band(self) -> str:
        """Where the null law lies: "0.886 to 0.913", "up to 0.050", "at least 0.84", or nothing."""
        low, high = (
            None if end is None else format_number(end, self._null_spread(end))
            for end in (self.null_low, self.null_high)
        )
        if low is not None and high is not None and self.alternative == "two-sided":
            return f"{low} to {high}"
        if high is not None and self.alternative != "less":
            return f"up to {high}"
        return "" if low is None else f"at least {low}"

    def _null_spread(self, end: float) -> float | None:
        """The digits of the value, unless they would turn a small end of the null law into 0."""
        spread = self._spread()
        return min(spread, abs(end)) if spread is not None and end else spread

    def _null(self) -> str:
        p = "" if self.p_value is None else p_in_words(self.p_value)
        band = self._null_band()
        # Most nulls say that the promise is kept; a metric whose null says otherwise names its subject.
        subject = self.details.get("null_subject", "a valid predictor")
        if not band:
            return f"{p} against {subject}" if p and "null_subject" in self.details else p
        return f"{subject} would read {band}" + (f" ({p})" if p else "")
