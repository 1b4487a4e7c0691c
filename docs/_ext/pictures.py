"""Gallery, notebooks and the pictures on other pages: every script is run once per state of the sources."""

from __future__ import annotations

import json
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from scripts import Cell, digest, run_script, title_of
from sphinx.addnodes import pending_xref
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

FOLDERS = ("gallery", "notebooks")
ABOUT_NOTEBOOK = (
    "This page is the plain-text notebook `docs/notebooks/{}`; open it in Jupyter (with jupytext), VS Code, "
    "Spyder or PyCharm."
)
logger = logging.getLogger(__name__)


def write_pages(app: Any) -> None:
    """Beside every script a page in Markdown: its text, its code, and what came of it."""
    source = Path(app.srcdir)
    for folder in FOLDERS:
        scripts = sorted((source / folder).glob("*.py"))
        for script in scripts:
            write_if_changed(script.with_suffix(".md"), page(script, outputs(app, script)))
        for stale in set((source / folder).glob("*.md")) - {s.with_suffix(".md") for s in scripts}:
            if stale.stem != "index":
                stale.unlink()


def outputs(app: Any, script: Path) -> list[Cell]:
    """The cells of a script after a run, from the cache when neither it nor the package has changed."""
    source = Path(app.srcdir)
    key = digest(script, source.parent / "src" / "calipers", source / "_ext")
    kept = source / "_build" / "scripts" / f"{script.stem}-{key}.json"
    if kept.exists():
        return [Cell(**cell) for cell in json.loads(kept.read_text(encoding="utf-8"))]
    logger.info("running %s", script.relative_to(source))
    cells = run_script(script)
    kept.parent.mkdir(parents=True, exist_ok=True)
    for old in kept.parent.glob(f"{script.stem}-*.json"):
        old.unlink()
    kept.write_text(json.dumps([asdict(cell) for cell in cells]), encoding="utf-8")
    return cells


def page(script: Path, cells: list[Cell]) -> str:
    """The page of a script."""
    # The picture of a gallery script comes before the code that draws it.
    first = script.parent.name == "gallery"
    parts = [part for cell in cells for part in cell_parts(cell, picture_first=first)]
    if script.parent.name == "notebooks":
        parts.append(f"*{ABOUT_NOTEBOOK.format(script.name)}*")
    return "\n\n".join(parts) + "\n"


def cell_parts(cell: Cell, *, picture_first: bool) -> list[str]:
    """Text as it is; code, what it printed, and its pictures as blocks."""
    if cell.kind == "markdown":
        return [cell.source.strip()]
    pictures = [fenced("{raw} html", f'<div class="picture">{svg}</div>') for svg in cell.pictures]
    printed = [fenced("{code-block} text", text) for text in (cell.printed, cell.shown) if text.strip()]
    code = fenced("{code-block} python", cell.source)
    return [*pictures, code, *printed] if picture_first else [code, *printed, *pictures]


def fenced(kind: str, text: str) -> str:
    """A block that may hold the fences of blocks itself."""
    return f"``````{kind}\n{text.rstrip()}\n``````"


def write_if_changed(path: Path, text: str) -> None:
    """Leave the file alone when nothing changed, so that Sphinx does not read it again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


class PictureDirective(SphinxDirective):
    """A picture of the gallery with a caption, and a link to the script that draws it."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """The picture, its caption and the link, in one box."""
        script = Path(self.env.srcdir) / "gallery" / f"{self.arguments[0]}.py"
        if not script.exists():
            raise self.error(f"there is no script docs/gallery/{script.name}.")
        self.env.note_dependency(str(script))
        svg = outputs(self.env.app, script)[-1].pictures[0]
        box = nodes.container(classes=["picture"])
        box += nodes.raw("", svg, format="html")
        caption = nodes.container(classes=["picture-caption"])
        caption += self.parse_content_to_nodes()
        link = pending_xref(
            "", refdomain="std", reftype="doc", reftarget=f"/gallery/{script.stem}", refexplicit=True,
            refwarn=True, refdoc=self.env.docname,
        )  # fmt: skip
        link += nodes.inline("", "the script of this picture")
        caption += nodes.paragraph("", "", link)
        box += caption
        return [box]


class GalleryDirective(SphinxDirective):
    """All scripts of the gallery as small pictures with their titles."""

    def run(self) -> list[nodes.Node]:
        """One box of links."""
        parts = []
        for script in sorted((Path(self.env.srcdir) / "gallery").glob("*.py")):
            self.env.note_dependency(str(script))
            svg = outputs(self.env.app, script)[-1].pictures[0]
            parts.append(f'<a href="{script.stem}.html">{svg}<span>{escape(title_of(script))}</span></a>')
        return [nodes.raw("", f'<div class="thumbnails">{"".join(parts)}</div>', format="html")]


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for sources."""
    app.connect("builder-inited", write_pages)
    app.add_directive("picture", PictureDirective)
    app.add_directive("gallery", GalleryDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
