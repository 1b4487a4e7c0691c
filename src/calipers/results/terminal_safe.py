"""Text from files, made safe for a terminal."""

from __future__ import annotations

import re

# Controls (escape sequences begin with one of them), and marks that turn the direction of what follows.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# What GitHub takes for a command in the log of a workflow: lines that begin with ::, and ##[ anywhere.
_COMMAND = re.compile(r"^(?P<blanks>[ \t]*):(?=:)|#(?=#\[)", re.MULTILINE)


def printable(text: str) -> str:
    r"""The text with control characters written out; line ends and tabs stay.

    A name in a file may hold escape sequences that move the cursor, hide lines or rename the window, or begin
    a command of a GitHub workflow, of which the first character is written out.

    Examples
    --------
    >>> from calipers.results.terminal_safe import printable
    >>> print(printable("\x1b[2Jgroup"))
    \x1b[2Jgroup
    """
    return _COMMAND.sub(_as_no_command, _CONTROL.sub(_written_out, text))


def one_line(text: str) -> str:
    r"""The same without line ends and tabs: a blank stands for each run of them.

    Examples
    --------
    >>> from calipers.results.terminal_safe import one_line
    >>> one_line("first\n\tsecond")
    'first second'
    """
    return printable(re.sub(r"[\t\n\v\f\r]+", " ", text))


# All of it: "-2+3+cmd|' /C calc'!A0" begins like a number and is a formula.
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf)( ?%)?")
# Full-width signs begin a formula too, where the keyboard has them.
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


def inert(text: str) -> str:
    """Text for a cell of a spreadsheet: what begins like a formula gets a quote in front; numbers stay.

    Examples
    --------
    >>> from calipers.results.terminal_safe import inert
    >>> inert("=1+2"), inert("-0.5"), inert("-0.5+A1"), inert("north")
    ("'=1+2", '-0.5', "'-0.5+A1", 'north')
    """
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


def printable_json(text: str) -> str:
    r"""JSON in which controls that JSON allows inside text are escaped; it means the same.

    Examples
    --------
    >>> from calipers.results.terminal_safe import printable_json
    >>> printable_json('"\x9b2J"')
    '"\\u009b2J"'
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", text.replace("##[", "#\\u0023["))


def _written_out(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _as_no_command(found: re.Match[str]) -> str:
    return f"{found['blanks']}\\x3a" if found["blanks"] is not None else "\\x23"
