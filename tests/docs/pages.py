"""The blocks of a page: Python and commands in order, and the output that is printed below them.

``python -m tests.docs.pages [PAGE ...]`` runs pages and writes what they print now into their ``text`` blocks.
A page is given as docs/findings.md; without one all pages are renewed. Read the difference before you commit it.
With --check nothing is written, and the exit code says whether a page would change.
"""

from __future__ import annotations

import contextlib
import difflib
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


def renewed(path: Path) -> str:
    """The page with what it prints now."""
    text = path.read_text(encoding="utf-8")
    found = blocks(text, commands=path.parent.name != "guide")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        printed = run_blocks(found, path.name)
    for block, output in reversed(list(zip(found, printed, strict=True))):
        if block.printed is not None:
            text = text[: block.span[0]] + output + text[block.span[1] :]
    return text


def main(words: list[str]) -> int:
    """Renew or check pages, and say what became of each."""
    os.environ |= {"MPLBACKEND": "Agg", "COLUMNS": "80"}
    only_check, names = "--check" in words, [word for word in words if word != "--check"]
    changed = 0
    for page in [Path(name).resolve() for name in names] or sorted(DOCS.rglob("*.md")):
        old, new = page.read_text(encoding="utf-8"), renewed(page)
        changed += old != new
        print("same    " if old == new else "changed ", page.relative_to(ROOT), flush=True)
        if old != new and only_check:
            print(*difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0), sep="\n")
        elif old != new:
            page.write_text(new, encoding="utf-8")
    return int(only_check and changed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
