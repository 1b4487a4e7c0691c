"""``calipers repair FILE``: repair on a part of the rows, compare on the rest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calipers.cli.options import FileArgument, JsonOption, OutOption, QuietOption, Settings, takes_settings

if TYPE_CHECKING:
    from calipers.auditing.repairing import Repair

HeldOutOption = Annotated[float, typer.Option("--held-out", help="Share of the rows that stays untouched.")]


@takes_settings
def command(
    file: FileArgument,
    settings: Settings,
    held_out: HeldOutOption = 0.5,
    out: OutOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> int:
    """Repair what an audit finds, on a part of the rows; compare before and after on the rest.

    Recalibrates probabilities, and conformalises again with a threshold per group, region or part along
    difficulty. The file is not changed; a fault that remains after the repair decides the exit code.
    """
    from calipers.cli.audit import run
    from calipers.cli.options import exit_code, source_from

    repaired = run(source_from([file], settings), settings, quiet=quiet).repair(held_out=held_out)
    page = write(repaired, out)
    if as_json:
        print(repaired.to_json())
    elif not quiet:
        print(repaired)
        if page is not None:
            print(f"The report is {page.resolve()}")
    return exit_code(repaired.after.findings, settings.fail_on)


def write(repaired: Repair, out: Path | None) -> Path | None:
    """The report of the repair, its JSON and its summary, when a folder was named."""
    from calipers.cli.files import writable_folder

    if out is None:
        return None
    folder = writable_folder(out)
    repaired.to_json(folder / "audit.json")
    repaired.to_markdown(folder / "summary.md")
    repaired.to_html(folder / "report.html")
    return folder / "report.html"
