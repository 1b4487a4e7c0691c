"""``calipers history DIR``: successive audits as one page."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated

import typer

from calipers.cli.options import JsonOption, QuietOption

if TYPE_CHECKING:
    from calipers.auditing.history import AuditHistory

NEW = "new"


def command(
    folder: Annotated[Path, typer.Argument(help="Folder that calipers audit --history DIR has filled.")],
    html: Annotated[
        Path | None, typer.Option("--html", help="Where the page goes. (default: history.html in the folder)")
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            help="Exit with 1 when the last audit has: issue, warning, note, a code; new: a promise broken "
            "that was not before; never.",
        ),
    ] = "issue",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> int:
    """Show every promise over time: kept or broken, first broken when, and what the last audit changed.

    Exit code 0: the last audit kept the threshold. 1: it missed it. 2: the folder holds no audits. Files that
    are not audits are named and passed over.
    """
    import sys

    from calipers.auditing.history import read_history
    from calipers.cli.options import exit_code
    from calipers.cli.terminal import say, say_json
    from calipers.results.terminal_safe import one_line

    if fail_on != NEW:
        exit_code((), fail_on)  # a bad threshold is refused before the work
    found = read_history(folder)
    for file, why in found.passed_over.items():
        print(f"calipers: {one_line(file)} is passed over: {why}", file=sys.stderr)
    page = html or folder / "history.html"
    if as_json:
        say_json(found.to_json())
    if html is not None or not as_json:
        found.to_html(page)
    if not (as_json or quiet):
        say(sentences(found))
        say(f"The page is {page.resolve()}")
    if fail_on == NEW:
        return int(bool(found.newly_broken()))
    return exit_code([SimpleNamespace(**finding) for finding in found.runs[-1].faults], fail_on)


def sentences(history: AuditHistory) -> str:
    """What is broken now and since when, and what the last audit changed."""
    document = history.to_dict()
    when = [run["at"][:16].replace("T", " ") for run in document["runs"]]
    lines = [f"{len(when)} audit{'s' if len(when) > 1 else ''}, {when[0]} to {when[-1]} (UTC)"]
    for line in document["promises"]:
        if line["now"] == "broken":
            name = " ".join(filter(None, (line["promise"], line["title"], line["slice"])))
            lines.append(
                f"broken: {name}, since {when[line['broken_since']]} (first {when[line['first_broken']]})"
            )
    numbers = (document["change"] or {}).get("numbers", ())
    lines += [
        f"changed: {number['name']} from {number['before']:.4g} to {number['after']:.4g}"
        + (" (the same rows, paired)" if number["paired"] else "")
        for number in numbers
        if number["changed"]
    ]
    if len(lines) == 1:
        lines.append("nothing is broken, and no number has changed beyond its error bar")
    return "\n".join(lines)
