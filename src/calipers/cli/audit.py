"""``calipers audit FILE``: the six questions about a file of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calipers.cli.options import JsonOption, OutOption, QuietOption, Settings, StorageOption, takes_settings

if TYPE_CHECKING:
    from calipers.auditing import Audit
    from calipers.engines import FileSource

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
HistoryOption = Annotated[
    Path | None, typer.Option("--history", help="Folder that keeps this audit for calipers history.")
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
    history: HistoryOption = None,
    engine: EngineOption = None,
    storage: StorageOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> int:
    """Answer the six questions about predictions in a file or in a dataset of many files.

    Columns are found by name: y_true, p_<class>, pvalue_<class>, set_<class>, lower, upper, group, ease;
    every other column is a feature. Patterns, folders, addresses and files larger than memory are streamed.
    """
    from calipers.cli.options import exit_code, source_from, storage_of

    source = source_from(files, settings, storage_of(storage))
    streamed = engine is not None or (settings.max_rows is None and not source.fits_memory())
    if plan:
        return show_plan(source, streamed=streamed)
    found = run(source, settings, engine=engine, streamed=streamed, quiet=quiet)
    write(found, out=out, html=html, markdown=markdown)
    if as_json:
        print(found.to_json())
    elif not quiet:
        show(found, out=out, html=html)
    if github:
        annotate(found)
    code = exit_code(found.findings, settings.fail_on)
    if history is not None:
        keep(found, history, settings, missed=code != 0)
    return code


def keep(found: Audit, folder: Path, settings: Settings, *, missed: bool) -> None:
    """Put the audit into its history."""
    from calipers.auditing.history import keep_audit

    keep_audit(found, folder, fail_on=settings.fail_on or "issue", missed=missed)


def run(
    source: FileSource, settings: Settings, *, engine: str | None = None, streamed: bool = False, quiet: bool
) -> Audit:
    """The audit of all rows, with a progress bar on standard error."""
    from calipers.auditing import audit
    from calipers.cli.progress import check_progress

    files = [source.paths] if isinstance(source.paths, str) else list(source.paths)
    name, seed = Path(files[0].rstrip("/")).stem.strip("*") or "rows", settings.seed or 0
    with check_progress(quiet=quiet, title=f"Reading {name}") as progress:
        rows = source if streamed else source.load(settings.max_rows, seed)
        return audit(
            source=rows, alpha=source.alpha, engine=engine, n_calibration=source.n_calibration,
            random_state=seed, mute=settings.mute, name=name, origin=", ".join(files), progress=progress,
        )  # fmt: skip


def show_plan(source: FileSource, *, streamed: bool) -> int:
    """What each column was taken for, which questions can be asked, and what to add for the rest."""
    from calipers.auditing.checks import CHECKS
    from calipers.auditing.measurements import Design
    from calipers.auditing.plan import plan_audit

    pieces = source.pieces()
    n, head = sum(piece.rows for piece in pieces), pieces[0].head()
    for column, role in pieces[0].roles.described().items():
        print(f"{column}: {role}")
    print(f"{n} rows in {len(source.files())} file(s)" + (", streamed" if streamed else ""))
    for question in plan_audit(Design(n=n, alphas=head.alphas, head=head), CHECKS):
        print(question)
    return 0


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
