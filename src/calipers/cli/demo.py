"""``calipers demo``: the whole job on embedded data, to see what a result looks like."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calipers.cli.output_files import writable_folder

JSON_NAME = "audit.json"
HTML_NAME = "report.html"


def command(
    out: Annotated[Path, typer.Option("--out", help="Folder for report.html and audit.json.")] = Path(
        "calipers-demo"
    ),
    alpha: Annotated[
        float, typer.Option("--alpha", help="Allowed miscoverage; 0.1 asks for 90 % coverage.")
    ] = 0.1,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random splits.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print audit.json on standard output, not the answers.")
    ] = False,
) -> int:
    """Train, conformalise, audit, repair and audit again, on embedded data.

    Handwritten digits, with labels made unpredictable in the heavy images. The audit has to find that planted
    fault and the real one of the model. Nothing is downloaded; findings do not change the exit code.
    """
    from rich.console import Console

    from calipers.cli.output_files import Outputs
    from calipers.cli.terminal import print_audit, say, say_json
    from calipers.inputs import check_alpha
    from calipers.report import render_html, render_json

    check_alpha(alpha)
    outputs = Outputs(writable_folder(out), (JSON_NAME, HTML_NAME)).check()
    progress = Console(stderr=True)
    with progress.status("Training, conformalising, auditing and repairing ..."):
        from calipers.cli.demo_job import demonstrate

        done = demonstrate(alpha=alpha, seed=seed)
    document = done.document()
    text = render_json(document)
    failure = outputs.write({out / JSON_NAME: text + "\n", out / HTML_NAME: render_html(document)})
    place = "" if failure is not None else f"The report is {(out / HTML_NAME).resolve()}"
    if as_json:
        say_json(text)
        progress.print(place, soft_wrap=True, highlight=False)
    else:
        print_audit(done.found)
        say(f"\n{done.repaired}\n{place}")
    if failure is not None:
        raise failure
    return 0
