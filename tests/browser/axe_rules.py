"""The rules of axe-core on an open page, in both schemes. Without the package the test is skipped by name."""

from __future__ import annotations

from typing import Any

import pytest

SCHEMES = ("light", "dark")
# All folds, and the tables of two pictures: the others are made in the same way.
UNFOLD = """() => {
  document.querySelectorAll("details:not(.table)").forEach((fold) => (fold.open = true));
  [...document.querySelectorAll("details.table")].slice(0, 2).forEach((fold) => (fold.open = true));
}"""


def in_both_schemes(page: Any) -> list[str]:
    """Every rule that is broken and where, in the light and in the dark scheme, with everything unfolded."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python"
    )
    page.evaluate(UNFOLD)
    found = []
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        broken = axe.Axe().run(page).response["violations"]
        found += [
            f"{scheme}: {rule['id']}: {node['target']} {node['failureSummary']}"
            for rule in broken
            for node in rule["nodes"]
        ]
    return found
