"""Results as tables that fit the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape as escape_markup
from rich.padding import Padding
from rich.table import Table

from calipers.report.words import MARKS
from calipers.results.printable import one_line, printable, printable_json

if TYPE_CHECKING:
    from calipers.auditing import Audit

COLOURS = {
    "no": "red",
    "doubtful": "yellow",
    "cannot tell": "blue",
    "mostly": "green",
    "yes": "green",
    "not asked": "bright_black",
}
SEVERITY_COLOURS = {"issue": "red", "warning": "yellow", "note": "cyan"}


def escape(text: str) -> str:
    """Text from a file for a console of rich: no markup, no escape sequences."""
    return escape_markup(one_line(text))


def say(text: object = "") -> None:
    """Print on standard output; control characters are written out."""
    print(printable(str(text)))


def say_json(text: str) -> None:
    """Print JSON on standard output; control characters are escaped as JSON has it."""
    print(printable_json(text))


def print_audit(found: Audit) -> None:
    """The verdict, the six answers, the faults with their evidence."""
    console, document = Console(), found.to_dict()
    console.print(f"[bold]{escape(document['verdict']['sentence'])}[/]", highlight=False)
    grid = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=2)
    grid.add_column(ratio=3)
    for answer in document["questions"]:
        colour = COLOURS[answer["answer"]]
        state = f"[{colour}]{MARKS[answer['answer']]} {answer['label']}[/]"
        grid.add_row(state, escape(answer["title"]), escape(answer["sentence"]))
    console.print(grid)
    for finding in found.faults:
        colour = SEVERITY_COLOURS[finding.severity]
        console.print(
            f"\n[{colour}]{finding.code} {finding.severity}[/] {escape(finding.title)}", highlight=False
        )
        console.print(Padding(escape(finding.sentence), (0, 0, 0, 2)), highlight=False)
        if finding.evidence is not None:
            evidence = f"[dim]{escape(str(finding.evidence))}[/]"
            console.print(Padding(evidence, (0, 0, 0, 2)), highlight=False)
