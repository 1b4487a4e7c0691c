"""After the build: every link and picture of every page leads to a file and an anchor of the site that exist.

Links that leave the site are listed in ``_build/outside.txt`` and checked for their form only: the site is
built without a network.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sphinx.util import logging

logger = logging.getLogger(__name__)
OUTSIDE = re.compile(r"https://[a-z0-9.-]+\.[a-z]{2,}(?::\d+)?(?:/[^\s<>\"{}|\\^`]*[^\s<>\"{}|\\^`.,;:])?/?$")
# Pages that Sphinx writes itself; their links depend on the theme.
OWN = {"search.html", "genindex.html", "py-modindex.html"}


class Page(HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note what the tag points to and how it is called."""
        for name, value in attributes:
            if value and name in ("id", "name"):
                self.anchors.add(value)
            elif value and (name == "href" or (name == "src" and tag in ("img", "script", "source"))):
                self.links.append(value)


def dead_links(root: Path) -> tuple[list[str], list[str]]:
    """What is wrong, one sentence each; and the addresses outside the site."""
    pages = {path.resolve(): Page(path) for path in root.rglob("*.html") if path.name not in OWN}
    wrong, outside = [], set()
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                if parts.scheme not in ("mailto", "data"):
                    outside.add(link)
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = f"{path.relative_to(root.resolve())}: {link}"
            if not target.exists():
                wrong.append(f"{place} does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append(f"{place}: the page has no such place")
    wrong += [
        f"{link} is not an address of the form https://host/path"
        for link in sorted(outside)
        if not OUTSIDE.match(link)
    ]
    return sorted(set(wrong)), sorted(outside)


def check(app: Any, exception: Exception | None) -> None:
    """Warn of every dead link; with -W that fails the build."""
    if exception is not None or app.builder.format != "html":
        return
    wrong, outside = dead_links(Path(app.outdir))
    for sentence in wrong:
        logger.warning("dead link: %s", sentence)
    listing = Path(app.srcdir) / "_build" / "outside.txt"
    listing.parent.mkdir(parents=True, exist_ok=True)
    listing.write_text("".join(f"{link}\n" for link in outside), encoding="utf-8")
    logger.info("%d links out of the site, form checked only; listed in %s", len(outside), listing)


def setup(app: Any) -> dict[str, bool]:
    """Check when everything is written."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
