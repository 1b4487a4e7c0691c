"""``python -m studies NAME`` runs the experiment of a paper; ``python3 dev.py study NAME`` sets up first."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from studies import STUDIES, run_study

if TYPE_CHECKING:
    from studies import StudyReport


def parser() -> argparse.ArgumentParser:
    """The options, and what can be run."""
    listed = "\n".join(f"  {name}: {summary}" for name, summary in STUDIES.items())
    options = argparse.ArgumentParser(
        prog="python3 dev.py study",
        description="Run the experiment of a paper: tables, figures, and which of its claims hold.",
        epilog=f"studies:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("name", metavar="NAME", choices=STUDIES, help=f"one of {', '.join(STUDIES)}")
    options.add_argument("--data", type=Path, help="folder of the public data sets (default: CALIPERS_DATA)")
    options.add_argument(
        "--out", type=Path, default=Path("calipers-study"), help="folder for tables, figures and kept work"
    )
    options.add_argument("--quick", action="store_true", help="a small version, in seconds")
    options.add_argument("--jobs", type=int, help="workers of trials and fits; -1 for all cores")
    options.add_argument("--json", action="store_true", help="print the claims as JSON, not as a table")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one study and show its claims; 0 when it ran, 2 for bad input."""
    options = parser().parse_args(arguments)
    import joblib

    from calipers.exceptions import CalipersError

    data = options.data or (Path(os.environ["CALIPERS_DATA"]) if os.environ.get("CALIPERS_DATA") else None)
    try:
        with joblib.parallel_config(n_jobs=options.jobs):
            report = run_study(options.name, data, options.out, quick=options.quick)
    except (CalipersError, FileNotFoundError) as error:
        print(f"study: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        show(report)
    return 0


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


if __name__ == "__main__":
    sys.exit(main())
