"""The report and the local page in a real browser: no complaints, working slider, folds and tables."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import calipers
from calipers.conformal import conformal_p_values, lac
from calipers.datasets import MixtureWorld
from tests.browser.axe_rules import in_both_schemes
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
    assert page.locator(".answer").count() == 6
    # A fault that another explains may point to the picture of that one.
    drawn, pointing = page.locator(".fault svg").count(), page.locator(".fault dd a[href^='#fault-']").count()
    assert drawn > 0
    assert drawn + pointing == page.locator(".fault").count()
    for fold in page.locator("details.fold > summary").all():
        fold.click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert watched.complaints == []


def test_the_first_screen_holds_the_verdict_the_answers_and_a_picture(watched: Watched, report: Path) -> None:
    page = watched.page
    page.goto(report.as_uri())
    last = page.locator(".verdict, .answer").last.bounding_box()
    assert last["y"] + last["height"] < page.viewport_size["height"]
    if page.viewport_size["width"] > 1000:
        picture = page.locator(".fault svg").first.bounding_box()
        assert picture["y"] < page.viewport_size["height"] - 60


def test_the_slider_moves_the_marker_and_the_words(watched: Watched, report: Path) -> None:
    page = watched.page
    page.goto(report.as_uri())
    page.click("#pictures > summary")
    assert page.locator("#alpha-words").inner_text().startswith("alpha 0.1: promised 90\u00a0%")
    page.focus("#alpha-slider")
    page.keyboard.press("ArrowRight")
    assert page.locator("#alpha-words").inner_text().startswith("alpha 0.125:")
    assert page.locator(".stop.on").count() == 1
    page.keyboard.press("Home")
    assert page.locator("#alpha-words").inner_text().startswith("alpha 0.01:")
    assert watched.complaints == []


def test_folds_open_from_the_keyboard_and_links_reveal_what_they_name(watched: Watched, report: Path) -> None:
    page = watched.page
    page.goto(report.as_uri() + "#picture-cumulative_difference")
    assert page.locator("#pictures").get_attribute("open") is not None
    page.goto(report.as_uri())
    page.focus("#numbers > summary")
    page.keyboard.press("Enter")
    assert page.locator("#numbers table").first.is_visible()


def test_every_picture_shows_and_saves_its_table(watched: Watched, report: Path) -> None:
    page = watched.page
    page.goto(report.as_uri())
    page.click("#pictures > summary")
    figure = page.locator("#picture-CAL201_coverage_by_group")
    figure.locator("summary").click()
    assert "south <b>" in figure.locator("table").inner_text()
    with page.expect_download() as caught:
        figure.locator("[data-save]").click()
    text = Path(caught.value.path()).read_text(encoding="utf-8")
    assert text.startswith('"group","coverage"')
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
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    for part in ("#numbers table", "#methods dl", "#pictures svg", "#how-to-repair pre"):
        assert page.locator(part).first.is_visible(), part
    assert not page.locator("#theme").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("#numbers").get_attribute("open") is None


def test_without_scripts_everything_but_tables_and_slider_is_there(chromium: Any, report: Path) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator(".fault svg").first.is_visible()
    page.locator("#numbers > summary").click()
    assert page.locator("#numbers table").first.is_visible()
    assert not page.locator(".slider").first.is_visible()
    context.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("serve")
    y = np.random.default_rng(0).normal(size=800)
    for name, width in (("narrow", 1.0), ("wide", 2.5)):
        frame = pl.DataFrame({"y_true": y, "lower": np.full(800, -width), "upper": np.full(800, width)})
        frame.write_csv(folder / f"{name}.csv")
    files = [str(folder / f"{name}.csv") for name in ("narrow", "wide")]
    with served(*files) as at:
        yield at


@pytest.fixture(scope="module")
def bare_address() -> Iterator[str]:
    with served() as at:
        yield at


@contextmanager
def served(*files: str) -> Iterator[str]:
    """The address of a local page with these files."""
    command = [sys.executable, "-m", "calipers", "serve", "--no-open", *files]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        yield re.search(r"http://127\.0\.0\.1:\d+/\S+/", line)[0]
    finally:
        server.terminate()
        server.wait(timeout=20)
        server.stdout.close()


def run_audit(page: Any, count: int) -> None:
    page.click("#go")
    page.locator("#runs li").nth(count - 1).wait_for()


def test_the_local_page_runs_audits_and_compares_them(watched: Watched, address: str) -> None:
    page = watched.page
    page.set_default_timeout(90_000)
    page.goto(address)
    page.locator("#columns", has_text="y_true").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.wait_for_load_state("networkidle")  # audits of earlier tests are listed by then
    before = page.locator("#runs li").count()
    run_audit(page, before + 1)
    assert "Found" in page.locator("#message").inner_text()
    page.select_option("#file", label="wide.csv")
    page.locator("#chosen", has_text="wide.csv").wait_for()
    run_audit(page, before + 2)
    page.reload()
    page.locator("#runs li").nth(before + 1).wait_for()
    assert page.locator("#runs a[target]").first.inner_text().endswith(". wide.csv")
    assert page.locator("#file option:checked").inner_text() == "wide.csv"  # as before the reload
    assert page.locator("#compare").is_disabled()
    for box in page.locator("#runs input").all()[:2]:
        box.check()
    assert page.locator("#compare").is_enabled()
    assert not page.locator("#hint").is_visible()
    with page.context.expect_page() as opened:
        page.click("#compare")
    compared = opened.value
    compared.get_by_text("Calipers comparison").first.wait_for()
    assert compared.locator("figure svg .line").count() > 1  # differences have error bars
    compared.locator("thead a").first.click()
    compared.locator(".answer").first.wait_for()
    with page.context.expect_page() as opened:
        page.locator("#runs a[target]").first.click()
    opened.value.locator(".answer").first.wait_for()
    page.once("dialog", lambda dialog: dialog.accept())
    page.locator("#runs .remove").first.click()
    page.locator("#message", has_text="was removed").wait_for()
    assert page.locator("#runs li").count() == before + 1
    assert watched.complaints == []


def test_columns_are_changed_where_they_are_shown_and_survive_a_reload(
    watched: Watched, address: str, tmp_path: Path
) -> None:
    page = watched.page
    y = np.random.default_rng(1).normal(size=200)
    frame = pl.DataFrame({"truth": y, "lower": y - 1, "upper": y + 1, "site": np.arange(200) % 3, "age": y})
    frame.write_csv(tmp_path / "own names.csv")
    page.goto(address)
    page.set_input_files("#upload", tmp_path / "own names.csv")
    page.locator("#message.error", has_text="y_true").wait_for()
    row = page.locator("#columns tr")
    row.filter(has_text="truth").locator("select").select_option("y")
    row.filter(has_text="truth").get_by_role("cell", name="outcome", exact=True).wait_for()
    row.filter(has_text="site").locator("select").select_option("group")
    row.filter(has_text="site").get_by_role("cell", name="group", exact=True).wait_for()
    assert page.locator("#message.error").count() == 0
    page.fill("#alpha", "0.2")
    page.locator("#alpha").blur()
    page.reload()
    row.filter(has_text="site").get_by_role("cell", name="group", exact=True).wait_for()
    assert page.locator("#chosen").inner_text() == "own names.csv"
    assert page.input_value("#alpha") == "0.2"
    assert watched.complaints == []


def test_the_local_page_takes_a_dropped_file_and_shows_all_its_columns(
    watched: Watched, address: str, tmp_path: Path
) -> None:
    page = watched.page
    page.goto(address)
    y = np.random.default_rng(1).normal(size=200)
    names = {f"feature_{i}": y for i in range(30)}
    pl.DataFrame({"y_true": y, "lower": y - 1, "upper": y + 1, **names}).write_csv(
        tmp_path / "many columns.csv"
    )
    page.set_input_files("#upload", tmp_path / "many columns.csv")
    page.locator("#chosen", has_text="many columns.csv").wait_for()
    assert page.locator("#columns tr").count() == 33
    page.fill("#search", "feature_2")
    assert page.locator("#columns tr").count() == 11
    assert page.locator("#count").inner_text() == "11 of 33 columns"
    assert watched.complaints == []


def test_the_local_page_has_an_example_and_downloads(watched: Watched, address: str) -> None:
    page = watched.page
    page.set_default_timeout(90_000)
    page.goto(address)
    page.locator("#columns", has_text="y_true").wait_for()
    page.wait_for_load_state("networkidle")
    before = page.locator("#runs li").count()
    page.focus("#example")
    page.keyboard.press("Enter")
    page.locator("#chosen", has_text="example-houses.csv").wait_for()
    run_audit(page, before + 1)
    assert page.evaluate("document.activeElement.textContent").endswith(". example-houses.csv")
    for name, ending in (("HTML", "html"), ("JSON", "json"), ("Markdown", "md"), ("Rows (CSV)", "csv")):
        with page.expect_download() as caught:
            page.locator("#runs li").first.get_by_text(name, exact=True).click()
        assert caught.value.suggested_filename == f"example-houses.{ending}"
    assert watched.complaints == []


def test_the_local_page_breaks_no_rule_of_axe_in_any_state(
    watched: Watched, address: str, tmp_path: Path
) -> None:
    page = watched.page
    page.set_default_timeout(90_000)
    page.goto(address)
    page.locator("#columns", has_text="y_true").wait_for()
    page.wait_for_load_state("networkidle")
    faults = {"with a file": in_both_schemes(page)}
    count = page.locator("#runs li").count()
    run_audit(page, count + 1)
    run_audit(page, count + 2)
    for box in page.locator("#runs input").all()[:2]:
        box.check()
    faults["with audits chosen"] = in_both_schemes(page)
    with page.context.expect_page() as opened:
        page.click("#compare")
    opened.value.get_by_text("Calipers comparison").first.wait_for()
    faults["the comparison"] = in_both_schemes(opened.value)
    with page.context.expect_page() as opened:
        page.locator("#runs a[target]").first.click()
    opened.value.locator(".answer").first.wait_for()
    faults["the report"] = in_both_schemes(opened.value)
    (tmp_path / "no table.csv").write_text("\x00\x01", encoding="utf-8")
    page.set_input_files("#upload", tmp_path / "no table.csv")
    page.locator("#message.error").wait_for()
    faults["with an error"] = in_both_schemes(page)
    assert faults == {state: [] for state in faults}
    assert str(tmp_path.parent) not in page.locator("#message").inner_text()


def test_an_empty_local_page_invites_and_breaks_no_rule_of_axe(watched: Watched, bare_address: str) -> None:
    page = watched.page
    page.goto(bare_address)
    assert page.locator("#drop").is_visible()
    assert page.locator("#example").is_visible()
    assert not page.locator("#columns-part").is_visible()
    assert not page.locator("#runs-part").is_visible()
    assert in_both_schemes(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert watched.complaints == []
