"""Plain scripts as pages: cut into cells, run in order, with what each cell printed and drew.

A gallery script is a docstring and one cell of code. A notebook is the same in percent format (``# %%`` and
``# %% [markdown]``), which Jupyter with jupytext, VS Code, Spyder and PyCharm open as a notebook. One
namespace per script, warnings are errors, figures come back as SVG that takes the colours of the page.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

INK = "#010203"  # stands for the colour of the text until the picture knows its page
COLOURS = ("#1a86c7", "#e07020", "#12a17c", "#c76ba3", "#d99a00", "#7f7f7f")
STYLE = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "figure.figsize": (6.4, 3.8),
    "legend.frameon": False,
    "svg.fonttype": "none",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
# Greys that a plot chose for white paper, as shades of the text colour.
SHADES = {
    INK: 1.0, "#000000": 1.0, "#333333": 0.9, "#404040": 0.9, "#595959": 0.7, "#999999": 0.6, "#d9d9d9": 0.16,
    "#b0b0b0": 0.35,
}  # fmt: skip
_CELL = re.compile(r"^# %%(?P<kind> \[markdown\])?[^\n]*\n", flags=re.MULTILINE)


@dataclass
class Cell:
    """A piece of a script: text in Markdown, or code with what came of it."""

    kind: str
    source: str
    printed: str = ""
    pictures: list[str] = field(default_factory=list)
    shown: str = ""


def cells_of(path: Path) -> list[Cell]:
    """The cells of a script; the docstring of a gallery script is its first."""
    text = path.read_text(encoding="utf-8")
    if not _CELL.search(text):
        words = ast.get_docstring(ast.parse(text)) or ""
        code = text.split('"""', 2)[2]
        title, _, rest = words.partition("\n")
        return [Cell("markdown", f"# {title.rstrip('.')}\n{rest}"), Cell("code", code.strip() + "\n")]
    found, pieces = [], _CELL.split(text)
    for kind, body in zip(pieces[1::2], pieces[2::2], strict=True):
        words = re.sub(r"^# ?", "", body, flags=re.MULTILINE) if kind else body
        if words.strip():
            found.append(Cell("markdown" if kind else "code", words.strip() + "\n"))
    return found


def title_of(path: Path) -> str:
    """The first heading of a script."""
    return re.match(r"# (.*)", cells_of(path)[0].source)[1]


def run_script(path: Path) -> list[Cell]:
    """Run the cells in an empty folder; every code cell gets what it printed, drew and left to be shown."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    cells, namespace = cells_of(path), {"__name__": path.stem}
    with (
        _elsewhere(path.parent / "data"),
        contextlib.closing(_AllFigures()),
        mpl.rc_context(),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE | {"axes.prop_cycle": mpl.cycler(color=COLOURS)})
        plt.close("all")  # what others left open is not of this script
        for number, cell in enumerate(cells):
            if cell.kind == "code":
                _run_cell(cell, f"{path.name}, cell {number}", namespace)
                figures = [plt.figure(i) for i in plt.get_fignums()]
                cell.pictures = [as_svg(f, salt=f"{path.stem}-{number}-{i}") for i, f in enumerate(figures)]
                plt.close("all")
    return cells


class _AllFigures:
    """Closes what a script left open, also after an error."""

    def close(self) -> None:
        """Close every figure."""
        import matplotlib.pyplot as plt

        plt.close("all")


@contextlib.contextmanager
def _elsewhere(data: Path) -> Iterator[None]:
    """A folder with nothing but the data of the script, in which commands find the package imported here."""
    import calipers

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(Path(calipers.__file__).resolve().parents[1])
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            bring_data(data, Path(folder))
            yield
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def bring_data(data: Path, folder: Path) -> None:
    """Copy the data that lie beside the scripts, where they look for them; scripts without data get none."""
    if data.is_dir():
        shutil.copytree(data, folder / data.name)


def _run_cell(cell: Cell, name: str, namespace: dict[str, Any]) -> None:
    tree = ast.parse(cell.source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), namespace)  # noqa: S102 - our own pages
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)  # noqa: S307
            # Text is enough: an audit's own page is a document of its own, and axes say nothing.
            if value is not None and not type(value).__module__.startswith("matplotlib"):
                cell.shown = repr(value)
    cell.printed = printed.getvalue()


def as_svg(figure: Any, *, salt: str) -> str:
    """The figure as SVG that scales, has no background, and writes in the colour of the page around it."""
    import matplotlib as mpl

    out = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": salt}):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = out.getvalue()[out.getvalue().index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)
    svg = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font: \1 sans-serif", svg)
    for colour, shade in SHADES.items():
        for part in ("fill", "stroke"):
            opacity = "" if shade == 1 else f"; {part}-opacity: {shade}"
            svg = re.sub(
                rf"\b{part}: {colour}(; {part}-opacity: [\d.]+)?",
                lambda m, p=part, o=opacity: f"{p}: currentColor{m[1] or o}",
                svg,
            )
    # Text without a colour of its own is black unless told otherwise.
    return svg.replace("<svg ", '<svg role="img" fill="currentColor" ', 1).strip() + "\n"


def digest(*paths: Path) -> str:
    """One hash of the contents of files, and of all files of folders."""
    found = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            found.update(file.read_bytes())
    return found.hexdigest()[:20]
