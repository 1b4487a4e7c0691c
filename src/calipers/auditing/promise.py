"""One statement of a model about every row: an outcome z and the probability t promised for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from calipers.inputs.rows import Column, Rows
from calipers.results.formatting import format_count, format_percent, format_rows, format_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One statement about every row.

    Parameters
    ----------
    number : int
        The level of the rows, or the quantile, at which it is read.
    alpha : float
        Allowed share of broken promises: z is promised with probability 1 - alpha, unless per row.
    kind : {"coverage", "stated", "probability", "classes", "quantile"}
        Coverage of what was predicted; of the sets that plain probabilities imply; a stated probability;
        those of several classes; a stated quantile.
    name : str
        As the table of promises shows it.
    noun : str
        What keeps the promise, in the plural: "sets", "intervals", "quantiles".
    tag : str
        " at alpha=0.05" when there are several levels, else empty.
    reads : mapping
        Columns of the rows, or functions of them, that stand for "covered", "size" and "promised".
    per_row : bool
        Whether every row has its own promised probability, in "promised".
    two_sided : bool
        Whether more than promised is a fault too, as for probabilities and quantiles.
    own_key : str
        A word of its own, for a second promise of one kind and number.
    parts : tuple of Promise
        Promises it consists of: each is looked at, and the worst is told, corrected for their number.
    n_draws : int
        Data sets that simulated laws begin with; a part, of which only the worst is told, needs few.
    """

    number: int = 0
    alpha: float = 0.1
    kind: str = "coverage"
    name: str = "coverage"
    noun: str = "sets"
    tag: str = ""
    reads: dict[str, Column] = field(default_factory=dict)
    per_row: bool = False
    two_sided: bool = False
    own_key: str = ""
    parts: tuple[Promise, ...] = ()
    n_draws: int = 999

    @property
    def promised(self) -> float:
        """The probability that was promised, where it is one number."""
        return 1.0 - self.alpha

    @property
    def key(self) -> str:
        """Tells its states and draws from those of other promises."""
        return self.own_key or f"{self.kind}{self.number}"

    @property
    def is_of_class(self) -> bool:
        """Whether it is the probability of one of several classes, of which the worst is told."""
        return self.own_key.startswith("class")

    def in_words(self) -> str:
        """What was promised, in a few words."""
        return self.name if self.per_row else f"{self.name}: {format_percent(self.promised)}"

    def kept_words(self, share: float, rows: float, all_rows: float) -> str:
        """How often it is kept in a part of the rows, against the promise and all rows, as a clause."""
        where = f"{format_share(share)} of {format_rows(rows)}"
        if self.kind == "quantile":
            return (
                f"{format_share(share)} of {format_count(rows)} outcomes lie at or below the stated "
                f"{format_percent(self.promised)} quantile; over all rows {format_share(all_rows)}."
            )
        return (
            f"the {self.noun} cover {where}; {format_percent(self.promised)} was promised, and all rows "
            f"together reach {format_share(all_rows)}."
        )

    def rows(self, rows: Rows) -> Rows:
        """The rows as this promise reads them."""
        return rows.at(self.number, self.reads)
