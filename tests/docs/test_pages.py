"""Every Python block of every page runs, in order, in one namespace per page."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
PAGES = {
    str(path.relative_to(DOCS)): blocks
    for path in sorted(DOCS.rglob("*.md"))
    if "_build" not in path.parts and (blocks := BLOCK.findall(path.read_text(encoding="utf-8")))
}


def test_there_are_pages_with_code():
    assert len(PAGES) >= 6


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    namespace: dict[str, object] = {"__name__": "page"}
    with warnings.catch_warnings():
        # Pages show warnings on purpose where they explain them.
        warnings.simplefilter("ignore")
        for number, block in enumerate(PAGES[page]):
            exec(compile(block, f"{page}[{number}]", "exec"), namespace)
    assert len(namespace) > 2


def links(path: Path) -> list[str]:
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)


@pytest.mark.parametrize("page", sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md") if "_build" not in p.parts))
def test_links_between_pages_lead_somewhere(page):
    path = DOCS / page
    dead = [
        target
        for target in links(path)
        if not target.startswith(("http://", "https://", "mailto:")) and not (path.parent / target).exists()
    ]
    assert dead == []
