"""The blocks of a page: Python and commands in order, and the output that is printed below them.

``python -m tests.docs.pages [PAGE ...]`` runs pages and writes what they print now into their ``text`` blocks.
A page is given as docs/findings.md; without one all pages are renewed. Read the difference before you commit it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RESULTS = (0, 1)  # clean, or findings; 2 is bad input and 70 a fault of ours
# A block to run, and the block of output when one follows at once.
BLOCK = re.compile(
    r"^```(?P<kind>python|sh)\n(?P<code>.*?)^```\n(?:\n?^```text\n(?P<printed>.*?)^```$)?",
    flags=re.MULTILINE | re.DOTALL,
)


@dataclass
class Block:
    """A block of a page, what the page says that it prints (None: nothing said), and where that stands."""

    kind: str
    code: str
    printed: str | None
    span: tuple[int, int]


def blocks(text: str, *, commands: bool = True) -> list[Block]:
    """The blocks of a page in order."""
    found = [Block(m["kind"], m["code"], m["printed"], m.span("printed")) for m in BLOCK.finditer(text)]
    return [block for block in found if commands or block.kind == "python"]


def run_blocks(found: list[Block], name: str) -> list[str]:
    """What every block prints, in one namespace and in the current folder."""
    namespace: dict[str, object] = {"__name__": "page"}
    printed = []
    with warnings.catch_warnings():
        # Pages show warnings on purpose where they explain them.
        warnings.simplefilter("ignore")
        for number, block in enumerate(found, start=1):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                if block.kind == "python":
                    exec(compile(block.code, f"{name}, block {number}", "exec"), namespace)  # noqa: S102 - ours
                else:
                    run_commands(block.code)
            printed.append("".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines()))
    return printed


def run_commands(block: str) -> None:
    """Run the lines of a block that call calipers; the others are for the reader."""
    from calipers.cli import main

    for line in block.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["calipers"]:
            assert main(words[1:]) in RESULTS, line


def renew(path: Path) -> bool:
    """Write what the page prints now into it; whether that changed anything."""
    text = path.read_text(encoding="utf-8")
    found = blocks(text, commands=path.parent.name != "guide")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        printed = run_blocks(found, path.name)
    new = text
    for block, output in reversed(list(zip(found, printed, strict=True))):
        if block.printed is not None:
            new = new[: block.span[0]] + output + new[block.span[1] :]
    path.write_text(new, encoding="utf-8")
    return new != text


if __name__ == "__main__":
    os.environ |= {"MPLBACKEND": "Agg", "COLUMNS": "100"}
    for page in [Path(word).resolve() for word in sys.argv[1:]] or sorted(DOCS.rglob("*.md")):
        print("renewed" if renew(page) else "same   ", page.relative_to(ROOT))
