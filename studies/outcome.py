"""What a study reports: the paper's claims beside our readings, and the files it wrote."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from calipers.arrays import import_optional, short_repr
from calipers.results import write_atomically


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One statement of a paper and what our run says to it.

    Parameters
    ----------
    claim : str
        The statement, in words that can be checked.
    paper : str
        What the paper prints: a number, an order, a figure.
    ours : str
        What this run reads.
    agrees : bool or None
        Computed from the numbers; None where the run is too small to say (a quick one).

    Examples
    --------
    >>> from studies import Claim
    >>> Claim(claim="error of 1-NN", paper="5.6 %", ours="5.63 %", agrees=True).verdict
    'yes'
    """

    claim: str
    paper: str
    ours: str
    agrees: bool | None

    @property
    def verdict(self) -> str:
        """The answer in one word: yes, no or undecided."""
        return {True: "yes", False: "no", None: "undecided"}[self.agrees]

    def to_dict(self) -> dict[str, Any]:
        """The four fields by name."""
        return {"claim": self.claim, "paper": self.paper, "ours": self.ours, "agrees": self.agrees}


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyReport:
    """A finished study.

    Parameters
    ----------
    name, title : str
        Name on the command line; what was studied.
    claims : tuple of Claim
        The paper's statements, checked.
    files : tuple of Path
        Everything written, in the order of reading.

    Examples
    --------
    >>> from studies import Claim, StudyReport
    >>> StudyReport(name="toy", title="A toy", claims=(), files=()).agreement
    '0 of 0 claims agree'
    >>> quick = Claim(claim="error of 1-NN", paper="5.6 %", ours="7 %", agrees=None)
    >>> StudyReport(name="toy", title="A toy", claims=(quick,), files=()).agreement
    'all 1 claims undecided'
    """

    name: str
    title: str
    claims: tuple[Claim, ...]
    files: tuple[Path, ...]

    __repr__ = short_repr

    @property
    def agreement(self) -> str:
        """How many of the decided claims agree, and how many are undecided, in words."""
        undecided = sum(c.agrees is None for c in self.claims)
        if undecided and undecided == len(self.claims):
            return f"all {undecided} claims undecided"
        agree = f"{sum(c.agrees is True for c in self.claims)} of {len(self.claims) - undecided} claims agree"
        return f"{agree}, {undecided} undecided" if undecided else agree

    def with_file(self, path: Path) -> StudyReport:
        """The report with one more file, listed once."""
        return replace(self, files=(*(f for f in self.files if f != path), path))

    def to_dict(self) -> dict[str, Any]:
        """Name, title, claims and file names as plain data."""
        return {
            "name": self.name,
            "title": self.title,
            "claims": [claim.to_dict() for claim in self.claims],
            "files": [str(path) for path in self.files],
        }


def write_claims(claims: Iterable[Claim], path: Path) -> Path:
    """The claims as a table: claim, paper, ours, and whether they agree."""
    rows = [(c.claim, c.paper, c.ours, c.verdict) for c in claims]
    return write_table(path, ("claim", "paper", "ours", "agrees?"), rows)


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Rows as a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return write_atomically(path, text.getvalue())


def write_figure(figure: Any, path: Path, *, dpi: int) -> Path:
    """A matplotlib figure as the kind of picture that the path names; the figure is closed."""
    pyplot = import_optional("matplotlib.pyplot", purpose="figures", install="calipers[plots]")
    kind = path.suffix.removeprefix(".")
    write_atomically(path, lambda file: figure.savefig(file, format=kind, dpi=dpi))
    pyplot.close(figure)
    return path
