"""Every page of the site: its code runs in order, its commands too, and its links and pictures are there."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path

import pytest

from calipers.cli import main

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
PAGES = sorted(
    str(path.relative_to(DOCS))
    for path in DOCS.rglob("*.md")
    if not {"_build", "generated", "gallery"} & set(path.relative_to(DOCS).parts)
)
RESULTS = (0, 1)  # clean, or findings; 2 is bad input and 70 a fault of ours


def blocks(page: str) -> list[tuple[str, str]]:
    found = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    # The commands of the papers' pages need data sets that are not in the repository.
    return [(kind, text) for kind, text in found if kind == "python" or not page.startswith("guide")]


WITH_CODE = [page for page in PAGES if any(kind == "python" for kind, _ in blocks(page))]


def test_every_question_and_every_guide_has_code():
    wanted = {
        page for page in PAGES if page.startswith(("questions/", "howto/")) and not page.endswith("index.md")
    }
    assert len(wanted) >= 15
    assert wanted <= set(WITH_CODE)


@pytest.mark.parametrize("page", WITH_CODE)
def test_the_code_of_a_page_runs_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    namespace: dict[str, object] = {"__name__": "page"}
    with warnings.catch_warnings():
        # Pages show warnings on purpose where they explain them.
        warnings.simplefilter("ignore")
        for number, (kind, block) in enumerate(blocks(page), start=1):
            if kind == "python":
                exec(compile(block, f"{page}, block {number}", "exec"), namespace)  # noqa: S102 - our own page
            else:
                run_commands(block)


def run_commands(block: str) -> None:
    for line in block.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["calipers"]:
            assert main(words[1:]) in RESULTS, line


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_of_a_page_are_there(page):
    path = DOCS / page
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    local = [target for target in targets if not target.startswith(("http://", "https://", "mailto:"))]
    assert [target for target in local if not (path.parent / target).exists()] == []
