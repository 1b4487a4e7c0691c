"""``calipers repair FILE``: choose and fit a repair on a part of the rows, compare on the rest, keep it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calipers.cli.options import FileArgument, JsonOption, QuietOption, takes_settings
from calipers.cli.output_files import ForceOption, Outputs

if TYPE_CHECKING:
    from calipers.auditing import Audit
    from calipers.auditing.repair import Repair, SavedRepair
    from calipers.cli.settings import Settings
    from calipers.exceptions import InputError
    from calipers.results.writing import AnyContent

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
RepairFolderOption = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Folder for repair.json, the reports and repaired rows. (with --load: its own)"
    ),
]


NAMES = ("report.html", "audit.json", "summary.md", "repair.json")


@takes_settings
def command(
    file: FileArgument,
    settings: Settings,
    held_out: HeldOutOption = 0.5,
    apply: ApplyOption = None,
    load: LoadOption = None,
    out: RepairFolderOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> int:
    """Repair what an audit finds: choose and fit on a part of the rows, compare before and after on the rest.

    Candidates that recalibrate probabilities and that conformalise again are compared; the winner is written
    to repair.json, which --load applies to new rows. Where the features of the rows of --apply differ from
    those of FILE, thresholds are weighted for them. FILE is not changed. Faults that are left decide the exit
    code.
    """
    from calipers.exceptions import InputError

    if load is not None:
        if apply is not None:
            raise InputError(
                "--load applies a repair to FILE; --apply goes with a repair that is made of FILE."
            )
        return apply_saved(load, file, settings, out=out, force=force, quiet=quiet)
    if apply is not None and out is None:
        raise InputError("--apply needs --out, the folder for the repaired rows.")
    outputs = planned(out, NAMES if out is not None else (), apply, settings, force=force)
    return repair(
        file, settings, outputs, held_out=held_out, apply=apply, quiet=quiet, as_json=as_json
    )  # fmt: skip


def planned(
    out: Path | None, names: tuple[str, ...], rows: Path | None, settings: Settings, *, force: bool
) -> Outputs:
    """The files that will be written, found to be writable; the file to be repaired is there."""
    from calipers.auditing.repair.repaired_files import repaired_place

    if rows is None or out is None:
        return Outputs(out, names, force=force).check()
    place, in_parts = repaired_place(rows, out, settings.separator())
    # Rows that an earlier run repaired do not say that Calipers wrote them; a folder of ours does.
    ours = force or (out / "repair.json").is_file()
    Outputs(
        None, others=() if in_parts else (place,), folders=(place,) if in_parts else (), force=ours
    ).check()
    return Outputs(out, names, force=force).check()


def repair(
    file: Path,
    settings: Settings,
    outputs: Outputs,
    *,
    held_out: float,
    apply: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Audit, repair, write, print; the exit code by what is left."""
    from calipers.cli.audit import run
    from calipers.cli.options import exit_code, source_from
    from calipers.cli.terminal import say, say_json

    audited = run(source_from([file], settings), settings, quiet=quiet)
    found = audited.repair(held_out=held_out, X_new=_new_features(audited, apply, settings))
    shown: list[Path] = []
    failure = None
    if (out := outputs.folder) is not None:
        rows, failure = write(outputs, reports(found, out), found, apply, settings, quiet=quiet)
        shown = [out / "repair.json", out / "report.html", *rows]
    if as_json:
        say_json(found.to_json())
    elif not quiet or failure is not None:  # what was found is told even when its files are lost
        say(found)
        for place in [] if failure is not None else shown:
            say(place.resolve())
    if failure is not None:
        raise failure
    return exit_code(found.left, settings.fail_on)


def _new_features(audited: Audit, apply: Path | None, settings: Settings) -> Any:
    """The audited features of the rows that the repair is for; None where there are none, or too few."""
    from calipers.auditing.repair.density_ratio import FEWEST_NEW_ROWS
    from calipers.auditing.repair.repaired_files import features_of_file
    from calipers.inputs import check_features

    if apply is None or audited.data.given.get("X") is None:
        return None
    names = check_features(audited.data.given["X"]).names
    new = features_of_file(apply, names, settings.separator())
    return new if new is not None and new.height >= FEWEST_NEW_ROWS else None


def apply_saved(
    load: Path, file: Path, settings: Settings, *, out: Path | None, force: bool, quiet: bool
) -> int:
    """The rows of a file through a repair that was saved."""
    from calipers.auditing.repair import load_repair
    from calipers.cli.terminal import say

    saved = load_repair(load)
    folder = out or (load if load.is_dir() else load.parent)
    outputs = planned(folder, (), file, settings, force=force)
    rows, failure = write(outputs, {}, saved, file, settings, quiet=quiet)
    if failure is not None:
        raise failure
    if not quiet:
        say(f"{'; '.join(saved.steps) or 'The repair changes nothing'}.\nGuarantee: {saved.guarantee}.")
        for place in rows:
            say(place.resolve())
    return 0


def reports(found: Repair, out: Path) -> dict[Path, AnyContent]:
    """The report of the repaired rows, its JSON, its summary, and the repair itself."""
    from calipers.auditing.repair.repair_result import saved_text

    texts = (found.to_html(), found.to_json(), found.to_markdown(), saved_text(found))
    return {out / name: text for name, text in zip(NAMES, texts, strict=True)}


def write(
    outputs: Outputs, contents: dict[Path, AnyContent], saved: SavedRepair, file: Path | None,
    settings: Settings, *, quiet: bool,
) -> tuple[list[Path], InputError | None]:  # fmt: skip
    """Write all files together, rows part by part; where the rows are, and what went wrong."""
    from calipers.auditing.repair.repaired_files import repaired_place, repaired_rows
    from calipers.cli.progress import check_progress

    if file is None or outputs.folder is None:
        return [], outputs.write(contents)
    with check_progress(quiet=quiet, title=f"Repairing {file.name}") as progress:
        rows = repaired_rows(
            saved.rule, file, choice=settings.columns(), separator=settings.separator(),
            progress=None if progress is None else lambda done, total: progress("rows", done, total),
        )  # fmt: skip
        place, _ = repaired_place(file, outputs.folder, settings.separator())
        return [place], outputs.write({**contents, place: rows})
