"""A real browser: Debian's Chromium driven by Playwright. Without it every test here is skipped by name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = os.environ.get("CALIPERS_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser, started once."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no browser test was run: pip install playwright"
    )
    if CHROMIUM is None:
        pytest.skip("no browser test was run: there is no chromium (apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Watched:
    """A page and everything its console complained about."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._heard)
        page.on("requestfailed", lambda request: self.complaints.append(f"failed: {request.url}"))

    def _heard(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)


PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


@pytest.fixture(params=[PHONE, DESKTOP], ids=["phone", "desktop"])
def watched(chromium: Any, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Watched]:
    """A fresh page of one width, offline; screenshots go to CALIPERS_SCREENSHOTS when it is set."""
    context = chromium.new_context(viewport=request.param, offline=False)
    made = Watched(context.new_page())
    yield made
    if folder := os.environ.get("CALIPERS_SCREENSHOTS"):
        name = request.node.name.replace("[", "-").replace("]", "")
        made.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
    context.close()
