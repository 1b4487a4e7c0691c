"""``calipers demo``: a real job on embedded data, to see what a result looks like."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from calipers.results import EstimateTable

JSON_NAME = "audit.json"
HTML_NAME = "report.html"


def command(
    out: Annotated[Path, typer.Option("--out", help="Folder for report.html and audit.json.")] = Path(
        "calipers-demo"
    ),
    alpha: Annotated[
        float, typer.Option("--alpha", help="Allowed miscoverage; 0.1 asks for 90 % coverage.")
    ] = 0.1,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random splits.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print audit.json on standard output, not the table.")
    ] = False,
) -> int:
    """Train two small models, measure the coverage they promise, write a report.

    Each model states its uncertainty twice: as it comes, and after split-conformal calibration. The
    data sets are embedded in scikit-learn; nothing is downloaded.
    """
    from rich.console import Console

    from calipers.cli.demo_job import measure
    from calipers.cli.demo_page import render
    from calipers.results import to_json

    folder = writable_folder(out)
    progress = Console(stderr=True)
    with progress.status("Training two models and measuring their coverage ..."):
        table = measure(alpha=alpha, seed=seed)
    document = to_json(table, indent=2)
    (folder / JSON_NAME).write_text(document + "\n", encoding="utf-8")
    (folder / HTML_NAME).write_text(render(table, alpha=alpha), encoding="utf-8")
    place = f"The report is {(folder / HTML_NAME).resolve()}"
    if as_json:
        print(document)
        progress.print(place, soft_wrap=True, highlight=False)
    else:
        show(table, alpha=alpha)
        print(place)
    return 0


def writable_folder(path: Path) -> Path:
    """The folder, made if it does not exist; an error when a file is in the way."""
    from calipers.exceptions import InputError

    if path.exists() and not path.is_dir():
        raise InputError(f"--out must be a folder, got the file {path}. Give another place.")
    path.mkdir(parents=True, exist_ok=True)
    return path


def show(table: EstimateTable, *, alpha: float) -> None:
    """Print the estimates as a table for people."""
    from rich.console import Console
    from rich.table import Table

    from calipers.cli.demo_page import row_of

    grid = Table(title=f"Coverage, {1 - alpha:.4g} promised", title_justify="left", box=None)
    grid.padding = (0, 1, 0, 0)
    grid.add_column("predictor", no_wrap=True)
    for heading in ("coverage", "interval", "healthy", "p", "promise"):
        grid.add_column(heading, justify="right" if heading in {"coverage", "p"} else "left", no_wrap=True)
    for name, estimate in table.items():
        row = row_of(name, estimate)
        colour = "red" if row.accused else "green"
        grid.add_row(name, row.value, row.interval, row.null, row.p, f"[{colour}]{row.verdict}[/]")
    Console().print(grid)
