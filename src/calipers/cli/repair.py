"""``calipers repair FILE``: repair on a part of the rows, compare on the rest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calipers.cli.options import (
    AlphaOption,
    CalibrationOption,
    ConfigOption,
    EaseOption,
    FailOnOption,
    FeaturesOption,
    FileArgument,
    GroupOption,
    JsonOption,
    LowerOption,
    MaxRowsOption,
    OutOption,
    ProbaOption,
    PValueOption,
    QuietOption,
    SeedOption,
    SetOption,
    UpperOption,
    YOption,
)

if TYPE_CHECKING:
    from calipers.auditing.repairing import Repair


def command(
    file: FileArgument,
    y: YOption = None,
    proba: ProbaOption = None,
    set_: SetOption = None,
    lower: LowerOption = None,
    upper: UpperOption = None,
    p_value: PValueOption = None,
    features: FeaturesOption = None,
    group: GroupOption = None,
    ease: EaseOption = None,
    alpha: AlphaOption = None,
    n_calibration: CalibrationOption = None,
    held_out: Annotated[
        float, typer.Option("--held-out", help="Share of the rows that stays untouched.")
    ] = 0.5,
    out: OutOption = None,
    max_rows: MaxRowsOption = None,
    fail_on: FailOnOption = None,
    seed: SeedOption = None,
    config: ConfigOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> int:
    """Repair what an audit finds, on a part of the rows; compare before and after on the rest.

    Recalibrates probabilities, and conformalises again with a threshold per group, region or part along
    difficulty. The file is not changed; a fault that remains after the repair decides the exit code.
    """
    from calipers.cli.audit import run
    from calipers.cli.options import exit_code, settings_from

    chosen: dict[str, Any] = {
        "y": y, "proba": proba, "set": set_, "lower": lower, "upper": upper, "p_value": p_value,
        "features": features, "group": group, "ease": ease, "alpha": alpha, "n_calibration": n_calibration,
        "max_rows": max_rows, "seed": seed, "fail_on": fail_on,
    }  # fmt: skip
    settings = settings_from(config).over(chosen)
    exit_code((), settings.fail_on)
    repaired = run(file, settings, quiet=quiet).repair(held_out=held_out)
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
