"""What a model states, as promises: for every row an outcome z and the probability t promised for it.

To add a promise: describe how it is read off the rows in ``promises_of``; every slice
(`calipers.auditing.checks`) then looks at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from calipers.arrays import frame_columns
from calipers.inputs.derived_columns import PIT_LEVELS
from calipers.inputs.rows import Rows
from calipers.results.formatting import format_percent, format_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One statement about every row.

    Parameters
    ----------
    number : int
        The level of the rows, or the quantile, at which it is read.
    alpha : float
        Allowed share of broken promises: z is promised with probability 1 - alpha, unless per row.
    kind : {"coverage", "stated", "probability", "class", "classes", "quantile"}
        Coverage of what was predicted; of the sets that plain probabilities imply; a stated probability; that
        of one of several classes; those of all of them; a stated quantile.
    name : str
        As the table of promises shows it.
    noun : str
        What keeps the promise, in the plural: "sets", "intervals", "quantiles".
    tag : str
        " at alpha=0.05" when there are several levels, else empty.
    reads : mapping
        Columns of the rows that stand for "covered", "size" and "promised".
    per_row : bool
        Whether every row has its own promised probability, in "promised".
    two_sided : bool
        Whether more than promised is a fault too, as for probabilities and quantiles.
    parts : tuple of Promise
        Promises it consists of: each is looked at, and the worst is told, corrected for their number.
    """

    number: int = 0
    alpha: float = 0.1
    kind: str = "coverage"
    name: str = "coverage"
    noun: str = "sets"
    tag: str = ""
    reads: dict[str, str] = field(default_factory=dict)
    per_row: bool = False
    two_sided: bool = False
    parts: tuple[Promise, ...] = ()

    @property
    def promised(self) -> float:
        """The probability that was promised, where it is one number."""
        return 1.0 - self.alpha

    @property
    def key(self) -> str:
        """Tells its states and draws from those of other promises."""
        return f"{self.kind}{self.number}"

    def in_words(self) -> str:
        """What was promised, in a few words."""
        return self.name if self.per_row else f"{self.name}: {format_percent(self.promised)}"

    def kept_words(self, share: float, rows: float, all_rows: float) -> str:
        """How often it is kept in a part of the rows, against the promise and all rows, as a clause."""
        where = f"{format_share(share)} of {rows:.0f} rows"
        if self.kind == "quantile":
            return (
                f"{format_share(share)} of {rows:.0f} outcomes lie at or below the stated "
                f"{format_percent(self.promised)} quantile; over all rows {format_share(all_rows)}."
            )
        return (
            f"the {self.noun} cover {where}; {format_percent(self.promised)} was promised, and all rows "
            f"together reach {format_share(all_rows)}."
        )

    def rows(self, rows: Rows) -> Rows:
        """The rows as this promise reads them."""
        return rows.at(self.number, self.reads)


# The smallest set of labels of each row whose stated probabilities reach 1 - alpha together.
IMPLIED_SETS = "coverage of sets implied by the probabilities"
PER_ROW = "promised probability"
EACH_CLASS = "probability of each class"
# With more classes than these the slices are looked at for the top label only.
MOST_CLASSES = 20
STATED = {"covered": "stated_covered", "size": "stated_size", "promised": "stated_mass"}
TOP_LABEL = {"covered": "top_is_right", "promised": "top_probability"}
POSITIVE = {"covered": "is_positive", "promised": "positive_probability"}


def promises_of(head: Rows, alphas: Sequence[float], classes: Sequence[Any]) -> tuple[Promise, ...]:
    """Every promise that rows like these make."""
    return tuple(_promises(head, alphas, classes))


def _promises(head: Rows, alphas: Sequence[float], classes: Sequence[Any]) -> Iterator[Promise]:
    tags = [f" at alpha={alpha:g}" if len(alphas) > 1 else "" for alpha in alphas]
    given = head.given
    if "covered" in given:
        yield _covered_elsewhere(given, alphas[0])
    elif head.get("covered") is not None:
        noun = "intervals" if head.task == "regression" else "sets"
        for number, (alpha, tag) in enumerate(zip(alphas, tags, strict=True)):
            yield Promise(number=number, alpha=alpha, name=f"coverage of the {noun}{tag}", noun=noun, tag=tag)
    elif "probabilities" in given:
        for number, (alpha, tag) in enumerate(zip(alphas, tags, strict=True)):
            yield Promise(
                number=number, alpha=alpha, kind="stated", name=f"{IMPLIED_SETS}{tag}",
                noun="sets implied by the probabilities", tag=tag, reads=STATED, per_row=True,
            )  # fmt: skip
    if "probabilities" in given:
        yield _probability(classes)
        if 2 < len(classes) <= MOST_CLASSES:
            yield _each_class(classes)
    yield from _quantiles(given)


def _quantiles(given: Any) -> Iterator[Promise]:
    """Stated quantiles, or those that PIT values tell about."""
    if "quantiles" in given and "y_true" in given:
        names, noun = [str(level) for level in frame_columns(given["quantiles"])], "quantiles"
    elif "pit" in given and "quantiles" not in given:
        names, noun = [f"{level:g}" for level in PIT_LEVELS], "predictive distributions"
    else:
        return
    for number, level in enumerate(names):
        yield Promise(
            number=number, alpha=1.0 - float(level), kind="quantile", name=f"quantile {level}", noun=noun,
            tag=f" at quantile {level}", reads={"covered": "below_quantile"}, two_sided=True,
        )  # fmt: skip


def _covered_elsewhere(given: Any, alpha: float) -> Promise:
    per_row = "promised" in given
    name = PER_ROW if per_row else "coverage"
    return Promise(alpha=alpha, name=name, noun="predictions", per_row=per_row)


def _each_class(classes: Sequence[Any]) -> Promise:
    own = {"covered": "is_class", "promised": "class_probability"}
    stated = Promise(alpha=0.5, kind="classes", noun="probabilities", per_row=True, two_sided=True)
    parts = (
        replace(stated, kind="class", number=k, name=f"probability of class {label}", reads=own,
                tag=f" (class {label})")
        for k, label in enumerate(classes)
    )  # fmt: skip
    return replace(stated, name=EACH_CLASS, parts=tuple(parts))


def _probability(classes: Sequence[Any]) -> Promise:
    """The probability of the positive class of two, or of the top label of several."""
    if len(classes) == 2:
        name, reads = f"probability of class {classes[1]}", POSITIVE
    else:
        name, reads = "probability of the top label", TOP_LABEL
    return Promise(
        alpha=0.5, kind="probability", name=name, noun="probabilities", reads=reads, per_row=True,
        two_sided=True,
    )  # fmt: skip
