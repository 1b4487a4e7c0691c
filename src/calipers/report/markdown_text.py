"""Text from files inside Markdown: shown as it is, never read as Markdown or HTML."""

from __future__ import annotations

import re

from calipers.results.terminal_safe import one_line

# What begins something in the middle of a line; numbers, intervals and comparisons are left as they are.
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\\(?=[!-/:-@\[-`{-~])"), r"\\\\"),  # a backslash that would take the next character along
    (re.compile(r"&(?=#|\w+;)"), "&amp;"),
    (re.compile(r"<(?=[A-Za-z/!?])"), "&lt;"),
    (re.compile(r"([`*$])"), r"\\\1"),
    (re.compile(r"~(?=~)|(?<=~)~"), r"\~"),
    (re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"), r"\_"),
    (re.compile(r"!(?=\[)"), r"\!"),
    (re.compile(r"\](?=[(\[:])"), r"\]"),
    # A comment inside keeps GitHub from calling people and from making addresses into links.
    (re.compile(r"(?<!\w)@(?=\w)"), "@<!-- -->"),
    (re.compile(r"(?i)\b(https?|ftp|mailto)(:)(?=/|\w)"), r"\1\2<!-- -->"),
    (re.compile(r"(?i)\bwww\."), "www<!-- -->."),
)
_LINE_START = re.compile(r"^(\s*)([#>+=|-]|\d+(?=[.)]\s))")


def markdown_text(text: str, *, starts_line: bool = False) -> str:
    r"""Plain text as Markdown that shows it: one line, without links, images, tags or calls.

    Parameters
    ----------
    text : str
        Any text, from a file or not.
    starts_line : bool
        Whether it begins a line, where also ``#``, ``>`` and list marks must be escaped.

    Returns
    -------
    str
        Markdown.

    Examples
    --------
    >>> from calipers.report.markdown_text import markdown_text
    >>> print(markdown_text("rows of ![x](http://a.b) have p < 0.001"))
    rows of \![x\](http:<!-- -->//a.b) have p < 0.001
    """
    shown = one_line(text)
    for pattern, replacement in _RULES:
        shown = pattern.sub(replacement, shown)
    if starts_line:
        shown = _LINE_START.sub(r"\1\\\2", shown)
    return shown


def markdown_cell(text: str) -> str:
    r"""Text inside a table, where a bar would end the cell.

    Examples
    --------
    >>> from calipers.report.markdown_text import markdown_cell
    >>> print(markdown_cell("a|b"))
    a\|b
    """
    return markdown_text(text).replace("|", "\\|")


def fenced(code: str, language: str) -> str:
    """Code between fences longer than any run of backticks in it.

    Examples
    --------
    >>> from calipers.report.markdown_text import fenced
    >>> fenced("x = 1", "python").splitlines()[0]
    '```python'
    """
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"
