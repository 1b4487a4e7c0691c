"""``calipers compare A B ...``: predictors on the same rows, or methods over many data sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calipers.cli.options import READ_OPTIONS, JsonOption, QuietOption, takes_settings
from calipers.cli.output_files import ForceOption, Outputs

if TYPE_CHECKING:
    from calipers.cli.settings import Settings

NAMES = ("comparison.html", "comparison.json", "comparison.md")


@takes_settings(options=READ_OPTIONS)
def command(
    files: Annotated[
        list[str],
        typer.Argument(help="FILE or NAME=FILE per predictor; NAME=FILE,FILE,... for many data sets."),
    ],
    settings: Settings,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for comparison.html, .json and .md.")
    ] = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> int:
    """Compare predictors: paired differences, winners only where significant and the promise is kept.

    Files of predictions about the same rows in the same order; or, per method, one file per data set in the
    same order: then methods are ranked by Friedman's test.
    """
    from calipers.auditing import compare
    from calipers.auditing.comparison import checks_beside
    from calipers.cli.audit import run
    from calipers.cli.options import source_from
    from calipers.cli.terminal import say, say_json

    outputs = Outputs(out, NAMES, force=force).check()
    named = parse_names(files)
    settings.mute = checks_beside()
    audits = {
        name: [run(source_from([path], settings), settings, quiet=quiet) for path in paths]
        for name, paths in named.items()
    }
    single = all(len(found) == 1 for found in audits.values())
    comparison = compare({name: found[0] for name, found in audits.items()} if single else audits)
    texts = (comparison.to_html, comparison.to_json, comparison.to_markdown)
    contents = {place: text() for place, text in zip(outputs.places(), texts, strict=False)}
    failure = outputs.write(contents) if contents else None
    if as_json:
        say_json(comparison.to_json())
    elif not quiet or failure is not None:
        say(comparison)
    if failure is not None:
        raise failure
    return 0


def parse_names(files: list[str]) -> dict[str, list[Path]]:
    """Name -> files, from FILE, NAME=FILE or NAME=FILE,FILE."""
    from calipers.exceptions import InputError

    named: dict[str, list[Path]] = {}
    for word in files:
        name, equals, rest = word.partition("=")
        paths = [Path(part) for part in (rest if equals else word).split(",")]
        key = name if equals else paths[0].stem
        if key in named:
            raise InputError(f"two predictors are called {key!r}. Name them: first={paths[0]} second=...")
        named[key] = paths
    if len(named) < 2:
        raise InputError("compare needs at least two predictors, got one.")
    return named
