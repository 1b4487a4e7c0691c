"""Every picture of thirty audits in a real browser: no two texts overlap, none leaves its drawing."""

from __future__ import annotations

from typing import Any

import pytest

from calipers.report import render_html
from tests.browser.kinds_of_audits import MAKERS, document

pytestmark = pytest.mark.browser

# Boxes of all texts of each drawing; half a pixel of rounding is allowed.
OVERLAPS = """() => {
  const faults = [];
  document.querySelectorAll("details").forEach((fold) => (fold.open = true));
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    const boxes = [...svg.querySelectorAll("text")].map((t) => [t.textContent, t.getBoundingClientRect()]);
    boxes.forEach(([words, box], at) => {
      if (box.left < frame.left - 0.5 || box.right > frame.right + 0.5 || box.top < frame.top - 0.5 || box.bottom > frame.bottom + 0.5)
        faults.push(`${svg.getAttribute("aria-label").slice(0, 40)}: "${words}" leaves the drawing`);
      for (const [others, other] of boxes.slice(at + 1)) {
        const wide = Math.min(box.right, other.right) - Math.max(box.left, other.left);
        const high = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
        if (wide > 0.5 && high > 2) faults.push(`${svg.getAttribute("aria-label").slice(0, 40)}: "${words}" over "${others}"`);
      }
    });
  }
  return faults;
}"""


@pytest.fixture(scope="module")
def page(chromium: Any) -> Any:
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


def test_there_are_thirty_audits() -> None:
    assert len(MAKERS) >= 30


@pytest.mark.parametrize("name", MAKERS)
def test_no_text_overlaps_another_and_the_page_fits(name: str, page: Any) -> None:
    html = render_html(document(name))
    assert len(html.encode()) < 400_000
    page.set_content(html)
    assert page.evaluate(OVERLAPS) == []
    for width in (400, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
