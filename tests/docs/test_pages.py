"""Every page of the site: its code runs in order and prints what it says, and its links lead somewhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, Block, blocks, run_blocks

WRITTEN = {
    path.with_suffix(".md") for folder in ("gallery", "notebooks") for path in (DOCS / folder).glob("*.py")
}
PAGES = sorted(
    str(path.relative_to(DOCS))
    for path in DOCS.rglob("*.md")
    if not {"_build", "generated"} & set(path.relative_to(DOCS).parts) and path not in WRITTEN
)
OUTSIDE = re.compile(r"https://[a-z0-9.-]+\.[a-z]{2,}(/[^\s<>\"]*)?")


def page_blocks(page: str) -> list[Block]:
    # The commands of the papers' pages need data sets that are not in the repository.
    return blocks((DOCS / page).read_text(encoding="utf-8"), commands=not page.startswith("guide"))


WITH_CODE = [page for page in PAGES if any(block.kind == "python" for block in page_blocks(page))]


def test_every_question_and_every_guide_has_code():
    wanted = {
        page for page in PAGES if page.startswith(("questions/", "howto/")) and not page.endswith("index.md")
    }
    assert len(wanted) >= 15
    assert wanted <= set(WITH_CODE)


@pytest.mark.parametrize("page", WITH_CODE)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("COLUMNS", "80")
    found = page_blocks(page)
    for block, printed in zip(found, run_blocks(found, page), strict=True):
        if block.printed is not None:
            assert printed == block.printed, "python -m tests.docs.pages renews the page"


def headings(path: Path) -> set[str]:
    """The anchors of a page, as the site and GitHub make them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"^#{1,3} (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", words.lower()).strip().replace(" ", "-") for words in found}


def links(path: Path) -> list[str]:
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", text)


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_of_a_page_are_there(page):
    path, dead = DOCS / page, []
    for link in links(path):
        target, _, place = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        file = (path.parent / target).resolve() if target else path
        # The page of a script is written beside it when the site is built.
        source = file.with_suffix(".py") if file in WRITTEN else file
        if not source.exists() or (place and source.suffix == ".md" and place not in headings(source)):
            dead.append(link)
    assert dead == []


@pytest.mark.parametrize(
    "page", [*PAGES, "../README.md", "../CHANGELOG.md", "../CONTRIBUTING.md", "../SECURITY.md"]
)
def test_links_out_of_the_site_have_the_form_of_an_address(page):
    # There is no network in a test: what an address leads to is checked by hand before a release.
    outside = [link for link in links(DOCS / page) if re.match(r"[a-z]+:", link)]
    assert [link for link in outside if not OUTSIDE.fullmatch(link)] == []


def test_pages_do_not_name_machines_or_folders_of_their_makers():
    named = [
        page for page in PAGES if re.search(r"/work/|/tmp/|/home/", (DOCS / page).read_text(encoding="utf-8"))
    ]
    assert named == []
    assert (ROOT / "docs" / "index.md").exists()


# A decision says in its title what was decided, and its index what such pages are for.
LED = [page for page in PAGES if not re.match(r"decisions/\d", page)]


@pytest.mark.parametrize("page", LED)
def test_the_first_paragraph_says_for_whom_the_page_is_and_what_it_answers(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    title, lead = re.search(r"^# ([^\n]+)\n\n(.+?)\n\n", text, flags=re.MULTILINE | re.DOTALL).groups()
    answers = lead.partition(": ")[2]
    assert re.fullmatch(r"\*For .+: .+\.\*", lead), "begin with a line '*For whom: what it answers.*'"
    assert len(answers.split()) >= 3
    assert len(lead.split()) <= 45
    assert len(re.findall(r"[.?!](?=\s|\*?$)", lead)) <= 3
    assert answers.rstrip(".*").lower() != title.lower()


def test_no_two_pages_have_the_same_lead():
    leads = [(DOCS / page).read_text(encoding="utf-8").split("\n\n")[1] for page in LED]
    assert len(set(leads)) == len(leads) >= 50


def test_pages_install_in_one_way():
    """The folder first, while there is no index; then extras by name, which the installed package knows."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    allowed = {"pip install .", "pip install 'git+<address of this repository>@v0.2.0'"}
    allowed |= {f"pip install 'calipers[{extra}]'" for extra in extras}
    for page in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))):
        lines = re.findall(r"pip install (?:'[^']*'|[^\s`]+)", page.read_text(encoding="utf-8"))
        assert set(lines) <= allowed, page.name
