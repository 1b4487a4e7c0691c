"""The rules of axe-core on the report, in both schemes and at both widths: contrast AA, names, order, roles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from calipers.report import comparison_document, render_comparison, render_html
from tests.browser.conftest import Watched
from tests.browser.kinds_of_audits import document

pytestmark = pytest.mark.browser
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")

KINDS = (
    "regression 0",
    "sets at temperature 0.4",
    "probabilities at 0.3",
    "time in D",
    "healthy of 200",
    "three levels 12",
)


def violations(page: Any) -> list[str]:
    """Every rule that is broken and where."""
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}" for rule in found for node in rule["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_report_breaks_no_rule_of_axe(watched: Watched, kind: str, scheme: str, tmp_path: Path) -> None:
    place = tmp_path / "report.html"
    place.write_text(render_html(document(kind)), encoding="utf-8")
    watched.page.emulate_media(color_scheme=scheme)
    watched.page.goto(place.as_uri())
    watched.page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    assert violations(watched.page) == []


def test_the_comparison_breaks_no_rule_of_axe(watched: Watched, tmp_path: Path) -> None:
    trade_off = {
        name: {"size": size, "conditional_error": error, "efficient": name == "a"}
        for name, size, error in (("a", 2.0, 0.01), ("b", 3.0, 0.04))
    }
    made = comparison_document(names=["a", "b"], rows=9, lines=[], rankings={}, trade_off=trade_off)
    place = tmp_path / "comparison.html"
    place.write_text(render_comparison(made), encoding="utf-8")
    watched.page.goto(place.as_uri())
    assert violations(watched.page) == []
