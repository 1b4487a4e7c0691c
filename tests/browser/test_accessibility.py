"""The rules of axe-core on every page, in both schemes and at both widths: contrast AA, names, order, roles."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calipers
from calipers.auditing import keep_audit, read_history
from calipers.report import render_html
from tests.browser.axe_rules import in_both_schemes
from tests.browser.conftest import Watched
from tests.browser.kinds_of_audits import document
from tests.browser.test_every_picture import OVERLAPS

pytestmark = pytest.mark.browser

# One of every kind of report.
KINDS = (
    "regression 0",
    "sets at temperature 0.4",
    "probabilities at 0.3",
    "time in D",
    "healthy of 200",
    "three levels 12",
    "scored with groups and time",
    "sets promised by class",
    "quantiles",
    "distributions",
    "outcomes with a promise per row",
    "losses against a bound",
    "difficulty stood in for",
    "repaired",
    "followed",
)


def opened(watched: Watched, html: str, folder: Path) -> Any:
    """The page with this text."""
    place = folder / "page.html"
    place.write_text(html, encoding="utf-8")
    watched.page.goto(place.as_uri())
    return watched.page


@pytest.mark.parametrize("kind", KINDS)
def test_the_report_breaks_no_rule_of_axe(watched: Watched, kind: str, tmp_path: Path) -> None:
    assert in_both_schemes(opened(watched, render_html(document(kind)), tmp_path)) == []


def test_the_comparison_breaks_no_rule_of_axe(watched: Watched, tmp_path: Path) -> None:
    y = np.random.default_rng(0).normal(size=600)
    audits = {
        name: calipers.audit(y, intervals=np.tile([-half, half], (600, 1)), random_state=0)
        for name, half in (("a", 1.7), ("b", 2.2), ("c", 1.0))
    }
    assert in_both_schemes(opened(watched, calipers.compare(audits).to_html(), tmp_path)) == []


def test_ranks_over_many_data_sets_break_no_rule_of_axe(watched: Watched, tmp_path: Path) -> None:
    def series(half: float) -> list[Any]:
        rows = [np.random.default_rng(seed).normal(size=200) for seed in range(8)]
        ends = np.tile([-half, half], (200, 1))
        return [calipers.audit(y, intervals=ends, random_state=0) for y in rows]

    compared = calipers.compare({"narrow": series(1.645), "wide": series(2.0), "wider": series(2.4)})
    assert in_both_schemes(opened(watched, compared.to_html(), tmp_path)) == []


def test_the_history_breaks_no_rule_of_axe_and_fits(watched: Watched, tmp_path: Path) -> None:
    for day, half in enumerate((1.7, 1.7, 1.2)):
        y = np.random.default_rng(day).normal(size=600)
        found = calipers.audit(
            y, intervals=np.tile([-half, half], (600, 1)), groups=np.arange(600) % 2, random_state=0
        )
        keep_audit(found, tmp_path, at=dt.datetime(2026, 1, 1 + day, tzinfo=dt.UTC), report=True)
    page = opened(watched, read_history(tmp_path).to_html(tmp_path / "page.html"), tmp_path)
    assert in_both_schemes(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(OVERLAPS) == []
    with page.expect_navigation():
        page.get_by_role("link", name="2026-01-03 00:00").click()
    assert page.locator(".answer").count() == 6
