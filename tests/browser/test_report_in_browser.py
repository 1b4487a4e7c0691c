"""The report and the local page in a real browser: no complaints, working slider, tabs and tables."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calipers
from calipers.conformal import conformal_p_values, lac
from calipers.datasets import MixtureWorld
from tests.browser.conftest import Watched

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = MixtureWorld()
    learn, rows = world.sample(500, 1), world.sample(1500, 0)
    P, known = (world.distorted(part.X, temperature=0.4) for part in (rows, learn))
    p_values = conformal_p_values(lac(known)[np.arange(500), learn.y], lac(P))
    groups = np.array(["north", "south <b>", "a very long name of a group"])[np.arange(1500) % 3]
    found = calipers.audit(
        rows.y, probabilities=P, p_values=p_values, X=rows.X, groups=groups, n_calibration=500, random_state=0
    )  # fmt: skip
    place = tmp_path_factory.mktemp("report") / "report.html"
    found.to_html(place)
    return place


def test_the_report_renders_without_complaints_and_fits_its_width(watched: Watched, report: Path) -> None:
    page = watched.page
    page.goto(report.as_uri())
    assert page.locator(".card").count() == 6
    for tab in page.locator("[role=tab]").all():
        tab.click()
        assert page.locator("[role=tabpanel]:visible").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert watched.complaints == []


def test_the_slider_moves_the_marker_and_the_words(watched: Watched, report: Path) -> None:
    page = watched.page
    page.goto(report.as_uri())
    page.click("[role=tab][data-tab=coverage]")
    assert page.locator("#alpha-words").inner_text().startswith("alpha 0.1: promised 90 %")
    page.focus("#alpha-slider")
    page.keyboard.press("ArrowRight")
    assert page.locator("#alpha-words").inner_text().startswith("alpha 0.125:")
    assert page.locator(".stop.on").count() == 1
    page.keyboard.press("Home")
    assert page.locator("#alpha-words").inner_text().startswith("alpha 0.01:")
    assert watched.complaints == []


def test_tabs_work_from_the_keyboard(watched: Watched, report: Path) -> None:
    page = watched.page
    page.goto(report.as_uri())
    page.focus("#tab-findings")
    page.keyboard.press("ArrowRight")
    assert page.locator("#panel-coverage").is_visible()
    assert page.evaluate("document.activeElement.id") == "tab-coverage"
    page.keyboard.press("End")
    assert page.locator("#panel-methods").is_visible()
    assert not page.locator("#panel-findings").is_visible()


def test_every_picture_shows_and_saves_its_table(watched: Watched, report: Path) -> None:
    page = watched.page
    page.goto(report.as_uri())
    page.click("[role=tab][data-tab=everywhere]")
    page.locator("#panel-everywhere details.table summary").first.click()
    table = page.locator("#panel-everywhere details.table table").first
    assert "south <b>" in table.inner_text()
    with page.expect_download() as caught:
        page.locator("#panel-everywhere [data-save]").first.click()
    text = Path(caught.value.path()).read_text(encoding="utf-8")
    assert text.startswith('"curve"')
    assert caught.value.suggested_filename.endswith(".csv")


def test_light_and_dark_can_be_switched(watched: Watched, report: Path) -> None:
    page = watched.page
    page.goto(report.as_uri())
    background = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(background)
    page.click("#theme")
    assert page.evaluate(background) != before


def test_print_shows_every_part(watched: Watched, report: Path) -> None:
    page = watched.page
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    assert page.locator("[role=tabpanel]:visible").count() == page.locator("[role=tabpanel]").count()
    assert not page.locator(".tabs").is_visible()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("serve")
    y = np.random.default_rng(0).normal(size=800)
    for name, width in (("narrow", 1.0), ("wide", 2.5)):
        frame = pl.DataFrame({"y_true": y, "lower": np.full(800, -width), "upper": np.full(800, width)})
        frame.write_csv(folder / f"{name}.csv")
    files = [str(folder / f"{name}.csv") for name in ("narrow", "wide")]
    command = [sys.executable, "-m", "calipers", "serve", "--no-open", *files]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        yield re.search(r"http://127\.0\.0\.1:\d+/\S+/", line)[0]
    finally:
        server.terminate()
        server.wait(timeout=20)
        server.stdout.close()


def test_the_local_page_runs_audits_and_compares_them(watched: Watched, address: str) -> None:
    page = watched.page
    page.set_default_timeout(90_000)
    page.goto(address)
    page.locator("#columns", has_text="y_true").wait_for()
    page.click("#go")
    page.wait_for_selector("#runs li")
    assert "Found" in page.locator("#message").inner_text()
    page.frame_locator("#report").locator(".card").first.wait_for()
    page.select_option("#file", label="wide.csv")
    page.click("#go")
    page.locator("#runs li").nth(1).wait_for()
    for box in page.locator("#runs input").all():
        box.check()
    page.click("#compare")
    page.frame_locator("#report").get_by_text("Calipers comparison of").first.wait_for()
    assert watched.complaints == []
