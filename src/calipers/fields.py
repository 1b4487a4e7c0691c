"""The table of fields: what a row of predictions may hold, under which names, and what it means.

It is written down once and read by everything that looks for columns: the files of `calipers.inputs.files`,
npz archives, the options of the command line, calipers.toml, the form of ``calipers serve`` and the page
docs/howto/files.md. To add a field, add one line to ``FIELDS`` and the argument to `calipers.audit`; a test
compares the two. This module imports nothing, so that ``calipers --help`` stays fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# How a field lies in a table: one column, one per class or quantile, one end of an interval, one or several
# attributes, or whatever is left.
Layout = Literal["column", "per class", "per level", "end", "attributes", "rest"]
# What its cells hold. Labels are text or numbers without gaps; anything may have gaps.
Holds = Literal["labels", "numbers", "flags", "anything"]
SHAPES: dict[Layout, str] = {
    "column": "(n,)",
    "per class": "(n, K)",
    "per level": "(n, Q)",
    "attributes": "(n,) or (n, G)",
    "end": "(n, 2)",
    "rest": "(n, d)",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One line of the table.

    Parameters
    ----------
    name : str
        Its name; the argument of `calipers.audit` unless ``fills`` says otherwise.
    option : str
        Its option on the command line without the dashes, and its key in calipers.toml.
    column : str
        Its column unless another is chosen: a name, or a pattern whose star stands for the class.
    layout : {"column", "per class", "per level", "end", "attributes", "rest"}
        How it lies in a table.
    holds : {"labels", "numbers", "flags", "anything"}
        What its cells hold.
    means : str
        What it is, in one sentence.
    word : str
        What a column of it is called in the plan; the name unless given.
    fills : str
        The argument of `calipers.audit` that it is a part of.
    levels : bool
        Whether a column may state its level, as in ``lower@0.05``; the argument then has a last axis.
    beside : str
        The field without which a column of this name is a feature like any other.
    also : tuple of str
        Other names of a single column, which count where a file states nothing else.

    Examples
    --------
    >>> from calipers.fields import field_named
    >>> field_named("proba").name, field_named("lower").argument
    ('probabilities', 'intervals')
    """

    name: str
    option: str
    column: str
    layout: Layout
    holds: Holds
    means: str
    word: str = ""
    fills: str = ""
    levels: bool = False
    beside: str = ""
    also: tuple[str, ...] = ()

    @property
    def argument(self) -> str:
        """The argument of `calipers.audit`."""
        return self.fills or self.name

    @property
    def said(self) -> str:
        """What a column of it is called in the plan and in messages."""
        return self.word or self.name

    @property
    def names(self) -> tuple[str, ...]:
        """Every name under which a column may be chosen for it."""
        return tuple(dict.fromkeys((self.name, self.option, self.said)))

    @property
    def shape(self) -> str:
        """Shape of the argument."""
        shape = SHAPES[self.layout]
        return f"{shape} or {shape[:-1]}, L)" if self.levels else shape


FIELDS: tuple[Field, ...] = (
    Field("y_true", "y", "y_true", "column", "labels",
          "What happened: a label or, beside intervals, a number.", word="outcome"),
    Field("probabilities", "proba", "p_*", "per class", "numbers",
          "Stated probability of each class; a single column is that of the positive class of two.",
          also=("p", "prob", "proba", "probability", "y_prob", "y_proba", "y_score", "p_hat")),
    Field("sets", "set", "set_*", "per class", "flags",
          "Whether each class is in the prediction set: true and false, or 1 and 0.", levels=True),
    Field("lower", "lower", "lower", "end", "numbers",
          "Lower end of the prediction interval, included.", fills="intervals", levels=True),
    Field("upper", "upper", "upper", "end", "numbers",
          "Upper end of the prediction interval, included.", fills="intervals", levels=True),
    Field("p_values", "p_value", "pvalue_*", "per class", "numbers",
          "Conformal p-value of each class; sets at any alpha follow from them."),
    Field("quantiles", "quantile", "q_*", "per level", "numbers",
          "Stated quantile of the outcome; the star is its level, as in q_0.9."),
    Field("pit", "pit", "pit", "column", "numbers",
          "Stated probability of an outcome up to the one that happened (PIT value)."),
    Field("covered", "covered", "covered", "column", "flags",
          "Whether the promise came true, when that was found elsewhere: true and false, or 1 and 0."),
    Field("promised", "promised", "promised", "column", "numbers",
          "Probability promised for ``covered``; 1 - alpha without it.", beside="covered"),
    Field("size", "size", "size", "column", "numbers",
          "Size of the prediction beside ``covered``: labels, width, area.", beside="covered"),
    Field("loss", "loss", "loss", "column", "numbers",
          "Loss of the row, beside a promised bound of its mean (--bound)."),
    Field("y_pred", "y_pred", "y_pred", "column", "numbers",
          "Point prediction, from which errors are measured; the middle of the interval without it.",
          word="point prediction"),
    Field("X", "features", "", "rest", "anything",
          "Features, to find where coverage fails; text that names its rows is left out.", word="feature"),
    Field("groups", "group", "group", "attributes", "anything",
          "A label whose promise must hold on its own (site, region); several as group_<attribute>.",
          word="group"),
    Field("cluster", "cluster", "cluster", "column", "anything",
          "Rows that depend on each other share it: patient, household, document."),
    Field("ease", "ease", "ease", "column", "numbers",
          "How easy the case is, larger is easier."),
    Field("time", "time", "time", "column", "labels",
          "When it happened: numbers, dates, or text such as 2024-05-31."),
    Field("sample_weight", "weight", "sample_weight", "column", "numbers",
          "Weight of the row, not negative.", word="weight"),
    Field("row_id", "row_id", "row_id", "column", "labels",
          "Name of the row: whole numbers or text; random draws belong to it.", word="row"),
)  # fmt: skip

# What an npz file may state once for all rows, beside the arrays of FIELDS, and what it means.
STATED: dict[str, str] = {
    "alpha": "Allowed miscoverage: one number, or one per level of sets and intervals.",
    "n_calibration": "Rows the predictor was conformalised on.",
    "classes": "Label of every column of probabilities, p_values and sets.",
    "feature_names": "Name of every column of X.",
    "quantile_levels": "Level of every column of quantiles.",
    "bound": "Promised bound of the mean loss.",
    "loss_range": "Smallest and largest loss there can be.",
}
# What a model states, or what came of it: without one of these there is nothing to audit.
STATEMENTS = (
    "probabilities", "p_values", "sets", "intervals", "quantiles", "pit", "covered", "loss", "y_pred",
)  # fmt: skip
ARGUMENTS: tuple[str, ...] = tuple(dict.fromkeys(field.argument for field in FIELDS))


def field_named(name: str) -> Field | None:
    """The field with that name, option or word; None when there is none.

    Examples
    --------
    >>> from calipers.fields import field_named
    >>> field_named("weight").name, field_named("colour")
    ('sample_weight', None)
    """
    return next((field for field in FIELDS if name in field.names), None)


def fields_of(argument: str) -> tuple[Field, ...]:
    """The fields that fill an argument of `calipers.audit`; two for intervals.

    Examples
    --------
    >>> from calipers.fields import fields_of
    >>> [field.name for field in fields_of("intervals")]
    ['lower', 'upper']
    """
    return tuple(field for field in FIELDS if field.argument == argument)
