"""The outcome of a check, before its severity is known: evidence, effect, sentences, pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calipers.arrays import short_repr
from calipers.inputs.rows import Rows
from calipers.results import Curve, Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Curves that belong in one picture, and how to draw them.

    Parameters
    ----------
    name : str
        Stable, unique in an audit.
    question, title, caption : str
        Which question it answers; what a reader sees.
    kind : {"line", "points", "intervals"}
        Curves over a grid, points with error bars over a grid, or one labelled interval per row.
    curves : tuple of Curve
        What is drawn; the table of the picture is theirs.
    reference : float or None
        A horizontal line: the promise.
    labels : tuple of str
        Names of the grid points, for "intervals".
    """

    name: str
    question: str
    title: str
    caption: str
    kind: str
    curves: tuple[Curve, ...]
    reference: float | None = None
    labels: tuple[str, ...] = ()

    __repr__ = short_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The outcome of one measurement of one check.

    Parameters
    ----------
    code, title, question : str
        Of the finding it will become.
    subject : str
        What was looked at; the title of a finding that is not a fault.
    evidence : Estimate or None
        The number behind it.
    p_value : float or None
        Against the null of the check; None when there is no test (then it is never counted as one).
    effect : float or None
        How far the promise is missed, positive when it is missed, in the unit of the sentence.
    effect_low, effect_high : float or None
        Ends of the interval around the effect.
    tolerance : float
        An effect up to this is not worth acting on.
    serious : float or None
        An effect that must be excluded before the check is clean; three tolerances unless given.
    fault, clean : str
        The sentence in either case.
    where, repair : str
        Where it is worst, and what to do.
    cap : str
        The highest severity this check may reach.
    rows_needed : int or None
        Rows at which the interval of the effect would be as narrow as the tolerance.
    not_applicable : str
        Why the check could not be made; everything else is then ignored but ``rows_needed``, with which it is
        only for lack of rows.
    estimates : tuple of Estimate
        Numbers for the tables of the audit.
    pictures : tuple of Picture
        For the report.
    details : mapping
        Everything else the finding should carry.
    promise, slices : str
        The cell of the table of promises and slices that it fills.
    rows : callable or None
        Which of some rows the finding is about; None for all of them.
    """

    code: str
    title: str
    question: str
    subject: str = ""
    evidence: Estimate | None = None
    p_value: float | None = None
    effect: float | None = None
    effect_low: float | None = None
    effect_high: float | None = None
    tolerance: float = 0.0
    serious: float | None = None
    fault: str = ""
    clean: str = ""
    where: str = ""
    repair: str = ""
    cap: str = "issue"
    rows_needed: int | None = None
    not_applicable: str = ""
    estimates: tuple[Estimate, ...] = ()
    pictures: tuple[Picture, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    promise: str = ""
    slices: str = ""
    rows: Callable[[Rows], np.ndarray] | None = None
