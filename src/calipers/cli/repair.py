"""``calipers repair FILE``: choose and fit a repair on a part of the rows, compare on the rest, keep it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calipers.cli.options import FileArgument, JsonOption, QuietOption, takes_settings

if TYPE_CHECKING:
    from calipers.auditing.repair import Repair, SavedRepair
    from calipers.cli.settings import Settings

HeldOutOption = Annotated[float, typer.Option("--held-out", help="Share of the rows that stays untouched.")]
ApplyOption = Annotated[
    Path | None,
    typer.Option("--apply", help="Also write this file repaired, with the columns of FILE; needs --out."),
]
LoadOption = Annotated[
    Path | None,
    typer.Option(
        "--load", help="Apply the repair of this folder (or repair.json) to FILE; nothing is fitted."
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Folder for repair.json, the reports and repaired rows. (with --load: its own)"
    ),
]


@takes_settings
def command(
    file: FileArgument,
    settings: Settings,
    held_out: HeldOutOption = 0.5,
    apply: ApplyOption = None,
    load: LoadOption = None,
    out: OutOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> int:
    """Repair what an audit finds: choose and fit on a part of the rows, compare before and after on the rest.

    Candidates that recalibrate probabilities and that conformalise again are compared; the winner is written
    to repair.json, which --load applies to new rows. FILE is not changed. Faults that are left decide the
    exit code.
    """
    from calipers.exceptions import InputError

    if load is not None:
        if apply is not None:
            raise InputError(
                "--load applies a repair to FILE; --apply goes with a repair that is made of FILE."
            )
        return apply_saved(load, file, settings, out=out, quiet=quiet)
    if apply is not None and out is None:
        raise InputError("--apply needs --out, the folder for the repaired rows.")
    return repair(file, settings, held_out=held_out, apply=apply, out=out, quiet=quiet, as_json=as_json)


def repair(
    file: Path,
    settings: Settings,
    *,
    held_out: float,
    apply: Path | None,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Audit, repair, write, print; the exit code by what is left."""
    from calipers.cli.audit import run
    from calipers.cli.options import exit_code, source_from

    found = run(source_from([file], settings), settings, quiet=quiet).repair(held_out=held_out)
    places = write(found, out)
    if apply is not None and out is not None:
        places.append(write_rows(found, apply, settings, out, quiet=quiet))
    if as_json:
        print(found.to_json())
    elif not quiet:
        print(found)
        for place in places:
            print(place.resolve())
    return exit_code(found.left, settings.fail_on)


def apply_saved(load: Path, file: Path, settings: Settings, *, out: Path | None, quiet: bool) -> int:
    """The rows of a file through a repair that was saved."""
    from calipers.auditing.repair import load_repair
    from calipers.cli.files import writable_folder

    saved = load_repair(load)
    folder = writable_folder(out or (load if load.is_dir() else load.parent))
    place = write_rows(saved, file, settings, folder, quiet=quiet)
    if not quiet:
        print(f"{'; '.join(saved.steps) or 'The repair changes nothing'}.\nGuarantee: {saved.guarantee}.")
        print(place.resolve())
    return 0


def write_rows(saved: SavedRepair, file: Path, settings: Settings, out: Path, *, quiet: bool) -> Path:
    """A file with its columns repaired, part by part."""
    from calipers.auditing.repair.files import repair_file
    from calipers.cli.progress import check_progress

    with check_progress(quiet=quiet, title=f"Repairing {file.name}") as progress:
        return repair_file(
            saved.rule, file, out, choice=settings.columns(), separator=settings.separator(),
            progress=None if progress is None else lambda done, total: progress("rows", done, total),
        )  # fmt: skip


def write(found: Repair, out: Path | None) -> list[Path]:
    """The repair, its report, its JSON and its summary, when a folder was named."""
    from calipers.cli.files import writable_folder

    if out is None:
        return []
    folder = writable_folder(out)
    found.to_json(folder / "audit.json")
    found.to_markdown(folder / "summary.md")
    found.to_html(folder / "report.html")
    return [found.save(folder / "repair.json"), folder / "report.html"]
