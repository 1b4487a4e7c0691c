"""``calipers audit FILE``: the six questions about a file of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calipers.cli.files import ForceOption, Outputs
from calipers.cli.options import (
    FilesArgument,
    JsonOption,
    OutOption,
    QuietOption,
    StorageOption,
    takes_settings,
)

if TYPE_CHECKING:
    from calipers.auditing import Audit
    from calipers.cli.settings import Settings
    from calipers.engines import FileSource, ResumableEngine
    from calipers.exceptions import InputError
    from calipers.results.writing import Content

ROW_FORMATS = ("csv", "parquet")
NAMES = ("report.html", "audit.json", "summary.md")

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
HistoryOption = Annotated[
    Path | None,
    typer.Option(
        "--history",
        help="Folder that keeps this audit for calipers history; the report tells what changed since then.",
    ),
]
RowsOption = Annotated[
    Path | None, typer.Option("--rows", help="Folder for the rows behind every fault, a file per code.")
]
RowsFormatOption = Annotated[str, typer.Option("--rows-format", help="Of these files: csv or parquet.")]
ModelOption = Annotated[
    Path | None,
    typer.Option("--model", help="A saved model (skops) to ask about the rows of the file; never pickle."),
]
TargetOption = Annotated[
    str | None, typer.Option("--target", help="With --model: the column of outcomes. (default: y_true)")
]
TrustOption = Annotated[
    str | None, typer.Option("--trust", help="With --model: types that the file may hold, by full name.")
]
CacheOption = Annotated[
    Path | None,
    typer.Option("--cache", help="Folder of finished work: an interrupted audit of streamed rows resumes."),
]
PlanOption = Annotated[bool, typer.Option("--plan", help="Only list what can be checked and what to add.")]


@takes_settings
def command(
    files: FilesArgument,
    settings: Settings,
    out: OutOption = None,
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
    github: GithubOption = False,
    plan: PlanOption = False,
    history: HistoryOption = None,
    rows: RowsOption = None,
    rows_format: RowsFormatOption = "csv",
    engine: EngineOption = None,
    cache: CacheOption = None,
    model: ModelOption = None,
    target: TargetOption = None,
    trust: TrustOption = None,
    storage: StorageOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> int:
    """Answer the six questions about predictions in a file or in a dataset of many files.

    Columns are found by name: y_true, p_<class>, pvalue_<class>, set_<class>, lower, upper, group, ease;
    every other column is a feature. Patterns, folders, addresses and files larger than memory are streamed.
    """
    from calipers.cli.options import source_from, storage_of

    outputs = planned(out, html, markdown, force=force)
    check_rows(rows, rows_format)
    if history is not None:
        from calipers.auditing.history import check_history

        check_history(history)
    place = engine if cache is None else resumable(cache, engine)
    if model is not None:
        from calipers.cli.audited_model import run_model
        from calipers.exceptions import InputError

        if plan or place is not None or settings.max_rows is not None:
            raise InputError(
                "--model reads one file whole: --plan, --engine, --cache and --max-rows are for predictions."
            )
        found = run_model(model, files, settings, target=target, trust=trust, quiet=quiet)
    else:
        source = source_from(files, settings, storage_of(storage))
        streamed = engine is not None or (settings.max_rows is None and not source.fits_memory())
        if plan:
            return show_plan(source, streamed=streamed)
        found = run(source, settings, engine=place if streamed else None, streamed=streamed, quiet=quiet)
    if history is not None:
        found = found.after(history)
    return finish(
        found, outputs, settings, html=html, markdown=markdown, out=out, as_json=as_json, quiet=quiet,
        github=github, history=history, rows=rows, rows_format=rows_format,
    )  # fmt: skip


def resumable(cache: Path, engine: str | None) -> ResumableEngine:
    """The engine that keeps its work in a folder; the others repeat what is lost themselves."""
    from calipers.engines import ResumableEngine
    from calipers.exceptions import InputError

    if engine not in {None, "local"}:
        raise InputError(
            f"--cache keeps the work of --engine local, got --engine {engine}. Leave one of them out."
        )
    return ResumableEngine(cache)


def finish(
    found: Audit, outputs: Outputs, settings: Settings, *, html: Path | None, markdown: Path | None,
    out: Path | None, as_json: bool, quiet: bool, github: bool, history: Path | None,
    rows: Path | None, rows_format: str,
) -> int:  # fmt: skip
    """Write and show what was found; the exit code."""
    from calipers.cli.options import exit_code
    from calipers.cli.terminal import say_json

    failure = write(found, outputs, html=html, markdown=markdown)
    if rows is not None and failure is None:
        failure = write_rows(found, rows, rows_format)
    if as_json:
        say_json(found.to_json())
    elif not quiet or failure is not None:  # what was found is told even when its files are lost
        show(found, settings, page=None if failure is not None else html or (out and out / "report.html"))
    if github:
        annotate(found)
    code = exit_code(found.findings, settings.fail_on)
    if history is not None:
        keep(found, history, settings, failed=code != 0)
    if failure is not None:
        raise failure
    return code


def keep(found: Audit, folder: Path, settings: Settings, *, failed: bool) -> None:
    """Put the audit and its report into its history."""
    from calipers.auditing.history import keep_audit

    keep_audit(found, folder, fail_on=settings.fail_on or "issue", failed=failed, report=True)


def run(
    source: FileSource,
    settings: Settings,
    *,
    engine: str | ResumableEngine | None = None,
    streamed: bool = False,
    quiet: bool,
) -> Audit:
    """The audit of all rows, with a progress bar on standard error."""
    from calipers.auditing import audit
    from calipers.cli.progress import check_progress
    from calipers.cli.terminal import warnings_in_one_line

    files = [source.paths] if isinstance(source.paths, str) else list(source.paths)
    name, seed = Path(files[0].rstrip("/")).stem.strip("*") or "rows", settings.seed or 0
    with warnings_in_one_line(), check_progress(quiet=quiet, title=f"Reading {name}") as progress:
        rows = source if streamed else source.load(settings.max_rows, seed)
        return audit(
            source=rows, alpha=source.alpha, engine=engine, n_calibration=source.n_calibration,
            random_state=seed, mute=settings.mute, min_rows=settings.min_rows, name=name,
            label_conditional=bool(settings.label_conditional),
            origin=", ".join(files), progress=progress, **settings.losses(),
        )  # fmt: skip


def show_plan(source: FileSource, *, streamed: bool) -> int:
    """What each column was taken for, which questions can be asked, and what to add for the rest."""
    from calipers.auditing.checks import CHECKS
    from calipers.auditing.measurements import Design
    from calipers.auditing.plan import plan_audit
    from calipers.cli.terminal import say

    pieces = source.pieces()
    n, head = sum(piece.rows for piece in pieces), pieces[0].head()
    for column, role in pieces[0].roles.described().items():
        say(f"{column}: {role}")
    say(f"{n} rows in {len(source.files())} file(s)" + (", streamed" if streamed else ""))
    for question in plan_audit(Design(n=n, alphas=head.alphas, head=head), CHECKS):
        say(question)
    return 0


def planned(out: Path | None, html: Path | None, markdown: Path | None, *, force: bool) -> Outputs:
    """The files that were asked for, found to be writable."""
    from calipers.cli.files import require_parents

    others = tuple(place for place in (html, markdown) if place is not None)
    require_parents(others)
    return Outputs(out, NAMES, others, force).check()


def write(found: Audit, outputs: Outputs, *, html: Path | None, markdown: Path | None) -> InputError | None:
    """The files that were asked for, together; what went wrong, or None."""
    from calipers.report import render_html

    contents: dict[Path, Content] = {}
    if outputs.folder is not None:
        page, document, summary = (outputs.folder / name for name in NAMES)
        contents[page] = render_html(found.to_dict(), place=page)
        contents |= {document: found.to_json(), summary: found.to_markdown()}
    if html is not None:
        contents[html] = render_html(found.to_dict(), place=html)
    if markdown is not None:
        contents[markdown] = found.to_markdown()
    return outputs.write(contents) if contents else None


def check_rows(folder: Path | None, ending: str) -> None:
    """Refuse, before the work, what the rows could not be written to."""
    from calipers.exceptions import InputError

    if ending not in ROW_FORMATS:
        raise InputError(f"--rows-format must be {' or '.join(ROW_FORMATS)}, got {ending!r}.")
    if folder is not None and folder.is_file():
        raise InputError(f"--rows must be a folder, got the file {folder}. Give another place.")
    if folder is not None:
        Outputs(folder, (f"CAL101_rows.{ending}",), force=True).check()


def write_rows(found: Audit, folder: Path, ending: str) -> InputError | None:
    """The rows behind every fault, together; what went wrong, or None."""
    from calipers.auditing.row_tables import rows_table, spreadsheet_safe
    from calipers.inputs.files.formats import table_writer

    contents: dict[Path, Content] = {}
    for code in dict.fromkeys(fault.code for fault in found.faults):
        table, place = rows_table(found, code), folder / f"{code}_rows.{ending}"
        contents[place] = table_writer(spreadsheet_safe(table) if ending == "csv" else table, str(place))
    return Outputs(folder, force=True).write(contents) if contents else None


def show(found: Audit, settings: Settings, *, page: Path | None) -> None:
    """The answers and the faults, for people."""
    from calipers.cli.options import words_of
    from calipers.cli.terminal import print_audit, say

    print_audit(found, words_of(settings))
    if page is not None:
        say(f"The report is {page.resolve()}")


def annotate(found: Audit) -> None:
    """One annotation per fault, and the summary where GitHub collects it."""
    import os

    for finding in found.faults:
        kind = {"issue": "error", "warning": "warning"}.get(finding.severity, "notice")
        title = as_property(f"{finding.code} {finding.title}")
        print(f"::{kind} title={title}::{as_data(finding.sentence)}")
    if place := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(place).open("a", encoding="utf-8") as summary:
            summary.write(found.to_markdown())


def as_data(text: str) -> str:
    """Text inside a workflow command: on one line, and no command of its own."""
    from calipers.results.printable import one_line

    return one_line(text).replace("%", "%25")


def as_property(text: str) -> str:
    """The same for a property, which a colon or a comma would end."""
    return as_data(text).replace(":", "%3A").replace(",", "%2C")
