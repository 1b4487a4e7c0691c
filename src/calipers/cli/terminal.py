"""Results as tables that fit the terminal."""

from __future__ import annotations

import contextlib
import shlex
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape as escape_markup

from calipers.exceptions import CalipersWarning
from calipers.report.earlier_reports import earlier_sentences
from calipers.report.text_bars import text_bar
from calipers.report.text_formats import MARKS, also_seen, split_repair, taken_for, wrapped
from calipers.results.terminal_safe import one_line, printable, printable_json

if TYPE_CHECKING:
    from calipers.auditing import Audit
    from calipers.results import Finding

COLOURS = {
    "no": "red",
    "doubtful": "yellow",
    "cannot tell": "blue",
    "mostly": "green",
    "yes": "green",
    "not asked": "bright_black",
}
# Longer lines are hard to read, however wide the terminal.
WIDEST = 110
# A terminal that says it is narrower, or has no width, is written to as if it had so many columns.
NARROWEST = 20
# Questions stand below each other after labels of up to so many letters.
_LONGEST_LABEL = 14
SEVERITY_COLOURS = {"issue": "red", "warning": "yellow", "note": "cyan"}


def escape(text: str) -> str:
    """Text from a file for a console of rich: no markup, no escape sequences."""
    return escape_markup(one_line(text))


def say(text: object = "") -> None:
    """Print on standard output; control characters are written out."""
    print(printable(str(text)), flush=True)


def say_json(text: str) -> None:
    """Print JSON on standard output; control characters are escaped as JSON has it."""
    print(printable_json(text))


@contextlib.contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Warnings of Calipers as one line each on standard error, without places in the code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CalipersWarning)
        yield
    for warning in caught:
        if issubclass(warning.category, CalipersWarning):
            print(f"calipers: {one_line(str(warning.message))}", file=sys.stderr)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def print_audit(found: Audit, options: Sequence[str] = ()) -> None:
    """The verdict, the faults with their evidence and the worst first, the six answers, what to type next.

    ``options`` are those of the audit that the next command needs too.
    """
    console, document = Console(), found.to_dict()
    console.width = max(NARROWEST, console.width)
    width = min(console.width, WIDEST)
    # Of a model: what it was asked for.
    if taken := taken_for(document["about"]) or [line for line in (found.origin,) if line]:
        for line in taken:
            _print_lines(console, wrapped(line, width), "dim")
        console.print()
    _print_lines(console, wrapped(document["verdict"]["sentence"], width), "bold")
    for sentence in earlier_sentences(found.history):
        _print_lines(console, wrapped(sentence, width))
    told = [finding for finding in found.faults if "explained_by" not in finding.details]
    for finding in told:
        _print_fault(console, finding, width)
        also = also_seen(finding.code, document["findings"])
        _print_lines(console, wrapped(also, width, indent="  "))
    console.print()
    said = {finding.sentence for finding in told}
    labels = min(_LONGEST_LABEL, max(len(answer["label"]) for answer in document["questions"]))
    for answer in document["questions"]:
        _print_answer(console, answer, width, labels, repeated=answer["sentence"] in said)
        said.add(answer["sentence"])
    for line in next_commands(found, options):
        console.print(line, style="cyan", markup=False, highlight=False, soft_wrap=True)


def _print_fault(console: Console, finding: Finding, width: int) -> None:
    console.print()
    head = f"[{SEVERITY_COLOURS[finding.severity]}]{finding.code} {finding.severity}[/]"
    console.print(f"{head} {escape(finding.title)}", highlight=False, soft_wrap=True)
    _print_lines(console, wrapped(finding.sentence, width, indent="  "))
    if finding.evidence is not None:
        covers = finding.evidence.name.startswith("coverage") and "alpha" in finding.details
        promised = 1.0 - finding.details["alpha"] if covers else None
        if bar := text_bar(finding.evidence.to_dict(), reference=promised, width=min(40, width - 4)):
            _print_lines(console, [f"  {bar}"])
        _print_lines(console, wrapped(str(finding.evidence), width, indent="  "), "dim")


def _print_answer(
    console: Console, answer: Mapping[str, Any], width: int, labels: int, *, repeated: bool
) -> None:
    """One line; the sentence below it unless it was said before."""
    state = f"{MARKS[answer['answer']]} {answer['label']:<{labels}} "
    first, *others = wrapped(answer["title"], max(NARROWEST, width - len(state)))
    colour = COLOURS[answer["answer"]]
    console.print(f"[{colour}]{state}[/]{escape(first)}", highlight=False, soft_wrap=True)
    _print_lines(console, [f"{' ' * len(state)}{line}" for line in others])
    if not repeated:
        _print_lines(console, wrapped(answer["sentence"], width, indent=" " * 4), "dim")


def _print_lines(console: Console, lines: list[str], style: str = "") -> None:
    for line in lines:
        console.print(escape(line), style=style, highlight=False, soft_wrap=True)


def next_commands(found: Audit, options: Sequence[str] = ()) -> list[str]:
    """What to type next, where the rows came from one file: repair, report and rows of the faults."""
    if not found.origin or not found.faults or not Path(found.origin).is_file():
        return []
    words = shlex.join([found.origin, *options])
    commands = (
        [f"calipers repair {words}"] if any(split_repair(fault.repair)[1] for fault in found.faults) else []
    )
    commands.append(f"calipers audit {words} --html report.html --rows rows")
    return ["", "Next:", *(f"  {line}" for line in commands)]
