"""The built site in a browser, from the disk, without a network: its search finds pages and fetches nothing.

``python3 dev.py docs`` runs it after the build. Without a Chromium or playwright it says that it did not try.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import Any

# What a reader would type, and a page that must be among the answers.
QUESTIONS = {
    "null band": "null-band.html",
    "mondrian": "howto/groups.html",
    "CAL201": "findings.html",
    "audit_model": "api/",
    "drift": "howto/drift.html",
}


def main(site: Path) -> int:
    """Ask all questions; 0 when each finds its page and no address outside the site was asked for."""
    chromium = (
        os.environ.get("CALIPERS_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    )
    if chromium is None or importlib.util.find_spec("playwright") is None:
        print("search: not tried, it takes a Chromium and playwright", flush=True)
        return 0
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_context(offline=True).new_page()
        outside: list[str] = []
        page.on("request", lambda request: note_outside(request.url, outside))
        missing = [words for words, wanted in QUESTIONS.items() if not found(page, site, words, wanted)]
        browser.close()
    for words in missing:
        print(f"search: {words!r} does not find {QUESTIONS[words]}", flush=True)
    for address in sorted(set(outside)):
        print(f"search: the site asks for {address}", flush=True)
    if not missing and not outside:
        print(f"search: {len(QUESTIONS)} questions answered without a network", flush=True)
    return 1 if missing or outside else 0


def found(page: Any, site: Path, words: str, wanted: str) -> bool:
    """Whether the search page of the site lists the wanted page for these words."""
    page.goto(f"{(site / 'search.html').as_uri()}?q={words.replace(' ', '+')}")
    page.wait_for_function(
        "/found|did not match/i.test(document.querySelector('#search-results')?.innerText ?? '')"
    )
    links = page.eval_on_selector_all(
        "#search-results li a", "links => links.map(link => link.getAttribute('href'))"
    )
    return any(wanted in str(link) for link in links)


def note_outside(address: str, outside: list[str]) -> None:
    """Keep the address of a request that leaves the site."""
    if not address.startswith(("file:", "data:", "blob:", "about:")):
        outside.append(address)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
