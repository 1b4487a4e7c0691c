"""Results as tables that fit the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from calipers.report.words import MARKS

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
