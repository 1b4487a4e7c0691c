"""``calipers study``: run a paper's experiment and compare its claims with what comes out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calipers.studies import STUDIES

if TYPE_CHECKING:
    from calipers.studies import StudyReport

# A blank line between items keeps them apart on the help page.
_LIST = "\n\n".join(f"{name}: {summary}" for name, summary in STUDIES.items())


def command(
    name: Annotated[str, typer.Argument(help=f"Which study: {', '.join(STUDIES)}.", metavar="NAME")],
    data: Annotated[
        Path | None,
        typer.Option("--data", envvar="CALIPERS_DATA", help="Folder of the public data sets."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder for tables, figures and work kept for the next run.")
    ] = Path("calipers-study"),
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version, in seconds, to see that it works.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", help="Workers of trials and fits; -1 for all cores.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the claims as JSON on standard output, not as a table.")
    ] = False,
) -> int:
    """Run the experiment of a paper: tables, figures, and which of its claims hold."""
    import joblib

    from calipers.studies import run_study

    with joblib.parallel_config(n_jobs=jobs):
        report = run_study(name, data, out, quick=quick)
    if as_json:
        import json

        print(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        show(report)
    return 0


command.__doc__ = f"{command.__doc__}\n\n{_LIST}"


def show(report: StudyReport) -> None:
    """Print the claims as a table for people, then the files."""
    from rich.console import Console
    from rich.table import Table

    colours = {"yes": "green", "no": "red", "undecided": "yellow"}
    grid = Table(title=f"{report.title}: {report.agreement}", title_justify="left")
    for heading in ("claim", "paper", "ours", "agrees?"):
        grid.add_column(heading)
    for claim in report.claims:
        grid.add_row(claim.claim, claim.paper, claim.ours, f"[{colours[claim.verdict]}]{claim.verdict}[/]")
    Console().print(grid)
    for path in report.files:
        print(path)
