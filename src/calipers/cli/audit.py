"""``calipers audit FILE``: the six questions about a file of predictions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calipers.cli.options import JsonOption, OutOption, QuietOption, Settings, StorageOption, takes_settings

if TYPE_CHECKING:
    from calipers.auditing import Audit
    from calipers.inputs.rows import Rows

FilesArgument = Annotated[
    list[str],
    typer.Argument(
        help="A file (csv, parquet, arrow, json-lines, npz), or 'logs/*.parquet', a folder, s3://..."
    ),
]
EngineOption = Annotated[
    str | None, typer.Option("--engine", help="Stream all rows with: local, dask or spark.")
]
HtmlOption = Annotated[Path | None, typer.Option("--html", help="Write the report to this file.")]
MarkdownOption = Annotated[
    Path | None, typer.Option("--markdown", help="Write a summary for a pull request.")
]
GithubOption = Annotated[
    bool, typer.Option("--github", help="Print GitHub annotations; fill the step summary.")
]
PlanOption = Annotated[bool, typer.Option("--plan", help="Only say what can be checked and what to add.")]


@takes_settings
def command(
    files: FilesArgument,
    settings: Settings,
    out: OutOption = None,
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
    github: GithubOption = False,
    plan: PlanOption = False,
    engine: EngineOption = None,
    storage: StorageOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> int:
    """Answer the six questions about predictions in a file or in a dataset of many files.

    Columns are found by name: y_true, p_<class>, pvalue_<class>, set_<class>, lower, upper, group, ease;
    every other column is a feature. Patterns, folders, addresses and files larger than memory are streamed.
    """
    from calipers.cli.lake import is_lake, run_lake, source_of
    from calipers.cli.options import exit_code, storage_of

    if engine is not None or is_lake(files, settings):
        source = source_of(files, settings, storage_of(storage))
        found = run_lake(source, settings, engine=engine or "local", plan=plan, quiet=quiet)
    elif plan:
        return show_plan(Path(files[0]), settings)
    else:
        found = run(Path(files[0]), settings, quiet=quiet)
    if found is None:
        return 0
    write(found, out=out, html=html, markdown=markdown)
    if as_json:
        print(found.to_json())
    elif not quiet:
        show(found, out=out, html=html)
    if github:
        annotate(found)
    return exit_code(found.findings, settings.fail_on)


def run(file: Path, settings: Settings, *, quiet: bool) -> Audit:
    """The audit, with a progress bar on standard error."""
    from calipers.auditing import audit
    from calipers.cli.options import read_file
    from calipers.cli.progress import check_progress

    with check_progress(quiet=quiet, title=f"Reading {file.name}") as progress:
        _, arguments = read_file(file, settings)
        return audit(**arguments, mute=settings.mute, name=file.stem, progress=progress)


def show_plan(file: Path, settings: Settings) -> int:
    """What can be checked, and what to add for the rest."""
    from calipers.auditing.arguments import rows_of_arguments
    from calipers.cli.options import read_file

    predictions, arguments = read_file(file, settings)
    about = ("random_state", "origin", "n_calibration")
    rows = rows_of_arguments(**{key: value for key, value in arguments.items() if key not in about})
    print_plan(predictions.roles, rows, rows.n)
    return 0


def print_plan(roles: Mapping[str, str], head: Rows, n: int) -> None:
    """What each column was taken for, and which questions can be asked."""
    from calipers.auditing.checks import CHECKS
    from calipers.auditing.measurements import Design
    from calipers.auditing.plan import plan_audit

    for column, role in roles.items():
        print(f"{column}: {role}")
    for question in plan_audit(Design(n=n, alphas=head.alphas, head=head), CHECKS):
        print(question)


def write(found: Audit, *, out: Path | None, html: Path | None, markdown: Path | None) -> None:
    """The files that were asked for, each in one step."""
    from calipers.cli.files import writable_folder

    if out is not None:
        folder = writable_folder(out)
        found.to_html(folder / "report.html")
        found.to_json(folder / "audit.json")
        found.to_markdown(folder / "summary.md")
    if html is not None:
        found.to_html(html)
    if markdown is not None:
        found.to_markdown(markdown)


def show(found: Audit, *, out: Path | None, html: Path | None) -> None:
    """The answers and the faults, for people."""
    from calipers.cli.terminal import print_audit

    print_audit(found)
    page = html or (None if out is None else out / "report.html")
    if page is not None:
        print(f"The report is {page.resolve()}")


def annotate(found: Audit) -> None:
    """One annotation per fault, and the summary where GitHub collects it."""
    import os

    for finding in found.faults:
        kind = {"issue": "error", "warning": "warning"}.get(finding.severity, "notice")
        sentence = finding.sentence.replace("%", "%25").replace("\n", " ")
        print(f"::{kind} title={finding.code} {finding.title}::{sentence}")
    if place := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(place).open("a", encoding="utf-8") as summary:
            summary.write(found.to_markdown())
