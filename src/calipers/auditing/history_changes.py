"""What changed between two audits: answers, and numbers beyond their error bars."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import special

from calipers.auditing.history_rows import SAME, paired_tests
from calipers.auditing.severity import LEVEL
from calipers.inference import holm, normal_quantile

Answers = Mapping[tuple[str, str], Mapping[str, Any]]
Numbers = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class NumberChange:
    """One number in two audits.

    Parameters
    ----------
    name : str
        The estimate.
    before, after : float
        Its values.
    p_value : float or None
        Two-sided, corrected for all numbers (Holm); None without error bars on both sides.
    changed : bool
        Whether the difference is beyond noise at 5 %.
    paired : bool
        Whether the same rows were compared one by one.
    """

    name: str
    before: float
    after: float
    p_value: float | None
    changed: bool
    paired: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What changed between two audits.

    Parameters
    ----------
    broken, mended : list of (promise, slice)
        Broken only after, and broken only before.
    appeared, gone : list of (promise, slice)
        Asked only after, and only before.
    numbers : list of NumberChange
        Numbers that both audits have.
    shared_rows : int
        Rows of both audits when they are the same ones, else 0.
    """

    broken: list[tuple[str, str]]
    mended: list[tuple[str, str]]
    appeared: list[tuple[str, str]]
    gone: list[tuple[str, str]]
    numbers: list[NumberChange]
    shared_rows: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def changes_between(
    before: tuple[Answers, Numbers],
    after: tuple[Answers, Numbers],
    rows: tuple[pl.DataFrame | None, pl.DataFrame | None] = (None, None),
) -> Change:
    """What changed from one audit to another.

    Parameters
    ----------
    before, after : pair
        (promise, slice) -> answer, and name -> estimate.
    rows : pair of tables
        What single rows contributed to each, as from `history_rows.contributions`.

    Notes
    -----
    Numbers that are means over rows are compared in pairs where both audits are of the same rows. All others
    are compared as those of independent rows: z = difference / sqrt(se1^2 + se2^2), which is on the safe side
    for the same rows, because they differ less by chance.

    Examples
    --------
    >>> from calipers.auditing.history_changes import changes_between
    >>> old = ({("coverage", "all"): {"answer": "kept"}}, {"coverage": {"value": 0.9, "std_error": 0.01}})
    >>> new = ({("coverage", "all"): {"answer": "broken"}}, {"coverage": {"value": 0.8, "std_error": 0.01}})
    >>> changes_between(old, new).broken
    [('coverage', 'all')]
    """
    broken = [
        {key for key, point in answers.items() if point["answer"] == "broken"}
        for answers, _ in (before, after)
    ]
    asked = [set(answers) for answers, _ in (before, after)]
    old, new = rows
    paired = {} if old is None or new is None else paired_tests(old, new)
    return Change(
        broken=sorted(broken[1] - broken[0]),
        mended=sorted(broken[0] & asked[1] - broken[1]),
        appeared=sorted(asked[1] - asked[0]),
        gone=sorted(asked[0] - asked[1]),
        numbers=_numbers(before[1], after[1], paired),
        shared_rows=new.height if paired and new is not None else 0,
    )


def _numbers(
    before: Numbers, after: Numbers, paired: Mapping[str, tuple[float, float, float]]
) -> list[NumberChange]:
    lines = [(name, *found) for name, found in paired.items()]
    lines += [
        (name, float(before[name]["value"]), float(after[name]["value"]), _p_value(before[name], after[name]))
        for name in after
        if SAME.get(name, name) not in paired
        and name in before
        and _is_number(before[name].get("value"))
        and _is_number(after[name].get("value"))
    ]
    raw = np.array([p for *_, p in lines])
    adjusted = holm(raw) if np.isfinite(raw).any() else raw
    return [
        NumberChange(name, old, new, None if math.isnan(p) else float(p), bool(p <= LEVEL), name in paired)
        for (name, old, new, _), p in zip(lines, adjusted, strict=True)
    ]


def _p_value(before: Mapping[str, Any], after: Mapping[str, Any]) -> float:
    old, new = _standard_error(before), _standard_error(after)
    if old is None or new is None or not math.hypot(old, new):
        return math.nan
    z = (float(after["value"]) - float(before["value"])) / math.hypot(old, new)
    return float(2.0 * special.ndtr(-abs(z)))


def _standard_error(estimate: Mapping[str, Any]) -> float | None:
    """Its standard error; else a half-width over its normal quantile, None without a two-sided interval."""
    if _is_number(estimate.get("std_error")):
        return float(estimate["std_error"])
    ends = [estimate.get(name) for name in ("low", "high", "confidence")]
    if not all(_is_number(end) for end in ends):
        return None
    low, high, confidence = (float(end) for end in ends if end is not None)
    return float((high - low) / 2.0 / normal_quantile(confidence))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
